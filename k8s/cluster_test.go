package k8s

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func TestADriverInTheClusterStartsTasksOfItsOwnImage(t *testing.T) {
	cluster := fakeCluster{fake.NewClientset(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "crawl", Name: "driver"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "run", Image: "registry.example/crawlbatch:7"}}},
	})}
	for _, c := range []struct {
		name, config, pod string
		want              string
		fails             bool
	}{
		{"its own", "", "driver", "registry.example/crawlbatch:7", false},
		{"the config's comes first", "kubernetes: {image: other}", "driver", "other", false},
		{"elsewhere there is none", "", "", "", false},
		{"a pod that is not there", "", "gone", "", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := rendering(t, c.config).Config
			err := AdoptImage(t.Context(), cluster, cfg, c.pod)
			if cfg.Kubernetes.Image != c.want || errors.Is(err, ErrCluster) != c.fails {
				t.Errorf("image %q, error %v; want %q", cfg.Kubernetes.Image, err, c.want)
			}
		})
	}
}
