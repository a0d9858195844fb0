package k8s

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ktesting "k8s.io/client-go/testing"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/ledger/ledgertest"
	"crawlbatch.io/crawlbatch/stages"
)

// attempts returns the attempt records of a fetch task.
func (l *lab) attempts(t *testing.T, partition int) []manifest.Attempt {
	t.Helper()
	var out []manifest.Attempt
	for o, err := range l.Bucket.List(t.Context(), layout.Attempts("2026-11", 0, "fetch", partition)) {
		if err != nil {
			t.Fatal(err)
		}
		var a manifest.Attempt
		if _, _, err := manifest.Load(t.Context(), l.Bucket, o.Key, &a); err != nil {
			t.Fatal(err)
		}
		out = append(out, a)
	}
	return out
}

func TestAnIndexThatFailedForGoodSaysWhyInItsErrorAnEventAndARecord(t *testing.T) {
	for _, c := range []struct {
		name  string
		end   corev1.ContainerStateTerminated
		class string
		want  string
	}{
		{"last words", corev1.ContainerStateTerminated{ExitCode: 1, Message: "fetch@2026-11.0:0: DNS is broken\n"}, manifest.ClassFailed, "pod dead-0-6, attempt 7, exit 1: DNS is broken"},
		{"permanent", corev1.ContainerStateTerminated{ExitCode: 78, Message: "fetch@2026-11.0:0: damaged: retrying cannot help"}, manifest.ClassPermanent, "pod dead-0-6, attempt 7, exit 78: damaged: retrying cannot help"},
		{"out of memory", corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}, manifest.ClassOutOfMemory,
			"pod dead-0-6, attempt 7, exit 137: killed for using more memory than its limit of LIMIT: raise kubernetes.resources.fetch.memory to 2176MiB in the config, then `crawlbatch retry --month 2026-11 --executor kubernetes`"},
		{"a memory limit below the least", corev1.ContainerStateTerminated{ExitCode: 78, Message: "fetch@2026-11.0:0: a limit of this process is too low: the cgroup allows 64 MiB of memory: retrying cannot help"}, manifest.ClassPermanent,
			"pod dead-0-6, attempt 7, exit 78: a limit of this process is too low: the cgroup allows 64 MiB of memory: raise kubernetes.resources.fetch.memory to 2176MiB in the config, then `crawlbatch retry --month 2026-11 --executor kubernetes`: retrying cannot help"},
		{"killed", corev1.ContainerStateTerminated{ExitCode: 137, Reason: "Error"}, manifest.ClassKilled, "pod dead-0-6, attempt 7, exit 137: killed (SIGKILL)"},
		{"crashed", corev1.ContainerStateTerminated{ExitCode: 2, Message: "panic: boom\n\ngoroutine 7 [running]:\nmain.f(...)\n\t/src/f.go:7 +0x1d\n"}, manifest.ClassFault, "pod dead-0-6, attempt 7, exit 2: fault in the program: panic: boom"},
		{"end of a trace", corev1.ContainerStateTerminated{ExitCode: 2, Message: "main.f(...)\n\t/src/f.go:7 +0x1d\n"}, manifest.ClassFault, "pod dead-0-6, attempt 7, exit 2: fault in the program: `kubectl logs` shows its trace"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLab(t)
				l.Flags = " --executor kubernetes"
				job, ends := l.begin(t, 0)
				for before := range 7 {
					l.addDeadPod(t, job, 0, before, c.end)
					time.Sleep(time.Second)
				}
				l.setStatus(t, job, batchv1.JobStatus{Failed: 7, FailedIndexes: ptr("0"), Conditions: []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue}}})
				if err := <-ends; err != nil {
					t.Fatal(err)
				}
				c.want = strings.Replace(c.want, "LIMIT", job.Spec.Template.Spec.Containers[0].Resources.Limits.Memory().String(), 1)
				if err := l.ended[0]; err == nil || err.Error() != "fetch@2026-11.0:0: "+c.want {
					t.Errorf("got  %v\nwant fetch@2026-11.0:0: %s", err, c.want)
				}
				a := l.attempts(t, 0)
				if len(a) != 1 || a[0].Class != c.class || a[0].Machine != "dead-0-6" || a[0].Error != c.want || !a[0].Failure() {
					t.Errorf("recorded as %+v", a)
				}
				told := strings.Join(l.events(t), "\n")
				for _, want := range []string{
					"TaskFailed: fetch@2026-11.0:0 failed for good: " + c.want,
					"StageDone: fetch@2026-11.0: 1 of 1 tasks failed for good, partitions 0: `crawlbatch retry --month 2026-11 --executor kubernetes` runs them again",
				} {
					if !strings.Contains(told, want) {
						t.Errorf("no Event %q in\n%s", want, told)
					}
				}
			})
		})
	}
}

func TestAPodThatRecordedItsFailureIsNotRecordedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		job, ends := l.begin(t, 0, 1)
		own := func(partition int, machine string) {
			create(t, l.Bucket, layout.Attempt("2026-11", 0, "fetch", partition, 1), &manifest.Attempt{Attempt: 1, Class: manifest.ClassStoreDenied, Machine: machine})
		}
		own(0, "dead-0-0")
		l.addDeadPod(t, job, 0, 0, corev1.ContainerStateTerminated{ExitCode: 1, Message: "denied"})
		own(1, "a pod that is gone")
		l.setStatus(t, job, batchv1.JobStatus{FailedIndexes: ptr("0,1"), Conditions: []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue}}})
		if err := <-ends; err != nil {
			t.Fatal(err)
		}
		for n := range 2 {
			if a := l.attempts(t, n); len(a) != 1 || a[0].Class != manifest.ClassStoreDenied {
				t.Errorf("task %d: %+v", n, a)
			}
		}
		if err := l.ended[1]; err == nil || !strings.Contains(err.Error(), "crawlbatch status --month 2026-11") {
			t.Errorf("task 1, whose pods are gone, ended with %v", err)
		}
	})
}

func TestAFailedPodIsToldOfOnceAndAnInterruptedOneIsNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		log := l.listen()
		job, ends := l.begin(t, 0, 1, 2)
		l.addDeadPod(t, job, 0, 0, corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"})
		l.addDeadPod(t, job, 1, 0, corev1.ContainerStateTerminated{ExitCode: exitInterrupted, Message: "interrupted"})
		l.pod(t, job, "evicted", 2, 0, corev1.PodStatus{
			Phase: corev1.PodFailed, Reason: "Evicted", Message: `Usage of EmptyDir volume "scratch" exceeds the limit "1Gi". `,
			Conditions: []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}},
		})
		l.setStatus(t, job, batchv1.JobStatus{Failed: 1})
		time.Sleep(5 * time.Minute)
		if log.linesWith("a pod failed") != 2 || log.linesWith("kubernetes.resources.fetch.memory") != 1 || log.linesWith("kubernetes.resources.fetch.scratch") != 1 {
			t.Error(log.text.String())
		}
		if told := l.events(t); len(told) != 2 || !strings.HasPrefix(told[0], "ResourcesTooSmall: ") {
			t.Errorf("Events %q", told)
		}
		l.finish(t, job, ends, 0, 1, 2)
	})
}

func TestAPodThatItsOwnLimitEndedIsToldOfWhateverItsExitCode(t *testing.T) {
	ended := func(code int32, said string) []corev1.ContainerStatus {
		return []corev1.ContainerStatus{{Name: containerName, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Message: said}}}}
	}
	for _, c := range []struct {
		name   string
		status corev1.PodStatus
		want   string
	}{
		{"evicted for its scratch volume", corev1.PodStatus{Reason: "Evicted", Message: `Usage of EmptyDir volume "scratch" exceeds the limit "1Gi". `, ContainerStatuses: ended(exitInterrupted, "fetch@2026-11.0:0: interrupted")},
			"raise kubernetes.resources.fetch.scratch to 4GiB in the config, then `crawlbatch retry --month 2026-11`"},
		{"ended by itself", corev1.PodStatus{ContainerStatuses: ended(1, "fetch@2026-11.0:0: the files in the scratch directory /scratch take 2 MiB, more than the 1 MiB that CRAWLBATCH_SCRATCH allows: raise kubernetes.resources.fetch.scratch to 4GiB")},
			"raise kubernetes.resources.fetch.scratch to 4GiB in the config, then `crawlbatch retry --month 2026-11`"},
		{"over a deadline", corev1.PodStatus{Reason: "DeadlineExceeded", Message: "Pod was active on the node longer than the specified deadline", ContainerStatuses: ended(exitInterrupted, "fetch@2026-11.0:0: interrupted")},
			"a policy of the cluster gave the pod activeDeadlineSeconds"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLab(t)
				log := l.listen()
				job, ends := l.begin(t, 0)
				c.status.Phase = corev1.PodFailed
				l.pod(t, job, "ended", 0, 0, c.status)
				time.Sleep(time.Minute)
				if log.linesWith("a pod failed") != 1 || log.linesWith(c.want) != 1 {
					t.Errorf("the log says\n%s", log.text.String())
				}
				if told := l.events(t); len(told) != 1 || !strings.HasPrefix(told[0], "ResourcesTooSmall: ") || !strings.Contains(told[0], c.want) {
					t.Errorf("Events %q", told)
				}
				l.finish(t, job, ends, 0)
			})
		})
	}
}

func TestAReduceTaskOverItsDeadlineFailsAfterAsManyPodsAsOtherFailures(t *testing.T) {
	for _, stage := range []stages.Stage{stages.Merge, stages.Fetch} {
		synctest.Test(t, func(t *testing.T) {
			l := newLab(t)
			ends := make(chan error, 1)
			go func() {
				ctx, stop := context.WithTimeout(t.Context(), time.Hour)
				defer stop()
				ends <- l.Run(ctx, tasks(stage, 0), func(t stages.Task, err error) { l.ended[t.Partition] = err })
			}()
			time.Sleep(time.Second)
			job := l.jobs(t)[0]
			for n := range l.Config.Kubernetes.BackoffLimitPerIndex + 1 {
				if l.ended[0] != nil {
					t.Errorf("failed after %d pods", n)
				}
				l.pod(t, job, fmt.Sprintf("late-%d", n), 0, n, corev1.PodStatus{Phase: corev1.PodFailed, Reason: "DeadlineExceeded", Message: "Pod was active on the node longer than the specified deadline",
					ContainerStatuses: []corev1.ContainerStatus{{Name: containerName, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: exitInterrupted, Message: "interrupted"}}}}})
				time.Sleep(time.Minute)
			}
			if failed := l.ended[0] != nil; failed != (stage == stages.Merge) {
				t.Errorf("%s: ended with %v", stage, l.ended)
			}
			if stage == stages.Merge {
				if err := <-ends; err != nil || !strings.Contains(l.ended[0].Error(), "activeDeadlineSeconds") || len(l.jobs(t)) != 0 {
					t.Errorf("%v, %v; %d Jobs are left", err, l.ended[0], len(l.jobs(t)))
				}
				return
			}
			l.finish(t, job, ends, 0)
		})
	}
}

func TestPodsThatCannotGoOnAreToldOfAndPodsThatWereAskedToEndAreNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		log := l.listen()
		job, ends := l.begin(t, 0, 1, 2, 3)
		const away = `fetch@2026-11.0:%d: reach "s3://crawls": the store does not answer: connection refused (tried 5 times in 12s)`
		end := func(n int) corev1.PodStatus {
			return corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: []corev1.ContainerStatus{{Name: containerName, State: corev1.ContainerState{
				Terminated: &corev1.ContainerStateTerminated{ExitCode: exitInterrupted, Reason: "Error", Message: fmt.Sprintf(away, n)}}}}}
		}
		l.addDeadPod(t, job, 0, 0, corev1.ContainerStateTerminated{ExitCode: exitInterrupted, Reason: "Error"})
		l.addDeadPod(t, job, 0, 1, corev1.ContainerStateTerminated{ExitCode: exitInterrupted, Message: "fetch@2026-11.0:0: interrupted\n"})
		drained := end(1)
		drained.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}}
		l.pod(t, job, "drained", 1, 0, drained)
		deleted := l.pod(t, job, "deleted", 1, 1, end(1))
		deleted.DeletionTimestamp = ptr(metav1.Now())
		if err := l.cluster.Tracker().Update(corev1.SchemeGroupVersion.WithResource("pods"), deleted, "crawl"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		if log.linesWith("could not go on") != 0 {
			t.Errorf("a pod that was asked to end:\n%s", log.text.String())
		}
		for n := range 4 {
			l.pod(t, job, fmt.Sprintf("away-%d", n), n, 2, end(n))
		}
		time.Sleep(2 * time.Minute)
		if log.linesWith("could not go on") != 1 || log.linesWith("the store does not answer: connection refused") != 1 || log.linesWith("a pod failed") != 0 {
			t.Error(log.text.String())
		}
		l.pod(t, job, "away-later", 2, 3, end(2))
		time.Sleep(2 * repeatEvery)
		if log.linesWith("could not go on") != 1 { // within repeatEvery of the first line
			t.Error(log.text.String())
		}
		l.pod(t, job, "away-long", 2, 4, end(2))
		time.Sleep(time.Minute)
		if log.linesWith("could not go on") != 2 {
			t.Error(log.text.String())
		}
		l.finish(t, job, ends, 0, 1, 2, 3)
	})
}

func TestFailuresWithoutEndAreToldOfInBoundedNumber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		create(t, l.Bucket, layout.PlanManifest("2026-11", 1, "p2"), planOf(300))
		ledgertest.Make(t, l.Bucket, "2026-11")
		log := l.listen()
		var asked []stages.Task
		for n := range 300 {
			asked = append(asked, stages.Task{Stage: stages.Fetch, Crawl: "2026-11", Round: 1, Partition: n})
		}
		ends := make(chan error, 1)
		failed := 0
		go func() { ends <- l.Run(t.Context(), asked, func(stages.Task, error) { failed++ }) }()
		time.Sleep(time.Second)
		job := l.jobs(t)[0]
		for n := range 300 {
			l.addDeadPod(t, job, n, 0, corev1.ContainerStateTerminated{ExitCode: 1, Message: "x"})
		}
		l.setStatus(t, job, batchv1.JobStatus{Failed: 300})
		time.Sleep(time.Minute)
		l.setStatus(t, job, batchv1.JobStatus{Failed: 300, FailedIndexes: ptr("0-299"), Conditions: []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue}}})
		if err := <-ends; err != nil || failed != 300 {
			t.Errorf("%v, %d failed", err, failed)
		}
		list, err := l.cluster.CoreV1().Events("crawl").List(t.Context(), metav1.ListOptions{})
		if err != nil || len(list.Items) > maxEvents+1 || log.linesWith("a pod failed") > reportedAPass {
			t.Errorf("%d Events, %d lines, %v", len(list.Items), log.linesWith("a pod failed"), err)
		}
	})
}

// planOf returns a plan of round 1 with n partitions.
func planOf(n int) *manifest.Plan {
	p := plan(n)
	p.ID, p.Round = "p2", 1
	return p
}

func TestPodsAreLabelledAFewALookAndListedOnceAStage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.Config.Kubernetes.JobTasks = 2 // makes the executor create two Jobs for four tasks
		job, ends := l.begin(t, 0, 1, 2, 3)
		for n := range labelsAPass + 1 {
			l.pod(t, job, fmt.Sprintf("pod-%d", n), n%2, 0, corev1.PodStatus{Phase: corev1.PodRunning})
		}
		l.cluster.ClearActions()
		time.Sleep(lookEvery)
		lists, patches := 0, 0
		for _, a := range l.cluster.Actions() {
			if a.Matches("list", "pods") && strings.Contains(a.(ktesting.ListAction).GetListRestrictions().Fields.String(), "!=") {
				lists++
			}
			if a.Matches("patch", "pods") {
				patches++
			}
		}
		if lists != 1 || patches != labelsAPass {
			t.Errorf("one pass over the pods made %d lists and %d patches", lists, patches)
		}
		time.Sleep(lookEvery)
		pods, err := l.cluster.CoreV1().Pods("crawl").List(t.Context(), metav1.ListOptions{LabelSelector: LabelPartition + "," + LabelAttempt + "=1"})
		if err != nil || len(pods.Items) != labelsAPass+1 {
			t.Errorf("%d pods are labelled, %v", len(pods.Items), err)
		}
		for n := range 4 {
			l.result(t, n)
		}
		for _, j := range l.jobs(t) {
			l.setStatus(t, j, batchv1.JobStatus{CompletedIndexes: "0-1"})
		}
		if err := <-ends; err != nil {
			t.Error(err)
		}
	})
}

func TestAJobDeletedByHandInterruptsUnlessItsTasksAreDone(t *testing.T) {
	for _, done := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			l := newLab(t)
			job, ends := l.begin(t, 0)
			if done {
				l.result(t, 0) // if done is true, the task has a result before the Job is deleted
			}
			if err := l.cluster.Tracker().Delete(batchv1.SchemeGroupVersion.WithResource("jobs"), "crawl", job.Name); err != nil {
				t.Fatal(err)
			}
			if err := <-ends; done != (err == nil) || !done && !errors.Is(err, stages.ErrInterrupted) {
				t.Errorf("done %v: %v", done, err)
			}
			again, ends := l.begin(t, 1) // the next run creates a new Job
			l.finish(t, again, ends, 1)
		})
	}
}

func TestAnAdoptedJobsFailedIndexesAreRunAnewAndTheOthersAreNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		ctx, stop := context.WithCancel(t.Context())
		time.AfterFunc(10*time.Second, stop)
		_ = l.runTasks(ctx, 0, 1, 2)
		first := l.jobs(t)[0]
		l.setStatus(t, first, batchv1.JobStatus{Ready: ptr(int32(1)), FailedIndexes: ptr("1")})
		ends := make(chan error, 1)
		go func() { ends <- l.runTasks(t.Context(), 0, 1, 2) }()
		time.Sleep(time.Minute)
		all := l.jobs(t)
		if len(all) != 2 || l.ended[1] != nil {
			t.Fatalf("%d Jobs, %v", len(all), l.ended)
		}
		for _, j := range all {
			if j.Name != first.Name && j.Annotations[AnnotationPartitions] != "1" {
				t.Errorf("the new Job runs %s", j.Annotations[AnnotationPartitions])
			}
			for n := range 3 {
				l.result(t, n)
			}
			l.setStatus(t, j, batchv1.JobStatus{Ready: ptr(int32(1)), FailedIndexes: j.Status.FailedIndexes, CompletedIndexes: "0-2"})
		}
		if err := <-ends; err != nil {
			t.Error(err)
		}
		if d := cmp.Diff(map[int]error{0: nil, 1: nil, 2: nil}, l.ended); d != "" {
			t.Error(d)
		}
		if told := strings.Join(l.events(t), "\n"); !strings.Contains(told, "Adopted: ") {
			t.Error("the adoption left no Event")
		}
	})
}

// A retry with more memory must not end the partitions that still run.
func TestARetryWithOtherPodsLeavesTheJobOfPartitionsThatRun(t *testing.T) {
	for _, c := range []struct {
		name     string
		asked    []int
		done     []int // partitions with a result
		replaced bool
	}{
		{"the others run", []int{1}, nil, false},
		{"another one runs", []int{0, 1, 2}, nil, false},
		{"all that run are requested", []int{0, 2, 3}, nil, true},
		{"the others have results", []int{1, 2}, []int{0, 3}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLab(t)
				ctx, stop := context.WithCancel(t.Context())
				time.AfterFunc(10*time.Second, stop)
				_ = l.runTasks(ctx, 0, 1, 2, 3)
				first := l.jobs(t)[0]
				l.setStatus(t, first, batchv1.JobStatus{Ready: ptr(int32(3)), Active: 3, FailedIndexes: ptr("1")})
				for _, n := range c.done {
					l.result(t, n)
				}
				l.Config.Kubernetes.Resources = map[string]config.Resources{"fetch": {Memory: 4 << 30}}
				ends := make(chan error, 1)
				go func() { ends <- l.runTasks(t.Context(), c.asked...) }()
				time.Sleep(time.Minute)
				left, anew := false, ""
				for _, j := range l.jobs(t) {
					if j.Name == first.Name && j.UID == first.UID && j.Annotations[AnnotationTemplate] == first.Annotations[AnnotationTemplate] {
						left = true
					} else {
						anew += j.Annotations[AnnotationPartitions]
					}
				}
				want := "1"
				if c.replaced {
					want = ranges(c.asked)
				}
				if left == c.replaced || anew != want {
					t.Errorf("the running Job is left: %v; the new Job runs %q, want %q", left, anew, want)
				}
				for n := range 4 {
					if !slices.Contains(c.done, n) {
						l.result(t, n)
					}
				}
				for _, j := range l.jobs(t) {
					l.setStatus(t, j, batchv1.JobStatus{CompletedIndexes: "0-3", FailedIndexes: j.Status.FailedIndexes})
				}
				if err := <-ends; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestTwoDriversAtOnceShareOneJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		other := &lab{cluster: l.cluster, ended: map[int]error{}, Executor: &Executor{
			Client: l.Client, Bucket: l.Bucket, Config: l.Config, Store: l.Store, Clock: l.Clock, Log: l.Log, Version: l.Version,
		}}
		second := make(chan error, 1)
		go func() { second <- other.runTasks(t.Context(), 0, 1) }()
		job, first := l.begin(t, 0, 1)
		if n := len(l.jobs(t)); n != 1 {
			t.Errorf("%d Jobs", n)
		}
		l.result(t, 1)
		l.finish(t, job, first, 0)
		if err := <-second; err != nil || len(other.ended) != 2 {
			t.Errorf("%v, %v", err, other.ended)
		}
	})
}

func TestAStageOfMoreThanTenThousandPartitionsIsSplitAndEachIsInOneJob(t *testing.T) {
	all := make([]int, 25_001)
	for i := range all {
		all[i] = i
	}
	batches, err := Split(plan(len(all)), tasks(stages.Fetch, all...), 10_000, "v1")
	if err != nil || len(batches) != 3 {
		t.Fatalf("%d batches, %v", len(batches), err)
	}
	var joined []int
	for i, share := range Shares(batches, 50) {
		joined = append(joined, batches[i].Partitions...)
		if share < 1 || len(batches[i].Name()) > 52 {
			t.Errorf("batch %d: share %d, name %s", i, share, batches[i].Name())
		}
	}
	if d := cmp.Diff(all, joined); d != "" {
		t.Error(d)
	}
}

func TestPodsAreReadFromTheServersCacheAndFailedOnesSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		job, ends := l.begin(t, 0)
		const lasts = 10 * time.Minute
		for failed := range int32(lasts / time.Second) { // a Job that counts a failure each second
			l.setStatus(t, job, batchv1.JobStatus{Active: 1, Failed: failed})
			time.Sleep(time.Second)
		}
		active, failed := 0, 0
		for _, a := range l.cluster.Actions() {
			list, ok := a.(ktesting.ListActionImpl)
			if !ok || a.GetResource().Resource != "pods" {
				continue
			}
			if list.ListOptions.ResourceVersion != anyVersion {
				t.Fatalf("read with %+v", list.ListOptions)
			}
			switch list.ListOptions.FieldSelector {
			case phaseActive:
				active++
			case phaseFailed:
				failed++
			}
		}
		if most := int(lasts / failuresSoon); active < failed || failed == 0 || failed > most {
			t.Errorf("in %s, active pods were read %d times, and failed ones %d times, want at most %d", lasts, active, failed, most)
		}
		l.finish(t, job, ends, 0)
	})
}
