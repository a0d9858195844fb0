package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store/s3store"
	"crawlbatch.io/crawlbatch/k8s"
	"crawlbatch.io/crawlbatch/stages"
)

// podless is the part of the API of a cluster without pods that `run` needs. Processes of this machine run the indexes
// of each Job, one after the other.
type podless struct {
	t       *testing.T
	running sync.WaitGroup // goroutines that run Jobs; the test waits for them before it ends

	mu      sync.Mutex
	jobs    []*batchv1.Job
	created func(*batchv1.Job) // is called before the indexes of a Job run; may be nil
}

// meet sets created, and returns the Jobs so far.
func (p *podless) meet(created func(*batchv1.Job)) []*batchv1.Job {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.created = created
	return slices.Clone(p.jobs)
}

// ServeHTTP implements http.Handler.
func (p *podless) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var answer any
	switch name := path.Base(r.URL.Path); {
	case name == "jobs" && r.Method == http.MethodPost:
		job := new(batchv1.Job)
		if err := json.NewDecoder(r.Body).Decode(job); err != nil {
			p.t.Error(err)
		}
		job.UID = types.UID(job.Name)
		if p.jobs = append(p.jobs, job); p.created != nil {
			p.created(job)
		}
		p.running.Go(func() { p.run(job) })
		answer = job
	case name == "jobs":
		list := &batchv1.JobList{TypeMeta: metav1.TypeMeta{Kind: "JobList", APIVersion: "batch/v1"}}
		selector, err := labels.Parse(r.URL.Query().Get("labelSelector"))
		if err != nil {
			p.t.Error(err)
		}
		for _, job := range p.jobs {
			if selector.Matches(labels.Set(job.Labels)) {
				list.Items = append(list.Items, *job)
			}
		}
		answer = list
	case name == "pods":
		answer = &corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}}
	case name == "events" && r.Method == http.MethodPost:
		answer = &corev1.Event{TypeMeta: metav1.TypeMeta{Kind: "Event", APIVersion: "v1"}}
	case name == "events":
		answer = &corev1.EventList{TypeMeta: metav1.TypeMeta{Kind: "EventList", APIVersion: "v1"}}
	default:
		p.t.Errorf("%s %s", r.Method, r.URL)
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer) // the driver may be dead
}

// run runs the indexes of a Job. If one fails, the Job fails.
func (p *podless) run(job *batchv1.Job) {
	end := batchv1.JobCondition{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Reason: "PodFailed"}
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		job.Status.Conditions = []batchv1.JobCondition{end}
	}()
	c := job.Spec.Template.Spec.Containers[0]
	for i := range int(*job.Spec.Completions) {
		cmd := exec.CommandContext(p.t.Context(), "crawlbatch", c.Args...)
		cmd.Args[slices.Index(cmd.Args, "--termination-log")+1] = os.DevNull
		cmd.Args[slices.Index(cmd.Args, "--metrics-listen")+1] = "127.0.0.1:0" // pods of several Jobs share this machine's ports
		cmd.Env = append(cmd.Environ(), "JOB_COMPLETION_INDEX="+strconv.Itoa(i))
		for _, v := range c.Env {
			if v.ValueFrom == nil && v.Name != "TMPDIR" {
				cmd.Env = append(cmd.Env, v.Name+"="+v.Value)
			}
		}
		if out, err := cmd.CombinedOutput(); p.t.Context().Err() != nil {
			return // the test ended before the Job
		} else if err != nil {
			p.t.Errorf("%s: %v\n%s", cmd, err, out)
			return
		}
	}
	end = batchv1.JobCondition{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}
}

// phaseOf returns the phase of a plan that a Job runs, or "".
func phaseOf(job *batchv1.Job) string {
	stage := stages.Stage(job.Labels[k8s.LabelStage])
	id, planning := stage.Planning()
	if !planning {
		return ""
	}
	return strings.TrimPrefix(string(stage), string(stages.PlanningStage(id, "")))
}

// phasesOf lists the phases of plans with their numbers of tasks.
func phasesOf(jobs []*batchv1.Job) string {
	var all []string
	for _, job := range jobs {
		if phase := phaseOf(job); phase != "" {
			all = append(all, fmt.Sprintf("%s %d", phase, *job.Spec.Completions))
		}
	}
	return strings.Join(all, ", ")
}

// Pods read the list of the first round, which is in the bucket. The driver of the second round is killed in the middle
// of its plan. The next driver plans the round from the beginning, and crawls it.
func TestS3RunPlansInPods(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	const month = "2026-11"
	server, address := s3(t)
	awsEnv(t, server.Env(server.Endpoint))
	web := webOf(t, 2, 8)
	dir, seeds, addr := t.TempDir(), "", serveLogged(t, web).addr
	file := func(name, text string) string {
		write(t, filepath.Join(dir, name), text)
		return filepath.Join(dir, name)
	}
	for url := range web.Seeds() {
		seeds += url + "\n"
	}
	bucket := strings.TrimSuffix(address, "crawls")
	write(t, filepath.Join(server.Dir, strings.TrimPrefix(bucket, s3store.Scheme), "urls.txt"), seeds)
	cfg := file("c.yaml", "plan: {partition_urls: 4, bucket_urls: 4}\npoliteness: {delay: 10ms}\nkubernetes: {image: 'registry.example/crawlbatch:1', plan_tasks: 2}\n")
	say := func(args ...string) {
		t.Helper()
		if _, said, code := runCommandLine(t, append(args, "--month", month, "--store", address)...); code != exitDone {
			t.Fatalf("%q: exit %d\n%s", args, code, said)
		}
	}
	cluster := &podless{t: t}
	t.Cleanup(cluster.running.Wait)
	api := httptest.NewServer(cluster)
	defer api.Close()
	config := file("kubeconfig", fmt.Sprintf("clusters: [{name: c, cluster: {server: '%s'}}]\ncontexts: [{name: c, context: {cluster: c}}]\ncurrent-context: c\n", api.URL))
	pods := []string{"--executor", executorKubernetes, "--kubeconfig", config}
	say(append([]string{"plan", "--source", bucket + "urls.txt", "--config", cfg, "--connect-to", "::" + addr}, pods...)...)
	if got := phasesOf(cluster.meet(nil)); got != "read 2, join 2, write 1, place 2" {
		t.Errorf("the Jobs of the first plan are %s", got)
	}
	say("run", "--rounds", "1")

	run := append([]string{"run", "--rounds", "2"}, pods...)
	ctx, kill := context.WithCancel(t.Context())
	defer kill()
	driver := exec.CommandContext(ctx, "crawlbatch", append(slices.Clone(run), "--month", month, "--store", address)...)
	before := cluster.meet(func(job *batchv1.Job) {
		if phaseOf(job) == "write" {
			kill()
		}
	})
	if out, err := driver.CombinedOutput(); err == nil || driver.ProcessState.ExitCode() >= 0 {
		t.Fatalf("the driver was not killed in the middle of its plan: %v\n%s", err, out)
	}
	killed := cluster.meet(nil)
	left := strings.TrimSuffix(layout.StageDir(month, 1, strings.TrimSuffix(killed[len(before)].Labels[k8s.LabelStage], "join")), "/")
	say(run...)
	jobs := cluster.meet(nil)[len(killed):]
	if got := phasesOf(jobs); got != "join 2, write 2, place 2" {
		t.Errorf("the Jobs of the second plan are %s", got)
	}
	if !slices.ContainsFunc(jobs, func(job *batchv1.Job) bool { return job.Labels[k8s.LabelStage] == string(stages.Fetch) }) {
		t.Error("no Job fetched")
	}
	b := openS3(t, server, address)
	if there, err := manifest.Exists(t.Context(), b, layout.Sealed(month, 1)); err != nil || !there {
		t.Errorf("the second round is sealed: %t, %v", there, err)
	}
	for o, err := range b.List(t.Context(), layout.RoundDir(month, 1)+stages.PlanningPrefix) {
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(o.Key, left) {
			t.Errorf("%s is left, and not of the killed plan", o.Key)
		}
	}
	say("verify", "--one-clock")
}
