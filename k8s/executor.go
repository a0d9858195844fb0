package k8s

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/stages"
)

// The intervals of the executor.
const (
	pollEvery   = 2 * time.Second  // time between reads of the Jobs
	lookEvery   = 6 * time.Second  // time between reads of pods and events, in which problems show
	repeatEvery = 5 * time.Minute  // time before the same problem is logged again
	endWithin   = 12 * time.Second // time for the deletion of the Jobs of an audit

	problemsAKind = 20 // largest number of pods or Jobs with the same kind of problem that are logged in repeatEvery
)

// Executor runs tasks as Jobs. It implements jobs.Executor. When ctx ends, the Jobs keep running, and the
// next driver adopts them.
type Executor struct {
	Client  Client
	Bucket  store.Bucket
	Config  *config.Config
	Store   string            // value of --store for pods
	Env     map[string]string // environment variables of pods
	Clock   stages.Clock
	Log     *slog.Logger
	Version string
	Flags   string // flags of the store and the cluster for commands in error messages; begins with a space
	Watched bool   // true: a person reads the log, and can correct at once what keeps the first Jobs from starting

	started atomic.Bool // true: a pod of this executor's Jobs has run
}

// newRun returns the state for requests that follow no Jobs.
func (e *Executor) newRun() *run {
	return &run{Executor: e, trouble: newTroubles(e.Clock, e.Log), jobs: map[string]*watchedJob{}}
}

// run holds the state of one call of Executor.Run.
type run struct {
	*Executor
	plan    *manifest.Plan
	stage   stages.Stage
	render  *Renderer
	open    map[int]stages.Task // requested tasks that have not ended, by partition
	done    func(stages.Task, error)
	jobs    map[string]*watchedJob
	trouble *problemLog
	pods    podsKnown
	scale   scale
}

// watchedJob is a Job that runs requested tasks, with its last known state.
type watchedJob struct {
	name      string
	uid       types.UID
	batch     *Batch
	ended     bool
	started   bool // at least one pod of the Job has run
	suspended bool
	before    map[int]bool // indexes that had failed for good when this driver adopted the Job; another Job runs their tasks
	failed    []int        // partitions that failed for good
	counted   int32        // number of failed pods in the Job's status when reportFailures last ran
	refused   string       // identity of the newest event about a pod that could not be created
	warned    int          // number of warning Events for the Job
	left      int64        // number of Events of any kind for the Job

	pods      map[int]placed // by index, the pods that have started and not ended, as the last pass found them
	committed map[int]placed // those whose tasks had a result when the driver looked into the store
	runsOn    bool           // true: the Job may run on after all its requested tasks have ended
	waits     bool           // true: an index waits until a pod ends, because the Job runs as many pods as it may
	unplaced  int            // number of pods that fitted no node in the last pass
	overdue   map[int]int    // by index, the number of pods that exceeded a deadline that the cluster set
}

// Run implements jobs.Executor.
func (e *Executor) Run(ctx context.Context, tasks []stages.Task, done func(stages.Task, error)) error {
	if len(tasks) == 0 {
		return nil
	}
	plan, _, err := roundstate.FindPlan(ctx, e.Bucket, tasks[0].Crawl, tasks[0].Round)
	if err == nil {
		_, err = e.run(ctx, plan, tasks, done)
	}
	if ctx.Err() != nil {
		return fmt.Errorf("the Jobs in namespace %s continue without this command; `kubectl delete jobs -n %[1]s -l %s=%s,%s=%s` stops them: %w",
			e.Config.Kubernetes.Namespace, LabelCrawl, tasks[0].Crawl, LabelStage, tasks[0].Stage, stages.ErrInterrupted)
	}
	return err
}

// RunAside is like Run, but runs the tasks of an audit, which belong to the round of p. No other driver adopts their Jobs, so RunAside deletes them if it cannot follow them to their
// end.
func (e *Executor) RunAside(ctx context.Context, p *manifest.Plan, tasks []stages.Task, done func(stages.Task, error)) error {
	r, err := e.run(ctx, p, tasks, done)
	if r == nil || err == nil {
		return err
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), endWithin)
	defer cancel()
	for name := range r.jobs {
		if failed := r.remove(ending, name); failed != nil {
			err = fmt.Errorf("%w; Job %s continues: `kubectl delete job -n %s %s` stops it: %w", err, name, e.Config.Kubernetes.Namespace, name, failed)
		}
	}
	for name := range r.jobs { // until then, its pods may still write
		if failed := r.waitDeleted(ending, name); failed != nil {
			e.Log.Warn("pods may still run", "job", name, "error", failed)
		}
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%w: %w", err, stages.ErrInterrupted)
	}
	return err
}

func (e *Executor) run(ctx context.Context, plan *manifest.Plan, tasks []stages.Task, done func(stages.Task, error)) (*run, error) {
	if err := NeedImage(e.Config); err != nil {
		return nil, err
	}
	key, settings, err := Settings(tasks[0].Crawl, e.Config, e.Version)
	if err != nil {
		return nil, err
	}
	r := e.newRun()
	r.plan, r.stage, r.done, r.open = plan, tasks[0].Stage, done, map[int]stages.Task{}
	r.render = &Renderer{Config: e.Config, Plan: plan, Store: e.Store, Settings: key, Env: e.Env}
	r.pods = podsKnown{reported: map[types.UID]bool{}}
	for _, t := range tasks {
		r.open[t.Partition] = t
	}
	existing, err := r.list(ctx)
	if err != nil {
		return r, err
	}
	if err := r.adopt(ctx, existing); err != nil {
		return r, err
	}
	r.scale = r.newScale(existing)
	if _, err := manifest.Create(ctx, e.Bucket, key, settings); err != nil {
		return r, err
	}
	if err := r.submit(ctx, tasks, existing); err != nil {
		return r, err
	}
	return r, r.watch(ctx)
}

// name returns the name of the stage, such as fetch@2026-11.0.
func (r *run) name() string { return fmt.Sprintf("%s@%s.%d", r.stage, r.plan.Crawl, r.plan.Round) }

// selector returns the label selector of the Jobs and pods that run the stage for this store.
func (r *run) selector() string {
	return fmt.Sprintf("%s=%s,%s=%d,%s=%s,%s=%s", LabelCrawl, r.plan.Crawl, LabelRound, r.plan.Round, LabelStage, r.stage, LabelStore, storeLabel(r.Store))
}

func (r *run) list(ctx context.Context) ([]batchv1.Job, error) {
	var found *batchv1.JobList
	err := r.ask(ctx, func() (err error) {
		found, err = r.Client.Jobs(r.Config.Kubernetes.Namespace).List(ctx, metav1.ListOptions{LabelSelector: r.selector()})
		return err
	}, nil)
	if err != nil {
		return nil, err
	}
	return found.Items, nil
}

// adopt takes over unfinished Jobs of an earlier driver. If the config now asks for other pods than those of
// a Job, adopt deletes the Job and its pods, unless the Job is suspended or also runs tasks that were not
// requested. The outcomes that the pods have recorded remain in the store.
func (r *run) adopt(ctx context.Context, existing []batchv1.Job) error {
	for i := range existing {
		job := &existing[i]
		if ended(job) != nil {
			continue
		}
		b, err := r.batchOf(ctx, job)
		if err != nil {
			return err
		}
		if job.DeletionTimestamp == nil && !suspended(job) && job.Annotations[AnnotationTemplate] != templateDigest(ptr(r.render.pod(b, r.render.labels(b)))) {
			if err := r.replace(ctx, job, b); err != nil {
				return err
			}
		}
		if job.DeletionTimestamp != nil {
			if err := r.waitDeleted(ctx, job.Name); err != nil {
				return err
			}
			continue
		}
		r.Log.Info("continuing with a running Job", "job", job.Name, "partitions", ranges(b.Partitions))
		w := r.watchJob(job, b)
		w.before = map[int]bool{}
		for _, i := range failedIndexes(job) {
			w.before[i] = true
		}
		r.normalEvent(ctx, w, eventAdopted, r.name()+": a restarted driver continues with it")
	}
	return nil
}

// replace deletes a Job whose pods differ from those that the config asks for, so that submit creates it
// anew, and marks it as deleted. It leaves a Job that still runs tasks that were not requested, such as
// the other partitions during `retry --partition`: submit would not create them anew.
func (r *run) replace(ctx context.Context, job *batchv1.Job, b *Batch) error {
	others, err := r.othersIn(ctx, job, b)
	if err != nil {
		return err
	}
	if len(others) > 0 {
		r.Log.Info("the config asks for other pods than those of a running Job, which keeps its pods because it also runs partitions that this command does not; partitions of it that failed for good get a Job of their own",
			"job", job.Name, "partitions", ranges(others))
		return nil
	}
	r.Log.Info("replacing a Job because the config asks for other pods now", "job", job.Name)
	if err := r.remove(ctx, job.Name); err != nil {
		return err
	}
	job.DeletionTimestamp = &metav1.Time{Time: r.Clock.Now()}
	return nil
}

// othersIn returns the partitions that a Job still runs although their tasks were not requested.
func (r *run) othersIn(ctx context.Context, job *batchv1.Job, b *Batch) ([]int, error) {
	over := map[int]bool{} // indexes of the Job that have ended
	for _, i := range slices.Concat(failedIndexes(job), parseRanges(job.Status.CompletedIndexes, len(b.Partitions))) {
		over[i] = true
	}
	var left []stages.Task
	for i, n := range b.Partitions {
		if _, requested := r.open[n]; !requested && !over[i] {
			left = append(left, b.task(i))
		}
	}
	left, err := roundstate.Missing(ctx, r.Bucket, r.plan, left) // a pod ends some time after it has committed its result
	var others []int
	for _, t := range left {
		others = append(others, t.Partition)
	}
	return others, err
}

// watchJob adds a Job to the Jobs for which the run waits.
func (r *run) watchJob(job *batchv1.Job, b *Batch) *watchedJob {
	w := &watchedJob{name: job.Name, uid: job.UID, batch: b, committed: map[int]placed{}, overdue: map[int]int{}}
	r.jobs[job.Name] = w
	return w
}

// batchOf reads a Job's batch from the Job's task list in the store.
func (r *run) batchOf(ctx context.Context, job *batchv1.Job) (*Batch, error) {
	key := job.Annotations[AnnotationTasks]
	list, err := LoadTasks(ctx, r.Bucket, key, r.stage, r.plan.Crawl, r.plan.Round)
	if err == nil && list.Plan != r.plan.ID {
		err = fmt.Errorf("%q belongs to plan %s, not to %s: %w: %w", key, list.Plan, r.plan.ID, errList, stages.ErrPermanent)
	}
	if err != nil {
		return nil, fmt.Errorf("Job %s, which runs in namespace %s: %w", job.Name, job.Namespace, err)
	}
	return &Batch{Stage: r.stage, Crawl: r.plan.Crawl, Round: r.plan.Round, Partitions: list.Partitions, Key: key}, nil
}

// remove deletes a Job with its pods.
func (r *run) remove(ctx context.Context, name string) error {
	err := r.ask(ctx, func() error {
		return r.Client.Jobs(r.Config.Kubernetes.Namespace).Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: ptr(metav1.DeletePropagationForeground)})
	}, absent)
	if err != nil && !absent(err) {
		return err
	}
	return nil
}

// waitDeleted waits until the cluster has deleted a Job. Until then, the Job's pods may still fetch.
func (r *run) waitDeleted(ctx context.Context, name string) error {
	for {
		err := r.ask(ctx, func() error {
			_, err := r.Client.Jobs(r.Config.Kubernetes.Namespace).Get(ctx, name, metav1.GetOptions{})
			return err
		}, absent)
		if absent(err) {
			return nil
		}
		if err != nil {
			return err
		}
		r.trouble.say("gone", name, fmt.Sprintf("Job %s is being deleted, waiting for its pods to end: `kubectl get pods -n %s -l %s=%[1]s` shows them", name, r.Config.Kubernetes.Namespace, batchv1.JobNameLabel))
		if err := r.Clock.Sleep(ctx, pollEvery); err != nil {
			return err
		}
	}
}

// submit creates Jobs for the tasks that no adopted Job runs.
func (r *run) submit(ctx context.Context, tasks []stages.Task, existing []batchv1.Job) error {
	covered := map[int]bool{}
	for _, w := range r.jobs {
		for i, n := range w.batch.Partitions {
			covered[n] = covered[n] || !w.before[i]
		}
	}
	var left []stages.Task
	for _, t := range tasks {
		if !covered[t.Partition] {
			left = append(left, t)
		}
	}
	batches, err := Split(r.plan, left, r.Config.Kubernetes.JobTasks, r.Version)
	if err != nil {
		return err
	}
	for i, share := range Shares(batches, r.scale.limit) {
		b := &batches[i]
		if _, err := manifest.Create(ctx, r.Bucket, b.Key, b.taskList(r.plan.ID, r.Version)); err != nil {
			return err
		}
		for _, job := range existing {
			if strings.HasPrefix(job.Name, b.baseName()+"-") {
				b.Generation++
			}
		}
		if err := r.create(ctx, b, share); err != nil {
			return err
		}
	}
	return nil
}

// create submits the Job of a batch. If another driver has already submitted the same Job, create
// adopts that Job. An ended Job of the same name stays, as does one whose pods use another store, and the
// new Job gets the next generation.
func (r *run) create(ctx context.Context, b *Batch, share int) error {
	for {
		job, existed, err := r.make(ctx, r.render.Job(b, share))
		if err != nil {
			return err
		}
		verb := "submitted a Job"
		if existed {
			if job == nil || ended(job) != nil || job.DeletionTimestamp != nil || job.Labels[LabelStore] != storeLabel(r.Store) {
				b.Generation++
				continue
			}
			verb = "another driver submitted the Job, going on with it"
		}
		r.Log.Info(verb, "job", job.Name, "namespace", job.Namespace, "tasks", len(b.Partitions), "parallelism", share)
		r.watchJob(job, b)
		return nil
	}
}

// make creates a Job. If a Job of the same name exists, make returns that existing Job. If the
// existing Job has disappeared meanwhile, make returns nil.
func (r *run) make(ctx context.Context, job *batchv1.Job) (got *batchv1.Job, existed bool, err error) {
	jobs := r.Client.Jobs(job.Namespace)
	err = r.ask(ctx, func() (err error) {
		got, err = jobs.Create(ctx, job, metav1.CreateOptions{FieldManager: "crawlbatch"})
		return err
	}, apierrors.IsAlreadyExists)
	if !apierrors.IsAlreadyExists(err) {
		return got, false, err
	}
	err = r.ask(ctx, func() (err error) {
		got, err = jobs.Get(ctx, job.Name, metav1.GetOptions{})
		return err
	}, absent)
	if absent(err) {
		return nil, true, nil
	}
	return got, true, err
}

// watch follows the Jobs until every requested task has ended.
func (r *run) watch(ctx context.Context) error {
	var looked time.Time
	for {
		found, err := r.list(ctx)
		if err != nil {
			return err
		}
		switch err := r.readStatus(ctx, found); {
		case err == nil:
			r.trouble.markSolved(storeAway)
		case errors.Is(err, store.ErrUnavailable) && r.trouble.lastedFor(storeAway) < patience:
			r.trouble.say(storeAway, "", fmt.Sprintf("waiting for at most %s for the store, while pods run on: %v", patience, err))
		default:
			return err
		}
		if len(r.open) > 0 && r.Clock.Now().Sub(looked) >= lookEvery {
			looked = r.Clock.Now()
			if err := r.diagnose(ctx, found); err != nil {
				return err
			}
		}
		if len(r.open) == 0 {
			r.stageDone(ctx)
			r.removeOutlived(ctx, found)
			return nil
		}
		if err := r.Clock.Sleep(ctx, pollEvery); err != nil {
			return err
		}
	}
}

// storeAway is the name, in a problemLog, of the problem that the store does not answer.
const storeAway = "store"
