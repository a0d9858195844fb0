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

// Limits of requests to the cluster.
const (
	apiTimeout = 15 * time.Second // a call
	apiRate    = 20               // calls a second
	apiBurst   = 100
)

// Connect returns a client for the cluster in a kubeconfig file: the given file, the file in
// KUBECONFIG or ~/.kube/config. Without a file, it uses the cluster that this process runs in. It
// sends nothing to the cluster. The error wraps ErrCluster.
func Connect(kubeconfig, context string) (Client, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: context}).ClientConfig()
	if err != nil {
		return nil, &refusal{fmt.Sprintf("no cluster is configured: %v: give --kubeconfig FILE or set KUBECONFIG, and check --kube-context", err), []error{err}}
	}
	cfg.Timeout, cfg.QPS, cfg.Burst = apiTimeout, apiRate, apiBurst
	cfg.UserAgent = "crawlbatch " + rest.DefaultKubernetesUserAgent()
	client, err := newClient(cfg)
	if err != nil {
		return nil, &refusal{fmt.Sprintf("the kubeconfig cannot be used: %v", err), []error{err}}
	}
	return client, nil
}

// AdoptImage sets the image in a config that has none. It takes the image of the named pod in its
// namespace, so that a driver in the cluster starts tasks with its own image. The error wraps
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
