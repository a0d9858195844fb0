package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"crawlbatch.io/crawlbatch/cmd/usage"
	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/jobs"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/jobs/quarantine"
	"crawlbatch.io/crawlbatch/jobs/show"
	"crawlbatch.io/crawlbatch/stages"
)

type retryOptions struct {
	runOptions
	stage      string
	partitions []int
	classes    []string
	giveUp     bool
	rebuild    bool
	round      int
}

func newRetry(c *common) *cobra.Command {
	o := retryOptions{runOptions: runOptions{common: c}}
	cmd := usage.WithOptions(&o, runRetry, &cobra.Command{
		Use:   "retry --month YYYY-MM",
		Short: "Rerun the tasks that have no result",
		Long: `Retry runs the tasks of the current round that have no result, however their earlier
attempts ended. Flags select tasks by stage, partition and class of failure. Without these
flags, retry runs the tasks of the first stage that is not done. ` + "`crawlbatch run`" + ` then continues the
round. The classes, which ` + "`crawlbatch status`" + ` shows, are:
` + strings.Join(manifest.FailureClasses(), ", ") + `.

A task that keeps failing blocks the round. --give-up ends fetch tasks instead: it commits
the checkpointed outcomes, sends no more requests, and defers URLs without an outcome to
the next round. While an attempt fetches the partition, it names the machine and exits 2:
end its ` + "`run` or use `crawlbatch pause`" + ` first. To end the wait for one host only,
` + "`crawlbatch host H --stop REASON`" + ` is enough.

--rebuild recreates lost and damaged objects that can be computed from other objects, in
sealed rounds too: parts of tables, working files, results, frozen inputs and seals. It
writes an object only if the digest equals the recorded digest. Before that, it moves the
damaged object to quarantine/. It also recreates a lost ledger, list of crawls or active.json.
--give-up and --rebuild run in this process, whatever --executor says.`,
		Example: `  crawlbatch retry --month 2026-11 --stage fetch --partition 3,17
  crawlbatch retry --month 2026-11 --executor kubernetes --store s3://bucket/prefix
  crawlbatch retry --month 2026-11 --class store_unavailable,disk_full
  crawlbatch retry --month 2026-11 --give-up --partition 17
  crawlbatch retry --month 2026-11 --rebuild --stage merge`,
	})
	usage.MonthFlag(cmd, &o.month, "crawl to retry")
	stageFlag(cmd, &o.stage, "stage to retry")
	cmd.Flags().IntSliceVar(&o.partitions, "partition", nil, "partitions to retry, such as 3,17")
	cmd.Flags().StringSliceVar(&o.classes, "class", nil, "only tasks whose newest attempt failed in one of these classes, such as disk_full,failed")
	cmd.Flags().BoolVar(&o.giveUp, "give-up", false, "end the fetch tasks of --partition, and defer URLs that are not fetched")
	cmd.Flags().BoolVar(&o.rebuild, "rebuild", false, "recreate lost and damaged parts of reduce tasks")
	cmd.Flags().IntVar(&o.round, "round", jobs.AllRounds, "with --rebuild: the round; -1: all")
	o.executorFlags(cmd)
	return cmd
}

// check checks the flags.
func (o *retryOptions) check() error {
	if o.stage != "" {
		if err := usage.OneOf("stage", o.stage, stageNames()...); err != nil {
			return err
		}
	}
	for _, class := range o.classes {
		if err := usage.OneOf("class", class, manifest.FailureClasses()...); err != nil {
			return err
		}
	}
	switch {
	case o.rebuild && o.giveUp:
		return usage.Errorf("--rebuild and --give-up cannot be combined")
	case !o.rebuild && o.round != jobs.AllRounds:
		return usage.Errorf("--round needs --rebuild: without it, retry works on the current round only")
	case !o.giveUp && len(o.partitions) > 0 && o.stage == "":
		return usage.Errorf("--partition needs --stage: partitions are counted within a stage")
	case o.rebuild:
		return o.checkRebuild()
	case o.giveUp:
		return o.checkGiveUp()
	}
	return nil
}

func (o *retryOptions) checkRebuild() error {
	switch {
	case len(o.classes) > 0:
		return usage.Errorf("--rebuild is for tasks that have a result, --class for those that failed")
	case stages.Stage(o.stage) == stages.Fetch && !layout.IsReparse(o.month):
		return usage.Errorf("--rebuild is for reduce stages: fetched data cannot be recreated")
	case o.round < jobs.AllRounds:
		return usage.Errorf("--round %d: it must be 0 or more, or -1 for all", o.round)
	}
	return nil
}

func (o *retryOptions) checkGiveUp() error {
	switch {
	case len(o.partitions) == 0:
		return usage.Errorf("--give-up needs --partition: name the fetch tasks to end, as --partition 3,17")
	case o.stage != "" && stages.Stage(o.stage) != stages.Fetch:
		return usage.Errorf("--give-up is only for fetch, not for --stage %s", o.stage)
	case len(o.classes) > 0:
		return usage.Errorf("--give-up takes --partition, not --class")
	}
	return nil
}

func runRetry(ctx context.Context, o retryOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	anew := 0
	if o.rebuild {
		var err error
		if anew, err = o.rebuildLedger(ctx); err != nil {
			return err
		}
	}
	r, err := o.open(ctx)
	if err != nil {
		return err
	}
	defer r.stop()
	d, finish, err := o.makeDriver(ctx, r, !o.giveUp && !o.rebuild)
	if err != nil {
		return err
	}
	defer finish()
	var done string
	switch {
	case o.giveUp:
		done, err = o.runGiveUp(ctx, d)
	case o.rebuild:
		done, err = o.runRebuild(ctx, d, anew)
	default:
		done, err = o.rerun(ctx, d)
	}
	finish()
	if err != nil {
		return o.hint(err, o.month)
	}
	fmt.Fprintln(show.Folding(o.out), done)
	return nil
}

// rerun runs the tasks again, and returns a message about the result.
func (o *retryOptions) rerun(ctx context.Context, d *jobs.Driver) (string, error) {
	n, err := d.Retry(ctx, o.month, jobs.RetryRequest{Stage: stages.Stage(o.stage), Partitions: o.partitions, Classes: o.classes})
	switch {
	case n == 0 && len(o.classes) > 0:
		return fmt.Sprintf("nothing to retry: no requested task failed last with %s", strings.Join(o.classes, " or ")), err
	case n == 0:
		return "nothing to retry: every requested task has a result", err
	}
	return fmt.Sprintf("%s done: go on with `crawlbatch run --month %s%s`", show.Count(int64(n), "task"), o.month, o.givenFlags()), err
}

// runGiveUp ends the fetch tasks, and returns a message about the result.
func (o *retryOptions) runGiveUp(ctx context.Context, d *jobs.Driver) (string, error) {
	n, err := d.GiveUp(ctx, o.month, o.partitions)
	if n == 0 {
		return "nothing to give up: every requested task has a result", err
	}
	return fmt.Sprintf("%s given up: go on with `crawlbatch run --month %s%s`", show.Count(int64(n), "task"), o.month, o.givenFlags()), err
}

// rebuildLedger recreates a lost ledger, head or active.json, prints the key of each recreated object,
// and returns the number of these objects.
func (o *retryOptions) rebuildLedger(ctx context.Context) (int, error) {
	b, err := o.openNamed(ctx, o.month)
	if err != nil {
		return 0, err
	}
	crawls, err := ledger.Crawls(ctx, b)
	if err != nil {
		return 0, err
	}
	made, err := ledgers().Rebuild(ctx, b, o.month, crawls, quarantine.Copy)
	for _, key := range made {
		fmt.Fprintf(show.Folding(o.out), "rebuilt %s from the remaining objects: losses of other objects cannot be detected\n", key)
		if key == layout.Ledger(o.month) {
			fmt.Fprintf(show.Folding(o.out), "It has no stops of hosts and no pause: give them again before you go on, with `crawlbatch host HOST --stop REASON --month %s%s` and `crawlbatch pause --month %[1]s%[2]s`\n", o.month, o.givenFlags())
		}
	}
	return len(made), err
}

// runRebuild recreates lost objects, prints their keys, and returns a message about the result. anew is
// the number of objects that rebuildLedger has recreated before.
func (o *retryOptions) runRebuild(ctx context.Context, d *jobs.Driver, anew int) (string, error) {
	parts := anew
	err := d.Rebuild(ctx, o.month, jobs.RebuildRequest{Stage: stages.Stage(o.stage), Partitions: o.partitions, Round: o.round}, func(t stages.Task, keys []string) {
		for _, key := range keys {
			if t.Partition < 0 {
				fmt.Fprintf(show.Folding(o.out), "rebuilt %s\n", key)
				continue
			}
			fmt.Fprintf(show.Folding(o.out), "%s rebuilt %s\n", t, key)
		}
		parts += len(keys)
	})
	if parts == 0 {
		return "nothing to rebuild: every part that a result lists is there and whole", err
	}
	return fmt.Sprintf("%s rebuilt: check the crawl with `crawlbatch verify --month %s%s`", show.Count(int64(parts), "part"), o.month, o.givenFlags()), err
}
