package k8s

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"crawlbatch.io/crawlbatch/jobs/worker"
	"crawlbatch.io/crawlbatch/stages"
)

// ended is the condition with which a Job has ended; nil while it runs.
func ended(job *batchv1.Job) *batchv1.JobCondition {
	for i, c := range job.Status.Conditions {
		if (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue {
			return &job.Status.Conditions[i]
		}
	}
	return nil
}

// hasRun reports whether some pod of a Job runs or has run.
func hasRun(job *batchv1.Job) bool {
	s := &job.Status
	return s.Succeeded > 0 || s.Failed > 0 || s.Ready != nil && *s.Ready > 0 || s.CompletedIndexes != "" || s.FailedIndexes != nil && *s.FailedIndexes != ""
}

// note takes what the Jobs say for news, and asks the store.
func (r *run) note(ctx context.Context, found []batchv1.Job) error {
	byName := map[string]*batchv1.Job{}
	for i := range found {
		byName[found[i].Name] = &found[i]
	}
	for _, name := range sortedNames(r.jobs) {
		w := r.jobs[name]
		if w.ended {
			continue
		}
		job := byName[name]
		if job == nil || job.DeletionTimestamp != nil {
			if err := r.settle(ctx, w, all(w), nil); err != nil { // it may have been done before it was deleted
				return err
			}
			if r.needs(w) {
				return fmt.Errorf("Job %s was deleted: run the same command again to go on: %w", name, stages.ErrInterrupted)
			}
			w.ended = true
			continue
		}
		w.started = w.started || hasRun(job)
		if job.Spec.Suspend != nil && *job.Spec.Suspend {
			r.trouble.say("suspended "+name, fmt.Sprintf("Job %s is suspended: `kubectl patch job %[1]s -n %s --type merge -p '{\"spec\":{\"suspend\":false}}'` resumes it", name, job.Namespace))
		}
		tasks := len(w.batch.Partitions)
		if err := r.settle(ctx, w, parseRanges(job.Status.CompletedIndexes, tasks), noResult(name)); err != nil {
			return err
		}
		if job.Status.FailedIndexes != nil {
			failed := func(index int) error { return r.failure(ctx, name, w.batch, index) }
			if err := r.settle(ctx, w, parseRanges(*job.Status.FailedIndexes, tasks), failed); err != nil {
				return err
			}
		}
		if c := ended(job); c != nil {
			w.ended = true
			if err := r.settle(ctx, w, all(w), notRun(name, c)); err != nil {
				return err
			}
		}
	}
	return nil
}

// noResult: the pod said that it was done, and the store has no result.
func noResult(job string) func(int) error {
	return func(index int) error {
		return fmt.Errorf("Job %s says that index %d is done, but the store has no result of it: do its pods use this store?", job, index)
	}
}

// notRun: the Job ended before the task did.
func notRun(job string, c *batchv1.JobCondition) func(int) error {
	return func(int) error {
		return fmt.Errorf("Job %s ended before this task: %s: %s", job, c.Reason, firstLine(c.Message))
	}
}

func all(w *watched) []int {
	out := make([]int, len(w.batch.Partitions))
	for i := range out {
		out[i] = i
	}
	return out
}

// needs reports whether some task asked for is left to a Job.
func (r *run) needs(w *watched) bool {
	return slices.ContainsFunc(w.batch.Partitions, func(n int) bool { _, open := r.open[n]; return open })
}

// settle ends the tasks of some indexes: those with a result well, the others with
// what otherwise says; nil leaves them open.
func (r *run) settle(ctx context.Context, w *watched, indexes []int, otherwise func(index int) error) error {
	for _, i := range indexes {
		t, open := r.open[w.batch.Partitions[i]]
		if !open || w.seen[i] {
			continue
		}
		result, _, err := worker.LoadResultOf(ctx, r.Bucket, r.plan, t)
		if err != nil {
			return err
		}
		var failed error
		if result == nil {
			if otherwise == nil {
				continue
			}
			failed = fmt.Errorf("%s: %w", t, otherwise(i))
		}
		w.seen[i] = true
		delete(r.open, t.Partition)
		r.done(t, failed)
	}
	return nil
}

// failure says why an index failed: what its last pod left behind.
func (r *run) failure(ctx context.Context, job string, b *Batch, index int) error {
	pods, err := r.Client.CoreV1().Pods(r.Config.Kubernetes.Namespace).List(ctx, metav1.ListOptions{
		LabelSelector: fmt.Sprintf("%s=%s,%s=%d", batchv1.JobNameLabel, job, batchv1.JobCompletionIndexAnnotation, index),
	})
	if err != nil {
		return fmt.Errorf("its attempts failed; their pods cannot be looked at: %w", err)
	}
	slices.SortFunc(pods.Items, func(a, b corev1.Pod) int { return b.CreationTimestamp.Compare(a.CreationTimestamp.Time) })
	for i := range pods.Items {
		if end := terminated(&pods.Items[i]); end != nil && end.ExitCode != 0 {
			return r.failed(&pods.Items[i], end, b, len(pods.Items))
		}
	}
	return fmt.Errorf("its attempts failed, and their pods are gone: `crawlbatch status` shows what they recorded")
}

// failed is the error of a pod that ended badly.
func (r *run) failed(pod *corev1.Pod, end *corev1.ContainerStateTerminated, b *Batch, pods int) error {
	text := lastLine(end.Message)
	if end.Reason == "OOMKilled" {
		text = r.outOfMemory(pod, b)
	}
	if text == "" {
		text = end.Reason
	}
	text = strings.TrimSuffix(text, ": "+stages.ErrPermanent.Error()) // it is said below
	err := fmt.Errorf("pod %s, exit %d: %s", pod.Name, end.ExitCode, text)
	switch {
	case end.ExitCode == exitPermanent || end.ExitCode == exitUsage:
		return fmt.Errorf("%w: %w", err, stages.ErrPermanent)
	case pods > 1:
		return fmt.Errorf("%w (the last of %d pods)", err, pods)
	}
	return err
}

// outOfMemory is the line for a pod that was killed for its memory, with the fix.
func (r *run) outOfMemory(pod *corev1.Pod, b *Batch) string {
	limit := "its limit"
	if len(pod.Spec.Containers) > 0 {
		q := pod.Spec.Containers[0].Resources.Limits[corev1.ResourceMemory]
		limit = "its limit of " + q.String()
	}
	return fmt.Sprintf("killed for using more memory than %s: raise kubernetes.resources.%s.memory, then `crawlbatch retry --month %s --executor kubernetes`", limit, b.Stage, b.Crawl)
}

// terminated is how a pod's container ended; nil where it has not.
func terminated(pod *corev1.Pod) *corev1.ContainerStateTerminated {
	for i := range pod.Status.ContainerStatuses {
		if s := &pod.Status.ContainerStatuses[i]; s.Name == containerName {
			return s.State.Terminated
		}
	}
	return nil
}

// indexOf is a pod's completion index; -1 where it has none.
func indexOf(pod *corev1.Pod) int {
	n, err := strconv.Atoi(pod.Annotations[batchv1.JobCompletionIndexAnnotation])
	if err != nil {
		return -1
	}
	return n
}

// maxLine bounds a line of somebody else's text, bytes.
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

func sortedNames(m map[string]*watched) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
