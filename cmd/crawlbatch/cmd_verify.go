package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"crawlbatch.io/crawlbatch/cmd/usage"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/jobs/local"
	"crawlbatch.io/crawlbatch/jobs/quarantine"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/jobs/scratch"
	"crawlbatch.io/crawlbatch/jobs/show"
	"crawlbatch.io/crawlbatch/jobs/verify"
	"crawlbatch.io/crawlbatch/stages"
)

type verifyOptions struct {
	runOptions
	round    int
	tasks    int
	sample   float64
	output   string
	oneClock bool
	parallel int
	// With quarantine, the command lists strays, which are objects that no document lists. With yes, it
	// also moves them.
	quarantine, yes bool
}

func newVerify(c *common) *cobra.Command {
	o := verifyOptions{runOptions: runOptions{common: c}}
	cmd := &cobra.Command{
		Use:   "verify [--month YYYY-MM]",
		Short: "Audit the stored data of a crawl",
		Long: `Verify checks what crawlbatch promises, from the stored data alone: every file is whole,
every planned URL has one outcome, no request violated robots.txt or the delay, every
capture is in its WARC file, duplicates and links are complete, and the same inputs give
the same bytes.

It writes nothing to the store, except with --tasks. --tasks divides the audit of a large month
into tasks, which pods run with --executor kubernetes. The report is the same. The tasks keep
their findings in the store until the audit ends.

Each check reports how much it read. With --sample 0.01, verify reads one in a hundred
partitions, records and files.

With --quarantine, verify only lists the objects that belong to no seal, result, checkpoint
or running task. With --yes it also moves these objects to quarantine/ in the store, where
no query engine reads them: it copies each object, compares the copy, then deletes the
object. No fetch stage may run meanwhile.`,
		Example: `  crawlbatch verify --month 2026-11 --sample 0.01
  crawlbatch verify --month 2026-11 --store s3://crawls --executor kubernetes --tasks 64
  crawlbatch verify --month 2026-11 --quarantine`,
		Args: usage.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("round") {
				o.round = -1
			} else if o.round < 0 {
				return usage.Errorf("--round %d: it must be 0 or more", o.round)
			}
			return runVerify(cmd.Context(), o)
		},
	}
	usage.NewestSealedMonthFlag(cmd, &o.month, "crawl to audit", "tasks", "yes")
	cmd.Flags().IntVar(&o.round, "round", 0, "the only round to audit; not given: all")
	cmd.Flags().Float64Var(&o.sample, "sample", 1, "share of partitions, records and files to check, over 0 and up to 1")
	usage.OutputFlag(cmd, &o.output, "table", "json")
	cmd.Flags().BoolVar(&o.oneClock, "one-clock", false, "all tasks ran on one machine: compare times across restarts too")
	cmd.Flags().BoolVar(&o.quarantine, "quarantine", false, "list the objects that no document lists, and what --yes would do with them")
	cmd.Flags().BoolVar(&o.yes, "yes", false, "with --quarantine: move the listed objects to quarantine/")
	cmd.Flags().IntVar(&o.parallel, "parallel", 0, "checks at a time; 0: one per CPU")
	cmd.Flags().IntVar(&o.tasks, "tasks", 0, "tasks into which the audit is divided; 0: none, all in this process")
	o.clusterFlags(cmd)
	return cmd
}

// mostTasks is the largest number of tasks of an audit. More would cost too much, because each task reads
// all documents of the crawl.
const mostTasks = 10_000

func runVerify(ctx context.Context, o verifyOptions) error {
	if err := usage.OneOf("output", o.output, "table", "json"); err != nil {
		return err
	}
	switch {
	case !(o.sample > 0 && o.sample <= 1):
		return usage.Errorf("--sample %v: it must be over 0 and up to 1", o.sample)
	case o.parallel < 0:
		return usage.Errorf("--parallel %d: it must be 0 or more", o.parallel)
	case o.tasks < 0 || o.tasks > mostTasks:
		return usage.Errorf("--tasks %d: it must be 0 to %d", o.tasks, mostTasks)
	case o.tasks == 0 && o.executor == executorKubernetes:
		return usage.Errorf("--executor kubernetes needs --tasks: the number of tasks into which the audit is divided")
	case o.tasks > 0 && o.quarantine:
		return usage.Errorf("--quarantine takes no --tasks")
	case o.yes && !o.quarantine:
		return usage.Errorf("--yes needs --quarantine")
	case o.quarantine && (o.output != "table" || o.sample != 1):
		return usage.Errorf("--quarantine takes neither --output nor --sample")
	}
	if err := o.checkExecutor(); err != nil {
		return err
	}
	b, cfg, err := o.openAudit(ctx, o.month)
	if err == nil && o.yes {
		b, cfg, err = o.openToWrite(ctx, o.month, false)
	}
	if err != nil {
		return err
	}
	dir, remove, err := scratch.New()
	if err != nil {
		return err
	}
	defer remove()
	options := verify.Options{
		Bucket: b, Crawl: o.month, Round: o.round, Config: cfg, Scratch: dir,
		Parallel: o.parallel, Sample: o.sample, OneClock: o.oneClock, Now: time.Now(), Version: version, Archive: o.openArchive,
	}
	if o.quarantine {
		return o.runQuarantine(ctx, options)
	}
	boundAudit(o.parallel)
	run := verify.Run
	if o.tasks > 0 {
		run = o.runInTasks
	}
	report, err := run(ctx, options)
	if err != nil {
		return err
	}
	return o.print(report)
}

// openAudit opens the store and the config of a crawl that is to be audited. If the frozen config
// cannot be read, openAudit returns a nil config. The audit then still reports damage and losses,
// and runs the checks that need no config.
func (c *common) openAudit(ctx context.Context, crawl string) (store.Bucket, *config.Config, error) {
	b, cfg, err := c.openCrawl(ctx, crawl)
	if errors.Is(err, manifest.ErrCorrupt) || errors.Is(err, ledger.ErrLost) {
		b, _, err = c.openNew(ctx)
		cfg = nil
	}
	return b, cfg, err
}

// runInTasks audits a crawl in tasks. In this process, the tasks run one after the other, because
// each task uses all CPUs.
func (o *verifyOptions) runInTasks(ctx context.Context, options verify.Options) (*verify.Report, error) {
	try := func(ctx context.Context, t stages.Task) error { return verify.RunTask(ctx, options, t) }
	e := &local.Executor{Try: try, Attempts: 3, Pause: time.Second, Clock: stages.SystemClock{}, Log: o.log}
	execute := func(ctx context.Context, _ *manifest.Plan, tasks []stages.Task, done func(stages.Task, error)) error {
		return e.Run(ctx, tasks, done)
	}
	if o.executor == executorKubernetes {
		if options.Config == nil {
			return nil, fmt.Errorf("the config of %s cannot be read, so pods cannot be started: audit without --executor: %w", o.month, stages.ErrPermanent)
		}
		cluster, err := o.onCluster(ctx, options.Bucket, options.Config, o.log)
		if err != nil {
			return nil, err
		}
		execute = cluster.RunAside
	}
	return verify.RunInTasks(ctx, options, o.tasks, execute)
}

// print prints a report. It returns errViolation if the report has a violation.
func (o *verifyOptions) print(report *verify.Report) (err error) {
	for i := range report.Violations {
		report.Violations[i].Problem = usage.Advise(report.Violations[i].Problem, o.common.givenFlags())
	}
	for i := range report.Notes {
		report.Notes[i] = usage.Advise(report.Notes[i], o.common.givenFlags())
	}
	if o.output == "json" {
		err = usage.WriteJSON(o.out, report)
	} else {
		err = show.Report(show.Folding(o.out), report)
	}
	if err != nil {
		return err
	}
	if n := report.Found(); n > 0 {
		return fmt.Errorf("crawl %s is not as promised: %s: %w", o.month, show.Count(n, "violation"), errViolation)
	}
	return nil
}

// runQuarantine lists the strays of a crawl, or moves them.
func (o *verifyOptions) runQuarantine(ctx context.Context, options verify.Options) (err error) {
	out := show.Folding(o.out)
	var n, bytes int64
	each := func(s verify.Stray) error {
		n, bytes = n+1, bytes+s.Size
		_, err := fmt.Fprintf(out, "would move %s (%d bytes): %s\n", s.Key, s.Size, s.Why)
		return err
	}
	if o.yes {
		round, err := o.lastRound(ctx, options)
		if err != nil {
			return err
		}
		hold, err := roundstate.HoldForQuarantine(ctx, options.Bucket, o.month, round, ledgers())
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, hold.Release(context.WithoutCancel(ctx))) }()
		each = func(s verify.Stray) error {
			to, err := quarantine.Move(ctx, options.Bucket, s.Key, hold.Check)
			if err != nil || to == "" {
				return err
			}
			n, bytes = n+1, bytes+s.Size
			_, err = fmt.Fprintf(out, "moved %s to %s: %s\n", s.Key, to, s.Why)
			return err
		}
	}
	report, err := verify.Strays(ctx, options, each)
	if err != nil {
		return err
	}
	if report.Found() > 0 {
		if err := o.print(report); err != nil {
			return fmt.Errorf("objects are not moved while documents are damaged: repair the documents first: %w", err)
		}
	}
	switch {
	case n == 0:
		fmt.Fprintln(out, "nothing to move: documents account for every object")
	case o.yes:
		fmt.Fprintf(out, "%s moved, %d bytes: check the crawl with `crawlbatch verify --month %s%s`, then remove quarantine/\n", show.Count(n, "object"), bytes, o.month, o.common.givenFlags())
	default:
		fmt.Fprintf(out, "%s, %d bytes: move them with `crawlbatch verify --month %s --quarantine --yes%s`\n", show.Count(n, "object"), bytes, o.month, o.common.givenFlags())
	}
	return nil
}

// lastRound returns the newest sealed round of the crawl, or 0 if no round is sealed. runQuarantine
// claims this round, because active.json must name one.
func (o *verifyOptions) lastRound(ctx context.Context, options verify.Options) (int, error) {
	sealed, err := roundstate.Sealed(ctx, options.Bucket, o.month)
	return max(0, len(sealed)-1), err
}
