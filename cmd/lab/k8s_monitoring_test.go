//go:build lab

package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"crawlbatch.io/crawlbatch/cmd/crawltest"
	"crawlbatch.io/crawlbatch/formats/store/storetest/versitygw"
)

// clusterCRDs is the environment variable with the folder of the Prometheus operator's
// CustomResourceDefinitions.
const clusterCRDs = "CRAWLBATCH_CRDS"

// monitoringComponent installs the component `monitoring` as the README says, and starts its probe by
// hand: once with a good store, once with a bucket that does not exist. The API server validates the
// objects of the Prometheus operator by the operator's own schemas. The operator itself does not run.
func monitoringComponent(t *testing.T, r *clusterRun, _ uint64) {
	crds := os.Getenv(clusterCRDs)
	if crds == "" {
		t.Fatalf("%s is not set: `make test-k8s` downloads the definitions", clusterCRDs)
	}
	for _, kind := range []string{"podmonitors", "prometheusrules"} {
		kubectl(t, "apply", "--server-side", "-f", filepath.Join(crds, "monitoring.coreos.com_"+kind+".yaml"))
		kubectl(t, "wait", "--for=condition=Established", "crd/"+kind+".monitoring.coreos.com", "--timeout=1m")
	}
	namespace, server := r.namespace(t), versitygw.StartOn(t, r.listen)
	bucket := server.NewBucket(t)
	kubectl(t, "-n", namespace, "create", "secret", "generic", "crawlbatch-store",
		"--from-literal=AWS_ACCESS_KEY_ID="+versitygw.AccessKey, "--from-literal=AWS_SECRET_ACCESS_KEY="+versitygw.SecretKey)
	probe := func(store string) string { return r.applyMonitoring(t, namespace, server.Endpoint, store) }

	applied := probe("s3://" + bucket + "/probe")
	for _, object := range []string{"podmonitor.monitoring.coreos.com/crawlbatch", "prometheusrule.monitoring.coreos.com/crawlbatch",
		"configmap/crawlbatch-dashboards", "networkpolicy.networking.k8s.io/crawlbatch-metrics", "cronjob.batch/crawlbatch-probe"} {
		if !strings.Contains(applied, object) {
			t.Errorf("kubectl applied no %s:\n%s", object, applied)
		}
	}
	bad := `[{"op": "replace", "path": "/spec/podMetricsEndpoints/0/interval", "value": "half a minute"}]`
	if out, err := tryKubectl("", "-n", namespace, "patch", "podmonitor", "crawlbatch", "--type=json", "-p", bad); err == nil {
		t.Errorf("the API server does not validate a PodMonitor: %s", out)
	}

	start := func(job, condition string) {
		kubectl(t, "-n", namespace, "create", "job", job, "--from=cronjob/crawlbatch-probe")
		kubectl(t, "-n", namespace, "wait", "job/"+job, "--for=condition="+condition, "--timeout=6m")
	}
	start("good", "Complete")
	audit := &chaos{t: t, store: "s3://" + bucket + "/probe/good", env: server.Env(server.Endpoint)}
	if code, out := audit.start("verify").wait(); code != 0 {
		t.Errorf("verify of the probe's crawl: exit %d\n%s", code, out)
	}
	if code, out := audit.start("status").wait(); code != 0 || strings.Count(out, ": sealed, ") != 2 {
		t.Errorf("status of the probe's crawl: exit %d\n%s", code, out)
	}

	probe("s3://no-such-bucket/probe")
	start("bad", "Failed")
	var said []string
	for _, pod := range listObjects[corev1.Pod](t, namespace, "pods", "-l", "batch.kubernetes.io/job-name=bad") {
		for _, c := range pod.Status.InitContainerStatuses {
			if c.Name == "plan" && c.State.Terminated != nil {
				said = append(said, c.State.Terminated.Message)
			}
		}
	}
	if !slices.ContainsFunc(said, func(s string) bool { return strings.Contains(s, "no-such-bucket") }) {
		t.Errorf("the pods of a probe without a bucket end with %q", said)
	}
}

// applyMonitoring applies an overlay of the component `monitoring` whose probe has a store, and returns
// what kubectl prints.
func (r *clusterRun) applyMonitoring(t *testing.T, namespace, endpoint, store string) string {
	t.Helper()
	dir := writeOverlay(t, namespace, "manifests", "monitoring")
	name, tag, _ := strings.Cut(r.image, ":")
	file := filepath.Join(dir, "kustomization.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	crawltest.Write(t, file, string(text)+fmt.Sprintf(`images: [{name: crawlbatch, newName: %s, newTag: %s}]
generatorOptions: {disableNameSuffixHash: true}
configMapGenerator:
  - {name: crawlbatch-env, behavior: merge, literals: ["PROBE_STORE=%s", AWS_REGION=us-east-1, "AWS_ENDPOINT_URL_S3=%s"]}
`, name, tag, store, endpoint))
	return kubectl(t, "apply", "-k", dir)
}
