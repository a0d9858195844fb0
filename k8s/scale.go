package k8s

import (
	"context"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The intervals at which the driver changes the number of pods, if kubernetes.parallelism.min is set.
const (
	growEvery   = 30 * time.Second // time between two increases
	placeWithin = 5 * time.Minute  // time that a cluster has for new nodes before the driver takes waiting pods back
	growAgain   = 10 * time.Minute // time from then to the next increase
)

// unschedulable is the kind of the problem of pods that fit no node.
const unschedulable = "unschedulable"

// scale is the number of pods of a stage at a time, as it follows what waits.
type scale struct {
	limit   int       // present number, from Parallelism.Min to Parallelism.Max
	next    time.Time // time before which the number does not grow
	waiting time.Time // time since which pods have fitted no node; zero if all fit
	mayNot  time.Time // time before which the driver changes no Job, because it was not allowed to
}

// newScale returns the scale at the beginning of a stage. Jobs that an earlier driver made keep their number.
func (r *run) newScale(existing []batchv1.Job) scale {
	k := r.Config.Kubernetes.Parallelism
	if k.Min == 0 || k.Min == k.Max {
		return scale{limit: k.Max}
	}
	adopted := 0
	for i := range existing {
		if job := &existing[i]; r.jobs[job.Name] != nil {
			adopted += slots(job)
		}
	}
	return scale{limit: min(max(k.Min, adopted), k.Max), next: r.Clock.Now().Add(growEvery)}
}

// slots returns the number of pods that a Job may run at the same time.
func slots(job *batchv1.Job) int {
	if job.Spec.Parallelism == nil {
		return 1
	}
	return min(int(*job.Spec.Parallelism), tasksLeft(job))
}

// tasksLeft returns the number of a Job's indexes that have not ended.
func tasksLeft(job *batchv1.Job) int {
	if job.Spec.Completions == nil {
		return 0
	}
	return int(*job.Spec.Completions-job.Status.Succeeded) - len(failedIndexes(job))
}

// followWaiting changes the number of pods of the stage between kubernetes.parallelism.min and max. While tasks wait and
// all pods fit a node, it doubles the number. If pods fit no node for placeWithin, it takes them back, so that they do not
// stand before the pods of others, and later tries again. It leaves suspended Jobs alone.
func (r *run) followWaiting(ctx context.Context, found []batchv1.Job) {
	k := r.Config.Kubernetes.Parallelism
	if k.Min == 0 || k.Min == k.Max {
		return
	}
	var jobs []*batchv1.Job
	left, rooms, unplaced := 0, 0, 0
	for i := range found {
		job := &found[i]
		if w := r.jobs[job.Name]; w != nil && !w.ended && !w.suspended {
			jobs = append(jobs, job)
			left, rooms, unplaced = left+tasksLeft(job), rooms+slots(job), unplaced+w.unplaced
		}
	}
	now := r.Clock.Now()
	switch {
	case unplaced == 0:
		r.scale.waiting = time.Time{}
		if left > r.scale.limit && r.scale.limit < k.Max && !now.Before(r.scale.next) {
			r.scale.limit, r.scale.next = min(2*r.scale.limit, k.Max), now.Add(growEvery)
		}
		r.share(ctx, jobs, r.scale.limit-rooms)
	case r.scale.waiting.IsZero():
		r.scale.waiting = now
	case now.Sub(r.scale.waiting) >= placeWithin:
		back := 0
		for _, job := range jobs {
			if n := min(r.jobs[job.Name].unplaced, rooms-k.Min-back, slots(job)-1); n > 0 && r.setSlots(ctx, job, slots(job)-n) {
				back += n
			}
		}
		r.scale.waiting = time.Time{}
		if back > 0 {
			r.Log.Info("pods fit no node, so the stage runs fewer", "stage", r.name(), "parallelism", rooms-back, "unplaced", unplaced)
			r.scale.limit, r.scale.next = rooms-back, now.Add(growAgain)
		}
	}
}

// share gives further pods to the Jobs, each to the Job with the most waiting tasks.
func (r *run) share(ctx context.Context, jobs []*batchv1.Job, more int) {
	rooms := map[*batchv1.Job]int{}
	for _, job := range jobs {
		rooms[job] = slots(job)
	}
	waiting := func(job *batchv1.Job) int { return tasksLeft(job) - rooms[job] }
	for ; more > 0 && len(jobs) > 0; more-- {
		most := slices.MaxFunc(jobs, func(a, b *batchv1.Job) int { return waiting(a) - waiting(b) })
		if waiting(most) <= 0 {
			break
		}
		rooms[most]++
	}
	for _, job := range jobs {
		if rooms[job] > slots(job) {
			r.setSlots(ctx, job, rooms[job])
		}
	}
}

// setSlots changes the parallelism of a Job, and reports whether it did. If the driver may not change it, the crawl goes
// on with the number that the Job has, and the driver tries again after repeatEvery.
func (r *run) setSlots(ctx context.Context, job *batchv1.Job, n int) bool {
	if r.Clock.Now().Before(r.scale.mayNot) {
		return false
	}
	patch := fmt.Appendf(nil, `{"spec":{"parallelism":%d}}`, n)
	if _, err := r.Client.Jobs(job.Namespace).Patch(ctx, job.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "crawlbatch"}); err != nil && ctx.Err() == nil {
		r.scale.mayNot = r.Clock.Now().Add(repeatEvery)
		r.trouble.say("parallelism", job.Name, fmt.Sprintf("the parallelism of Job %s cannot be changed: %v", job.Name, explain(err, r.Config)))
		return false
	}
	r.Log.Info("changed the number of pods at a time", "job", job.Name, "parallelism", n)
	return true
}
