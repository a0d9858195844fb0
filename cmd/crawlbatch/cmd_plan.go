package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"crawlbatch.io/crawlbatch/cmd/usage"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/jobs/scratch"
	"crawlbatch.io/crawlbatch/jobs/show"
	"crawlbatch.io/crawlbatch/jobs/websource"
	"crawlbatch.io/crawlbatch/planner/source"
	"crawlbatch.io/crawlbatch/stages"
)

type planOptions struct {
	*common
	month                        string
	metrics                      metricsOptions
	sources, explain             []string
	dryRun, replace, once, force bool
	afterEarlier                 bool
}

func newPlan(c *common) *cobra.Command {
	o := planOptions{common: c}
	cmd := usage.WithOptions(&o, runPlan, &cobra.Command{
		Use:   "plan --month YYYY-MM --source FILE",
		Short: "Shard the month's URL set into partitions",
		Long: `Plan reads URLs, makes them canonical, drops duplicates and URLs that are out of scope
or over budget, and shards the others by domain into partitions that need few pod-hours. It
counts lines that are not URLs, and lists each with its line number.

A source is a file of URLs (text, CSV, JSON lines, Parquet), a directory or pattern of files, the
same in s3://bucket/, - for stdin, the word frontier for the URLs that the last crawl left due, or
a table in MySQL, MariaDB or PostgreSQL, such as mysql://USER:${VAR}@HOST/DATABASE?table=NAME, or
a sitemap or feed on the web, such as sitemap:https://example.com/sitemap.xml, which plan requests
as politely as the crawl does. #column=NAME and #where=CONDITION choose columns and records. The
first plan freezes the config.

With --once, plan does nothing if the month has a plan. A job that plans and runs a month
can then be restarted at any time. In a Kubernetes Job, --month job:NAME means the month at
the end of the Job's name, or the month for which its CronJob created it.

With --after-earlier, plan waits while an earlier month of the store is not finished, at most
until that month's crawl window (fetch.crawl_window) ends. Then it takes the frontier that the
month left. Without it, plan warns if the month that leaves the frontier is not finished.`,
		Example: `  crawlbatch plan --month 2026-11 --source urls.txt --user-agent "examplebot/1.0 (+https://example.org/bot)"
  crawlbatch plan --month 2026-12 --source frontier --dry-run
  crawlbatch plan --month 2026-12 --source frontier --source new.txt --once`,
	})
	usage.MonthFlag(cmd, &o.month, "crawl to plan")
	cmd.Flags().StringArrayVar(&o.sources, "source", nil, "file, directory, pattern, s3://bucket/key, -, frontier, mysql:// or postgres:// address of a table, or sitemap:https://HOST/PATH of a sitemap or feed; repeatable")
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "print partitions, predicted hours, bytes and cost, and write nothing")
	cmd.Flags().BoolVar(&o.replace, "replace", false, "replace a plan if none of it was fetched yet")
	cmd.Flags().BoolVar(&o.force, "force", false, "plan also URLs that were fetched within plan.skip_within")
	cmd.Flags().StringArrayVar(&o.explain, "explain", nil, "plan nothing, and show the state and priority of a URL, with the parts of the priority; repeatable")
	cmd.Flags().BoolVar(&o.once, "once", false, "do nothing if the month has a plan")
	cmd.Flags().BoolVar(&o.afterEarlier, "after-earlier", false, "wait until earlier months are finished, or their crawl windows are over")
	addMetricsFlags(cmd, &o.metrics)
	return cmd
}

// checkFlags checks the flags that depend on each other.
func (o *planOptions) checkFlags() error {
	switch {
	case o.once && o.replace:
		return usage.Errorf("--once and --replace cannot be combined")
	case len(o.explain) == 0 && len(o.sources) == 0:
		return usage.Errorf("--source is missing: give a file of URLs, a directory, - for stdin, or frontier")
	case len(o.explain) > 0 && (len(o.sources) > 0 || o.dryRun || o.replace || o.force || o.once || o.afterEarlier):
		return usage.Errorf("--explain plans nothing: give only --month with it, or leave it out")
	}
	return nil
}

func runPlan(ctx context.Context, o planOptions) error {
	boundMemory(planMemory)
	if err := usage.CheckMonth(o.month); err != nil {
		return err
	}
	if err := o.checkFlags(); err != nil {
		return err
	}
	if len(o.explain) > 0 {
		return o.explainer().URLs(ctx, o.month, "", o.explain, o.out)
	}
	measured, stopMetrics, err := serveMetrics(o.metrics, o.log)
	if err != nil {
		return err
	}
	defer stopMetrics()
	b, cfg, err := o.openNew(ctx)
	if err != nil {
		return storeError(err)
	}
	measured.Begin()
	b = measured.Bucket(b)
	if !o.dryRun {
		_, err = roundstate.Ready(ctx, b, o.month)
	} else {
		_, err = ledger.Load(ctx, b, o.month)
	}
	if err != nil && !errors.Is(err, roundstate.ErrNoCrawl) {
		return storeError(err)
	}
	r := jobs.PlanRequest{
		Bucket: b, Crawl: o.month, Config: cfg, Replace: o.replace, DryRun: o.dryRun, Force: o.force,
		Clock: stages.SystemClock{}, Version: version, Lookup: os.LookupEnv, Archive: o.openArchive, Counts: new(jobs.Counts), Budgets: new(jobs.Budgets), Slowest: new(jobs.Slowest), Reach: new(jobs.Reach), Answers: new(jobs.FilterAnswers), Continues: new(jobs.Continuation),
		Log: o.log, Tell: o.printWait, Note: o.beats.Note,
	}
	if done, err := o.alreadyPlanned(ctx, b); done || err != nil {
		return err
	}
	if r.Sources, r.Frontier, err = o.openSources(ctx); err != nil {
		return err
	}
	if o.afterEarlier {
		if done, err := o.awaitEarlier(ctx, r); done || err != nil {
			return err
		}
		if r.Sources, r.Frontier, err = o.openSources(ctx); err != nil { // again, because the files may be others now
			return err
		}
	}
	var remove func()
	if r.Scratch, remove, err = scratch.New(); err != nil {
		return err
	}
	defer remove()
	p, same, err := jobs.Plan(ctx, r)
	if err != nil {
		return storeError(err)
	}
	counted := measured.Progress(stages.NoProgress{})
	for i, n := range []int64{r.Answers.Absent, r.Answers.Found, r.Answers.NotFound} {
		counted.Add(stages.CountFilter+stages.FilterAnswers[i], n)
	}
	o.warnOfAgent(cfg)
	o.warnOfReach(r.Reach, "/etc/resolv.conf")
	o.warnOfMissed(r.Continues)
	return o.printPlan(ctx, &r, p, same)
}

// alreadyPlanned reports whether --once is given and the month has a plan. It then says so.
func (o *planOptions) alreadyPlanned(ctx context.Context, b store.Bucket) (bool, error) {
	if !o.once {
		return false, nil
	}
	planned, err := jobs.Planned(ctx, b, o.month)
	if err != nil {
		return false, storeError(err)
	}
	if planned {
		o.sayPlanned()
	}
	return planned, nil
}

// sayPlanned says that the month has a plan.
func (o *planOptions) sayPlanned() {
	fmt.Fprintf(o.out, "%s is already planned\nnext: crawlbatch run --month %[1]s%s\n", o.month, storeFlag(o.store))
}

// openSources opens the sources. It reads nothing of stdin.
func (o *planOptions) openSources(ctx context.Context) (sources []source.Source, frontier bool, err error) {
	schemes := source.Databases(os.LookupEnv)
	maps.Copy(schemes, websource.Openers())
	return source.OpenAll(ctx, o.sources, source.Options{
		Stdin: o.in, Bucket: o.openArchive, Schemes: schemes, Tell: func(host, why string) { o.printWait(stages.Wait{Host: host, Why: why}) },
	})
}

// awaitEarlier waits for earlier months. It first checks the config, so that a mistake there ends the command before
// the wait. done is true if --once is given and the month has a plan.
func (o *planOptions) awaitEarlier(ctx context.Context, r jobs.PlanRequest) (done bool, err error) {
	if err := r.CheckConfig(ctx); err != nil {
		return false, storeError(err)
	}
	o.beats.End() // the wait itself says why it waits
	planned, err := r.AwaitEarlier(ctx, jobs.EarlierWait{UntilPlanned: o.once || !o.replace && !o.dryRun, Flags: storeFlag(o.store)})
	if err != nil {
		return false, storeError(err)
	}
	if planned && o.once {
		o.sayPlanned()
		return true, nil
	}
	o.startBeats()
	return false, nil
}

// warnOfMissed warns of unfinished months whose URLs the plan lacks.
func (o *planOptions) warnOfMissed(c *jobs.Continuation) {
	for _, u := range c.Missed {
		text := fmt.Sprintf("is not finished, so %s is planned from what its %s left due, and lacks what its further rounds find", o.month, show.Count(int64(u.Sealed), "finished round"))
		if u.Crawl != c.From {
			from := "without a frontier"
			if c.From != "" {
				from = "from the frontier of " + c.From
			}
			text = fmt.Sprintf("has no finished round yet, so %s is planned %s, and lacks all that %s finds", o.month, from, u.Crawl)
		}
		fmt.Fprintf(o.err, "warning: %s %s: finish it with `%s`, then plan again with --replace; with --after-earlier, plan waits for it\n", u.Crawl, text, jobs.FinishCommand(u.Crawl, u.Final, storeFlag(o.store)))
	}
}

// warnOfReach warns of planned hosts that requests will not reach from this machine, as far as this is certain
// without a request. conf is the file that names the system's resolvers.
func (o *planOptions) warnOfReach(r *jobs.Reach, conf string) {
	if r.Refused > 0 {
		fmt.Fprintf(o.err, "warning: %s at hosts with private addresses, such as %s, will end as address_blocked: if you may crawl these hosts, add --allow-private-networks to `crawlbatch run` (fetch.allow_private_networks)\n", show.Count(r.Refused, "URL"), r.Example)
	}
	if r.Names == 0 {
		return
	}
	body, err := os.ReadFile(conf)
	if err != nil && !errors.Is(err, os.ErrNotExist) || nameServer.Match(body) {
		return
	}
	fmt.Fprintf(o.err, "warning: %s names no name server, so this machine cannot look up the names of %s, unless it runs a resolver itself: add one there, or name one in fetch.resolvers\n", conf, show.Count(r.Names, "planned host"))
}

// nameServer matches a line of resolv.conf that names a server.
var nameServer = regexp.MustCompile(`(?m)^nameserver[ \t]+\S`)

// printPlan prints the summary of a plan.
func (o *planOptions) printPlan(ctx context.Context, r *jobs.PlanRequest, p *manifest.Plan, same bool) error {
	verb, refused := "planned", o.store
	switch {
	case o.dryRun:
		verb, refused = "would plan", ""
	case same:
		verb = "had planned, the same,"
	}
	window := r.Config.Fetch.Window.Std()
	if err := show.Plan(show.Folding(o.out), p, *r.Counts, *r.Budgets, verb, refused, o.dryRun, defaultFetchTasks, window); err != nil {
		return err
	}
	past, err := jobs.Past(ctx, r.Bucket, costModel(r.Config), o.month, p.Round, r.Continues.Crawls)
	if err == nil {
		err = show.Cost(show.Folding(o.out), costModel(r.Config), p, past)
	}
	if err != nil {
		return storeError(err)
	}
	if o.dryRun {
		predicted := time.Duration(p.Within(window).SecondsAt(defaultFetchTasks) * float64(time.Second))
		if err := errors.Join(show.Slowest(o.out, *r.Slowest), show.Unforeseen(o.out, *r.Slowest, predicted, window)); err != nil {
			return err
		}
	}
	own, err := shares(r.Config, defaultFetchTasks, runtime.GOMAXPROCS(0))
	if err != nil {
		own.Lowered = []string{err.Error()}
	}
	for _, line := range own.Lowered {
		fmt.Fprintf(show.Folding(o.out), "`crawlbatch run` on this machine: %s\n", line)
	}
	if err := show.FilterAnswers(o.out, *r.Answers); err != nil {
		return err
	}
	if err := show.Continues(o.out, r.Continues.Crawls, r.Continues.Skipped); err != nil {
		return err
	}
	if !o.dryRun {
		fmt.Fprintf(o.out, "next: crawlbatch run --month %s%s\n", p.Crawl, storeFlag(o.store))
	}
	return nil
}
