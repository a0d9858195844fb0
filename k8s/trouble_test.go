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
	before := map[string]bool{}
	for _, j := range l.jobs(t) {
		before[j.Name] = true
	}
	go func() { ends <- l.runTasks(t.Context(), partitions...) }()
	time.Sleep(time.Second)
	all := l.jobs(t)
	if len(all) == 0 {
		t.Fatal("no Job was made")
	}
	for _, j := range all { // their names have digests, so the new one may be the first
		if !before[j.Name] {
			return j, ends
		}
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

func TestAPersonHearsOfAnAPIThatNeverAnswersWithinHalfAMinuteAndIsNoLastingFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.Watched = true
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
				l.started.Store(true) // as if the API had answered in an earlier stage
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
		l.started.Store(true)
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
		{"bad request", apierrors.NewBadRequest("x"), "k8s render", false},
		{"invalid", apierrors.NewInvalid(schema.GroupKind{Group: "batch", Kind: "Job"}, "x", nil), "k8s render", false},
		{"a webhook's denial", apierrors.NewForbidden(jobs, "x", errors.New(`admission webhook "policy.example" denied the request: no`)), "admission webhook or policy", false},
		{"a webhook without an answer", apierrors.NewInternalError(errors.New(`failed calling webhook "policy.example": context deadline exceeded`)), "admission webhook or policy", false},
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

// notServed is the answer of an API server that does not serve Jobs yet.
var notServed = apierrors.NewGenericServerResponse(404, "get", schema.GroupResource{Group: "batch", Resource: "jobs"}, "", "", 0, true)

func TestADriverWithoutAPersonWaitsForWhateverTheAPIAnswers(t *testing.T) {
	jobs := schema.GroupResource{Group: "batch", Resource: "jobs"}
	for _, answer := range []struct {
		name, says string
		err        error
	}{
		{"401", "log in", apierrors.NewUnauthorized("x")},
		{"403", "rbac.yaml", apierrors.NewForbidden(jobs, "x", errors.New("no"))},
		{"404 of an API server that starts", "could not find the requested resource", notServed},
		{"404 of the namespace", "create this one", apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "crawl")},
		{"409", "please apply your changes to the latest version", apierrors.NewConflict(schema.GroupResource{Resource: "resourcequotas"}, "q", errors.New("please apply your changes to the latest version and try again"))},
		{"500", "leader changed", apierrors.NewInternalError(errors.New("etcdserver: leader changed"))},
		{"a webhook that does not answer", "failed calling webhook", apierrors.NewInternalError(errors.New("failed calling webhook: context deadline exceeded"))},
		{"another certificate", "certificate-authority", &url.Error{Op: "Get", URL: "https://10.0.0.1", Err: x509.UnknownAuthorityError{}}},
	} {
		for _, call := range []struct{ verb, resource string }{{"list", "jobs"}, {"create", "jobs"}} {
			t.Run(answer.name+" to "+call.verb, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					l := newLab(t)
					log := l.listen()
					on := l.failCalls(call.verb, call.resource, answer.err)
					ends := make(chan error, 1)
					go func() { ends <- l.runTasks(t.Context(), 0) }()
					time.Sleep(5 * time.Second)
					if log.linesWith(answer.says) != 1 || log.linesWith("waiting for at most 30m") != 1 {
						t.Errorf("after 5 s, the log says\n%s", log.text.String())
					}
					time.Sleep(patience - 10*time.Second)
					on(false)
					time.Sleep(pollEvery)
					if log.linesWith("the cluster answers again") == 0 {
						t.Error("the log does not say that the crawl goes on")
					}
					l.finish(t, l.jobs(t)[0], ends, 0)
				})
			})
		}
	}
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.failCalls("create", "jobs", notServed)
		began := time.Now()
		if err := l.runTasks(t.Context(), 0); !errors.Is(err, stages.ErrInterrupted) || !errors.Is(err, ErrCluster) || time.Since(began) < patience || !strings.Contains(err.Error(), "for 30m") {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
	})
}

func TestAnInvalidJobEndsTheRunAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.failCalls("create", "jobs", apierrors.NewInvalid(schema.GroupKind{Group: "batch", Kind: "Job"}, "x", nil))
		began := time.Now()
		if err := l.runTasks(t.Context(), 0); !errors.Is(err, ErrCluster) || errors.Is(err, stages.ErrInterrupted) || time.Since(began) > time.Second {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
	})
}

// stuckPods makes pods of the lab's Job whose image cannot be pulled.
func (l *lab) stuckPods(t *testing.T, job batchv1.Job, indexes ...int) {
	t.Helper()
	for _, n := range indexes {
		l.pod(t, job, fmt.Sprintf("stuck-%d", n), n, 0, corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{
			Name: containerName, Image: "registry.example/x",
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "unexpected status from HEAD request: 502 Bad Gateway"}},
		}}})
	}
}

func TestPodsThatCannotStartAreWaitedFor(t *testing.T) {
	for _, c := range []struct {
		name    string
		event   string // of the Job; if empty, the image of its pod cannot be pulled
		watched bool
		says    string
	}{
		{"a registry that fails", "", false, "502 Bad Gateway"},
		{"a webhook that does not answer", `Internal error occurred: failed calling webhook "x": context deadline exceeded`, false, "cannot be created at present"},
		{"a missing service account", `error looking up service account crawl/x: serviceaccount "x" not found`, false, "service account is missing"},
		{"a webhook, before a person", `Internal error occurred: failed calling webhook "x": context deadline exceeded`, true, "cannot be created at present"},
		{"a conflict over the quota, before a person", `Operation cannot be fulfilled on resourcequotas "q": the object has been modified`, true, "cannot be created at present"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLab(t)
				l.Watched = c.watched
				log := l.listen()
				if c.event != "" {
					l.cluster.PrependReactor("list", "events", func(ktesting.Action) (bool, runtime.Object, error) {
						job := l.jobs(t)[0]
						return true, &corev1.EventList{Items: []corev1.Event{{InvolvedObject: corev1.ObjectReference{Name: job.Name, UID: job.UID}, Reason: "FailedCreate", Message: c.event}}}, nil
					})
				}
				job, ends := l.begin(t, 0)
				if c.event == "" {
					l.stuckPods(t, job, 0)
				}
				time.Sleep(10 * time.Second)
				if log.linesWith(c.says) != 1 || log.linesWith("waiting for at most 30m") != 1 {
					t.Errorf("after 10 s, the log says\n%s", log.text.String())
				}
				time.Sleep(patience - time.Minute)
				select {
				case err := <-ends:
					t.Fatalf("the run ended before its patience did: %v", err)
				default:
				}
				time.Sleep(2 * time.Minute)
				if err := <-ends; !errors.Is(err, stages.ErrInterrupted) || !errors.Is(err, ErrCluster) || !strings.Contains(err.Error(), c.says) {
					t.Error(err)
				}
				if n := len(l.jobs(t)); n != 0 {
					t.Errorf("%d Jobs are left that cannot start", n)
				}
			})
		})
	}
}

func TestAJobIsJudgedByAllItsPods(t *testing.T) {
	for _, watched := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			l := newLab(t)
			l.Watched = watched
			log := l.listen()
			job, ends := l.begin(t, 0, 1, 2, 3)
			l.stuckPods(t, job, 0, 1, 2)
			l.pod(t, job, "starts", 3, 0, corev1.PodStatus{Phase: corev1.PodPending})
			time.Sleep(patience + time.Minute)
			if log.linesWith("502 Bad Gateway") == 0 {
				t.Error("the log does not say why three pods do not start")
			}
			l.finish(t, job, ends, 0, 1, 2, 3)
		})
	}
}

func TestPodsThatFitNoNodeDoNotHideThatTheOthersCannotStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.Watched = true
		job, ends := l.begin(t, 0, 1, 2)
		l.stuckPods(t, job, 0)
		l.pod(t, job, "waits", 1, 0, fitsNoNode)
		began := time.Now()
		if err := <-ends; !errors.Is(err, ErrCluster) || !strings.Contains(err.Error(), "502 Bad Gateway") || time.Since(began) > time.Minute {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
	})
}

func TestThePatienceOfAJobBeginsAnewWhenItIsResumed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		job, ends := l.begin(t, 0)
		l.stuckPods(t, job, 0)
		suspend := func(v bool) {
			job.Spec.Suspend = ptr(v)
			if _, err := l.cluster.BatchV1().Jobs("crawl").Update(t.Context(), &job, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute)
		suspend(true)
		time.Sleep(patience)
		suspend(false)
		time.Sleep(time.Minute)
		if len(l.jobs(t)) != 1 {
			t.Error("the Job was removed a minute after it was resumed")
		}
		l.finish(t, job, ends, 0)
	})
}

func TestTheImageOfAPersonsLaterStageIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.Watched = true
		job, ends := l.begin(t, 0)
		l.setStatus(t, job, batchv1.JobStatus{Active: 1, Ready: ptr(int32(1))})
		time.Sleep(pollEvery)
		l.finish(t, job, ends, 0)
		job, ends = l.begin(t, 1)
		l.stuckPods(t, job, 0)
		time.Sleep(patience / 2)
		l.finish(t, job, ends, 1)
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
			time.Sleep(10 * time.Minute)
		}
		suspend(true)
		if log.linesWith("is suspended") != 1 || log.linesWith("kubectl patch job "+job.Name) != 1 {
			t.Errorf("told %d times", log.linesWith("is suspended"))
		}
		suspend(false)
		job.Labels[kueueQueue] = "crawls"
		suspend(true)
		if log.linesWith("waits in Kueue's queue crawls") != 1 || log.linesWith("is suspended") != 1 {
			t.Error("the log does not say that Kueue queues the Job")
		}
		suspend(false)
		if log.linesWith("the Job was resumed") != 2 {
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
