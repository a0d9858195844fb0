package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"crawlbatch.io/crawlbatch/cmd/usage"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/s3store"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/cost"
	"crawlbatch.io/crawlbatch/k8s"
	"crawlbatch.io/crawlbatch/stages"
)

// These constants are the values of --executor.
const (
	executorLocal      = "local"
	executorKubernetes = "kubernetes"
)

// clusterOptions select a cluster.
type clusterOptions struct{ kubeconfig, context string }

func (o *clusterOptions) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig file; else KUBECONFIG, ~/.kube/config, or the cluster this runs in")
	cmd.Flags().StringVar(&o.context, "kube-context", "", "context of the kubeconfig")
}

func (o *clusterOptions) connect(ctx context.Context, cfg *config.Config) (k8s.Client, error) {
	client, err := k8s.Connect(o.kubeconfig, o.context)
	if err != nil {
		return nil, err
	}
	return client, k8s.AdoptImage(ctx, client, cfg, os.Getenv(k8s.PodName))
}

// onCluster returns an executor that runs tasks in the cluster.
func (o *runOptions) onCluster(client k8s.Client, b store.Bucket, cfg *config.Config, log *slog.Logger) *k8s.Executor {
	return &k8s.Executor{
		Client: client, Bucket: b, Config: cfg, Store: o.store, Env: k8s.StoreEnv(), Clock: stages.SystemClock{}, Log: log, Version: version, Flags: o.givenFlags(),
	}
}

// costModel returns the model that predicts what rounds cost in pods.
func costModel(cfg *config.Config) *cost.Model {
	return &cost.Model{Config: cfg, Pods: func(p *manifest.Plan, stage stages.Stage) cost.Pod { return k8s.PodSize(p, cfg, stage) }}
}

// checkExecutor checks --executor and the flags that depend on it. With --executor kubernetes, the
// store must be in S3, because pods cannot reach a directory.
func (o *runOptions) checkExecutor() error {
	switch {
	case o.detach && o.metrics.listen != "":
		return usage.Errorf("--%s has no effect with --detach, because this process then runs no tasks: pods serve metrics on kubernetes.metrics_port", metricsFlag)
	case o.executor == executorKubernetes && !strings.HasPrefix(o.store, s3store.Scheme):
		return usage.Errorf("--store %q: with --executor kubernetes it must be s3://bucket/prefix, which pods can reach too", o.store)
	case o.detach && o.executor == executorLocal:
		return usage.Errorf("--detach needs --executor kubernetes")
	}
	return usage.OneOf("executor", o.executor, executorLocal, executorKubernetes)
}

// runDetached submits a Job that runs this command line in the cluster.
func (o *runOptions) runDetached(ctx context.Context, b store.Bucket, cfg *config.Config) error {
	client, err := o.cluster.connect(ctx, cfg)
	if err != nil {
		return err
	}
	if err := k8s.NeedImage(cfg); err != nil {
		return err
	}
	if err := o.publishConfig(ctx, b, cfg); err != nil {
		return err
	}
	job, running, err := k8s.Detach(ctx, client, b, k8s.Renderer{Config: cfg, Store: o.store, Env: k8s.StoreEnv()}, o.month, o.rounds, version, o.log)
	if err != nil {
		return err
	}
	verb := "submitted"
	if running {
		verb = "runs already:"
	}
	fmt.Fprintf(o.out, "%s Job %s in namespace %s\n  kubectl logs -n %[3]s -f job/%[2]s\n  kubectl get jobs -n %[3]s -l %s=%s\n",
		verb, job.Name, job.Namespace, k8s.LabelCrawl, o.month)
	return nil
}
