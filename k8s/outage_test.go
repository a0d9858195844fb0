package k8s

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ktesting "k8s.io/client-go/testing"
)

// A long outage gives lines that are bounded by its time: neither by the number of pods, nor by how often the
// driver looks, nor by what the cluster's texts contain.

func TestALongOutageOfTheAPIIsSaidEveryFiveMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.started.Store(true)
		log := l.listen()
		on := l.failCalls("*", "*", errAway)
		time.AfterFunc(patience-time.Minute, func() { on(false) })
		ends := make(chan error, 1)
		go func() { ends <- l.runTasks(t.Context(), 0) }()
		time.Sleep(patience)
		if n, want := log.linesWith("no cluster answers"), int(patience/repeatEvery); n != want {
			t.Errorf("an outage of %s has %d lines, want %d", patience-time.Minute, n, want)
		}
		l.finish(t, l.jobs(t)[0], ends, 0)
	})
}

func TestAProblemWhoseTextChangesIsSaidEveryFiveMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		log := l.listen()
		looks := 0
		l.cluster.PrependReactor("list", "events", func(ktesting.Action) (bool, runtime.Object, error) {
			job := l.jobs(t)[0]
			looks++
			return true, &corev1.EventList{Items: []corev1.Event{{
				InvolvedObject: corev1.ObjectReference{Name: job.Name, UID: job.UID}, Reason: "FailedCreate",
				Message: fmt.Sprintf(`pods "x-%d" is forbidden: exceeded quota: q, used: limits.cpu=%dm`, looks, 1000+looks),
			}}}, nil
		})
		job, ends := l.begin(t, 0)
		const outage = 30 * time.Minute
		time.Sleep(outage)
		n := log.linesWith("raise its ResourceQuota")
		if most := 1 + int(outage/repeatEvery); n > most || n < most-1 || looks < 10*n {
			t.Errorf("%d lines of %d looks in %s", n, looks, outage)
		}
		l.finish(t, job, ends, 0)
	})
}

func TestManyPodsThatHangAreSaidInAFewLinesWithTheirNumber(t *testing.T) {
	const pods = 2*problemsAKind + 5
	for _, c := range []struct {
		name, want string
		lost       bool
	}{
		{"do not start", "has not started on node", false},
		{"do not end", "does not end", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLab(t)
				log := l.listen()
				job, ends := l.begin(t, 0)
				job.Spec.Template.Spec.NodeName = "node-1"
				for n := range pods {
					p := l.pod(t, job, fmt.Sprintf("slow-%d", n), 0, 0, corev1.PodStatus{Phase: corev1.PodPending})
					if !c.lost {
						continue
					}
					p.DeletionTimestamp, p.Finalizers = ptr(metav1.Now()), []string{batchv1.JobTrackingFinalizer}
					if err := l.cluster.Tracker().Update(corev1.SchemeGroupVersion.WithResource("pods"), p, "crawl"); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(l.Config.Kubernetes.Grace.Std() + endingFor + startingFor)
				first := log.linesWith(c.want)
				time.Sleep(3 * repeatEvery)
				all, counted := log.linesWith(c.want), log.linesWith(fmt.Sprintf("more=%d", pods-problemsAKind))
				if first == 0 || first%problemsAKind != 0 || all-first != 3*problemsAKind || counted == 0 {
					t.Errorf("%d lines at first, %d after three intervals, of which %d tell how many are left out", first, all, counted)
				}
				l.finish(t, job, ends, 0)
			})
		})
	}
}
