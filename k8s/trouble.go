package k8s

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/stages"
)

// explain turns an error of the API into what is wrong and what to do.
func explain(err error, cfg *config.Config) error {
	ns := cfg.Kubernetes.Namespace
	var fix string
	var network net.Error
	text := firstLine(err.Error())
	switch {
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, ErrCluster):
		return err
	case apierrors.IsUnauthorized(err):
		fix = "log in to the cluster again, or give other credentials with --kubeconfig"
	case apierrors.IsForbidden(err) && strings.Contains(text, "exceeded quota"):
		fix = "raise the namespace's ResourceQuota, or lower kubernetes.parallelism and kubernetes.resources"
	case apierrors.IsForbidden(err):
		fix = "grant what k8s/manifests/rbac.yaml lists: `kubectl apply -k k8s/manifests`"
	case apierrors.IsNotFound(err) && strings.Contains(text, "namespaces"):
		fix = fmt.Sprintf("make it with `kubectl create namespace %s`, or all that is needed with `kubectl apply -k k8s/manifests`", ns)
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		fix = "mend the kubernetes section of the config; `crawlbatch k8s render` shows the Job"
	case errors.As(err, &network), apierrors.IsServerTimeout(err), apierrors.IsServiceUnavailable(err):
		fix = "no cluster answers: check --kubeconfig and `kubectl cluster-info`"
	default:
		return fmt.Errorf("cluster, namespace %s: %w: %w", ns, err, ErrCluster)
	}
	return fmt.Errorf("cluster, namespace %s: %w: %s: %w", ns, err, fix, ErrCluster)
}

// lasting reports whether asking the API the same again is no use.
func lasting(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err) || apierrors.IsInvalid(err)
}

// troubles tells each thing once, and again when it lasts.
type troubles struct {
	clock stages.Clock
	log   *slog.Logger
	said  map[string]time.Time
	first map[string]time.Time
}

func newTroubles(clock stages.Clock, log *slog.Logger) *troubles {
	return &troubles{clock: clock, log: log, said: map[string]time.Time{}, first: map[string]time.Time{}}
}

func (t *troubles) say(what, text string) {
	now := t.clock.Now()
	if last, ok := t.said[what]; ok && now.Sub(last) < repeatEvery {
		return
	}
	t.said[what] = now
	t.log.Warn(text)
}

// lasted is how long something has been wrong, without having been right in between.
func (t *troubles) lasted(what string) time.Duration {
	now := t.clock.Now()
	if _, ok := t.first[what]; !ok {
		t.first[what] = now
	}
	return now.Sub(t.first[what])
}

// problem is why pods do not start.
type problem struct {
	text  string
	stuck bool // it does not mend itself: somebody has to do something
}

// diagnose looks for what keeps pods from starting or kills them, tells of it, and
// ends the run where nothing can start: the Job is removed, so that a mended one
// takes its place.
func (r *run) diagnose(ctx context.Context, found []batchv1.Job) error {
	for i := range found {
		w := r.jobs[found[i].Name]
		if w == nil || w.ended {
			continue
		}
		p, err := r.problemOf(ctx, &found[i], w)
		if err != nil {
			if ctx.Err() != nil || lasting(err) {
				return explain(err, r.Config)
			}
			r.Log.Debug("pods could not be looked at", "error", err)
			continue
		}
		if p == nil {
			delete(r.trouble.first, found[i].Name)
			continue
		}
		if lasted := r.trouble.lasted(found[i].Name); !p.stuck || w.started || lasted < startWithin {
			if w.started || !p.stuck {
				r.trouble.say(found[i].Name+p.text, p.text)
			}
			continue
		}
		if err := r.remove(ctx, found[i].Name); err != nil {
			return err
		}
		return fmt.Errorf("Job %s cannot start: %s: %w", found[i].Name, p.text, ErrCluster)
	}
	return nil
}

// podsLooked bounds the pods of a Job that are looked at in one go.
const podsLooked = 500

// problemOf says what is wrong with a Job's pods; nil where nothing is.
func (r *run) problemOf(ctx context.Context, job *batchv1.Job, w *watched) (*problem, error) {
	pods, err := r.Client.CoreV1().Pods(job.Namespace).List(ctx, metav1.ListOptions{
		LabelSelector: batchv1.JobNameLabel + "=" + job.Name + ",!" + LabelPartition, Limit: podsLooked,
	})
	if err != nil {
		return nil, err
	}
	waiting, err := r.Client.CoreV1().Pods(job.Namespace).List(ctx, metav1.ListOptions{
		LabelSelector: batchv1.JobNameLabel + "=" + job.Name, FieldSelector: "status.phase=" + string(corev1.PodPending), Limit: podsLooked,
	})
	if err != nil {
		return nil, err
	}
	failed, err := r.Client.CoreV1().Pods(job.Namespace).List(ctx, metav1.ListOptions{
		LabelSelector: batchv1.JobNameLabel + "=" + job.Name, FieldSelector: "status.phase=" + string(corev1.PodFailed), Limit: podsLooked,
	})
	if err != nil {
		return nil, err
	}
	for i := range pods.Items {
		r.label(ctx, &pods.Items[i], w.batch)
	}
	for i := range failed.Items {
		pod := &failed.Items[i]
		if end, n := terminated(pod), indexOf(pod); end != nil && end.Reason == "OOMKilled" && n >= 0 && n < len(w.batch.Partitions) {
			t := w.batch.task(n)
			r.trouble.say("oom "+t.String(), t.String()+": pod "+pod.Name+" was "+r.outOfMemory(pod, w.batch))
		}
	}
	for i := range waiting.Items {
		if p := r.podProblem(&waiting.Items[i]); p != nil {
			return p, nil
		}
	}
	if job.Status.Active > 0 || len(waiting.Items) > 0 {
		return nil, nil
	}
	return r.eventProblem(ctx, job)
}

// podProblem says why a pod that waits does not start.
func (r *run) podProblem(pod *corev1.Pod) *problem {
	k := &r.Config.Kubernetes
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			return &problem{text: fmt.Sprintf("pod %s fits no node: %s: add nodes, lower kubernetes.resources.%s, or mend kubernetes.node_selector and tolerations; it starts when one fits",
				pod.Name, firstLine(c.Message), r.stage)}
		}
	}
	for _, s := range pod.Status.ContainerStatuses {
		if s.State.Waiting == nil {
			continue
		}
		message := firstLine(s.State.Waiting.Message)
		switch reason := s.State.Waiting.Reason; reason {
		case "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "RegistryUnavailable", "ErrImageInspect":
			return &problem{stuck: true, text: fmt.Sprintf("the image %q cannot be pulled (%s: %s): push it, or mend kubernetes.image, image_pull_policy and image_pull_secrets, and run this again", s.Image, reason, message)}
		case "CreateContainerConfigError", "CreateContainerError", "RunContainerError":
			return &problem{stuck: true, text: fmt.Sprintf("pod %s cannot start (%s: %s): mend it (kubernetes.env_from_secrets names %s) and run this again", pod.Name, reason, message, strings.Join(k.EnvFromSecrets, ", "))}
		}
	}
	return nil
}

// eventProblem says why a Job has no pods: the Job controller leaves it in events.
func (r *run) eventProblem(ctx context.Context, job *batchv1.Job) (*problem, error) {
	events, err := r.Client.CoreV1().Events(job.Namespace).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.kind=Job,involvedObject.name=" + job.Name})
	if err != nil {
		return nil, err
	}
	items := slices.DeleteFunc(events.Items, func(e corev1.Event) bool {
		return e.InvolvedObject.Name != job.Name || e.Reason != "FailedCreate"
	})
	if len(items) == 0 {
		return nil, nil
	}
	newest := slices.MaxFunc(items, func(a, b corev1.Event) int { return eventTime(&a).Compare(eventTime(&b)) })
	text := firstLine(newest.Message)
	switch {
	case strings.Contains(text, "exceeded quota"):
		return &problem{text: "the namespace's quota is reached (" + text + "): raise its ResourceQuota, or lower kubernetes.resources; pods start when there is room"}, nil
	case strings.Contains(text, "serviceaccount"):
		return &problem{stuck: true, text: "its service account is missing (" + text + "): `kubectl apply -k k8s/manifests`, or mend kubernetes.service_account, and run this again"}, nil
	case strings.Contains(text, "PriorityClass"):
		return &problem{stuck: true, text: "its priority class is missing (" + text + "): make it, or mend kubernetes.priority_class, and run this again"}, nil
	}
	return &problem{stuck: true, text: "its pods cannot be created (" + text + ")"}, nil
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

// label lets `kubectl get pods -L` tell which partition a pod works on, and the
// how-manieth attempt it is. Where that is forbidden the crawl goes on without.
func (r *run) label(ctx context.Context, pod *corev1.Pod, b *Batch) {
	n := indexOf(pod)
	if n < 0 || n >= len(b.Partitions) || pod.Labels[LabelPartition] != "" {
		return
	}
	attempt := 1
	for _, a := range []string{"batch.kubernetes.io/job-index-failure-count", "batch.kubernetes.io/job-index-ignored-failure-count"} {
		if before, err := strconv.Atoi(pod.Annotations[a]); err == nil {
			attempt += before
		}
	}
	patch := fmt.Sprintf(`{"metadata":{"labels":{%q:"%d",%q:"%d"}}}`, LabelPartition, b.Partitions[n], LabelAttempt, attempt)
	if _, err := r.Client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil && ctx.Err() == nil {
		r.Log.Debug("the pod could not be labelled", "pod", pod.Name, "error", err)
	}
}
