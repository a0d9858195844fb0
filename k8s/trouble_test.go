package k8s

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ktesting "k8s.io/client-go/testing"

	"crawlbatch.io/crawlbatch/stages"
)

// logWriter is a writer that keeps log output.
type logWriter struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (h *logWriter) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.Write(p)
}

// linesWith returns the number of lines that contain text.
func (h *logWriter) linesWith(text string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Count(h.text.String(), text)
}

// listen makes the lab log to a buffer and returns the buffer.
func (l *lab) listen() *logWriter {
	h := &logWriter{}
	l.Log = slog.New(slog.NewTextHandler(h, nil))
	return h
}

// begin runs tasks in the background and waits for their Job.
func (l *lab) begin(t *testing.T, partitions ...int) (batchv1.Job, chan error) {
	t.Helper()
	ends := make(chan error, 1)
	go func() { ends <- l.runTasks(t.Context(), partitions...) }()
	time.Sleep(time.Second)
	all := l.jobs(t)
	if len(all) == 0 {
		t.Fatal("no Job was made")
	}
	return all[len(all)-1], ends
}

// finish completes the tasks of a Job.
func (l *lab) finish(t *testing.T, job batchv1.Job, ends chan error, partitions ...int) {
	t.Helper()
	for _, n := range partitions {
		l.result(t, n)
	}
	l.setStatus(t, job, batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}})
	if err := <-ends; err != nil {
		t.Error(err)
	}
}

// errAway is the error of a call to an API server that does not answer.
var errAway = &url.Error{Op: "Get", URL: "https://10.0.0.1", Err: syscall.ECONNREFUSED}

// failCalls makes calls with the given verb and resource fail with err. The caller turns this on and off with
// the returned function.
func (l *lab) failCalls(verb, resource string, err error) (on func(bool)) {
	var mu sync.Mutex
	fails := true
	l.cluster.PrependReactor(verb, resource, func(ktesting.Action) (bool, runtime.Object, error) {
		mu.Lock()
		defer mu.Unlock()
		return fails, nil, err
	})
	return func(v bool) {
		mu.Lock()
		defer mu.Unlock()
		fails = v
	}
}

func TestAnAPIThatNeverAnswersIsSaidWithinHalfAMinuteAndIsNoLastingFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.failCalls("*", "*", errAway)
		began := time.Now()
		err := l.runTasks(t.Context(), 0)
		if !errors.Is(err, ErrCluster) || !errors.Is(err, stages.ErrInterrupted) || !strings.Contains(err.Error(), "check --kubeconfig") || time.Since(began) > 30*time.Second {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
	})
}

func TestAnAPIThatIsAwayForAWhileIsWaitedForAtEveryCall(t *testing.T) {
	for _, c := range []struct{ verb, resource string }{{"list", "jobs"}, {"create", "jobs"}, {"list", "pods"}, {"list", "events"}} {
		t.Run(c.verb+" "+c.resource, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLab(t)
				l.answered.Store(true) // as if the API had answered in an earlier stage
				on := l.failCalls(c.verb, c.resource, errAway)
				time.AfterFunc(20*time.Minute, func() { on(false) })
				ends := make(chan error, 1)
				go func() { ends <- l.runTasks(t.Context(), 0) }()
				time.Sleep(21 * time.Minute)
				l.finish(t, l.jobs(t)[0], ends, 0)
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.answered.Store(true)
		l.failCalls("*", "*", errAway)
		began := time.Now()
		if err := l.runTasks(t.Context(), 0); !errors.Is(err, stages.ErrInterrupted) || time.Since(began) < patience {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
	})
}

func TestWhatTheAPISaysIsExplainedAndClassed(t *testing.T) {
	jobs := schema.GroupResource{Group: "batch", Resource: "jobs"}
	terminating := apierrors.NewForbidden(jobs, "x", errors.New("unable to create new content in namespace crawl because it is being terminated"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	for _, c := range []struct {
		name      string
		err       error
		want      string
		goOnLater bool
	}{
		{"refused connection", errAway, "no cluster answers", true},
		{"overloaded", apierrors.NewTooManyRequests("x", 1), "no cluster answers", true},
		{"broken", apierrors.NewInternalError(errors.New("etcd")), "no cluster answers", true},
		{"quota", apierrors.NewForbidden(jobs, "x", errors.New("exceeded quota: q")), "ResourceQuota", true},
		{"forbidden", apierrors.NewForbidden(jobs, "x", errors.New("no")), "rbac.yaml", false},
		{"login", apierrors.NewUnauthorized("x"), "log in", false},
		{"namespace missing", apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "crawl"), "--namespace or kubernetes.namespace", false},
		{"namespace terminating", terminating, "being deleted", false},
		{"invalid", apierrors.NewBadRequest("x"), "k8s render", false},
		{"another's certificate", &url.Error{Op: "Get", URL: "https://10.0.0.1", Err: x509.UnknownAuthorityError{}}, "certificate-authority", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := explain(fmt.Errorf("list: %w", c.err), newLab(t).Config)
			if !errors.Is(err, ErrCluster) || errors.Is(err, stages.ErrInterrupted) != c.goOnLater || !strings.Contains(err.Error(), c.want) || !errors.Is(err, c.err) {
				t.Error(err)
			}
		})
	}
}

func TestRightsTakenAwayInMidStageAreSaidAndWaitedForShortly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		log := l.listen()
		on := l.failCalls("list", "jobs", apierrors.NewForbidden(schema.GroupResource{Resource: "jobs"}, "", errors.New("no")))
		on(false)
		job, ends := l.begin(t, 0)
		on(true)
		time.Sleep(5 * time.Second)
		on(false)
		if log.linesWith("rbac.yaml") != 1 {
			t.Error("not told of")
		}
		l.finish(t, job, ends, 0)
	})
}

func TestWithoutRightToPodsOrEventsTheCrawlGoesOn(t *testing.T) {
	for _, c := range []struct{ verb, resource, want string }{
		{"list", "pods", "pods cannot be read"}, {"list", "events", "events cannot be read"}, {"create", "events", "Events cannot be written"},
	} {
		t.Run(c.verb+" "+c.resource, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLab(t)
				log := l.listen()
				l.failCalls(c.verb, c.resource, apierrors.NewForbidden(schema.GroupResource{Resource: c.resource}, "", errors.New("no")))
				job, ends := l.begin(t, 0, 1)
				time.Sleep(time.Minute)
				l.setStatus(t, job, batchv1.JobStatus{FailedIndexes: ptr("1")})
				time.Sleep(time.Minute)
				l.finish(t, job, ends, 0)
				if l.ended[1] == nil || log.linesWith(c.want) != 1 {
					t.Errorf("task 1 ended with %v; the log has %d lines about the missing right", l.ended[1], log.linesWith(c.want))
				}
			})
		})
	}
}

func TestASuspendedJobIsSaidOnceAndWaitedForUntilItGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		log := l.listen()
		job, ends := l.begin(t, 0)
		suspend := func(v bool) {
			job.Spec.Suspend = ptr(v)
			if _, err := l.cluster.BatchV1().Jobs("crawl").Update(t.Context(), &job, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(20 * time.Minute)
		}
		suspend(true)
		if log.linesWith("is suspended") != 1 || log.linesWith("kubectl patch job "+job.Name) != 1 {
			t.Errorf("told %d times", log.linesWith("is suspended"))
		}
		suspend(false)
		if log.linesWith("the Job was resumed") != 1 {
			t.Error("the log does not say that the Job continues")
		}
		l.finish(t, job, ends, 0)
	})
}

func TestASuspendedJobIsAdoptedAsItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		ctx, stop := context.WithCancel(t.Context())
		time.AfterFunc(10*time.Second, stop)
		_ = l.runTasks(ctx, 0)
		job := l.jobs(t)[0]
		job.Spec.Suspend = ptr(true)
		if _, err := l.cluster.BatchV1().Jobs("crawl").Update(t.Context(), &job, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		l.Config.Kubernetes.Image = "registry.example/crawlbatch:2" // makes the next run ask for another image
		again, ends := l.begin(t, 0)
		if len(l.jobs(t)) != 1 || again.Name != job.Name || !suspended(&again) {
			t.Errorf("%d Jobs, %s suspended: %v", len(l.jobs(t)), again.Name, suspended(&again))
		}
		l.finish(t, again, ends, 0)
	})
}

func TestPodsThatWaitAreSaidWithinHalfAMinuteAndTheirJobGoesOn(t *testing.T) {
	for _, c := range []struct {
		name   string
		status corev1.PodStatus
		after  time.Duration
		want   string
	}{
		{"fits no node", corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/1 nodes are available: 1 Insufficient memory"}}},
			30 * time.Second, "kubernetes.resources.fetch"},
		{"does not start", corev1.PodStatus{Phase: corev1.PodPending}, 2 * time.Minute, "kubectl describe pod slow -n crawl"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLab(t)
				log := l.listen()
				job, ends := l.begin(t, 0)
				job.Spec.Template.Spec.NodeName = "node-1"
				l.pod(t, job, "slow", 0, 0, c.status)
				time.Sleep(c.after)
				if log.linesWith(c.want) != 1 {
					t.Errorf("told %d times:\n%s", log.linesWith(c.want), log.text.String())
				}
				l.finish(t, job, ends, 0)
			})
		})
	}
}

func TestAPodOfALostNodeIsSaidWhenItDoesNotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		log := l.listen()
		job, ends := l.begin(t, 0)
		job.Spec.Template.Spec.NodeName = "node-1"
		p := l.pod(t, job, "lost", 0, 0, corev1.PodStatus{Phase: corev1.PodRunning})
		p.DeletionTimestamp, p.Finalizers = ptr(metav1.Now()), []string{batchv1.JobTrackingFinalizer}
		if err := l.cluster.Tracker().Update(corev1.SchemeGroupVersion.WithResource("pods"), p, "crawl"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(l.Config.Kubernetes.Grace.Std())
		if log.linesWith("does not end") != 0 {
			t.Error("logged within its grace period")
		}
		time.Sleep(2 * time.Minute)
		if log.linesWith("node node-1 may be lost") != 1 || log.linesWith("kubectl delete pod lost -n crawl --force") != 1 {
			t.Error("not told of:\n" + log.text.String())
		}
		l.finish(t, job, ends, 0)
	})
}

func TestAQuotaThatKeepsPodsOutIsSaidAndWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		log := l.listen()
		l.cluster.PrependReactor("list", "events", func(ktesting.Action) (bool, runtime.Object, error) {
			job := l.jobs(t)[0]
			return true, &corev1.EventList{Items: []corev1.Event{
				{InvolvedObject: corev1.ObjectReference{Name: job.Name, UID: "of a Job of that name before"}, Reason: "FailedCreate", Message: `serviceaccount "x" not found`},
				{InvolvedObject: corev1.ObjectReference{Name: job.Name, UID: job.UID}, Reason: "FailedCreate", Message: `pods "x" is forbidden: exceeded quota: q`},
			}}, nil
		})
		job, ends := l.begin(t, 0)
		time.Sleep(time.Minute)
		if log.linesWith("raise its ResourceQuota") != 1 {
			t.Error("not told of:\n" + log.text.String())
		}
		l.finish(t, job, ends, 0)
	})
}
