package k8s

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"crawlbatch.io/crawlbatch/jobs/config"
)

// How the cluster is asked.
const (
	apiTimeout = 15 * time.Second // a call
	apiRate    = 20               // calls a second
	apiBurst   = 100
)

// Connect makes a client of the cluster that a kubeconfig file names: the given one,
// KUBECONFIG's, ~/.kube/config, or where there is none the cluster that this process
// runs in. It asks the cluster nothing yet. The error wraps ErrCluster.
func Connect(kubeconfig, context string) (Client, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: context}).ClientConfig()
	if err != nil {
		return nil, &refusal{fmt.Sprintf("no cluster is configured: %v: give --kubeconfig FILE or set KUBECONFIG, and mend --kube-context where it is given", err), []error{err}}
	}
	cfg.Timeout, cfg.QPS, cfg.Burst = apiTimeout, apiRate, apiBurst
	cfg.UserAgent = "crawlbatch " + rest.DefaultKubernetesUserAgent()
	client, err := newClient(cfg)
	if err != nil {
		return nil, &refusal{fmt.Sprintf("the kubeconfig is of no use: %v", err), []error{err}}
	}
	return client, nil
}

// AdoptImage gives a config that names no image the one that a pod of its namespace
// runs: a driver in the cluster starts tasks of its own kind. The error wraps
// ErrCluster.
func AdoptImage(ctx context.Context, client Client, cfg *config.Config, pod string) error {
	if cfg.Kubernetes.Image != "" || pod == "" {
		return nil
	}
	p, err := client.Pods(cfg.Kubernetes.Namespace).Get(ctx, pod, metav1.GetOptions{})
	if err != nil {
		return explain(err, cfg)
	}
	for i := range p.Spec.Containers {
		cfg.Kubernetes.Image = p.Spec.Containers[i].Image
	}
	return nil
}
