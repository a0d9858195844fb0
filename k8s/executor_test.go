package k8s

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/jobs/ledger/ledgertest"
	"crawlbatch.io/crawlbatch/stages"
)

// lab is a store with a planned round, and a fake cluster that stores objects but runs no pods.
type lab struct {
	*Executor
	cluster *fake.Clientset
	ended   map[int]error
}

// fakeCluster adapts client-go's fake Clientset to Client.
type fakeCluster struct{ *fake.Clientset }

func (c fakeCluster) Jobs(namespace string) Resource[batchv1.Job, batchv1.JobList] {
	return c.BatchV1().Jobs(namespace)
}

func (c fakeCluster) Pods(namespace string) Resource[corev1.Pod, corev1.PodList] {
	return c.CoreV1().Pods(namespace)
}

func (c fakeCluster) Events(namespace string) Resource[corev1.Event, corev1.EventList] {
	return c.CoreV1().Events(namespace)
}

func newLab(t *testing.T) *lab {
	t.Helper()
	b, err := dirstore.Open(t.TempDir(), dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	create(t, b, layout.PlanManifest("2026-11", 0, "p1"), plan(40))
	create(t, b, layout.CrawlManifest("2026-11"), &manifest.Crawl{Crawl: "2026-11"})
	ledgertest.Make(t, b, "2026-11")
	r := rendering(t, "kubernetes: {image: 'registry.example/crawlbatch:1'}")
	cluster := fake.NewClientset()
	return &lab{cluster: cluster, ended: map[int]error{}, Executor: &Executor{
		Client: fakeCluster{cluster}, Bucket: b, Config: r.Config, Store: r.Store, Clock: stages.SystemClock{}, Log: slog.New(slog.DiscardHandler), Version: "v1",
	}}
}

func create(t *testing.T, b store.Bucket, key string, d manifest.Document) {
	t.Helper()
	if _, err := manifest.Create(t.Context(), b, key, d); err != nil {
		t.Fatal(err)
	}
}

func (l *lab) result(t *testing.T, n int) {
	t.Helper()
	task := stages.Task{Stage: stages.Fetch, Crawl: "2026-11", Partition: n}
	create(t, l.Bucket, layout.Result("2026-11", 0, "fetch", n), &manifest.Result{Task: task.String(), Stage: "fetch", Partition: n, Plan: "p1"})
}

// runTasks runs fetch tasks with the executor until they end, for at most an hour.
func (l *lab) runTasks(ctx context.Context, partitions ...int) error {
	ctx, stop := context.WithTimeout(ctx, time.Hour)
	defer stop()
	return l.Run(ctx, tasks(stages.Fetch, partitions...), func(t stages.Task, err error) { l.ended[t.Partition] = err })
}

func (l *lab) jobs(t *testing.T) []batchv1.Job {
	t.Helper()
	list, err := l.cluster.Tracker().List(batchv1.SchemeGroupVersion.WithResource("jobs"), batchv1.SchemeGroupVersion.WithKind("Job"), "crawl")
	if err != nil {
		t.Fatal(err)
	}
	return list.(*batchv1.JobList).Items
}

// setStatus sets the status of a Job in the cluster.
func (l *lab) setStatus(t *testing.T, job batchv1.Job, s batchv1.JobStatus) {
	t.Helper()
	job.Status = s
	if _, err := l.cluster.BatchV1().Jobs("crawl").UpdateStatus(t.Context(), &job, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// pod adds a pod for an index that has failed as many times as before says.
func (l *lab) pod(t *testing.T, job batchv1.Job, name string, index, before int, status corev1.PodStatus) *corev1.Pod {
	t.Helper()
	labels := maps.Clone(job.Spec.Template.Labels)
	labels[batchv1.JobNameLabel], labels[batchv1.JobCompletionIndexAnnotation] = job.Name, strconv.Itoa(index)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: name, UID: types.UID(name), Namespace: "crawl", Labels: labels, CreationTimestamp: metav1.Now(),
		Annotations: map[string]string{batchv1.JobCompletionIndexAnnotation: strconv.Itoa(index), batchv1.JobIndexFailureCountAnnotation: strconv.Itoa(before)},
	}, Spec: job.Spec.Template.Spec, Status: status}
	if err := l.cluster.Tracker().Add(pod); err != nil {
		t.Fatal(err)
	}
	return pod
}

// addDeadPod adds a pod that ended with the given status.
func (l *lab) addDeadPod(t *testing.T, job batchv1.Job, index, before int, end corev1.ContainerStateTerminated) {
	t.Helper()
	l.pod(t, job, fmt.Sprintf("dead-%d-%d", index, before), index, before, corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: []corev1.ContainerStatus{
		{Name: containerName, State: corev1.ContainerState{Terminated: &end}}}})
}

// events returns the Events of the cluster as "Reason: message".
func (l *lab) events(t *testing.T) []string {
	t.Helper()
	list, err := l.cluster.CoreV1().Events("crawl").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range list.Items {
		if e.InvolvedObject.Kind == "Job" && strings.HasPrefix(e.InvolvedObject.Name, "crawl-2026-11-r0-fetch-") {
			out = append(out, e.Reason+": "+e.Message)
		}
	}
	return out
}

func TestTheStoreDecidesWhatIsDoneAndAFailedIndexFailsItsTaskOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		ends := make(chan error, 1)
		go func() { ends <- l.runTasks(t.Context(), 0, 1, 3) }()
		time.Sleep(time.Second)
		job := l.jobs(t)[0]
		if *job.Spec.Completions != 3 || job.Annotations[AnnotationPartitions] != "0-1,3" {
			t.Errorf("%d completions of %s", *job.Spec.Completions, job.Annotations[AnnotationPartitions])
		}
		l.result(t, 0)
		l.addDeadPod(t, job, 2, 0, corev1.ContainerStateTerminated{ExitCode: exitPermanent, Message: "fetch@2026-11.0:3: damaged: retrying cannot help\n"})
		l.setStatus(t, job, batchv1.JobStatus{CompletedIndexes: "0-1", FailedIndexes: ptr("2"), Conditions: []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue}}})
		if err := <-ends; err != nil {
			t.Fatal(err)
		}
		if l.ended[0] != nil {
			t.Errorf("task 0 has a result, but ended with %v", l.ended[0])
		}
		if err := l.ended[1]; err == nil || !strings.Contains(err.Error(), "no result") {
			t.Errorf("task 1 has no result, but ended with %v", err)
		}
		if err := l.ended[3]; !errors.Is(err, stages.ErrPermanent) || err.Error() != "fetch@2026-11.0:3: pod dead-2-0, attempt 1, exit 78: damaged: retrying cannot help" {
			t.Errorf("task 3 ended with %v", err)
		}
	})
}

// aside runs two tasks of an audit.
func (l *lab) aside(ctx context.Context, stage stages.Stage) error {
	p := plan(3)
	var all []stages.Task
	for i := range 2 {
		all = append(all, stages.Task{Stage: stage, Crawl: p.Crawl, Partition: i})
	}
	ctx, stop := context.WithTimeout(ctx, time.Hour)
	defer stop()
	return l.RunAside(ctx, p, all, func(t stages.Task, err error) { l.ended[t.Partition] = err })
}

func TestPodsRunAnAudit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		stage := stages.AuditStage("1a2b3c", "files")
		ends := make(chan error, 1)
		go func() { ends <- l.aside(t.Context(), stage) }()
		time.Sleep(time.Second)
		job := l.jobs(t)[0]
		if len(job.Name) > 52 || *job.Spec.Completions != 2 {
			t.Errorf("Job %s has %d completions", job.Name, *job.Spec.Completions)
		}
		c := job.Spec.Template.Spec.Containers[0]
		if args := strings.Join(c.Args, " "); !strings.HasPrefix(args, "task "+string(stage)+" --month 2026-11 --round 0 --tasks crawl=2026-11/round=0/"+string(stage)+"/tasks-") {
			t.Errorf("pods run %s", args)
		}
		for i := range 2 {
			task := stages.Task{Stage: stage, Crawl: "2026-11", Partition: i}
			create(t, l.Bucket, layout.Result("2026-11", 0, string(stage), i), &manifest.Result{Task: task.String(), Stage: string(stage), Partition: i, Plan: "p1"})
		}
		l.setStatus(t, job, batchv1.JobStatus{CompletedIndexes: "0-1", Conditions: []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}})
		if err := <-ends; err != nil || l.ended[0] != nil || l.ended[1] != nil || len(l.ended) != 2 {
			t.Errorf("%v, %v", err, l.ended)
		}
	})
}

func TestAnAuditThatIsInterruptedDeletesItsJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
		defer stop()
		if err := l.aside(ctx, stages.AuditStage("1a2b3c", "files")); !errors.Is(err, stages.ErrInterrupted) {
			t.Errorf("the audit ended with %v", err)
		}
		if n := len(l.jobs(t)); n != 0 {
			t.Errorf("%d Jobs are left", n)
		}
	})
}

func TestAStoppedDriverLeavesItsJobAndTheNextAdoptsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
		defer stop()
		if err := l.runTasks(ctx, 0, 1); !errors.Is(err, stages.ErrInterrupted) {
			t.Fatal(err)
		}
		job := l.jobs(t)[0]
		l.setStatus(t, job, batchv1.JobStatus{Ready: ptr(int32(2)), Active: 2})
		ends := make(chan error, 1)
		go func() { ends <- l.runTasks(t.Context(), 1, 2) }() // the next run: task 0 is already finished, and task 2 is new
		time.Sleep(time.Second)
		all := l.jobs(t)
		if len(all) != 2 {
			t.Fatalf("%d Jobs: want the adopted one and a new one of task 2", len(all))
		}
		l.result(t, 1)
		l.result(t, 2)
		for _, j := range all {
			if j.Name != job.Name && j.Annotations[AnnotationPartitions] != "2" {
				t.Errorf("the second Job runs %s", j.Annotations[AnnotationPartitions])
			}
			l.setStatus(t, j, batchv1.JobStatus{CompletedIndexes: "0-1", Conditions: []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}})
		}
		if err := <-ends; err != nil || l.ended[1] != nil || l.ended[2] != nil {
			t.Errorf("%v, %v", err, l.ended)
		}
	})
}

func TestTheSameTasksRunAgainInAJobOfAnotherName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		for generation := 1; generation <= 2; generation++ {
			ends := make(chan error, 1)
			go func() { ends <- l.runTasks(t.Context(), 0) }()
			time.Sleep(time.Second)
			all := l.jobs(t)
			if len(all) != generation {
				t.Fatalf("%d Jobs in generation %d", len(all), generation)
			}
			for _, j := range all {
				l.setStatus(t, j, batchv1.JobStatus{FailedIndexes: ptr("0"), Conditions: []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue}}})
			}
			if err := <-ends; err != nil || l.ended[0] == nil {
				t.Errorf("%v, %v", err, l.ended)
			}
		}
	})
}

func TestAPersonHearsWithinHalfAMinuteWhatKeepsAJobFromStarting(t *testing.T) {
	refuse := func(err error) func(*lab) {
		return func(l *lab) {
			l.cluster.PrependReactor("create", "jobs", func(ktesting.Action) (bool, runtime.Object, error) { return true, nil, err })
		}
	}
	waiting := func(reason string) func(*lab) {
		return func(l *lab) {
			l.cluster.PrependReactor("list", "pods", func(ktesting.Action) (bool, runtime.Object, error) {
				job := l.jobs(t)[0]
				p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: maps.Clone(job.Spec.Template.Labels)}}
				p.Labels[batchv1.JobNameLabel], p.Labels[LabelPartition] = job.Name, "0"
				p.Status.ContainerStatuses = []corev1.ContainerStatus{{Image: "registry.example/x", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}}}
				return true, &corev1.PodList{Items: []corev1.Pod{p}}, nil
			})
		}
	}
	event := func(text string) func(*lab) {
		return func(l *lab) {
			l.cluster.PrependReactor("list", "events", func(ktesting.Action) (bool, runtime.Object, error) {
				name := l.jobs(t)[0].Name
				return true, &corev1.EventList{Items: []corev1.Event{{InvolvedObject: corev1.ObjectReference{Name: name}, Reason: "FailedCreate", Message: text}}}, nil
			})
		}
	}
	for _, c := range []struct {
		name string
		with func(*lab)
		want string
	}{
		{"forbidden", refuse(apierrors.NewForbidden(schema.GroupResource{Resource: "jobs"}, "x", errors.New("no"))), "k8s/manifests/rbac.yaml"},
		{"no namespace", refuse(apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "crawl")), "--namespace or kubernetes.namespace"},
		{"quota of Jobs", refuse(apierrors.NewForbidden(schema.GroupResource{Resource: "jobs"}, "x", errors.New("exceeded quota: q"))), "ResourceQuota"},
		{"image", waiting("ImagePullBackOff"), "kubernetes.image"},
		{"secret", waiting("CreateContainerConfigError"), "env_from_secrets"},
		{"service account", event(`error looking up service account crawl/x: serviceaccount "x" not found`), "kubernetes.service_account"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLab(t)
				l.Watched = true
				c.with(l)
				began := time.Now()
				err := l.runTasks(t.Context(), 0)
				if !errors.Is(err, ErrCluster) || !strings.Contains(err.Error(), c.want) || time.Since(began) > 30*time.Second {
					t.Errorf("after %s: %v", time.Since(began), err)
				}
				if n := len(l.jobs(t)); n != 0 {
					t.Errorf("%d Jobs are left that cannot start", n)
				}
			})
		})
	}
}
