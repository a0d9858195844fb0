// Package takedown holds the command takedown, which removes URLs and domains from a store.
package takedown

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"crawlbatch.io/crawlbatch/cmd/usage"
	"crawlbatch.io/crawlbatch/formats/store"
	names "crawlbatch.io/crawlbatch/formats/takedown"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/jobs/predecessor"
	"crawlbatch.io/crawlbatch/jobs/scratch"
	"crawlbatch.io/crawlbatch/jobs/show"
	"crawlbatch.io/crawlbatch/jobs/takedown"
	"crawlbatch.io/crawlbatch/planner/source"
	"crawlbatch.io/crawlbatch/stages"
)

// Env is what the command needs of the program.
type Env struct {
	// Open returns the store and the config of --config and the flags. If these do not set
	// store.takedown_key, the config has that of the newest month.
	Open func(ctx context.Context) (store.Bucket, *config.Config, error)
	// OpenAny opens a store of any format, only to read it.
	OpenAny func(ctx context.Context, address string) (store.Bucket, error)
	Flags   func() string // flags for the same store and config, for advice
	Version string
	Clock   stages.Clock
}

type options struct {
	env           Env
	urls, domains []string
	list, reason  string
	from          string
	apply, resume bool
	output        string
	out           io.Writer
}

// Command returns the command takedown.
func Command(env Env) *cobra.Command {
	o := options{env: env}
	cmd := usage.WithOptions(&o, run, &cobra.Command{
		Use:   "takedown (--url URL | --domain DOMAIN | --list FILE) [--apply --reason TEXT] | --from STORE [--apply] | --resume",
		Short: "Remove URLs or whole domains from the store, and never fetch them again",
		Long: `Takedown prints what of the store names the given URLs and domains, and what would become
of it. With --apply it changes the store: rows about them go from all tables and working
files, other rows lose the cells that refer to them, and their WARC records become
tombstones of the same length. A domain stands for its subdomains too, and a URL for all
the other forms of it. The texts of other pages stay, even if they mention a name.

All rounds of all crawls must be finished. Nothing else may run in the store meanwhile:
plan, run and reparse wait. After an interruption, give the same command again, or run
takedown --resume. Compacted copies are deleted first; make them again with compact.

The store keeps no name. It keeps keyed digests, by which plan and fetch refuse the names
from then on. The key is store.takedown_key, at least 16 bytes, such as "${TAKEDOWN_KEY}".

With --from, takedown copies the digests from the list of another store with the same key,
also from a store of another format, and prints which hosts that store stops. Do this before
a new store parses the WARC files of an old one again.

A list has a URL or a domain on each line, and may be compressed with gzip or zstd. Empty
lines and lines that begin with # count for nothing.`,
		Example: "  crawlbatch takedown --domain example.org\n  crawlbatch takedown --url https://example.org/page --reason 'request 17' --apply\n  crawlbatch takedown --from old-store --store new-store --config crawlbatch.yaml --apply\n  crawlbatch takedown --resume",
	})
	f := cmd.Flags()
	f.StringArrayVar(&o.urls, "url", nil, "URL to remove, in any form (repeatable)")
	f.StringArrayVar(&o.domains, "domain", nil, "domain to remove, with its subdomains (repeatable)")
	f.StringVar(&o.list, "list", "", "file with a URL or domain on each line")
	f.StringVar(&o.reason, "reason", "", "why, for the store's list of takedowns; it must not name what is removed")
	f.StringVar(&o.from, "from", "", "another store whose list of takedowns is carried over")
	f.BoolVar(&o.apply, "apply", false, "change the store; without this flag, takedown only prints")
	f.BoolVar(&o.resume, "resume", false, "finish an interrupted takedown")
	f.StringVarP(&o.output, "output", "o", "table", "table or json")
	usage.CompleteFlag(cmd, "output", "table", "json")
	cmd.PreRun = func(cmd *cobra.Command, _ []string) { o.out = cmd.OutOrStdout() }
	return cmd
}

// check checks the flags, and adds the names of --list.
func (o *options) check(ctx context.Context) error {
	if err := usage.OneOf("output", o.output, "table", "json"); err != nil {
		return err
	}
	if o.list != "" {
		if err := o.readList(ctx); err != nil {
			return usage.Error(err)
		}
	}
	given := len(o.urls)+len(o.domains) > 0
	switch {
	case o.resume && (given || o.apply || o.from != ""):
		return usage.Errorf("--resume finishes an interrupted takedown: give it alone")
	case o.from != "" && (given || o.reason != "" || o.output != "table"):
		return usage.Errorf("--from copies a list with its reasons: give it alone or with --apply")
	case o.from != "":
		return nil
	case !o.resume && !given:
		return usage.Errorf("nothing to remove: give --url, --domain or --list")
	case o.apply && strings.TrimSpace(o.reason) == "":
		return usage.Errorf("--apply needs --reason: why the names are removed, without the names")
	}
	return nil
}

// readList adds the names of --list. It reads the list as plan reads one.
func (o *options) readList(ctx context.Context) error {
	from, err := source.Files(o.list, os.Stdin)
	if err != nil {
		return err
	}
	for e, err := range from.Entries(ctx) {
		if errors.Is(err, source.ErrEmpty) {
			return nil
		}
		if err != nil {
			return err
		}
		name, of := strings.TrimSpace(e.URL), &o.domains
		switch {
		case e.Broken != "":
			return fmt.Errorf("%s:%d: %s", e.File, e.Line, e.Broken)
		case strings.HasPrefix(name, "#"):
			continue
		case strings.Contains(name, "://"):
			of = &o.urls
			_, err = names.New([]string{name}, nil)
		default:
			_, err = names.New(nil, []string{name})
		}
		if err != nil {
			return fmt.Errorf("%s:%d: %w", e.File, e.Line, err)
		}
		*of = append(*of, name)
	}
	return nil
}

func run(ctx context.Context, o options) error {
	if err := o.check(ctx); err != nil {
		return err
	}
	b, cfg, err := o.env.Open(ctx)
	if err != nil {
		return err
	}
	p := &printer{out: show.Folding(o.out)}
	if o.from != "" {
		return o.carry(ctx, b, cfg.Store.TakedownKey, p)
	}
	dir, remove, err := scratch.New()
	if err != nil {
		return err
	}
	defer remove()
	r := takedown.Request{Bucket: b, URLs: o.urls, Domains: o.domains, Reason: o.reason, Secret: cfg.Store.TakedownKey, Clock: o.env.Clock, Version: o.env.Version, Scratch: dir}
	if o.resume {
		did, err := takedown.Resume(ctx, r)
		if err != nil {
			return err
		}
		if did {
			p.line("finished the interrupted takedown")
		} else {
			p.line("no takedown had begun to change objects; if one was interrupted, the store holds all that it names: give its command again")
		}
		return p.err
	}
	do := takedown.Find
	if o.apply {
		do = takedown.Apply
	}
	f, err := do(ctx, r)
	if errors.Is(err, names.ErrTarget) || errors.Is(err, names.ErrKey) {
		err = usage.Error(err)
	}
	if err != nil {
		return err
	}
	for i, why := range f.Busy {
		f.Busy[i] = usage.Advise(why, o.env.Flags())
	}
	if o.output == "json" {
		return usage.WriteJSON(o.out, f)
	}
	p.found(f, o.apply, o.env.Flags())
	return p.err
}

// carry copies the list of takedowns of --from into the store b.
func (o *options) carry(ctx context.Context, b store.Bucket, secret string, p *printer) error {
	from, err := o.env.OpenAny(ctx, o.from)
	if err != nil {
		return err
	}
	stops, err := predecessor.Stops(ctx, from)
	if err != nil {
		return err
	}
	added, total, err := predecessor.Carry(ctx, b, from, secret, ledger.Writer{Version: o.env.Version, Clock: o.env.Clock}, o.apply)
	if errors.Is(err, names.ErrKey) {
		err = usage.Error(err)
	}
	if err != nil {
		return err
	}
	rest := ""
	if total > added {
		rest = fmt.Sprintf("; the store has the other %d", total-added)
	}
	switch {
	case total == 0:
		p.line("nothing was taken down from %s", o.from)
	case added == 0:
		p.line("the store has every takedown of %s", o.from)
	case !o.apply:
		p.line("would carry over %s from %s%s: do it with --apply", show.Count(int64(added), "takedown"), o.from, rest)
	default:
		p.line("carried over %s from %s%s", show.Count(int64(added), "takedown"), o.from, rest)
		p.line("from now on nothing of this is planned, fetched or parsed; what the store already holds of it stays")
	}
	if len(stops) > 0 {
		p.line("hosts and domains that somebody stopped there: add these lines to the list that plan.opt_out names")
		for _, s := range stops {
			p.line("# %s, by %s: %s\n%s", s.Crawl, s.By, strings.Join(strings.Fields(s.Reason), " "), s.Line())
		}
	}
	return p.err
}

// shownDeleted bounds the printed list of objects that are deleted.
const shownDeleted = 50

// printer prints what is removed. It keeps the first error of its writer.
type printer struct {
	out io.Writer
	err error
}

func (p *printer) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.out, format+"\n", args...)
	}
}

func (p *printer) found(f *takedown.Found, applied bool, flags string) {
	would := ""
	if !applied {
		would = "would "
	}
	for _, k := range f.Kinds {
		p.line("%schange %s, %s, in %s: %s", would, show.Count(k.Objects, "object"), show.Bytes(k.Bytes), k.Name, what(&k))
	}
	for _, key := range f.Deleted[:min(len(f.Deleted), shownDeleted)] {
		p.line("%sdelete %s, which no document lists, and which names it or cannot be read", would, key)
	}
	if more := len(f.Deleted) - shownDeleted; more > 0 {
		p.line("%sdelete %s more, which -o json lists", would, show.Count(int64(more), "object"))
	}
	for _, key := range f.Missing[:min(len(f.Missing), shownDeleted)] {
		p.line("%s is lost, so nothing of it is changed: if it is restored from a copy, give this command again", key)
	}
	if more := len(f.Missing) - shownDeleted; more > 0 {
		p.line("%s more are lost, which -o json lists", show.Count(int64(more), "WARC file"))
	}
	for _, c := range f.Compacted {
		p.line("%sdelete the compacted copies of %s: make them again with `crawlbatch compact --month %s%s`", would, c, c, flags)
	}
	if f.Mentions > 0 {
		p.line("%s of others mention a name, and stay", show.Count(f.Mentions, "text"))
	}
	for _, key := range f.Named {
		p.line("still named in %s, which stays as it is: it says what people decided", key)
	}
	for _, why := range f.Busy {
		p.line("--apply would change nothing now: %s", why)
	}
	switch {
	case f.Unfinished:
		p.line("an earlier takedown was interrupted: finish it with `crawlbatch takedown --resume%s`", flags)
	case len(f.Busy) > 0:
	case !applied && f.Objects() == 0:
		p.line("the store names nothing of this; with --apply it would never be planned or fetched")
	case !applied:
		p.line("nothing was changed: change the store with --apply --reason TEXT")
	case f.Objects() == 0:
		p.line("the store named nothing of this; from now on it is never planned or fetched")
	default:
		p.line("changed %s; from now on nothing of this is planned or fetched", show.Count(f.Objects(), "object"))
		p.line("old versions in the bucket, backups, exports, query results and caches are outside the store: remove what they hold (`aws s3api list-object-versions`)")
	}
}

// what says what becomes of the objects of a kind.
func what(k *takedown.Kind) string {
	var parts []string
	for _, c := range []struct {
		n    int64
		unit string
		text string
	}{{k.Dropped, "row", "removed"}, {k.Cleared, "row", "cleared of references"}, {k.Adjusted, "row", "adjusted"}, {k.Tombstones, "record", "made a tombstone"}} {
		if c.n > 0 {
			parts = append(parts, show.Count(c.n, c.unit)+" "+c.text)
		}
	}
	if len(parts) == 0 {
		return "digests and counts"
	}
	return strings.Join(parts, ", ")
}
