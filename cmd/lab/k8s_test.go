//go:build lab

package lab

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"crawlbatch.io/crawlbatch/cmd/crawltest"
	"crawlbatch.io/crawlbatch/cmd/demo"
	"crawlbatch.io/crawlbatch/jobs"
	"crawlbatch.io/crawlbatch/k8s"
	"crawlbatch.io/crawlbatch/stages"
)

// TestKubernetes crawls the synthetic web on a real cluster.
func TestKubernetes(t *testing.T) {
	r := newClusterRun(t)
	type scenario struct {
		name string
		run  func(*testing.T, *clusterRun, uint64)
	}
	t.Run("undisturbed", func(t *testing.T) {
		for n, s := range []scenario{
			{"equals the local executor", equalsLocal},
			{"a driver within the cluster", detachedDriver},
			{"a partition that fails for good", failsForGood},
			{"too little memory", tooLittleMemory},
			{"politeness changes on the way", politenessChanges},
			{"what keeps pods from starting", cannotStart},
			{"the manifests", validManifests},
			{"the component monitoring", monitoringComponent},
			{"a second month", secondMonth},
			{"a webhook that is away", webhookAway},
			{"a registry that fails for one pod", registryFailsForOnePod},
			{"no rights for a minute", rightsAway},
			{"a scratch volume that is too small", evictedForScratch},
			{"a sidecar that stays", sidecarStays},
			{"a second month beside the first", secondMonthBeside},
		} {
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				s.run(t, r, uint64(n+1)*1000)
			})
		}
	})
	// The last scenarios overload or stop the node, so they run alone.
	t.Run("200 partitions", func(t *testing.T) { manyPartitions(t, r, 50_000) })
	t.Run("disturbed", func(t *testing.T) { disturbedCluster(t, r, 100_000) })
}

// equalsLocal compares a crawl on the cluster with a crawl of the local executor. All stable columns must be
// equal. A local run of the reduce stages, on the results of the cluster's fetch tasks, must give the same
// bytes.
func equalsLocal(t *testing.T, r *clusterRun, salt uint64) {
	// Each stage of the crawl on the cluster that divides its work has at least eight tasks in the first
	// round. The local crawl has one reduce bucket.
	c := r.crawl(t, clusterPlan{salt: salt, delay: clusterDelay, replace: []string{"partition_urls: 100", "partition_urls: 100, bucket_urls: 45"}})
	c.finish()
	here, there := c.report(), c.report(append(c.flags, "--tasks", "4")...)
	if here != there {
		t.Errorf("verify in pods says\n%s\nnot\n%s", there, here)
	}
	c.check(r.chaosRun, c.bucket(), nil)
	crawltest.ReduceAgain(t, c.dir(), func(to string) {
		here := &chaos{t: t, store: to}
		if code, out := here.start("run", "--rounds", "1").wait(); code != 0 {
			t.Fatalf("run: exit %d\n%s", code, out)
		}
	})
	jobsSeen := listObjects[batchv1.Job](t, c.namespace, "jobs", "-l", "crawlbatch.io/crawl="+demo.Crawl)
	stagesSeen := map[string]int{}
	for _, j := range jobsSeen {
		stagesSeen[j.Labels[k8s.LabelRound]+" "+j.Labels[k8s.LabelStage]]++
		if j.Status.Succeeded != *j.Spec.Completions {
			t.Errorf("Job %s: %d of %d succeeded", j.Name, j.Status.Succeeded, *j.Spec.Completions)
		}
		if stage := stages.Stage(j.Labels[k8s.LabelStage]); j.Labels[k8s.LabelRound] == "0" && stage.Valid() && stage != stages.Cluster && *j.Spec.Completions < 8 {
			t.Errorf("Job %s has %d tasks; want at least 8", j.Name, *j.Spec.Completions)
		}
	}
	for _, round := range []string{"0", "1"} {
		for _, stage := range []string{"fetch", "merge", "digest", "similar", "cluster", "dedup", "rank", "frontier", "publish"} {
			if stagesSeen[round+" "+stage] != 1 {
				t.Errorf("%d Jobs of round %s, stage %s; want one", stagesSeen[round+" "+stage], round, stage)
			}
		}
	}
	audits := 0
	for stage, n := range stagesSeen {
		if strings.Contains(stage, " verify-") {
			audits += n
		}
	}
	if audits != 2 {
		t.Errorf("%d Jobs of verify; want one for each of its two phases: %v", audits, stagesSeen)
	}
	for _, p := range listObjects[corev1.Pod](t, c.namespace, "pods", "-l", "crawlbatch.io/stage=fetch") {
		if p.Labels[k8s.LabelAttempt] != "1" || p.Labels[k8s.LabelPartition] == "" {
			t.Errorf("pod %s: partition %q, attempt %q", p.Name, p.Labels[k8s.LabelPartition], p.Labels[k8s.LabelAttempt])
		}
	}
}

// report returns the report of verify on the crawl as JSON.
func (c *chaos) report(flags ...string) string {
	c.t.Helper()
	cmd := exec.Command(program, append([]string{"verify", "--month", demo.Crawl, "--store", c.store, "-o", "json"}, flags...)...)
	cmd.Env = append(cmd.Environ(), c.env...)
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		c.t.Errorf("verify: %v\n%s", err, said.String())
	}
	return string(out)
}

// detachedDriver runs the driver as a Job, and deletes its pod in the middle of a stage.
func detachedDriver(t *testing.T, r *clusterRun, salt uint64) {
	c := r.crawl(t, clusterPlan{salt: salt, delay: clusterDelay})
	if code, out := c.start("run", append([]string{"--rounds", "2", "--detach"}, c.flags...)...).wait(); code != 0 || !strings.Contains(out, "kubectl logs") {
		t.Fatalf("run --detach: exit %d\n%s", code, out)
	}
	waitUntil(t, "a task", 2*time.Minute, func() bool { return len(c.processes("task")) > 0 })
	waitUntil(t, "the driver's process", time.Minute, func() bool { return len(c.processes("run")) > 0 })
	c.killProcess(c.processes("run")[0])
	waitUntil(t, "the driver's next process", 2*time.Minute, func() bool { return len(c.processes("run")) > 0 })
	kubectl(t, "-n", c.namespace, "delete", "pod", "-l", "app.kubernetes.io/component=driver", "--field-selector=status.phase=Running")
	kubectl(t, "-n", c.namespace, "wait", "job", "-l", "app.kubernetes.io/component=driver", "--for=condition=Complete", "--timeout=6m")
	c.check(r.chaosRun, c.bucket(), nil)
}

// failsForGood damages a partition's list of URLs. The Job's index of the damaged partition fails,
// and the other indexes finish. After the repair, the driver makes a Job with only the failed
// index.
func failsForGood(t *testing.T, r *clusterRun, salt uint64) {
	c := r.crawl(t, clusterPlan{salt: salt, delay: clusterDelay})
	const broken = 2
	plans, err := filepath.Glob(filepath.Join(c.dir(), "crawl="+demo.Crawl, "round=0", "plan-*", fmt.Sprintf("part-%05d.parquet", broken)))
	if err != nil || len(plans) != 1 {
		t.Fatalf("parts of the plan: %v (%v)", plans, err)
	}
	whole, err := os.ReadFile(plans[0])
	if err != nil {
		t.Fatal(err)
	}
	crawltest.Write(t, plans[0], strings.Repeat("x", len(whole)))
	code, out := c.run().wait()
	if want := fmt.Sprintf("fetch@%s.0:%d", demo.Crawl, broken); code != exitPermanent || !strings.Contains(out, want) {
		t.Errorf("run: exit %d, want %d and %q\n%s", code, exitPermanent, want, out)
	}
	seen := listObjects[batchv1.Job](t, c.namespace, "jobs", "-l", "crawlbatch.io/stage=fetch")
	if len(seen) != 1 || seen[0].Status.FailedIndexes == nil || *seen[0].Status.FailedIndexes != strconv.Itoa(broken) || seen[0].Status.Succeeded != *seen[0].Spec.Completions-1 {
		t.Errorf("kubectl tells of %d Jobs, the first: %+v", len(seen), seen[0].Status)
	}
	if failed := c.failed(); !slices.Equal(failed, []string{fmt.Sprintf("fetch@%s.0:%d", demo.Crawl, broken)}) {
		t.Errorf("status tells of %v", failed)
	}
	crawltest.Write(t, plans[0], string(whole))
	if code, out := c.start("retry", c.flags...).wait(); code != 0 {
		t.Fatalf("retry: exit %d\n%s", code, out)
	}
	seen = slices.DeleteFunc(listObjects[batchv1.Job](t, c.namespace, "jobs", "-l", "crawlbatch.io/stage=fetch"), func(j batchv1.Job) bool { return j.Name == seen[0].Name })
	if len(seen) != 1 || *seen[0].Spec.Completions != 1 || seen[0].Annotations[k8s.AnnotationPartitions] != strconv.Itoa(broken) {
		t.Errorf("retry made %d Jobs: %+v", len(seen), seen)
	}
	c.finish()
	c.check(r.chaosRun, c.bucket(), nil)
}

// status returns the output of `crawlbatch status`.
func (c *clusterCrawl) status() jobs.Status {
	p := c.start("status", "-o", "json")
	code, out := p.wait()
	whole, err := os.ReadFile(p.said.Name())
	if err != nil {
		c.t.Fatal(err)
	}
	var s jobs.Status
	if err := json.Unmarshal(whole, &s); code != 0 || err != nil {
		c.t.Fatalf("status: exit %d, %v\n%s", code, err, out)
	}
	return s
}

// failed returns the tasks that `crawlbatch status` lists as failed.
func (c *clusterCrawl) failed() []string {
	var failed []string
	for _, round := range c.status().Rounds {
		for _, stage := range round.Stages {
			for _, f := range stage.Failed {
				failed = append(failed, f.Task)
			}
		}
	}
	return failed
}

// politenessChanges speeds up a crawl that would otherwise take days.
func politenessChanges(t *testing.T, r *clusterRun, salt uint64) {
	c := r.crawl(t, clusterPlan{salt: salt, delay: time.Hour})
	p := c.run()
	waitUntil(t, "a task", 2*time.Minute, func() bool { return len(c.processes("task")) > 0 })
	before := c.processes("task")
	manifest := kubectl(t, "-n", c.namespace, "create", "configmap", "crawlbatch-politeness",
		"--from-literal=politeness.yaml=politeness: {delay: "+clusterDelay.String()+"}", "--dry-run=client", "-o", "yaml")
	if out, err := tryKubectl(manifest, "-n", c.namespace, "apply", "-f", "-"); err != nil {
		t.Fatalf("kubectl apply: %v\n%s", err, out)
	}
	if code, out := p.wait(); code != 0 {
		t.Fatalf("run: exit %d\n%s", code, out)
	}
	if len(before) == 0 {
		t.Error("no pod ran when politeness changed")
	}
	for _, pod := range listObjects[corev1.Pod](t, c.namespace, "pods", "-l", "crawlbatch.io/stage=fetch,crawlbatch.io/round=0") {
		if pod.Labels[k8s.LabelAttempt] != "1" {
			t.Errorf("pod %s is attempt %s: the change must reach running pods", pod.Name, pod.Labels[k8s.LabelAttempt])
		}
	}
	c.check(r.chaosRun, c.bucket(), nil)
}

// manyPartitions crawls one round of 200 partitions.
func manyPartitions(t *testing.T, r *clusterRun, salt uint64) {
	c := r.crawl(t, clusterPlan{salt: salt, delay: 20 * time.Millisecond, hosts: 500, pages: 3, replace: []string{"partition_urls: 100", "partition_urls: 3", "parallelism: {max: 8}", "parallelism: {max: 24}"}})
	if code, out := c.start("run", append([]string{"--rounds", "1"}, c.flags...)...).wait(); code != 0 {
		t.Fatalf("run: exit %d\n%s", code, out)
	}
	if code, out := c.start("verify", "--one-clock").wait(); code != 0 {
		t.Errorf("verify: exit %d\n%s", code, out)
	}
	if rounds := c.status().Rounds; len(rounds) != 1 || rounds[0].Partitions < 200 || rounds[0].State != "sealed" {
		t.Errorf("status: %+v", rounds)
	}
}

// validManifests lets the API server validate everything in k8s/. The namespace must refuse a pod
// that breaks its rules.
func validManifests(t *testing.T, r *clusterRun, _ uint64) {
	namespace := r.namespace(t)
	for folder, components := range map[string][]string{"manifests": {"in-cluster-store", "node-local-dns", "eks-pod-identity"}, "example": nil} {
		out := kubectl(t, "apply", "--dry-run=server", "-k", writeOverlay(t, namespace, folder, components...))
		for _, kind := range []string{"networkpolicy", "cronjob", "role", "serviceaccount", "configmap"} {
			if !strings.Contains(out, kind) {
				t.Errorf("%s: no %s in\n%s", folder, kind, out)
			}
		}
	}
	out, err := tryKubectl("", "-n", namespace, "run", "root", "--image=crawlbatch", "--dry-run=server", "--privileged")
	if err == nil || !strings.Contains(out, "violates PodSecurity") {
		t.Errorf("a privileged pod: %v\n%s", err, out)
	}
}
