package k8s

import (
	"context"
	"fmt"
	"maps"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/stages"
)

// ended returns the condition that ended a Job, or nil while the Job runs.
func ended(job *batchv1.Job) *batchv1.JobCondition {
	for i, c := range job.Status.Conditions {
		if (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue {
			return &job.Status.Conditions[i]
		}
	}
	return nil
}

// hasRun reports whether any pod of a Job runs or has run.
func hasRun(job *batchv1.Job) bool {
	s := &job.Status
	return s.Succeeded > 0 || s.Failed > 0 || s.Ready != nil && *s.Ready > 0 || s.CompletedIndexes != "" || s.FailedIndexes != nil && *s.FailedIndexes != ""
}

// markStarted notes that a pod of a Job has run.
func (r *run) markStarted(w *watchedJob) {
	w.started = true
	r.Executor.started.Store(true)
}

func suspended(job *batchv1.Job) bool { return job.Spec.Suspend != nil && *job.Spec.Suspend }

// failedIndexes lists the indexes that failed for good.
func failedIndexes(job *batchv1.Job) []int {
	if job.Status.FailedIndexes == nil || job.Spec.Completions == nil {
		return nil
	}
	return parseRanges(*job.Status.FailedIndexes, int(*job.Spec.Completions))
}

// readStatus reads the status of the Jobs, and reports those tasks as ended that have a result in the store
// or have failed for good.
func (r *run) readStatus(ctx context.Context, found []batchv1.Job) error {
	byName := map[string]*batchv1.Job{}
	for i := range found {
		byName[found[i].Name] = &found[i]
	}
	for _, name := range slices.Sorted(maps.Keys(r.jobs)) {
		w := r.jobs[name]
		if w.ended {
			continue
		}
		job := byName[name]
		if job == nil || job.DeletionTimestamp != nil || w.uid != job.UID {
			left, err := r.endWithResults(ctx, w, allIndexes(w)) // the tasks may have got results before the Job was deleted
			if err != nil {
				return err
			}
			if len(left) > 0 {
				return fmt.Errorf("Job %s was deleted: run the same command again to continue: %w", name, stages.ErrInterrupted)
			}
			w.ended = true
			continue
		}
		if hasRun(job) {
			r.markStarted(w)
		}
		r.logPause(job, w)
		w.waits = !w.suspended && job.Spec.Parallelism != nil && tasksLeft(job) > int(*job.Spec.Parallelism)
		if err := r.endJobTasks(ctx, job, w); err != nil {
			return err
		}
	}
	return nil
}

// endJobTasks reports those tasks of a Job as ended that have a result or have failed for good.
func (r *run) endJobTasks(ctx context.Context, job *batchv1.Job, w *watchedJob) error {
	left, err := r.endWithResults(ctx, w, parseRanges(job.Status.CompletedIndexes, len(w.batch.Partitions)))
	if err != nil {
		return err
	}
	for _, i := range left {
		r.fail(w, i, fmt.Errorf("Job %s reports that index %d is done, but the store has no result of that task: do the Job's pods use this store?", w.name, i))
	}
	if left, err = r.endWithResults(ctx, w, failedIndexes(job)); err != nil {
		return err
	}
	if len(left) > 0 {
		r.endFailed(ctx, w, left)
	}
	c := ended(job)
	if c == nil {
		return nil
	}
	w.ended = true
	if left, err = r.endWithResults(ctx, w, allIndexes(w)); err != nil {
		return err
	}
	for _, i := range left {
		r.fail(w, i, fmt.Errorf("Job %s ended before this task: %s: %s", w.name, c.Reason, firstLine(c.Message)))
	}
	return nil
}

// kueueQueue is the label by which Kueue queues a Job: it suspends the Job until there is room for it.
const kueueQueue = "kueue.x-k8s.io/queue-name"

// logPause logs that somebody has suspended or resumed a Job.
func (r *run) logPause(job *batchv1.Job, w *watchedJob) {
	switch was := w.suspended; {
	case suspended(job) && !was && job.Labels[kueueQueue] != "":
		r.Log.Warn(fmt.Sprintf("Job %s waits in Kueue's queue %s: `kubectl get workloads -n %s` shows it", job.Name, job.Labels[kueueQueue], job.Namespace))
	case suspended(job) && !was:
		r.Log.Warn(fmt.Sprintf("Job %s is suspended: `kubectl patch job %[1]s -n %s --type merge -p '{\"spec\":{\"suspend\":false}}'` resumes it", job.Name, job.Namespace))
	case !suspended(job) && was:
		r.Log.Info("the Job was resumed", "job", job.Name)
	}
	w.suspended = suspended(job)
}

func allIndexes(w *watchedJob) []int {
	out := make([]int, len(w.batch.Partitions))
	for i := range out {
		out[i] = i
	}
	return out
}

// withResults divides the requested tasks with the given indexes into those that have a result in the store, and the
// others.
func (r *run) withResults(ctx context.Context, w *watchedJob, indexes []int) (done, left []int, err error) {
	var asked []int
	var tasks []stages.Task
	for _, i := range indexes {
		if _, open := r.open[w.batch.Partitions[i]]; open && !w.before[i] {
			asked, tasks = append(asked, i), append(tasks, w.batch.task(i))
		}
	}
	has := make([]bool, len(asked))
	err = roundstate.EachResult(ctx, r.Bucket, r.plan, tasks, func(i int, result *manifest.Result, _ string) { has[i] = result != nil })
	if err != nil {
		return nil, nil, err
	}
	for n, i := range asked {
		if has[n] {
			done = append(done, i)
		} else {
			left = append(left, i)
		}
	}
	return done, left, nil
}

// endWithResults reports that those requested tasks with the given indexes that have a result have ended. It returns the
// indexes of the other requested tasks.
func (r *run) endWithResults(ctx context.Context, w *watchedJob, indexes []int) (left []int, err error) {
	done, left, err := r.withResults(ctx, w, indexes)
	for _, i := range done {
		r.end(w.batch.task(i), nil)
	}
	return left, err
}

func (r *run) end(t stages.Task, err error) {
	delete(r.open, t.Partition)
	r.done(t, err)
}

// fail reports that the task at an index ended with the error why.
func (r *run) fail(w *watchedJob, index int, why error) {
	t := w.batch.task(index)
	w.failed = append(w.failed, t.Partition)
	r.end(t, fmt.Errorf("%s: %w", t, why))
}

// endFailed reports the tasks of indexes that failed for good, with the cause from each index's last pod, and
// records an Event. If the pod was killed before it recorded its attempt, endFailed records the attempt.
func (r *run) endFailed(ctx context.Context, w *watchedJob, indexes []int) {
	ends, err := r.lastEnds(ctx, w, indexes)
	for _, i := range indexes {
		t := w.batch.task(i)
		end, class := ends[i], manifest.ClassFailed
		why := fmt.Errorf("all attempts failed, and their pods are gone: `crawlbatch status --month %s%s` shows what the pods recorded", t.Crawl, r.Flags)
		if _, ok := t.Stage.Audit(); ok {
			why = fmt.Errorf("all attempts failed, and their pods are gone: %s repeats the audit", repeat(t.Stage, t.Crawl, r.Flags))
		}
		switch {
		case err != nil:
			why = fmt.Errorf("its attempts failed; their pods cannot be read: %w", err)
		case end != nil:
			why, class = end.taskError(r.Flags), end.class()
		}
		record := manifest.Attempt{Task: t.String(), Class: class, Error: why.Error()}
		if end != nil {
			record.Machine = end.pod
		}
		record.Version = r.Version
		if err := roundstate.RecordLostAttempt(ctx, r.Bucket, r.Clock, t, record); err != nil && ctx.Err() == nil {
			r.Log.Warn("the failure could not be recorded", "task", t.String(), "error", err)
		}
		r.warn(ctx, w, eventTaskFailed, fmt.Sprintf("%s failed for good: %s", t, firstLine(why.Error())))
		r.fail(w, i, why)
	}
}
