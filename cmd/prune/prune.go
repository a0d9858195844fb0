// Package prune holds the command prune, which deletes what is older than its retention.
package prune

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"crawlbatch.io/crawlbatch/cmd/usage"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/prune"
	"crawlbatch.io/crawlbatch/jobs/show"
	"crawlbatch.io/crawlbatch/stages"
)

// Env is what the command needs of the program.
type Env struct {
	// Open returns the store and the config of --config and the flags. If these do not set the
	// retention, the config has that of the newest month.
	Open    func(ctx context.Context) (store.Bucket, *config.Config, error)
	Flags   func() string // flags for the same store and config, for advice
	Version string
	Clock   stages.Clock
}

type options struct {
	env       Env
	apply     bool
	lifecycle bool
	output    string
	out       io.Writer
}

// Command returns the command prune.
func Command(env Env) *cobra.Command {
	o := options{env: env}
	cmd := usage.WithOptions(&o, run, &cobra.Command{
		Use:   "prune [--apply] [--lifecycle]",
		Short: "Delete working data, raw captures and whole months that are older than their retention",
		Long: `Prune prints for each crawl what is older than retention.working_data_days (days after its
last round), retention.raw and retention.metadata (months), with objects, bytes and dollars a
month, and what stays, why and until when. With --apply it deletes them. It deletes nothing
while a round of any crawl or reparse is unfinished. Working data are the working files of
reduce stages that no later round reads, and the texts of segments. WARC files stay as long as
later rounds refer to a payload in them. A crawl's ledger always stays and says what was
pruned, so other commands do not take it for a loss. After an interruption, run prune --apply
again. If --config sets no retention, that of the newest month applies.

With --lifecycle it prints the lifecycle configuration that moves old WARC files of a store in
S3 to cold storage (retention.cold_after, retention.cold_class), for
aws s3api put-bucket-lifecycle-configuration. With --lifecycle --apply it adds this rule to the
bucket's configuration and keeps all other rules.`,
		Example: "  crawlbatch prune\n  crawlbatch prune --apply\n  crawlbatch prune --lifecycle --store s3://bucket/prefix",
	})
	f := cmd.Flags()
	f.BoolVar(&o.apply, "apply", false, "delete; without this flag, prune only prints")
	f.BoolVar(&o.lifecycle, "lifecycle", false, "print the S3 lifecycle configuration for cold storage; with --apply: set it")
	f.StringVarP(&o.output, "output", "o", "table", "table or json")
	usage.CompleteFlag(cmd, "output", "table", "json")
	cmd.PreRun = func(cmd *cobra.Command, _ []string) { o.out = cmd.OutOrStdout() }
	return cmd
}

func run(ctx context.Context, o options) error {
	if err := usage.OneOf("output", o.output, "table", "json"); err != nil {
		return err
	}
	b, cfg, err := o.env.Open(ctx)
	if err != nil {
		return err
	}
	if o.lifecycle {
		return o.runLifecycle(ctx, b, cfg)
	}
	r := prune.Request{Bucket: b, Working: cfg.Retention.WorkingDays, Raw: cfg.Retention.Raw, Metadata: cfg.Retention.Metadata, Clock: o.env.Clock, Version: o.env.Version}
	do := prune.Find
	if o.apply {
		do = prune.Apply
	}
	found, err := do(ctx, r)
	if err != nil {
		return err
	}
	for i, why := range found.Busy {
		found.Busy[i] = usage.Advise(why, o.env.Flags())
	}
	if o.output == "json" {
		return usage.WriteJSON(o.out, found)
	}
	p := printer{out: show.Folding(o.out), price: cfg.Prices.Stored, would: !o.apply}
	p.found(found)
	switch {
	case !found.Pending():
		p.line("nothing to prune")
	case !o.apply && len(found.Busy) > 0:
		p.line("nothing was deleted")
	case !o.apply:
		p.line("nothing was deleted: delete with `crawlbatch prune --apply%s`", o.env.Flags())
	}
	return p.err
}

// printer prints what is pruned. It keeps the first error of its writer.
type printer struct {
	out   io.Writer
	price float64 // dollars for 10⁹ bytes and month
	would bool    // true: nothing was deleted
	err   error
}

func (p *printer) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.out, format+"\n", args...)
	}
}

func (p *printer) found(f *prune.Found) {
	var all prune.Size
	for _, c := range f.Crawls {
		total := c.Total()
		all = all.Add(total)
		switch {
		case c.Policy == "":
			p.line("%s  keeps everything: %s", c.Name, c.Why)
			continue
		case total.Objects == 0 && !c.Unfinished:
			p.line("%s  %s is pruned (%s)", c.Name, c.Policy, c.Why)
		default:
			p.line("%s  %s %s: %s (%s)", c.Name, p.verb(), c.Policy, p.size(total), c.Why)
		}
		for _, k := range c.Delete {
			p.line("  %-13s  %s", k.Name, p.size(k.Size))
		}
		if c.Kept.Objects > 0 {
			p.line("  keeps %s, %s, as whole files, because later rounds refer to payloads in them", show.Count(c.Kept.Objects, "WARC file"), show.Bytes(c.Kept.Bytes))
		}
		if c.Unfinished && p.would {
			p.line("  an earlier prune was interrupted here")
		}
	}
	for _, why := range f.Busy {
		p.line("--apply would delete nothing now: %s", why)
	}
	if all.Objects > 0 {
		p.line("%s %s in all", p.verb(), p.size(all))
	}
}

func (p *printer) verb() string {
	if p.would {
		return "would delete"
	}
	return "deleted"
}

// size writes a size with its monthly price.
func (p *printer) size(s prune.Size) string {
	return fmt.Sprintf("%s, %s, $%.2f a month", show.Count(s.Objects, "object"), show.Bytes(s.Bytes), float64(s.Bytes)/1e9*p.price)
}
