package k8s

import (
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"crawlbatch.io/crawlbatch/stages"
)

func TestADriverInTheClusterStartsTasksOfItsOwnImage(t *testing.T) {
	cluster := fakeCluster{fake.NewClientset(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "crawl", Name: "driver"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "run", Image: "registry.example/crawlbatch:7"}, {Name: "istio-proxy", Image: "istio"}}},
	}, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "crawl", Name: "detached"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "istio-proxy", Image: "istio"}, {Name: "task", Image: "registry.example/crawlbatch:8"}}},
	}, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "crawl", Name: "own"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "driver", Image: "registry.example/crawlbatch:9"}, {Name: "istio-proxy", Image: "istio"}}},
	})}
	for _, c := range []struct {
		name, config, pod string
		want              string
		fails             bool
	}{
		{"the container run, beside one that the cluster added", "", "driver", "registry.example/crawlbatch:7", false},
		{"the container task", "", "detached", "registry.example/crawlbatch:8", false},
		{"the first container of a pod of another's making", "", "own", "registry.example/crawlbatch:9", false},
		{"the config's comes first", "kubernetes: {image: other}", "driver", "other", false},
		{"elsewhere there is none", "", "", "", false},
		{"a pod that is not there", "", "gone", "", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := rendering(t, c.config).Config
			e := &Executor{Client: cluster, Config: cfg, Clock: stages.SystemClock{}, Log: slog.New(slog.DiscardHandler), Watched: true}
			var err error
			synctest.Test(t, func(t *testing.T) { err = e.AdoptImage(t.Context(), c.pod) })
			if cfg.Kubernetes.Image != c.want || errors.Is(err, ErrCluster) != c.fails {
				t.Errorf("image %q, error %v; want %q", cfg.Kubernetes.Image, err, c.want)
			}
		})
	}
}
