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
	"crawlbatch.io/crawlbatch/formats/room"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/limits"
	"crawlbatch.io/crawlbatch/stages"
)

// The limits of one pass over the pods of a stage, which may have thousands of pods.
const (
	podPage       = 500              // number of pods that one call asks for, and for which failuresEvery is the time
	labelsAPass   = 60               // largest number of pods labelled in one pass; later passes label the remaining pods
	reportedAPass = 20               // number of failed pods reported in one pass
	failuresEvery = 30 * time.Second // time between passes over failed pods
	failuresSoon  = 10 * time.Second // the same while Jobs count further failures
	endingFor     = time.Minute      // time after a pod's grace period from which the driver warns that the pod does not end
	startingFor   = 90 * time.Second // time from which the driver warns that a scheduled pod does not start
)

// podsKnown holds what earlier passes over the pods found.
type podsKnown struct {
	reported map[types.UID]bool      // failed pods that were already reported
	waiting  map[types.UID]time.Time // when a pass first found that a pod has not started, or not ended although it should
	failed   time.Time               // time of the last pass over failed pods
	seen     int                     // number of failed pods in that pass
	failures time.Time               // time of the next one, unless Jobs count further failures
	results  time.Time               // time of the next look into the store for results of running pods
	deleted  int                     // number of pods deleted in this pass
	mayNot   time.Time               // time before which the driver deletes no pod, because it was not allowed to
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
	limit   string       // memory limit of the pod
	memory  config.Bytes // memory and scratch space that the next pod should get if the pod had too little
	scratch config.Bytes
	stage   stages.Stage
	crawl   string
}

// anyVersion lets the API server answer from its cache, which may be some seconds behind. Otherwise it reads all pods of
// the namespace from etcd, thousands of finished ones included, to select a few.
const anyVersion = "0"

// eachPod calls look with each pod of the stage that matches labels and fields, and returns their number. It asks for pages;
// an answer from the cache may have all pods at once. version is anyVersion, or "" for the newest state.
func (r *run) eachPod(ctx context.Context, labels, fields, version string, look func(*corev1.Pod) error) (seen int, err error) {
	options := metav1.ListOptions{LabelSelector: r.selector() + labels, FieldSelector: fields, ResourceVersion: version, Limit: podPage}
	for {
		list, err := r.Client.Pods(r.Config.Kubernetes.Namespace).List(ctx, options)
		if err != nil {
			return seen, err
		}
		seen += len(list.Items)
		for i := range list.Items {
			if err := look(&list.Items[i]); err != nil {
				return seen, err
			}
		}
		options.Continue, options.ResourceVersion = list.Continue, "" // the token holds the version
		if list.Continue == "" {
			return seen, nil
		}
	}
}

// The field selectors for the phases of pods.
const (
	phaseActive = "status.phase!=Succeeded,status.phase!=Failed"
	phaseFailed = "status.phase=Failed"
)

// look is what a pass over the pods that have not ended finds.
type look struct {
	problems map[string]*problem     // by Job, what keeps pods from starting
	others   map[string]bool         // Jobs with a pod that runs, or may start soon
	waiting  map[types.UID]time.Time // see podsKnown
	labelled int                     // number of pods labelled
}

// activePods reads and labels the pods that have not ended. It returns, by Job, the problem that keeps the
// Job's pods from starting.
func (r *run) activePods(ctx context.Context) (map[string]*problem, error) {
	l := &look{problems: map[string]*problem{}, others: map[string]bool{}, waiting: map[types.UID]time.Time{}}
	r.pods.deleted = 0
	for _, w := range r.jobs {
		w.pods, w.unplaced = map[int]placed{}, 0
	}
	_, err := r.eachPod(ctx, "", phaseActive, anyVersion, func(pod *corev1.Pod) error {
		if w := r.jobs[pod.Labels[batchv1.JobNameLabel]]; w != nil && !w.ended && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
			r.lookAt(ctx, l, w, pod)
		}
		return nil
	})
	for job, p := range l.problems {
		p.stuck = p.stuck && !l.others[job]
	}
	if err == nil {
		r.pods.waiting = l.waiting
	}
	return l.problems, err
}

// lookAt notes what keeps a pod of a Job from starting or ending, and labels the pod.
func (r *run) lookAt(ctx context.Context, l *look, w *watchedJob, pod *corev1.Pod) {
	if pod.Status.Phase == corev1.PodRunning {
		r.markStarted(w)
	}
	if pod.Labels[LabelPartition] == "" && l.labelled < labelsAPass {
		l.labelled++
		r.label(ctx, pod, w.batch)
	}
	ending, starting := pod.DeletionTimestamp != nil, pod.Status.Phase == corev1.PodPending && pod.Spec.NodeName != ""
	keeper := ""
	if !ending {
		keeper = keptBy(pod)
	}
	if !starting && pod.Spec.NodeName != "" {
		w.place(pod, keeper)
	}
	lasted := time.Duration(0)
	if ending || starting || keeper != "" {
		since, known := r.pods.waiting[pod.UID]
		if !known {
			since = r.Clock.Now()
		}
		l.waiting[pod.UID], lasted = since, r.Clock.Now().Sub(since)
		if keeper != "" {
			r.deleteKept(ctx, w, pod, lasted)
		} else {
			r.reportSlow(pod, ending, lasted)
		}
	}
	if ending {
		return
	}
	p := r.podProblem(pod)
	if p != nil && p.kind == unschedulable {
		w.unplaced++
	}
	l.others[w.name] = l.others[w.name] || p == nil && lasted < startingFor
	if known := l.problems[w.name]; p != nil && (known == nil || p.stuck && !known.stuck) {
		l.problems[w.name] = p
	}
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

// failuresDue reports whether it is time for a pass over failed pods. Such passes come at intervals, which are shorter after
// a Job's number of failures has changed. Jobs do not count every failure.
func (r *run) failuresDue(found []batchv1.Job) bool {
	next := r.pods.failures
	for i := range found {
		if w := r.jobs[found[i].Name]; w != nil && w.counted != found[i].Status.Failed {
			next = r.pods.failed.Add(failuresSoon * time.Duration(1+r.pods.seen/podPage))
		}
	}
	if r.Clock.Now().Before(next) {
		return false
	}
	for i := range found {
		if w := r.jobs[found[i].Name]; w != nil {
			w.counted = found[i].Status.Failed
		}
	}
	return true
}

// reportFailures reports each failed pod once, and ends tasks whose pods have exceeded a deadline too often.
func (r *run) reportFailures(ctx context.Context, found []batchv1.Job) error {
	if !r.failuresDue(found) {
		return nil
	}
	reported := 0
	over := map[*watchedJob][]int{} // indexes whose pods have exceeded a deadline too often
	seen, err := r.eachPod(ctx, "", phaseFailed, anyVersion, func(pod *corev1.Pod) error {
		w := r.jobs[pod.Labels[batchv1.JobNameLabel]]
		if w == nil || pod.Status.Phase != corev1.PodFailed || r.pods.reported[pod.UID] {
			return nil
		}
		r.pods.reported[pod.UID] = true
		end, index := r.endOf(pod), indexOf(pod)
		if end == nil || index < 0 || index >= len(w.batch.Partitions) || disrupted(pod) && !end.overScratch() {
			return nil
		}
		if end.code == exitInterrupted && !end.overScratch() && !end.overDeadline() {
			r.reportInterrupted(w, pod, end)
			return nil
		}
		if end.overDeadline() && end.code == exitInterrupted && r.stage != stages.Fetch { // a fetch task gets on with each attempt
			if w.overdue[index]++; w.overdue[index] > r.Config.Kubernetes.BackoffLimitPerIndex {
				over[w] = append(over[w], index)
			}
		}
		if reported++; reported <= reportedAPass {
			r.reportFailed(ctx, w, index, end)
		}
		return nil
	})
	if more := reported - reportedAPass; more > 0 {
		r.Log.Warn("more pods failed", "pods", more, "see", fmt.Sprintf("kubectl get pods -n %s -l %s --field-selector %s", r.Config.Kubernetes.Namespace, r.selector(), phaseFailed))
	}
	now := r.Clock.Now()
	r.pods.seen, r.pods.failed, r.pods.failures = seen, now, now.Add(failuresEvery*time.Duration(1+seen/podPage))
	for w, indexes := range over {
		left, failed := r.endWithResults(ctx, w, indexes)
		if failed != nil {
			return failed
		}
		r.endFailed(ctx, w, left)
		w.runsOn = true
	}
	return err
}

// reportFailed reports how a pod of an index failed.
func (r *run) reportFailed(ctx context.Context, w *watchedJob, index int, end *podEnd) {
	t := w.batch.task(index)
	r.Log.Warn("a pod failed", "task", t.String(), "pod", end.pod, "attempt", end.attempt, "exit", end.code, "error", end.reason(r.Flags))
	if end.oom || end.overScratch() || end.overDeadline() {
		r.warn(ctx, w, eventTooSmall, fmt.Sprintf("%s: pod %s: %s", t, end.pod, end.reason(r.Flags)))
	}
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
	_, err := r.eachPod(ctx, labels, phaseFailed, "", func(pod *corev1.Pod) error {
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
	batch := wholeStage(r.plan, r.stage)
	if w := r.jobs[pod.Labels[batchv1.JobNameLabel]]; w != nil {
		batch = w.batch
	}
	end.memory, end.scratch = enough(r.plan, r.Config, batch)
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

// overScratch reports whether the pod used too much disk space: it ended by itself, or was evicted.
func (e *podEnd) overScratch() bool {
	return e.saysScratch() || strings.HasPrefix(e.text, "Evicted: ") && (strings.Contains(e.text, "EmptyDir") || strings.Contains(e.text, "ephemeral"))
}

// saysScratch reports whether the process in the pod found that the limit leaves too little scratch space.
func (e *podEnd) saysScratch() bool { return strings.Contains(e.said, "that "+room.Variable+" allows") }

// overDeadline reports whether the cluster ended the pod because it ran longer than its activeDeadlineSeconds.
func (e *podEnd) overDeadline() bool { return strings.HasPrefix(e.text, "DeadlineExceeded: ") }

// reason says in one line why the pod ended and, if known, what to do.
func (e *podEnd) reason(flags string) string {
	fix := func(field string, to config.Bytes) string {
		return fmt.Sprintf("raise kubernetes.resources.%s.%s to %v in the config, then %s", resourceKey(e.stage), field, to, repeat(e.stage, e.crawl, flags))
	}
	switch {
	case e.oom:
		return fmt.Sprintf("killed for using more memory than %s: %s", e.limit, fix("memory", e.memory))
	case strings.HasPrefix(e.said, limits.ErrTooLow.Error()) && strings.Contains(e.said, "memory"):
		return e.said + ": " + fix("memory", e.memory)
	case e.saysScratch():
		return e.said + " in the config, then " + repeat(e.stage, e.crawl, flags)
	case e.overScratch():
		return e.text + ": " + fix("scratch", e.scratch)
	case e.overDeadline():
		return e.text + ": a policy of the cluster gave the pod activeDeadlineSeconds, which crawlbatch does not set: have it removed, or raised above the time of the longest task"
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
		return fmt.Errorf("%s: %s: %w", where, strings.Replace(text, ": "+stages.ErrPermanent.Error(), "", 1), stages.ErrPermanent)
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
