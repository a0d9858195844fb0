package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"crawlbatch.io/crawlbatch/cmd/sql"
	"crawlbatch.io/crawlbatch/cmd/usage"
	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/formats/store/s3store"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/jobs/predecessor"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/jobs/show"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch/robots"
	"crawlbatch.io/crawlbatch/stages/fetch/wire/dial"
)

// openStore opens --store. It checks that a store in S3 answers, and that the store has the format of this program. If it has
// another one, the error is a predecessor.Error.
func (c *common) openStore(ctx context.Context, cfg *config.Config) (store.Bucket, error) {
	options := s3store.Options{SSEKMSKey: cfg.Store.SSEKMSKey, StorageClass: cfg.Store.StorageClass, OnSilence: c.stillTrying}
	b, err := c.openBucket(ctx, c.store, options, c.oneMachine, (*s3store.Store).Reach)
	if err == nil {
		err = predecessor.Check(ctx, b)
	}
	return b, err
}

// refuse prints that the store has another format, and what can be done.
func (c *common) refuse(to io.Writer, other *predecessor.Error) {
	old := strings.TrimRight(c.store, "/")
	next := fmt.Sprintf("%s-%d", old, schema.FormatVersion)
	if wholeBucket(old) {
		next = fmt.Sprintf("%s/format-%d", old, schema.FormatVersion)
	}
	flags := usage.Flag("config", c.config)
	if c.oneMachine {
		flags += " --one-machine"
	}
	lines := other.Advice(predecessor.Places{
		Old: usage.Quote(old), Archive: usage.Quote(old + "/warc"), New: usage.Quote(next),
		Flags: flags, Config: c.config != "",
	})
	fmt.Fprintf(show.Folding(to), "crawlbatch: %s\n", show.OneLine(other))
	for _, line := range lines {
		if strings.HasPrefix(line, " ") { // a command, which must not be folded
			fmt.Fprintln(to, line)
		} else {
			fmt.Fprintln(show.Folding(to), line)
		}
	}
}

// openExisting opens a store of any format, only to read it. A directory must exist.
func (c *common) openExisting(ctx context.Context, address string) (store.Bucket, error) {
	if !strings.HasPrefix(address, s3store.Scheme) {
		if info, err := os.Stat(address); err != nil || !info.IsDir() {
			return nil, usage.Errorf("%q: no such directory", address)
		}
	}
	return c.openArchive(ctx, address)
}

// openArchive opens a store with files that somebody else wrote, such as WARC files of another
// crawler or lists of URLs. crawlbatch never writes to this store.
func (c *common) openArchive(ctx context.Context, address string) (store.Bucket, error) {
	// A store that is only read needs neither locks nor links, so a shared file system without them is
	// allowed, too.
	const oneMachine = true
	return c.openBucket(ctx, address, s3store.Options{}, oneMachine, func(*s3store.Store, context.Context) error { return nil })
}

// openBucket opens a directory or an S3 prefix and adds retries, and hedged requests for reads from S3. It refuses a
// mistyped address of S3: as a directory, it would be a store without a list of takedowns.
func (c *common) openBucket(ctx context.Context, address string, options s3store.Options, oneMachine bool, reach func(*s3store.Store, context.Context) error) (store.Bucket, error) {
	if address == "" {
		return nil, usage.Errorf("--store is empty: give a directory or s3://bucket/prefix")
	}
	if url := strings.Contains(address, "://") || strings.HasPrefix(strings.ToLower(address), "s3:"); url && !strings.HasPrefix(address, s3store.Scheme) {
		return nil, usage.Errorf("--store %q: give a directory or s3://bucket/prefix", address)
	}
	retries := &store.RetryLog{Log: c.log, Now: time.Now}
	retry := store.Retry{OnRetry: retries.Read}
	if strings.HasPrefix(address, s3store.Scheme) {
		options.OnRetry = retries.Write
		s, err := s3store.Open(ctx, address, options)
		if err != nil {
			return nil, usage.ErrorUnless(err, store.ErrUnavailable)
		}
		return c.beats.Count(store.WithRetry(store.WithHedge(s, store.Hedge{}), retry)), reach(s, ctx)
	}
	d, err := dirstore.Open(address, dirstore.Options{OneMachine: oneMachine})
	if errors.Is(err, store.ErrUnsupported) {
		err = fmt.Errorf("%w (--one-machine)", err)
	}
	if err != nil {
		return nil, usage.Error(err)
	}
	return c.beats.Count(store.WithRetry(d, retry)), nil
}

// stillTrying tells the user that a store in S3 does not answer yet.
func (c *common) stillTrying(host string, until time.Time) {
	fmt.Fprintf(c.err, "crawlbatch: %s does not answer: still trying until %s\n", host, until.Format(time.TimeOnly))
}

// addAccessAdvice adds advice to an error at the first access to the store.
func addAccessAdvice(err error) error {
	if errors.Is(err, store.ErrUnavailable) {
		return fmt.Errorf("%w: is --store right, and for s3:// AWS_ENDPOINT_URL_S3? If so, run this again when the store is back", err)
	}
	return err
}

// storeError turns an error at the first access to the store into a usage error, if the store's
// address or the permissions are wrong.
func storeError(err error) error {
	if errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrDenied) {
		return usage.Error(addAccessAdvice(err))
	}
	return err
}

// configOver replaces values of a config by those of --config and the flags, and checks the result.
func (c *common) configOver(base *config.Config) (*config.Config, error) {
	cfg, err := config.LoadOver(base, c.config, os.LookupEnv)
	if err != nil {
		return nil, err
	}
	cfg.Overlay(&c.flags)
	return cfg, cfg.Validate()
}

// loadConfig replaces defaults by the values of --config and the flags.
func (c *common) loadConfig() (*config.Config, error) {
	cfg, err := c.configOver(config.Default())
	if err != nil {
		return nil, err
	}
	// Validate does not check connect_to, because commands such as status must work for a crawl that
	// froze an invalid rule. A new config must not have one.
	for _, rule := range cfg.Fetch.ConnectTo {
		if _, err := dial.ParseConnectTo(rule); err != nil {
			if len(c.flags.Fetch.ConnectTo) == 0 {
				return nil, usage.Errorf("%s: fetch.connect_to: %v, as curl's", c.config, err)
			}
			return nil, usage.Errorf("--%v, as curl's", err)
		}
	}
	return cfg, nil
}

// openNew opens the store and the config for a crawl that may not exist yet.
func (c *common) openNew(ctx context.Context) (store.Bucket, *config.Config, error) {
	cfg, err := c.loadConfig()
	if err != nil {
		return nil, nil, err
	}
	b, err := c.openStore(ctx, cfg)
	return b, cfg, err
}

// openRetention opens the store and the config. The retention is that of the newest month's frozen
// config, unless --config changes it. A `prune` without --config thus keeps what the config of that
// month keeps.
func (c *common) openRetention(ctx context.Context) (store.Bucket, *config.Config, error) {
	return c.openNewest(ctx, func(base, frozen *config.Config) { base.Retention = frozen.Retention })
}

// openTakedown is like openRetention, for store.takedown_key.
func (c *common) openTakedown(ctx context.Context) (store.Bucket, *config.Config, error) {
	return c.openNewest(ctx, func(base, frozen *config.Config) { base.Store.TakedownKey = frozen.Store.TakedownKey })
}

// openNewest opens the store and the config of --config and the flags, which take what they do not set
// from the frozen config of the newest month. Variables of the environment that are not set are empty there,
// because most hold secrets that the command does not need.
func (c *common) openNewest(ctx context.Context, take func(base, frozen *config.Config)) (store.Bucket, *config.Config, error) {
	b, cfg, err := c.openNew(ctx)
	if err != nil {
		return nil, nil, err
	}
	crawls, err := roundstate.Crawls(ctx, b)
	if err != nil {
		return nil, nil, err
	}
	crawls = slices.DeleteFunc(crawls, layout.IsReparse)
	if len(crawls) == 0 {
		return b, cfg, nil
	}
	environment := func(name string) (string, bool) { return os.Getenv(name), true }
	_, frozen, err := roundstate.OpenCrawl(ctx, b, crawls[len(crawls)-1], environment)
	if err != nil {
		return nil, nil, err
	}
	base := config.Default()
	take(base, frozen)
	cfg, err = c.configOver(base)
	return b, cfg, err
}

// openCrawl opens the store and the config of a crawl, for a command that only reads. The config is the
// frozen one with the crawl's newest politeness, changed by --config and the flags. openCrawl returns an
// error if they change a frozen key.
func (c *common) openCrawl(ctx context.Context, crawl string) (store.Bucket, *config.Config, error) {
	b, err := c.openNamed(ctx, crawl)
	if err != nil {
		return nil, nil, err
	}
	l, err := ledger.LoadNewest(ctx, b, crawl)
	if err != nil {
		return b, nil, err
	}
	cfg, err := c.configOf(ctx, b, l, false)
	return b, cfg, err
}

// openToWrite opens the store and the config of a crawl for a command that writes. republish is true if the command publishes the politeness of --config. Lost
// politeness settings are then no error, because the command replaces them.
func (c *common) openToWrite(ctx context.Context, crawl string, republish bool) (store.Bucket, *config.Config, error) {
	b, err := c.openNamed(ctx, crawl)
	if err != nil {
		return nil, nil, err
	}
	l, err := roundstate.Ready(ctx, b, crawl)
	if err == nil && l == nil {
		_, err = ledger.Load(ctx, b, crawl) // returns the error that says how to create the crawl
	}
	if err != nil {
		return nil, nil, err
	}
	cfg, err := c.configOf(ctx, b, l, republish)
	return b, cfg, err
}

// openToChange is openToWrite for a command that publishes no politeness.
func (c *common) openToChange(ctx context.Context, crawl string) (store.Bucket, *config.Config, error) {
	return c.openToWrite(ctx, crawl, false)
}

// openNamed opens the store for a command about one crawl.
func (c *common) openNamed(ctx context.Context, crawl string) (store.Bucket, error) {
	if err := usage.CheckCrawl(crawl); err != nil {
		return nil, err
	}
	return c.openToRead(ctx)
}

// openToRead opens the store for a command that only reads, before a crawl is chosen.
func (c *common) openToRead(ctx context.Context) (store.Bucket, error) {
	b, _, err := c.openNew(ctx)
	return b, addAccessAdvice(err)
}

// configOf returns the config that a command uses for a crawl.
func (c *common) configOf(ctx context.Context, b store.Bucket, l *ledger.Ledger, republish bool) (*config.Config, error) {
	frozen, current, err := roundstate.ConfigInForce(ctx, b, l, c.settings, os.LookupEnv)
	var lost *ledger.Lost
	if republish && errors.As(err, &lost) && lost.Object == layout.Politeness(l.Crawl) && config.StatesPoliteness(c.config) {
		err = nil
	}
	if err != nil {
		return nil, err
	}
	if err := c.warnOfSecrets(l.Crawl, frozen); err != nil {
		return nil, err
	}
	cfg, err := c.configOver(current)
	if err == nil && c.settings == "" {
		err = cfg.RefuseLiteralSecrets(frozen)
	}
	if err == nil {
		err = frozen.Adopt(cfg)
	}
	return cfg, err
}

// warnOfSecrets warns if the crawl froze a secret as plain text. Pods do not repeat the warning.
func (c *common) warnOfSecrets(crawl string, frozen *config.Config) error {
	if c.settings != "" {
		return nil
	}
	warning, err := frozen.WarnOfSecrets(layout.CrawlManifest(crawl))
	if warning != "" {
		fmt.Fprintf(c.err, "warning: %s\n", warning)
	}
	return err
}

// openToComplete opens the store for the completion of flags in a shell, without any message.
func (c *common) openToComplete(ctx context.Context) (store.Bucket, error) {
	c.err = io.Discard
	if err := c.setup(); err != nil {
		return nil, err
	}
	b, _, err := c.openNew(ctx)
	return b, err
}

// sqlStore opens the store for commands that query datasets.
func (c *common) sqlStore() *sql.Store {
	return &sql.Store{
		Address: func() string { return c.store },
		Open:    c.openToRead,
	}
}

// ledgers returns a writer of ledgers that records this program's version.
func ledgers() ledger.Writer { return ledger.Writer{Version: version, Clock: stages.SystemClock{}} }

// warnOfAgent warns if the crawl froze a user agent that a new crawl may not have.
func (c *common) warnOfAgent(cfg *config.Config) {
	if err := robots.CheckAgent(cfg.UserAgent); err != nil && cfg.UserAgent != "" {
		fmt.Fprintf(c.err, "warning: this crawl continues with its frozen user agent, but the next crawl needs another one: %v\n", err)
	}
}
