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
	"crawlbatch.io/crawlbatch/jobs/show"
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

// onCluster returns an executor that runs tasks in the selected cluster. It sets the image of cfg if the config names
// none and this process runs in a pod.
func (o *runOptions) onCluster(ctx context.Context, b store.Bucket, cfg *config.Config, log *slog.Logger) (*k8s.Executor, error) {
	client, err := k8s.Connect(o.cluster.kubeconfig, o.cluster.context)
	if err != nil {
		return nil, err
	}
	pod := os.Getenv(k8s.PodName)
	e := &k8s.Executor{
		Client: client, Bucket: b, Config: cfg, Store: o.store, Env: k8s.StoreEnv(), Clock: stages.SystemClock{}, Log: log, Version: version, Flags: o.givenFlags(),
		Watched: pod == "" && show.Width(o.err, 0) > 0,
	}
	return e, e.AdoptImage(ctx, pod)
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
	e, err := o.onCluster(ctx, b, cfg, o.log)
	if err != nil {
		return err
	}
	if err := k8s.NeedImage(cfg); err != nil {
		return err
	}
	if err := o.publishConfig(ctx, b, cfg); err != nil {
		return err
	}
	job, running, err := e.Detach(ctx, o.month, o.rounds)
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
