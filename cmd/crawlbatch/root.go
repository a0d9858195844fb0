package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/jobs/show"
	"crawlbatch.io/crawlbatch/k8s"
	"crawlbatch.io/crawlbatch/stages/fetch/robots"
	"crawlbatch.io/crawlbatch/stages/fetch/wire/dial"
)

// common are the flags that every command knows.
type common struct {
	store     string
	config    string
	logFormat string
	flags     config.Config // what flags set; the rest is zero
	// oneMachine declares that this machine alone uses the store's directory.
	oneMachine bool
	// settings is the key of a config in the store, for what runs elsewhere; it
	// takes the place of a --config file.
	settings string

	args     []string // the command line
	in       io.Reader
	out, err io.Writer
	log      *slog.Logger
	errors   *show.LogOutput // where log goes: to err, or above what is redrawn there
}

// defaultStore is where a crawl lies if nothing is said.
const defaultStore = "./crawl-data"

const exitCodesHelp = `
Exit codes: 0 done · 1 internal error · 2 usage or config · 3 some tasks failed,
retry can help · 4 a violation was found · 75 interrupted, go on later ·
78 permanent, retrying cannot help`

// execute runs a command line and returns its exit code.
func execute(ctx context.Context, args []string, in io.Reader, out, errw io.Writer) int {
	c := &common{in: in, out: out, err: errw, args: args}
	root := newRoot(c)
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errw)
	ctx, stop := signalContext(ctx)
	defer stop()
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitDone
	}
	fmt.Fprintf(show.Folding(errw), "crawlbatch: %s\n", oneLine(err))
	return c.exitCode(err)
}

// exitCode is that of an error, as whoever waits for this process wants it. Where that
// is a Job (its pods are told their names), what somebody has to mend is permanent:
// with 2 a Go program that crashed ends too, which is worth another attempt.
func (c *common) exitCode(err error) int {
	if code := exitCode(err); code != exitUsage || os.Getenv(k8s.PodName) == "" {
		return code
	}
	return exitPermanent
}

func newRoot(c *common) *cobra.Command {
	root := &cobra.Command{
		Use:   "crawlbatch",
		Short: "A batch web crawler over object storage",
		Long: `crawlbatch crawls the web in monthly batches: it shards a URL set by domain,
fetches and parses each shard politely, and reduces the outputs to Parquet tables
that DuckDB and Athena query. A directory or an S3 bucket is all the state it has.

  crawlbatch demo                                      a whole crawl, offline, in under a minute
  crawlbatch plan --month 2026-11 --source urls.txt    shard a URL set
  crawlbatch run  --month 2026-11 --rounds 2           crawl it
` + exitCodesHelp,
		SilenceErrors:              true,
		SuggestionsMinimumDistance: 2,
		SilenceUsage:               true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			return errors.Join(c.setup(), resolveMonth(cmd))
		},
	}
	root.Args = knownCommand
	// A template of cobra's for the version would link text/template, with which the
	// linker keeps every exported method of every package: 27 MB.
	asked := root.Flags().BoolP("version", "v", false, "version for crawlbatch")
	root.RunE = func(cmd *cobra.Command, _ []string) error {
		if *asked {
			_, err := fmt.Fprintf(c.out, "crawlbatch %s\n", version)
			return err
		}
		return cmd.Help()
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if err := mistyped(cmd, c.args); err != nil {
			return err
		}
		return usagef("%s: see `%s --help`", parsing.ReplaceAllString(err.Error(), "$1"), cmd.CommandPath())
	})
	f := root.PersistentFlags()
	f.StringVar(&c.store, "store", defaultStore, "directory, or s3://bucket/prefix, that holds the crawl")
	f.StringVar(&c.config, "config", "", "YAML config file")
	f.StringVar(&c.logFormat, "log-format", "text", "text or json")
	c.configFlags(root, false)
	f.BoolVar(&c.oneMachine, "one-machine", false, "accept a --store directory on NFS or FUSE: you declare that this machine alone uses it")
	root.AddCommand(
		newPlan(c), newRun(c), newStatus(c), newRetry(c), newReparse(c), newVerify(c), newViews(c), newFetch(c), newInspect(c),
		newTask(c), newConfig(c), newSimweb(c), newDemo(c), newK8s(c), newVersion(c),
	)
	root.SetOut(c.out) // the command completion keeps it
	addCompletion(root)
	for _, cmd := range root.Commands() {
		finish(cmd)
	}
	return root
}

// knownCommand refuses the name of a command that a group of commands does not have.
func knownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		return usagef("unknown command %q: did you mean `%s %s`?", args[0], cmd.CommandPath(), near[0])
	}
	return usagef("unknown command %q: see `%s --help`", args[0], cmd.CommandPath())
}

// mistyped is the error of a command line whose command a group does not have: a flag of
// the command that was meant is unknown to the group, and would be what is complained of.
func mistyped(cmd *cobra.Command, args []string) error {
	if !cmd.HasSubCommands() {
		return nil
	}
	above := strings.Count(cmd.CommandPath(), " ") // names of groups that come before
	for i := 0; i < len(args) && args[i] != "--"; i++ {
		name, isFlag := strings.CutPrefix(args[i], "--")
		switch {
		case isFlag:
			if f := cmd.Flags().Lookup(name); f == nil && !strings.Contains(name, "=") {
				return nil // whether the next word is its value, nobody knows
			} else if f != nil && f.NoOptDefVal == "" {
				i++
			}
		case strings.HasPrefix(args[i], "-"):
			return nil
		case above > 0:
			above--
		default:
			return knownCommand(cmd, args[i:])
		}
	}
	return nil
}

// finish gives a command and its children what all commands have: usage errors of
// the right class, and the exit codes at the end of the help.
func finish(cmd *cobra.Command) {
	cmd.Long = strings.TrimSpace(cmd.Long) + "\n" + exitCodesHelp
	cmd.SuggestionsMinimumDistance = 2
	if args := cmd.Args; args != nil {
		cmd.Args = func(cmd *cobra.Command, a []string) error {
			err := args(cmd, a)
			if errors.Is(err, errUsage) {
				return err
			}
			if err != nil {
				return usagef("%s: see `%s --help`", parsing.ReplaceAllString(err.Error(), "$1"), cmd.CommandPath())
			}
			return nil
		}
	}
	for _, child := range cmd.Commands() {
		finish(child)
	}
}

// parsing matches how a flag's value was parsed, beside what is wrong with it.
var parsing = regexp.MustCompile(`strconv\.\w+: parsing "(?:[^"\\]|\\.)*": (.*)$`)

func (c *common) setup() error {
	if c.logFormat == "text" {
		c.err = show.Folding(c.err)
	}
	c.errors = &show.LogOutput{Plain: c.err}
	if c.logFormat != "text" && c.logFormat != "json" {
		return usagef("--log-format %q: it may be text or json", c.logFormat)
	}
	c.log = c.logFrom(slog.LevelInfo)
	return nil
}

// logFrom is a log of what has at least a level.
func (c *common) logFrom(level slog.Level) *slog.Logger {
	options := &slog.HandlerOptions{Level: level}
	if c.logFormat == "json" {
		return slog.New(slog.NewJSONHandler(c.errors, options))
	}
	return slog.New(slog.NewTextHandler(c.errors, options))
}

// loadConfig reads --config and lays the flags over it.
func (c *common) loadConfig() (*config.Config, error) {
	cfg, err := config.Load(c.config, os.LookupEnv)
	if err != nil {
		return nil, err
	}
	cfg.Overlay(&c.flags)
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	// Not in Validate: a crawl that froze a bad one still has a status.
	for _, rule := range cfg.Fetch.ConnectTo {
		if _, err := dial.ParseConnectTo(rule); err != nil {
			if len(c.flags.Fetch.ConnectTo) == 0 {
				return nil, usagef("%s: fetch.connect_to: %v, as curl's", c.config, err)
			}
			return nil, usagef("--%v, as curl's", err)
		}
	}
	return cfg, nil
}

// laterConfig is what a crawl goes on with: what it froze, or the config that a
// driver elsewhere was given (--settings), its newest politeness, over that what
// --config says, and the flags.
func (c *common) laterConfig(ctx context.Context, b store.Bucket, crawl string, frozen *config.Config) (*config.Config, error) {
	base := frozen.Clone()
	if c.settings != "" {
		var err error
		if base, err = loadSettings(ctx, b, c.settings); err != nil {
			return nil, err
		}
		base.SetPoliteness(frozen.Politeness, layout.CrawlManifest(crawl))
	}
	newest, revision, err := roundstate.NewestPoliteness(ctx, b, crawl)
	if err != nil {
		return nil, err
	}
	if revision > 0 {
		base.SetPoliteness(newest, fmt.Sprintf("politeness revision %d", revision))
	}
	return c.configOver(base)
}

// loadSettings reads the config that a driver put into the store for its pods.
func loadSettings(ctx context.Context, b store.Bucket, key string) (*config.Config, error) {
	var s manifest.Settings
	if _, _, err := manifest.Load(ctx, b, key, &s); err != nil {
		return nil, err
	}
	return config.ReadFrozen(key, []byte(s.Config), os.LookupEnv)
}

// warnOfAgent tells of a user agent that a crawl froze and that would be refused today.
func (c *common) warnOfAgent(cfg *config.Config) {
	if err := robots.CheckAgent(cfg.UserAgent); err != nil && cfg.UserAgent != "" {
		fmt.Fprintf(c.err, "warning: this crawl goes on with the user agent that it froze, the next must have another: %v\n", err)
	}
}

// openCrawl opens the store, reads the crawl's frozen config and adopts what a
// later --config or flag may change of it.
func (c *common) openCrawl(ctx context.Context, crawl string) (store.Bucket, *config.Config, error) {
	if err := crawlName(crawl); err != nil {
		return nil, nil, err
	}
	later, err := c.loadConfig()
	if err != nil {
		return nil, nil, err
	}
	b, err := c.openStore(ctx, later)
	if err != nil {
		return nil, nil, reached(err)
	}
	_, frozen, err := roundstate.OpenCrawl(ctx, b, crawl, os.LookupEnv)
	if err != nil {
		return nil, nil, err
	}
	later, err = c.laterConfig(ctx, b, crawl, frozen)
	if err != nil {
		return nil, nil, err
	}
	if err := frozen.Adopt(later); err != nil {
		return nil, nil, err
	}
	return b, later, nil
}
