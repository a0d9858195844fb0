// Package compact holds the command compact, which makes a compacted copy of a month's tables.
package compact

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"crawlbatch.io/crawlbatch/cmd/usage"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/compact"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/scratch"
	"crawlbatch.io/crawlbatch/jobs/show"
	"crawlbatch.io/crawlbatch/stages"
)

// Env is what the command needs of the program.
type Env struct {
	// Read opens a crawl to read it, and Write opens it to change its ledger.
	Read, Write func(ctx context.Context, crawl string) (store.Bucket, *config.Config, error)
	Flags       func() string // flags for the same store and config, for advice
	Version     string
	Clock       stages.Clock
}

type options struct {
	env          Env
	month        string
	dryRun, drop bool
	output       string
	out, err     io.Writer
}

// Command returns the command compact.
func Command(env Env) *cobra.Command {
	o := options{env: env}
	cmd := usage.WithOptions(&o, run, &cobra.Command{
		Use:   "compact --month YYYY-MM [--dry-run | --drop]",
		Short: "Copy the tables of a month into few large parts for faster queries",
		Long: `Compact copies the tables of a month's finished rounds into parts of 256 MiB whose rows are in
the order of the dataset's key across all rounds and partitions, with Bloom filters of URLs,
hosts and domains. A query for one URL, host or domain then opens few parts. query and the
views for DuckDB, Trino and Spark read the copy. All other commands read the published parts,
which compact never changes or deletes.

The copy takes as much storage as the tables. Compact compares its rows with the published
ones before views read it. A round that finishes later is read from its published parts until
compact runs again. Each run makes a new copy and deletes the one before: create views again
then. After a crash, run it again. --drop deletes the copy.`,
		Example: "  crawlbatch compact --month 2026-11 --dry-run\n  crawlbatch compact --month 2026-11\n  crawlbatch compact --month 2026-11 --drop",
	})
	usage.MonthFlag(cmd, &o.month, "crawl to compact")
	f := cmd.Flags()
	f.BoolVar(&o.dryRun, "dry-run", false, "print what would be copied; write nothing")
	f.BoolVar(&o.drop, "drop", false, "let views read the published parts again, and delete the copy")
	f.StringVarP(&o.output, "output", "o", "table", "table or json")
	usage.CompleteFlag(cmd, "output", "table", "json")
	cmd.PreRun = func(cmd *cobra.Command, _ []string) { o.out, o.err = cmd.OutOrStdout(), cmd.ErrOrStderr() }
	return cmd
}

func run(ctx context.Context, o options) error {
	if err := usage.OneOf("output", o.output, "table", "json"); err != nil {
		return err
	}
	if o.dryRun && o.drop {
		return usage.Errorf("--dry-run and --drop cannot be combined")
	}
	do, open := compact.Run, o.env.Write
	switch {
	case o.dryRun:
		do, open = compact.Find, o.env.Read
	case o.drop:
		do = compact.Drop
	}
	b, cfg, err := open(ctx, o.month)
	if err != nil {
		return err
	}
	dir, remove, err := scratch.New()
	if err != nil {
		return err
	}
	defer remove()
	found, err := do(ctx, compact.Request{Bucket: b, Crawl: o.month, Version: o.env.Version, Clock: o.env.Clock, Scratch: dir, Tell: o.tell})
	var leftover *compact.Leftover
	if found == nil || err != nil && !errors.As(err, &leftover) {
		return err
	}
	if o.output == "json" {
		return cmp.Or(usage.WriteJSON(o.out, found), err)
	}
	return cmp.Or(o.print(found, cfg.Prices.Stored), err)
}

// tell prints a line for each dataset that is copied.
func (o *options) tell(d compact.Dataset) {
	fmt.Fprintf(o.err, "crawlbatch: %s: %s of %s, %s in %s copied to %s in %s\n", d.Name, show.Count(d.Rows, "row"), show.Count(int64(d.Rounds), "round"),
		show.Bytes(d.Bytes), show.Count(int64(d.Parts), "part"), show.Bytes(d.CopiedBytes), show.Count(int64(d.CopiedParts), "part"))
}

// print prints what was copied, or what would be. price is that of 10⁹ bytes and month.
func (o *options) print(f *compact.Found, price float64) error {
	var all compact.Dataset
	for _, d := range f.Datasets {
		all.Rows, all.Parts, all.Bytes = all.Rows+d.Rows, all.Parts+d.Parts, all.Bytes+d.Bytes
		all.CopiedParts, all.CopiedBytes = all.CopiedParts+d.CopiedParts, all.CopiedBytes+d.CopiedBytes
	}
	published := fmt.Sprintf("%s in %s, %s", show.Count(all.Rows, "row"), show.Count(int64(all.Parts), "part"), show.Bytes(all.Bytes))
	out := show.Folding(o.out)
	switch {
	case o.drop:
		fmt.Fprintf(out, "%s: views read the published parts; deleted %s\n", f.Crawl, show.Count(int64(f.Deleted), "object"))
		_, err := fmt.Fprintln(out, "views that were created from the copy fail now: create them again")
		return err
	case o.dryRun:
		fmt.Fprintf(out, "%s: would copy the datasets of %s: %s\n", f.Crawl, show.Count(int64(f.Rounds), "round"), published)
		fmt.Fprintf(out, "the copy takes about as much storage: $%.2f a month\n", float64(all.Bytes)/1e9*price)
		return o.printCurrent(out, f)
	}
	fmt.Fprintf(out, "%s: copied the datasets of %s: %s, to %s, %s, $%.2f a month\n", f.Crawl, show.Count(int64(f.Rounds), "round"), published,
		show.Count(int64(all.CopiedParts), "part"), show.Bytes(all.CopiedBytes), float64(all.CopiedBytes)/1e9*price)
	if f.Deleted > 0 {
		fmt.Fprintf(out, "deleted %s of older copies; views that were created from them fail now: create them again\n", show.Count(int64(f.Deleted), "object"))
	}
	_, err := fmt.Fprintf(out, "next: crawlbatch query --month %s%s \"SELECT …\", which reads the copy\n", f.Crawl, o.env.Flags())
	return err
}

// printCurrent prints of which rounds views read a copy.
func (o *options) printCurrent(out io.Writer, f *compact.Found) (err error) {
	switch {
	case f.Fault != "":
		_, err = fmt.Fprintf(out, "there is a copy, but views read the published parts: %s\n", f.Fault)
	case f.Current == "":
		_, err = fmt.Fprintln(out, "there is no copy yet")
	default:
		_, err = fmt.Fprintf(out, "views read the copy %s for %d of %s\n", f.Current, f.Covered, show.Count(int64(f.Rounds), "round"))
	}
	return err
}
