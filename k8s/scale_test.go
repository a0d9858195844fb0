package k8s

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"crawlbatch.io/crawlbatch/jobs/config"
)

// scaled returns a lab that runs between 2 and 16 pods at a time, and the partitions of its plan.
func scaled(t *testing.T) (*lab, []int) {
	t.Helper()
	l := newLab(t)
	l.Config.Kubernetes.Parallelism = config.Parallelism{Min: 2, Max: 16}
	all := make([]int, 40)
	for i := range all {
		all[i] = i
	}
	return l, all
}

// rooms returns the parallelism of all Jobs.
func (l *lab) rooms(t *testing.T) (n []int32) {
	t.Helper()
	for _, job := range l.jobs(t) {
		n = append(n, *job.Spec.Parallelism)
	}
	return n
}

func (l *lab) wantRooms(t *testing.T, when string, want ...int32) {
	t.Helper()
	if got := l.rooms(t); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s, the Jobs run %v pods at a time; want %v", when, got, want)
	}
}

var fitsNoNode = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
	Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/1 nodes are available"}}}

func TestTheNumberOfPodsFollowsWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, all := scaled(t)
		job, ends := l.begin(t, all...)
		l.wantRooms(t, "at the beginning", 2)
		time.Sleep(growEvery + lookEvery)
		l.wantRooms(t, "when all pods fit", 4)
		time.Sleep(3 * (growEvery + lookEvery))
		l.wantRooms(t, "later", 16)
		for i := range 6 {
			l.pod(t, job, fmt.Sprintf("waits-%d", i), i, 0, fitsNoNode)
		}
		time.Sleep(placeWithin - time.Minute)
		l.wantRooms(t, "while a cluster may add nodes", 16)
		time.Sleep(2 * time.Minute)
		l.wantRooms(t, "when no node came", 10)
		for i := range 6 {
			if err := l.cluster.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("pods"), "crawl", fmt.Sprintf("waits-%d", i)); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(growAgain - 2*time.Minute)
		l.wantRooms(t, "soon after", 10)
		time.Sleep(3 * time.Minute)
		l.wantRooms(t, "at the next try", 16)
		l.finish(t, job, ends, all...)
	})
}

func TestTheNumberOfPodsStaysAboveItsMinimumAndWithoutOneIsConstant(t *testing.T) {
	for _, c := range []struct {
		k          config.Parallelism
		begin, end int32
	}{{config.Parallelism{Min: 2, Max: 16}, 2, 2}, {config.Parallelism{Max: 16}, 16, 16}, {config.Parallelism{Min: 16, Max: 16}, 16, 16}} {
		synctest.Test(t, func(t *testing.T) {
			l, all := scaled(t)
			l.Config.Kubernetes.Parallelism = c.k
			job, ends := l.begin(t, all...)
			l.wantRooms(t, fmt.Sprintf("with %+v at the beginning", c.k), c.begin)
			for i := range 16 {
				l.pod(t, job, fmt.Sprintf("waits-%d", i), i, 0, fitsNoNode)
			}
			time.Sleep(20 * time.Minute)
			l.wantRooms(t, fmt.Sprintf("with %+v and no nodes", c.k), c.end)
			l.finish(t, job, ends, all...)
		})
	}
}

func TestJobsOfAStageShareTheNumberOfPodsByWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, all := scaled(t)
		l.Config.Kubernetes.JobTasks = 20
		log := l.listen()
		mayNot := l.failCalls("patch", "jobs", apierrors.NewForbidden(schema.GroupResource{Group: "batch", Resource: "jobs"}, "x", errors.New("no")))
		mayNot(false)
		ends := make(chan error, 1)
		go func() { ends <- l.runTasks(t.Context(), all...) }()
		time.Sleep(time.Second)
		l.wantRooms(t, "at the beginning", 1, 1)
		time.Sleep(4 * (growEvery + lookEvery))
		l.wantRooms(t, "later", 8, 8)
		for i := range 20 {
			l.result(t, i)
		}
		first := l.jobs(t)[0]
		l.setStatus(t, first, batchv1.JobStatus{Succeeded: 20, CompletedIndexes: "0-19", Conditions: []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}})
		time.Sleep(2 * lookEvery)
		l.wantRooms(t, "after the end of one Job", 8, 16)
		mayNot(true)
		for i := range 16 {
			l.pod(t, l.jobs(t)[1], fmt.Sprintf("waits-%d", i), i, 0, fitsNoNode)
		}
		time.Sleep(2 * placeWithin)
		l.wantRooms(t, "without the right to change it", 8, 16)
		if log.linesWith("cannot be changed") == 0 {
			t.Error("the log does not tell of the missing right")
		}
		l.finish(t, l.jobs(t)[1], ends, all[20:]...)
	})
}
