package k8s

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/stages"
)

// The limits of one pass over the pods of a stage, which may have thousands of pods.
const (
	podPage       = 500              // number of pods in the answer of one call
	labelsAPass   = 60               // largest number of pods labelled in one pass; later passes label the remaining pods
	reportedAPass = 20               // number of failed pods reported in one pass
	failuresEvery = 30 * time.Second // time between passes over failed pods
	endingFor     = time.Minute      // time after a pod's grace period from which the driver warns that the pod does not end
	startingFor   = 90 * time.Second // time from which the driver warns that a scheduled pod does not start
)

// podsKnown holds what earlier passes over the pods found.
type podsKnown struct {
	reported map[types.UID]bool      // failed pods that were already reported
	waiting  map[types.UID]time.Time // when a pass first found that a pod has not started or not ended yet
	failures time.Time               // time of the next pass over failed pods
}

// podEnd describes how a pod ended without completing its task.
type podEnd struct {
	pod     string
	attempt int
	code    int32 // exit code of the process, -1 if no process started
	oom     bool
	text    string // line about the cause of the end
	said    string // the last line that the process left; "" if it left none
	created time.Time
	limit   string // memory limit of the pod
	stage   stages.Stage
	crawl   string
}

// eachPod calls look with each pod of the stage that matches labels and fields. It reads the pods page by
// page.
func (r *run) eachPod(ctx context.Context, labels, fields string, look func(*corev1.Pod) error) (pages int, err error) {
	options := metav1.ListOptions{LabelSelector: r.selector() + labels, FieldSelector: fields, Limit: podPage}
	for {
		list, err := r.Client.Pods(r.Config.Kubernetes.Namespace).List(ctx, options)
		if err != nil {
			return pages, err
		}
		pages++
		for i := range list.Items {
			if err := look(&list.Items[i]); err != nil {
				return pages, err
			}
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return pages, nil
		}
	}
}

// The field selectors for the phases of pods.
const (
	phaseActive = "status.phase!=Succeeded,status.phase!=Failed"
	phaseFailed = "status.phase=Failed"
)

// activePods reads and labels the pods that have not ended. It returns, by Job, the problem that keeps the
// Job's pods from starting.
func (r *run) activePods(ctx context.Context) (map[string]*problem, error) {
	problems, waiting := map[string]*problem{}, map[types.UID]time.Time{}
	now, labelled := r.Clock.Now(), 0
	_, err := r.eachPod(ctx, "", phaseActive, func(pod *corev1.Pod) error {
		w := r.jobs[pod.Labels[batchv1.JobNameLabel]]
		if w == nil || w.ended || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			return nil
		}
		w.started = w.started || pod.Status.Phase == corev1.PodRunning
		if pod.Labels[LabelPartition] == "" && labelled < labelsAPass {
			labelled++
			r.label(ctx, pod, w.batch)
		}
		ending, starting := pod.DeletionTimestamp != nil, pod.Status.Phase == corev1.PodPending && pod.Spec.NodeName != ""
		if ending || starting {
			since, known := r.pods.waiting[pod.UID]
			if !known {
				since = now
			}
			waiting[pod.UID] = since
			r.reportSlow(pod, ending, now.Sub(since))
		}
		if p := r.podProblem(pod); p != nil && !ending {
			if known := problems[w.name]; known == nil || p.stuck && !known.stuck {
				problems[w.name] = p
			}
		}
		return nil
	})
	if err == nil {
		r.pods.waiting = waiting
	}
	return problems, err
}

// reportSlow warns of a pod that takes long to start or to end.
func (r *run) reportSlow(pod *corev1.Pod, ending bool, lasted time.Duration) {
	k := &r.Config.Kubernetes
	switch {
	case ending && lasted >= k.Grace.Std()+endingFor:
		r.trouble.say("ending", string(pod.UID), fmt.Sprintf(
			"pod %s does not end, and until it ends its task cannot start elsewhere: node %s may be lost: see `kubectl get node %[2]s`; when the machine is off for certain, `kubectl delete pod %[1]s -n %[3]s --force --grace-period=0`",
			pod.Name, pod.Spec.NodeName, pod.Namespace))
	case !ending && lasted >= startingFor && r.podProblem(pod) == nil:
		r.trouble.say("starting", string(pod.UID), fmt.Sprintf("pod %s has not started on node %s for %s: see `kubectl describe pod %[1]s -n %[4]s`", pod.Name, pod.Spec.NodeName, lasted.Round(time.Second), pod.Namespace))
	}
}

// reportFailures reports each failed pod once. It reads the failed pods when a Job's number of failures has
// changed. Jobs do not count every failure, so it also reads them at intervals.
func (r *run) reportFailures(ctx context.Context, found []batchv1.Job) error {
	now, due := r.Clock.Now(), false
	for i := range found {
		if w := r.jobs[found[i].Name]; w != nil && w.counted != found[i].Status.Failed {
			w.counted, due = found[i].Status.Failed, true
		}
	}
	if now.Before(r.pods.failures) && !due {
		return nil
	}
	reported, more := 0, 0
	pages, err := r.eachPod(ctx, "", phaseFailed, func(pod *corev1.Pod) error {
		w := r.jobs[pod.Labels[batchv1.JobNameLabel]]
		if w == nil || pod.Status.Phase != corev1.PodFailed || r.pods.reported[pod.UID] {
			return nil
		}
		r.pods.reported[pod.UID] = true
		end, index := r.endOf(pod), indexOf(pod)
		if end == nil || index < 0 || index >= len(w.batch.Partitions) || disrupted(pod) && !end.overScratch() {
			return nil
		}
		if end.code == exitInterrupted {
			r.reportInterrupted(w, pod, end)
			return nil
		}
		if reported++; reported > reportedAPass {
			more++
			return nil
		}
		t := w.batch.task(index)
		r.Log.Warn("a pod failed", "task", t.String(), "pod", end.pod, "attempt", end.attempt, "exit", end.code, "error", end.reason(r.Flags))
		if end.oom || end.overScratch() {
			r.warn(ctx, w, eventTooSmall, fmt.Sprintf("%s: pod %s: %s", t, end.pod, end.reason(r.Flags)))
		}
		return nil
	})
	if more > 0 {
		r.Log.Warn("more pods failed", "pods", more, "see", fmt.Sprintf("kubectl get pods -n %s -l %s --field-selector %s", r.Config.Kubernetes.Namespace, r.selector(), phaseFailed))
	}
	r.pods.failures = now.Add(failuresEvery * time.Duration(max(pages, 1)))
	return err
}

// reportInterrupted warns of a pod that ended by itself because it could not go on, such as without the
// store. Kubernetes replaces such pods without end and does not count them, so nothing else shows the cause. It
// says nothing of a pod that was asked to end.
func (r *run) reportInterrupted(w *watchedJob, pod *corev1.Pod, end *podEnd) {
	if pod.DeletionTimestamp != nil || end.said == "" || end.said == stages.ErrInterrupted.Error() {
		return
	}
	r.trouble.say("interrupted pods", w.name, fmt.Sprintf("pod %s could not go on, and Job %s starts such pods again, after up to 10 minutes: %s", end.pod, w.name, end.said))
}

// disrupted reports whether the cluster ended a pod for its own reasons, such as draining a node.
func disrupted(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue
	})
}

// lastEnds finds the newest pod of each given index and returns how that pod ended.
func (r *run) lastEnds(ctx context.Context, w *watchedJob, indexes []int) (map[int]*podEnd, error) {
	newest := map[int]*podEnd{}
	labels := "," + batchv1.JobNameLabel + "=" + w.name
	if len(indexes) == 1 {
		labels += fmt.Sprintf(",%s=%d", batchv1.JobCompletionIndexAnnotation, indexes[0])
	}
	_, err := r.eachPod(ctx, labels, phaseFailed, func(pod *corev1.Pod) error {
		i := indexOf(pod)
		if !slices.Contains(indexes, i) {
			return nil
		}
		if end := r.endOf(pod); end != nil && (newest[i] == nil || end.created.After(newest[i].created)) {
			newest[i] = end
		}
		return nil
	})
	return newest, err
}

// endOf returns how a pod ended, or nil if it succeeded or still runs.
func (r *run) endOf(pod *corev1.Pod) *podEnd {
	end := &podEnd{pod: pod.Name, attempt: attemptOf(pod), created: pod.CreationTimestamp.Time, stage: r.stage, crawl: r.plan.Crawl, code: -1, limit: "its limit"}
	if len(pod.Spec.Containers) > 0 {
		if q, ok := pod.Spec.Containers[0].Resources.Limits[corev1.ResourceMemory]; ok {
			end.limit = "its limit of " + q.String()
		}
	}
	for i := range pod.Status.ContainerStatuses {
		s := &pod.Status.ContainerStatuses[i]
		if s.Name != containerName || s.State.Terminated == nil {
			continue
		}
		if s.State.Terminated.ExitCode == 0 {
			return nil
		}
		end.code, end.oom = s.State.Terminated.ExitCode, s.State.Terminated.Reason == "OOMKilled"
		end.said = r.lastWord(pod, s.State.Terminated.Message)
		end.text = cmp.Or(end.said, s.State.Terminated.Reason)
	}
	if pod.Status.Reason != "" { // the pod was evicted, or its node refused the pod
		end.text = bounded(strings.Join(strings.Fields(pod.Status.Reason+": "+pod.Status.Message), " "))
	} else if end.code < 0 && pod.Status.Phase != corev1.PodFailed {
		return nil
	}
	return end
}

// codeKilled is the exit code of a process that was ended by SIGKILL.
const codeKilled = 128 + 9

// faultText is the beginning of the line about a pod whose program crashed.
const faultText = "fault in the program: "

// lastWord returns the most useful line of a termination message: the line with the panic if a Go program
// crashed, otherwise the last line.
func (r *run) lastWord(pod *corev1.Pod, message string) string {
	for line := range strings.SplitSeq(message, "\n") {
		if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") {
			return faultText + bounded(line)
		}
	}
	if strings.Contains(message, ".go:") && strings.Contains(message, " +0x") { // the message is the end of a stack trace whose beginning Kubernetes cut
		return faultText + "`kubectl logs` shows its trace"
	}
	line := lastLine(message)
	if w, i := r.jobs[pod.Labels[batchv1.JobNameLabel]], indexOf(pod); w != nil && i >= 0 && i < len(w.batch.Partitions) {
		line = strings.TrimPrefix(line, w.batch.task(i).String()+": ") // because the caller names the task
	}
	return line
}

// overScratch reports whether the pod was evicted because it used too much disk space.
func (e *podEnd) overScratch() bool {
	return strings.HasPrefix(e.text, "Evicted: ") && (strings.Contains(e.text, "EmptyDir") || strings.Contains(e.text, "ephemeral"))
}

// reason says in one line why the pod ended and, if known, what to do.
func (e *podEnd) reason(flags string) string {
	fix := func(field string) string {
		return fmt.Sprintf("raise kubernetes.resources.%s.%s in the config, then %s", resourceKey(stages.Stage(e.stage)), field, repeat(stages.Stage(e.stage), e.crawl, flags))
	}
	switch {
	case e.oom:
		return fmt.Sprintf("killed for using more memory than %s: %s", e.limit, fix("memory"))
	case e.overScratch():
		return e.text + ": " + fix("scratch")
	case e.code == codeKilled: // a killed process writes no termination message, so e.text is only a line of its log
		return "killed (SIGKILL)"
	}
	return e.text
}

// taskError turns the end of a task's last pod into the error of the task.
func (e *podEnd) taskError(flags string) error {
	text := e.reason(flags)
	where := fmt.Sprintf("pod %s, attempt %d", e.pod, e.attempt)
	if e.code >= 0 {
		where += fmt.Sprintf(", exit %d", e.code)
	}
	if e.code == exitPermanent {
		return fmt.Errorf("%s: %s: %w", where, strings.TrimSuffix(text, ": "+stages.ErrPermanent.Error()), stages.ErrPermanent)
	}
	return fmt.Errorf("%s: %s", where, text)
}

// class returns the class that the record of the attempt gets.
func (e *podEnd) class() string {
	switch {
	case e.oom:
		return manifest.ClassOutOfMemory
	case e.overScratch():
		return manifest.ClassDiskFull
	case e.code == exitPermanent:
		return manifest.ClassPermanent
	case strings.HasPrefix(e.text, faultText):
		return manifest.ClassFault
	case e.code > 128:
		return manifest.ClassKilled
	}
	return manifest.ClassFailed
}

// indexOf returns a pod's completion index, or -1 for a pod without an index.
func indexOf(pod *corev1.Pod) int {
	n, err := strconv.Atoi(pod.Annotations[batchv1.JobCompletionIndexAnnotation])
	if err != nil {
		return -1
	}
	return n
}

// attemptOf returns the number of the attempt that a pod makes at its index, counted from 1.
func attemptOf(pod *corev1.Pod) int {
	attempt := 1
	for _, a := range []string{batchv1.JobIndexFailureCountAnnotation, batchv1.JobIndexIgnoredFailureCountAnnotation} {
		if before, err := strconv.Atoi(pod.Annotations[a]); err == nil {
			attempt += before
		}
	}
	return attempt
}
