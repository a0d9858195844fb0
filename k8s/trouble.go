package k8s

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"crawlbatch.io/crawlbatch/stages"
)

// problemLog logs a problem when it begins, and again at intervals while it lasts. It bounds the lines of each
// kind of problem by time, because a lost zone or a slow registry delays thousands of pods at once.
type problemLog struct {
	clock stages.Clock
	log   *slog.Logger
	kinds map[string]*problemKind
	first map[string]time.Time
}

// problemKind holds the problems of one kind that were logged or left out in the current interval.
type problemKind struct {
	since   time.Time
	said    map[string]bool // pods, Jobs and other objects that have the problem
	omitted int             // number of those objects without a line
}

func newTroubles(clock stages.Clock, log *slog.Logger) *problemLog {
	return &problemLog{clock: clock, log: log, kinds: map[string]*problemKind{}, first: map[string]time.Time{}}
}

// say logs a problem of an object. For each kind, time is divided into intervals of repeatEvery. In an interval,
// say logs an object once, even if its text changes, and at most problemsAKind objects. The first line of the
// next interval has the number of the objects that were left out.
func (t *problemLog) say(kind, object, text string) {
	now := t.clock.Now()
	k := t.kinds[kind]
	var args []any
	if k == nil || now.Sub(k.since) >= repeatEvery {
		if k != nil && k.omitted > 0 {
			args = []any{"more", k.omitted}
		}
		k = &problemKind{since: now, said: map[string]bool{}}
		t.kinds[kind] = k
	}
	if k.said[object] {
		return
	}
	k.said[object] = true
	if len(k.said) > problemsAKind {
		k.omitted++
		return
	}
	t.log.Warn(text, args...)
}

// lastedFor returns the time since a problem began.
func (t *problemLog) lastedFor(what string) time.Duration {
	now := t.clock.Now()
	if _, ok := t.first[what]; !ok {
		t.first[what] = now
	}
	return now.Sub(t.first[what])
}

// markSolved marks a problem as solved.
func (t *problemLog) markSolved(what string) { delete(t.first, what) }

// problem is a reason why pods do not start.
type problem struct {
	kind  string // name of the kind in a problemLog; the text changes while the problem lasts
	text  string
	stuck bool // no pods start while the problem lasts; whether it passes by itself, the driver cannot tell
	wrong bool // the text tells of something that a person has to mend, if it does not pass
}

// diagnose finds and reports problems that kill pods or keep them from starting. If no pod of a Job has started for the
// time of patience, diagnose removes the Job, so that a corrected Job can replace it, and ends the run. If the driver
// may not read pods and events, the crawl continues without diagnosis.
func (r *run) diagnose(ctx context.Context, found []batchv1.Job) error {
	problems, err := r.activePods(ctx)
	if err == nil {
		err = r.reportFailures(ctx, found)
	}
	if r.logBlind(ctx, "pods", err) {
		return ctx.Err()
	}
	if err := r.endOutlived(ctx); err != nil {
		return err
	}
	for i := range found {
		w := r.jobs[found[i].Name]
		if w == nil || w.ended {
			continue
		}
		if w.suspended {
			r.trouble.markSolved(w.name)
			continue
		}
		p := problems[w.name]
		if p == nil {
			if p, err = r.eventProblem(ctx, &found[i], w); r.logBlind(ctx, "events", err) {
				continue
			}
		}
		if p == nil || !p.stuck || w.started {
			r.trouble.markSolved(w.name)
		}
		if p == nil {
			continue
		}
		most, text := r.patience(), p.text
		if !p.wrong {
			most = patience
		}
		if p.stuck && !w.started {
			text = fmt.Sprintf("waiting for at most %s: %s", most, text)
		}
		r.trouble.say(p.kind, w.name, text)
		if !p.stuck || w.started || r.trouble.lastedFor(w.name) < most {
			continue
		}
		r.warn(ctx, w, eventCannotStart, p.text)
		if err := r.remove(ctx, w.name); err != nil {
			return err
		}
		refused := &refusal{text: fmt.Sprintf("Job %s cannot start: %s; then run this again", w.name, p.text)}
		if most == patience {
			refused.causes = []error{stages.ErrInterrupted}
		}
		return refused
	}
	r.followWaiting(ctx, found)
	return ctx.Err()
}

// logBlind logs err, the reason why the driver cannot read pods or events. It returns false if err
// is nil.
func (r *run) logBlind(ctx context.Context, what string, err error) bool {
	if err == nil {
		return false
	}
	if ctx.Err() == nil {
		r.trouble.say("blind", what, fmt.Sprintf("%s cannot be read; the crawl continues, but problems that keep pods from starting are not reported: %v", what, explain(err, r.Config)))
	}
	return true
}

// podProblem returns the reason why a waiting pod does not start, or nil.
func (r *run) podProblem(pod *corev1.Pod) *problem {
	k := &r.Config.Kubernetes
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			return &problem{kind: unschedulable, text: fmt.Sprintf("pod %s fits no node: %s: add nodes, lower kubernetes.resources.%s, or change kubernetes.node_selector and tolerations; it starts when one fits",
				pod.Name, firstLine(c.Message), resourceKey(r.stage))}
		}
	}
	for _, s := range pod.Status.ContainerStatuses {
		if s.State.Waiting == nil {
			continue
		}
		message := firstLine(s.State.Waiting.Message)
		switch reason := s.State.Waiting.Reason; reason {
		case "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "RegistryUnavailable", "ImageInspectError", "SignatureValidationFailed":
			return &problem{kind: "image", stuck: true, wrong: true, text: fmt.Sprintf("the image %q cannot be pulled (%s: %s): push it, or correct kubernetes.image, image_pull_policy and image_pull_secrets", s.Image, reason, message)}
		case "CreateContainerConfigError", "CreateContainerError", "RunContainerError":
			return &problem{kind: "container", stuck: true, wrong: true, text: fmt.Sprintf("pod %s cannot start (%s: %s): fix it (kubernetes.env_from_secrets names %s)", pod.Name, reason, message, strings.Join(k.EnvFromSecrets, ", "))}
		}
	}
	return nil
}

// wantsMore reports whether a Job could run more pods now: some indexes lack a pod, and the
// parallelism allows another pod.
func wantsMore(job *batchv1.Job) bool {
	if job.Spec.Completions == nil || job.Spec.Parallelism == nil {
		return false
	}
	left := *job.Spec.Completions - job.Status.Succeeded - int32(len(failedIndexes(job)))
	return job.Status.Active < min(left, *job.Spec.Parallelism)
}

// eventProblem returns the reason why a Job lacks pods, from the events of the Job controller.
func (r *run) eventProblem(ctx context.Context, job *batchv1.Job, w *watchedJob) (*problem, error) {
	if !wantsMore(job) {
		return nil, nil
	}
	events, err := r.Client.Events(job.Namespace).List(ctx, metav1.ListOptions{
		FieldSelector: "involvedObject.kind=Job,involvedObject.name=" + job.Name + ",reason=FailedCreate", Limit: podPage,
	})
	if err != nil {
		return nil, err
	}
	items := slices.DeleteFunc(events.Items, func(e corev1.Event) bool {
		return e.InvolvedObject.UID != job.UID || e.Reason != "FailedCreate" // the event may be about an earlier Job of the same name
	})
	if len(items) == 0 {
		return nil, nil
	}
	newest := slices.MaxFunc(items, func(a, b corev1.Event) int { return eventTime(&a).Compare(eventTime(&b)) })
	// While other pods run, an event that was seen before may be about a problem that is solved now.
	seen := fmt.Sprint(newest.Name, newest.Count, eventTime(&newest))
	if job.Status.Active > 0 && seen == w.refused {
		return nil, nil
	}
	w.refused = seen
	text := firstLine(newest.Message)
	wrong := func(what, remedy string) *problem {
		return &problem{kind: "no pods", stuck: true, wrong: true, text: fmt.Sprintf("%s (%s): %s", what, text, remedy)}
	}
	switch {
	case strings.Contains(text, "exceeded quota"):
		return &problem{kind: "quota", text: "the namespace's quota is reached (" + text + "): raise its ResourceQuota, or lower kubernetes.resources; pods start when there is room"}, nil
	case strings.Contains(text, "is being terminated"):
		return wrong("the namespace is being deleted", "make it again: "+applyManifests), nil
	case strings.Contains(text, "violates PodSecurity"):
		return wrong("the namespace's Pod Security level forbids its pods", "mend the kubernetes section of the config"), nil
	case strings.Contains(text, "serviceaccount"):
		return wrong("its service account is missing", applyManifests+"; or mend kubernetes.service_account"), nil
	case strings.Contains(text, "PriorityClass"):
		return wrong("its priority class is missing", "make it, or mend kubernetes.priority_class"), nil
	}
	return &problem{kind: "no pods", stuck: true, text: fmt.Sprintf("Job %s: its pods cannot be created at present (%s): see `kubectl describe job %[1]s -n %s`", job.Name, text, job.Namespace)}, nil
}

func eventTime(e *corev1.Event) time.Time {
	switch {
	case e.Series != nil:
		return e.Series.LastObservedTime.Time
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp.Time
	case !e.EventTime.IsZero():
		return e.EventTime.Time
	}
	return e.CreationTimestamp.Time
}

// label sets the labels that show a pod's partition and attempt in `kubectl get pods -L`. If the
// driver may not set labels, the crawl continues without labels.
func (r *run) label(ctx context.Context, pod *corev1.Pod, b *Batch) {
	n := indexOf(pod)
	if n < 0 || n >= len(b.Partitions) || pod.Labels[LabelPartition] != "" {
		return
	}
	patch := fmt.Sprintf(`{"metadata":{"labels":{%q:"%d",%q:"%d"}}}`, LabelPartition, b.Partitions[n], LabelAttempt, attemptOf(pod))
	if _, err := r.Client.Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil && ctx.Err() == nil {
		r.Log.Debug("the pod could not be labelled", "pod", pod.Name, "error", err)
	}
}

// maxLine bounds the length of a line of text from the cluster, in bytes.
const maxLine = 1000

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return bounded(line)
}

func lastLine(s string) string {
	s = strings.TrimSpace(s)
	return bounded(s[strings.LastIndexByte(s, '\n')+1:])
}

func bounded(s string) string {
	if len(s) > maxLine {
		s = strings.ToValidUTF8(s[:maxLine], "") + "…"
	}
	return s
}
