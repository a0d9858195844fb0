package k8s

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The reasons of the Events that the driver records for its Jobs. `kubectl describe job` and
// `kubectl get events` show them.
const (
	eventAdopted     = "Adopted"           // another driver adopted the Job
	eventTaskFailed  = "TaskFailed"        // a task failed for good
	eventTooSmall    = "ResourcesTooSmall" // a pod was killed because it used too much memory or disk
	eventCannotStart = "CannotStart"       // the Job was removed, because no pod of the Job can start
	eventStageDone   = "StageDone"         // every task of the Job has ended
)

// maxEvents bounds the number of warnings for a Job, because one cause may make all its tasks fail. The last
// warning says that further warnings are left out.
const maxEvents = 25

// warn records a warning Event for a Job.
func (r *run) warn(ctx context.Context, w *watchedJob, reason, text string) {
	switch w.warned++; {
	case w.warned < maxEvents:
		r.createEvent(ctx, w, corev1.EventTypeWarning, reason, text)
	case w.warned == maxEvents:
		r.createEvent(ctx, w, corev1.EventTypeWarning, reason, fmt.Sprintf("%s; further warnings are left out: see `crawlbatch status --month %s%s`", text, r.plan.Crawl, r.Flags))
	}
}

// normalEvent records a normal Event for a Job.
func (r *run) normalEvent(ctx context.Context, w *watchedJob, reason, text string) {
	r.createEvent(ctx, w, corev1.EventTypeNormal, reason, text)
}

// createEvent creates an Event. If the creation fails, createEvent logs the error and
// continues, because no decision depends on Events.
func (r *run) createEvent(ctx context.Context, w *watchedJob, kind, reason, text string) {
	w.left++
	now := r.Clock.Now()
	at := metav1.NewTime(now)
	host, _ := os.Hostname()
	e := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: fmt.Sprintf("%s.%x", w.name, now.UnixNano()+w.left), Namespace: r.Config.Kubernetes.Namespace, Labels: r.render.labels(w.batch)},
		InvolvedObject: corev1.ObjectReference{APIVersion: "batch/v1", Kind: "Job", Namespace: r.Config.Kubernetes.Namespace, Name: w.name, UID: w.uid},
		Type:           kind, Reason: reason, Message: bounded(strings.Join(strings.Fields(text), " ")),
		FirstTimestamp: at, LastTimestamp: at, Count: 1,
		Source:              corev1.EventSource{Component: "crawlbatch", Host: host},
		ReportingController: "crawlbatch.io/driver", ReportingInstance: host,
	}
	if _, err := r.Client.Events(e.Namespace).Create(ctx, e, metav1.CreateOptions{FieldManager: "crawlbatch"}); err != nil && ctx.Err() == nil {
		r.trouble.say("event", "", "Events cannot be written; the crawl continues without them: "+firstLine(err.Error()))
	}
}

// stageDone records an Event for each Job that says how the Job's tasks ended.
func (r *run) stageDone(ctx context.Context) {
	for _, name := range slices.Sorted(maps.Keys(r.jobs)) {
		w := r.jobs[name]
		text := fmt.Sprintf("%s: all %d tasks have a result", r.name(), len(w.batch.Partitions))
		if n := len(w.failed); n > 0 {
			slices.Sort(w.failed)
			text = fmt.Sprintf("%s: %d of %d tasks failed for good, partitions %s: %s runs them again",
				r.name(), n, len(w.batch.Partitions), ranges(w.failed), repeat(r.stage, r.plan.Crawl, r.Flags))
		}
		r.normalEvent(ctx, w, eventStageDone, text)
	}
}
