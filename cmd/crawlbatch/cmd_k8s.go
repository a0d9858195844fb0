package main

import (
	"context"

	"github.com/spf13/cobra"

	"crawlbatch.io/crawlbatch/cmd/usage"
	"crawlbatch.io/crawlbatch/jobs"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/k8s"
	"crawlbatch.io/crawlbatch/stages"
)

type renderOptions struct {
	*common
	month string
	round int
	stage string
}

func newK8s(c *common) *cobra.Command {
	o := renderOptions{common: c}
	render := &cobra.Command{
		Use:   "render --month YYYY-MM",
		Short: "Print the Jobs that run would submit",
		Long: `Render prints as YAML the service account and the Jobs that
` + "`crawlbatch run --executor kubernetes`" + ` would submit for the tasks of a round that have
no result. It neither contacts a cluster nor writes to the store.`,
		Example: "  crawlbatch k8s render --month 2026-11 --store s3://bucket/prefix --stage fetch",
		Args:    usage.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return runRender(cmd.Context(), o) },
	}
	usage.MonthFlag(render, &o.month, "crawl to run")
	render.Flags().IntVar(&o.round, "round", 0, "round to run")
	stageFlag(render, &o.stage, "stage to run, all if it is not given")
	c.configFlags(render, true)
	return usage.Group(&cobra.Command{Use: "k8s", Short: "Show the objects that would be created in Kubernetes"}, render)
}

func runRender(ctx context.Context, o renderOptions) error {
	var order []stages.Stage
	if o.stage != "" {
		if err := usage.OneOf("stage", o.stage, stageNames()...); err != nil {
			return err
		}
		order = []stages.Stage{stages.Stage(o.stage)}
	}
	b, cfg, err := o.openCrawl(ctx, o.month)
	if err != nil {
		return err
	}
	if err := k8s.NeedImage(cfg); err != nil {
		return err
	}
	p, _, err := roundstate.FindPlan(ctx, b, o.month, o.round)
	if err != nil {
		return err
	}
	if order == nil {
		order = stages.Of(p)
	}
	key, _, err := k8s.Settings(o.month, cfg, version)
	if err != nil {
		return err
	}
	r := &k8s.Renderer{Config: cfg, Plan: p, Store: o.store, Settings: key, Env: k8s.StoreEnv()}
	d := &jobs.Driver{Bucket: b}
	return r.Write(o.out, order, version, func(stage stages.Stage) ([]stages.Task, error) { return d.Missing(ctx, p, stage, nil) })
}
