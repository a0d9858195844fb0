package k8s

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"crawlbatch.io/crawlbatch/formats/store"
)

// runningPod adds a pod for an index, with containers in the given states.
func (l *lab) runningPod(t *testing.T, job batchv1.Job, name string, index int, states map[string]corev1.ContainerState) *corev1.Pod {
	t.Helper()
	status := corev1.PodStatus{Phase: corev1.PodRunning}
	for container, state := range states {
		status.ContainerStatuses = append(status.ContainerStatuses, corev1.ContainerStatus{Name: container, State: state})
	}
	job.Spec.Template.Spec.NodeName = "node-1"
	return l.pod(t, job, name, index, 0, status)
}

var runs = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}

func exited(code int32) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}}
}

func (l *lab) hasPod(t *testing.T, name string) bool {
	t.Helper()
	_, err := l.cluster.CoreV1().Pods("crawl").Get(t.Context(), name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	return err == nil
}

func TestTheStoreDecidesForPodsThatRunOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		log := l.listen()
		job, ends := l.begin(t, 0, 1)
		l.setStatus(t, job, batchv1.JobStatus{Active: 2})
		l.runningPod(t, job, "hangs", 0, map[string]corev1.ContainerState{containerName: runs})
		lost := l.runningPod(t, job, "lost", 1, map[string]corev1.ContainerState{containerName: runs})
		lost.DeletionTimestamp, lost.Finalizers = ptr(metav1.Now()), []string{batchv1.JobTrackingFinalizer}
		if err := l.cluster.Tracker().Update(corev1.SchemeGroupVersion.WithResource("pods"), lost, "crawl"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * resultsEvery)
		if len(l.ended) != 0 {
			t.Fatalf("ended without a result: %v", l.ended)
		}
		l.result(t, 0)
		l.result(t, 1)
		began := time.Now()
		if err := <-ends; err != nil || l.ended[0] != nil || l.ended[1] != nil || len(l.ended) != 2 {
			t.Errorf("%v, %v", err, l.ended)
		}
		if d := time.Since(began); d < resultsEvery || d > 3*resultsEvery {
			t.Errorf("the driver took %s", d)
		}
		for _, pod := range []string{"pod hangs on node node-1 has not ended", "pod lost on node node-1 has not ended"} {
			if log.linesWith(pod) != 1 {
				t.Errorf("no line %q in\n%s", pod, log.text.String())
			}
		}
	})
}

func TestAPodThatEndsSoonAfterItsResultIsNoMatter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		log := l.listen()
		job, ends := l.begin(t, 0)
		l.runningPod(t, job, "ends", 0, map[string]corev1.ContainerState{containerName: runs})
		l.result(t, 0)
		time.Sleep(resultsEvery + 10*time.Second) // one look finds the result
		l.setStatus(t, job, batchv1.JobStatus{CompletedIndexes: "0"})
		if err := <-ends; err != nil || log.linesWith("has not ended") != 0 {
			t.Errorf("%v\n%s", err, log.text.String())
		}
	})
}

func TestAPodThatASidecarKeepsIsDeletedIfItsJobNeedsThat(t *testing.T) {
	for _, c := range []struct {
		name    string
		code    int32
		waits   bool // an index of the Job waits for a pod to end
		deleted bool
	}{{"a failure", 1, false, true}, {"a success before another index", 0, true, true}, {"a success of the last indexes", 0, false, false}} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLab(t)
				if c.waits {
					l.Config.Kubernetes.Parallelism.Max = 2
				}
				log := l.listen()
				job, ends := l.begin(t, 0, 1, 2)
				l.setStatus(t, job, batchv1.JobStatus{Active: 2})
				l.runningPod(t, job, "kept", 0, map[string]corev1.ContainerState{containerName: exited(c.code), "istio-proxy": runs})
				l.runningPod(t, job, "works", 1, map[string]corev1.ContainerState{containerName: runs, "istio-proxy": runs})
				l.runningPod(t, job, "native", 2, map[string]corev1.ContainerState{containerName: exited(c.code)}) // its sidecars are init containers, which end soon
				time.Sleep(keptFor - 10*time.Second)
				if !l.hasPod(t, "kept") {
					t.Error("the pod was deleted at once")
				}
				time.Sleep(30 * time.Second)
				if l.hasPod(t, "kept") == c.deleted || !l.hasPod(t, "works") || !l.hasPod(t, "native") {
					t.Errorf("kept: %v, works: %v, native: %v", l.hasPod(t, "kept"), l.hasPod(t, "works"), l.hasPod(t, "native"))
				}
				if c.deleted && (log.linesWith("container istio-proxy runs on") != 1 || log.linesWith("sidecar.istio.io/inject") != 1) {
					t.Errorf("the log says\n%s", log.text.String())
				}
				l.finish(t, job, ends, 0, 1, 2)
			})
		})
	}
}

func TestASidecarThatKeepsTheLastPodsEndsWithTheirJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		log := l.listen()
		job, ends := l.begin(t, 0)
		l.runningPod(t, job, "kept", 0, map[string]corev1.ContainerState{containerName: exited(0), "istio-proxy": runs})
		l.result(t, 0)
		began := time.Now()
		if err := <-ends; err != nil || len(l.ended) != 1 || l.ended[0] != nil {
			t.Error(err, l.ended)
		}
		if d := time.Since(began); d > resultsEvery+lookEvery {
			t.Errorf("it took %s", d)
		}
		if log.linesWith("container istio-proxy runs on") != 1 || len(l.jobs(t)) != 0 {
			t.Errorf("%d Jobs are left; the log says\n%s", len(l.jobs(t)), log.text.String())
		}
	})
}

func TestAJobThatAlsoRunsOtherTasksStaysWhenItsPodsOutliveTheRequestedOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
		defer stop()
		_ = l.runTasks(ctx, 0, 1)
		job := l.jobs(t)[0]
		l.setStatus(t, job, batchv1.JobStatus{Ready: ptr(int32(2)), Active: 2})
		_, ends := l.begin(t, 0)
		l.runningPod(t, job, "hangs", 0, map[string]corev1.ContainerState{containerName: runs})
		l.result(t, 0)
		if err := <-ends; err != nil || len(l.jobs(t)) != 1 {
			t.Errorf("%v; %d Jobs are left", err, len(l.jobs(t)))
		}
	})
}

func TestWithoutTheRightToDeletePodsItIsAskedForSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		log := l.listen()
		l.failCalls("delete", "pods", apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "kept", errors.New("no")))
		all := make([]int, 30)
		for i := range all {
			all[i] = i
		}
		job, ends := l.begin(t, all...)
		for i := range all {
			l.runningPod(t, job, fmt.Sprintf("kept-%d", i), i, map[string]corev1.ContainerState{containerName: exited(1), "istio-proxy": runs})
		}
		time.Sleep(keptFor + 4*repeatEvery)
		asked := 0
		for _, a := range l.cluster.Actions() {
			if a.GetVerb() == "delete" && a.GetResource().Resource == "pods" {
				asked++
			}
		}
		if asked < 4 || asked > 6 || log.linesWith("should be deleted") == 0 || log.linesWith("rbac.yaml") == 0 {
			t.Errorf("asked %d times; the log says\n%s", asked, log.text.String())
		}
		l.finish(t, job, ends, all...)
	})
}

// awayStore is a store that does not answer for a while.
type awayStore struct {
	store.Bucket
	away atomic.Bool
}

func (s *awayStore) Get(ctx context.Context, key string, limit int64) ([]byte, store.Version, error) {
	if s.away.Load() {
		return nil, "", store.ErrUnavailable
	}
	return s.Bucket.Get(ctx, key, limit)
}

func TestAStoreThatIsAwayWhilePodsRunIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		s := &awayStore{Bucket: l.Bucket}
		l.Bucket = s
		log := l.listen()
		job, ends := l.begin(t, 0, 1)
		l.runningPod(t, job, "works", 0, map[string]corev1.ContainerState{containerName: runs})
		l.runningPod(t, job, "works too", 1, map[string]corev1.ContainerState{containerName: runs})
		s.away.Store(true)
		time.Sleep(2 * resultsEvery)
		l.setStatus(t, job, batchv1.JobStatus{CompletedIndexes: "0"})
		time.Sleep(patience / 2)
		if log.linesWith("the store") == 0 {
			t.Errorf("the log says\n%s", log.text.String())
		}
		s.away.Store(false)
		l.finish(t, job, ends, 0, 1)
	})
}

func TestTwoSpellingsOfAStoreAreOneAndAnotherStoresJobIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		job, first := l.begin(t, 0)
		other := &lab{cluster: l.cluster, ended: map[int]error{}, Executor: &Executor{
			Client: l.Client, Bucket: l.Bucket, Config: l.Config, Store: l.Store + "/", Clock: l.Clock, Log: l.Log, Version: l.Version,
		}}
		same, second := other.begin(t, 0)
		if same.Name != job.Name || strings.HasSuffix(job.Annotations[AnnotationStore], "/") {
			t.Errorf("the second driver follows %s, not %s", same.Name, job.Name)
		}
		third := &lab{cluster: l.cluster, ended: map[int]error{}, Executor: &Executor{
			Client: l.Client, Bucket: l.Bucket, Config: l.Config, Store: l.Store + "-copy", Clock: l.Clock, Log: l.Log, Version: l.Version,
		}}
		copied, ends := third.begin(t, 0)
		if copied.Name == job.Name || copied.Annotations[AnnotationStore] == job.Annotations[AnnotationStore] {
			t.Errorf("the driver of another store follows Job %s of %s", copied.Name, copied.Annotations[AnnotationStore])
		}
		l.finish(t, job, first, 0)
		third.setStatus(t, copied, batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}})
		for _, driver := range []chan error{second, ends} {
			if err := <-driver; err != nil {
				t.Error(err)
			}
		}
	})
}
