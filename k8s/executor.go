package k8s

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/worker"
	"crawlbatch.io/crawlbatch/stages"
)

// ErrCluster: the cluster refuses or cannot start what it was asked to run; the
// error says why, and what to do.
var ErrCluster = errors.New("the cluster does not run it")

// How the executor goes about it.
const (
	pollEvery   = 2 * time.Second  // between looks at the Jobs
	lookEvery   = 6 * time.Second  // between looks at pods and events, for what is wrong
	startWithin = 12 * time.Second // after which what cannot start by itself ends the run
	repeatEvery = 5 * time.Minute  // before the same trouble is told again
	patience    = 30 * time.Minute // with a cluster that does not answer
)

// Executor runs tasks as Jobs. It implements jobs.Executor; when ctx ends it leaves
// the Jobs as they are, for the next driver to adopt.
type Executor struct {
	Client  kubernetes.Interface
	Bucket  store.Bucket
	Config  *config.Config
	Store   string            // as --store has it, for pods
	Flags   []string          // further flags of every task
	Env     map[string]string // of pods
	Clock   stages.Clock
	Log     *slog.Logger
	Version string
}

// run is one call of Run.
type run struct {
	*Executor
	plan    *manifest.Plan
	stage   stages.Stage
	render  *Renderer
	open    map[int]stages.Task // by partition: tasks asked for that have not ended yet
	done    func(stages.Task, error)
	jobs    map[string]*watched
	trouble *troubles
}

// watched is a Job that runs tasks asked for.
type watched struct {
	batch   *Batch
	seen    map[int]bool // indexes whose end was dealt with
	ended   bool
	started bool // some pod of it has run
	since   time.Time
}

// Run implements jobs.Executor.
func (e *Executor) Run(ctx context.Context, tasks []stages.Task, done func(stages.Task, error)) error {
	if len(tasks) == 0 {
		return nil
	}
	err := e.run(ctx, tasks, done)
	if ctx.Err() != nil {
		return fmt.Errorf("the Jobs in namespace %s go on without this command, `kubectl delete jobs -n %[1]s -l %s=%s` stops them: %w",
			e.Config.Kubernetes.Namespace, LabelCrawl, tasks[0].Crawl, stages.ErrInterrupted)
	}
	return err
}

func (e *Executor) run(ctx context.Context, tasks []stages.Task, done func(stages.Task, error)) error {
	plan, _, err := worker.FindPlan(ctx, e.Bucket, tasks[0].Crawl, tasks[0].Round)
	if err != nil {
		return err
	}
	text, err := e.Config.YAML()
	if err != nil {
		return err
	}
	key, settings, err := SettingsKey(tasks[0].Crawl, text, e.Version)
	if err != nil {
		return err
	}
	r := &run{
		Executor: e, plan: plan, stage: tasks[0].Stage, done: done, open: map[int]stages.Task{}, jobs: map[string]*watched{},
		render:  &Renderer{Config: e.Config, Plan: plan, Store: e.Store, Flags: e.Flags, Settings: key, Env: e.Env},
		trouble: newTroubles(e.Clock, e.Log),
	}
	for _, t := range tasks {
		r.open[t.Partition] = t
	}
	existing, err := r.list(ctx)
	if err != nil {
		return explain(err, e.Config)
	}
	if err := r.adopt(ctx, existing); err != nil {
		return err
	}
	if _, err := manifest.Create(ctx, e.Bucket, key, settings); err != nil {
		return err
	}
	if err := r.submit(ctx, tasks, existing); err != nil {
		return err
	}
	return r.watch(ctx)
}

// selector chooses the Jobs and pods of the stage, of this store.
func (r *run) selector() string {
	return fmt.Sprintf("%s=%s,%s=%d,%s=%s,%s=%s", LabelCrawl, r.plan.Crawl, LabelRound, r.plan.Round, LabelStage, r.stage, LabelStore, storeLabel(r.Store))
}

func (r *run) list(ctx context.Context) ([]batchv1.Job, error) {
	l, err := r.Client.BatchV1().Jobs(r.Config.Kubernetes.Namespace).List(ctx, metav1.ListOptions{LabelSelector: r.selector()})
	if err != nil {
		return nil, err
	}
	return l.Items, nil
}

// adopt takes over Jobs that an earlier driver submitted and that have not ended.
// One that asks for other pods than would be asked for now is removed: its user has
// changed the config. Its pods end as after an interruption, and lose nothing.
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
		if job.DeletionTimestamp == nil && job.Annotations[AnnotationTemplate] != templateDigest(ptr(r.render.pod(b, r.render.labels(b)))) {
			r.Log.Info("replacing a Job that asks for other pods than the config does now", "job", job.Name)
			if err := r.remove(ctx, job.Name); err != nil {
				return err
			}
			job.DeletionTimestamp = &metav1.Time{Time: r.Clock.Now()}
		}
		if job.DeletionTimestamp != nil {
			if err := r.gone(ctx, job.Name); err != nil {
				return err
			}
			continue
		}
		r.Log.Info("going on with a Job that runs", "job", job.Name, "partitions", ranges(b.Partitions))
		r.jobs[job.Name] = &watched{batch: b, seen: map[int]bool{}, since: r.Clock.Now()}
	}
	return nil
}

// batchOf reads which tasks a Job runs.
func (r *run) batchOf(ctx context.Context, job *batchv1.Job) (*Batch, error) {
	key := job.Annotations[AnnotationTasks]
	list, err := LoadTasks(ctx, r.Bucket, key, r.stage, r.plan.Crawl, r.plan.Round)
	if err == nil && list.Plan != r.plan.ID {
		err = fmt.Errorf("%q is of plan %s, not of %s: %w: %w", key, list.Plan, r.plan.ID, errList, stages.ErrPermanent)
	}
	if err != nil {
		return nil, fmt.Errorf("Job %s, which runs in namespace %s: %w", job.Name, job.Namespace, err)
	}
	return &Batch{Stage: r.stage, Crawl: r.plan.Crawl, Round: r.plan.Round, Partitions: list.Partitions, Key: key}, nil
}

// remove deletes a Job with its pods.
func (r *run) remove(ctx context.Context, name string) error {
	err := r.Client.BatchV1().Jobs(r.Config.Kubernetes.Namespace).Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: ptr(metav1.DeletePropagationForeground)})
	if err != nil && !apierrors.IsNotFound(err) {
		return explain(err, r.Config)
	}
	return nil
}

// gone waits until a Job that is being deleted is no more: its pods may still fetch.
func (r *run) gone(ctx context.Context, name string) error {
	for {
		_, err := r.Client.BatchV1().Jobs(r.Config.Kubernetes.Namespace).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return explain(err, r.Config)
		}
		if err := r.Clock.Sleep(ctx, pollEvery); err != nil {
			return err
		}
	}
}

// submit makes Jobs of the tasks that no adopted Job runs.
func (r *run) submit(ctx context.Context, tasks []stages.Task, existing []batchv1.Job) error {
	covered := map[int]bool{}
	for _, w := range r.jobs {
		for _, n := range w.batch.Partitions {
			covered[n] = true
		}
	}
	var left []stages.Task
	for _, t := range tasks {
		if !covered[t.Partition] {
			left = append(left, t)
		}
	}
	if len(left) > 0 && r.Config.Kubernetes.Image == "" {
		return fmt.Errorf("kubernetes.image is empty: name the image of crawlbatch in the config, or with --image: %w", ErrCluster)
	}
	batches, err := Split(r.plan, left, r.Config.Kubernetes.JobTasks, r.Version)
	if err != nil {
		return err
	}
	for i, share := range Shares(batches, r.Config.Kubernetes.Parallelism) {
		b := &batches[i]
		if _, err := manifest.Create(ctx, r.Bucket, b.Key, b.list(r.plan.ID, r.Version)); err != nil {
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

// create submits a Job. Another driver that was quicker has submitted the same,
// which is adopted; one of that name that has ended is left alone.
func (r *run) create(ctx context.Context, b *Batch, share int) error {
	jobs := r.Client.BatchV1().Jobs(r.Config.Kubernetes.Namespace)
	for {
		_, err := jobs.Create(ctx, r.render.Job(b, share), metav1.CreateOptions{FieldManager: "crawlbatch"})
		if apierrors.IsAlreadyExists(err) {
			other, err := jobs.Get(ctx, b.Name(), metav1.GetOptions{})
			if err == nil && (ended(other) != nil || other.DeletionTimestamp != nil) || apierrors.IsNotFound(err) {
				b.Generation++
				continue
			}
			if err != nil {
				return explain(err, r.Config)
			}
		} else if err != nil {
			return explain(err, r.Config)
		}
		r.Log.Info("submitted a Job", "job", b.Name(), "namespace", r.Config.Kubernetes.Namespace, "tasks", len(b.Partitions), "parallelism", share)
		r.jobs[b.Name()] = &watched{batch: b, seen: map[int]bool{}, since: r.Clock.Now()}
		return nil
	}
}

// watch looks at the Jobs until every task asked for has ended.
func (r *run) watch(ctx context.Context) error {
	var away, looked time.Time
	for len(r.open) > 0 {
		now := r.Clock.Now()
		found, err := r.list(ctx)
		switch {
		case err == nil:
			away = time.Time{}
			if err := r.note(ctx, found); err != nil {
				return err
			}
		case ctx.Err() != nil:
			return ctx.Err()
		case lasting(err):
			return explain(err, r.Config)
		default:
			if away.IsZero() {
				away = now
			}
			r.trouble.say("cluster", "the cluster does not answer, its Jobs go on: "+firstLine(err.Error()))
			if now.Sub(away) > patience {
				return fmt.Errorf("the cluster has not answered for %s: %w: %w", patience, err, stages.ErrInterrupted)
			}
		}
		if err == nil && now.Sub(looked) >= lookEvery && len(r.open) > 0 {
			looked = now
			if err := r.diagnose(ctx, found); err != nil {
				return err
			}
		}
		if len(r.open) == 0 {
			return nil
		}
		if err := r.Clock.Sleep(ctx, pollEvery); err != nil {
			return err
		}
	}
	return nil
}
