//go:build lab

package lab

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/cmd/crawltest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/storetest/versitygw"
	"crawlbatch.io/crawlbatch/stages/simweb/truth"
)

// These environment variables configure the suite that runs on a real cluster. The suite must run
// in the cluster's network, because pods must reach the suite's processes.
const (
	clusterSwitch = "CRAWLBATCH_CLUSTER" // address that the suite listens on; if unset, the suite is skipped
	clusterImage  = "CRAWLBATCH_IMAGE"   // container image of the same version as givenBinary
	clusterBlows  = "CRAWLBATCH_BLOWS"   // number of blows to the disturbed crawl; default 20
)

// Many processes of the cluster share few processors, so answers and leases take more time than in
// the chaos suite. Requests may also arrive later, so the gap to the next request may be shorter.
const (
	clusterDelay   = 800 * time.Millisecond
	clusterSlack   = 500 * time.Millisecond
	clusterTimeout = 3 * time.Second
	clusterLease   = 8 * time.Second
)

// clusterConfig is the part of the crawl's config for the cluster. The test cluster has no Services, so the
// config tells the driver's pod the address of the API server.
const clusterConfig = `
kubernetes:
  namespace: %s
  image: %s
  image_pull_policy: Never
  parallelism: {max: 8}
  env_from_secrets: [s3]
  env: {KUBERNETES_SERVICE_HOST: "%s", KUBERNETES_SERVICE_PORT: "6443"}
  resources: {default: {cpu: 20m, memory: 384MiB, scratch: 512MiB}}
`

// clusterRun is one run of the suite.
type clusterRun struct {
	*chaosRun
	image string
}

func newClusterRun(t *testing.T) *clusterRun {
	listen := os.Getenv(clusterSwitch)
	if listen == "" {
		t.Skipf("%s is not set: `make test-k8s` runs this", clusterSwitch)
	}
	r := &clusterRun{startChaosRun(t, listen), os.Getenv(clusterImage)}
	r.kills = 20
	if text := os.Getenv(clusterBlows); text != "" {
		var err error
		if r.kills, err = strconv.Atoi(text); err != nil {
			t.Fatalf("%s: %v", clusterBlows, err)
		}
	}
	return r
}

// clusterCrawl is a crawl with its own namespace and store.
type clusterCrawl struct {
	*chaos
	namespace string
	server    *versitygw.Server
	config    string // name of the config file
	text      string // text of the config file
	optOut    string // name of the file that is the opt-out list
}

// clusterPlan says how a crawl on the cluster differs from a crawl of the chaos suite.
type clusterPlan struct {
	salt      uint64
	delay     time.Duration
	hosts     int
	pages     int
	faultless bool     // no page of the web has a fault
	optOut    string   // text of the opt-out list; if empty, the crawl has no list
	replace   []string // replacements in the config text, as pairs of old and new text
}

// crawl makes a namespace from the manifests and plans a crawl in the namespace.
func (r *clusterRun) crawl(t *testing.T, p clusterPlan) *clusterCrawl {
	t.Helper()
	if p.hosts == 0 {
		p.hosts, p.pages = 20, 40
	}
	c := &clusterCrawl{namespace: r.namespace(t), server: versitygw.StartOn(t, r.listen)}
	env := c.server.Env(c.server.Endpoint)
	c.secret(t, env)
	c.text = fmt.Sprintf(chaosConfig+clusterConfig, p.delay, chaosEvery, clusterLease, c.namespace, r.image, r.listen)
	c.text = strings.ReplaceAll(c.text, "connect: 1s, first_byte: 1s, total: 1s", fmt.Sprintf("connect: %s, first_byte: %[1]s, total: %[1]s", clusterTimeout))
	c.text = strings.NewReplacer(p.replace...).Replace(c.text)
	bucket := c.server.NewBucket(t)
	if p.optOut != "" {
		c.optOut = filepath.Join(c.server.Dir, bucket, "opt-out.txt")
		crawltest.Write(t, c.optOut, p.optOut)
		c.text = strings.Replace(c.text, "plan: {", "plan: {opt_out: s3://"+bucket+"/opt-out.txt, ", 1)
	}
	web := webOf(t, p.hosts, p.pages)
	if p.faultless {
		web = faultlessWeb(t, p.hosts, p.pages)
	}
	c.config = filepath.Join(t.TempDir(), "crawlbatch.yaml")
	crawltest.Write(t, c.config, c.text)
	c.chaos = r.plan(t, chaosPlan{
		store: "s3://" + bucket + "/crawls", salt: p.salt, web: web, config: c.text, env: env,
	})
	c.pace = truth.Pace{Delay: clusterDelay, Slack: clusterSlack}
	c.flags = []string{"--executor", "kubernetes", "--config", c.config}
	return c
}

// namespace applies the manifests to a new namespace.
func (r *clusterRun) namespace(t *testing.T) string {
	t.Helper()
	name := fmt.Sprintf("test-%d-%d", r.seed, time.Now().UnixNano()%1_000_000)
	kubectl(t, "apply", "-k", writeOverlay(t, name, "manifests"))
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the cluster's state at the end:\n%s\n%s\n%s", kubectl(t, "-n", name, "get", "jobs,pods"),
				kubectl(t, "-n", name, "get", "events", "--field-selector=type!=Normal,reason!=MissingClusterDNS"),
				kubectl(t, "-n", name, "logs", "-l", "app.kubernetes.io/component=driver", "--prefix"))
		}
		kubectl(t, "-n", name, "delete", "jobs", "--all", "--wait=false") // otherwise the pods of remaining Jobs may keep the namespace alive
		kubectl(t, "delete", "namespace", name, "--wait=false")
	})
	return name
}

// writeOverlay writes a kustomization for a namespace. It combines a folder of k8s with some
// components of the manifests.
func writeOverlay(t *testing.T, namespace, folder string, components ...string) string {
	t.Helper()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	relative := func(path string) string {
		to, err := filepath.Rel(dir, filepath.Join(here, "../../k8s", path))
		if err != nil {
			t.Fatal(err)
		}
		return to
	}
	text := fmt.Sprintf("namespace: %s\nresources: [%s]\ncomponents:\n", namespace, relative(folder))
	for _, c := range components {
		text += "  - " + relative(filepath.Join("manifests/components", c)) + "\n"
	}
	if len(components) == 0 {
		text = strings.TrimSuffix(text, "components:\n")
	}
	crawltest.Write(t, filepath.Join(dir, "kustomization.yaml"), text)
	return dir
}

// secret creates the Secret with the store's credentials for the pods.
func (c *clusterCrawl) secret(t *testing.T, env []string) {
	t.Helper()
	args := []string{"-n", c.namespace, "create", "secret", "generic", "s3"}
	for _, pair := range env {
		if strings.HasPrefix(pair, "AWS_ACCESS_KEY_ID=") || strings.HasPrefix(pair, "AWS_SECRET_ACCESS_KEY=") {
			args = append(args, "--from-literal", pair)
		}
	}
	kubectl(t, args...)
}

// bucket opens the crawl's store from this process.
func (c *clusterCrawl) bucket() store.Bucket { return openS3(c.t, c.server, c.store) }

// dir is the folder in which the S3 server keeps the crawl's store.
func (c *clusterCrawl) dir() string {
	return filepath.Join(c.server.Dir, strings.TrimPrefix(c.store, "s3://"))
}

// kubectl runs kubectl and returns its output. If kubectl fails, the test fails.
func kubectl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := tryKubectl("", args...)
	if err != nil {
		t.Errorf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// tryKubectl runs kubectl. It returns the output even if kubectl fails.
func tryKubectl(stdin string, args ...string) (string, error) {
	cmd := exec.Command("kubectl", args...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errs
	if err := cmd.Run(); err != nil {
		return out.String() + errs.String(), err
	}
	return out.String(), nil
}

// listObjects returns the objects of a kind that `kubectl get` lists.
func listObjects[T any](t *testing.T, namespace, kind string, args ...string) []T {
	t.Helper()
	var list struct{ Items []T }
	out := kubectl(t, append([]string{"-n", namespace, "get", kind, "-o", "json"}, args...)...)
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		t.Fatalf("kubectl get %s: %v", kind, err)
	}
	return list.Items
}

// podProcess is a process of the crawl in a pod.
type podProcess struct {
	pid  int
	args []string
}

// processes finds the processes in pods that run the crawl's commands `task` or `run`.
func (c *clusterCrawl) processes(command string) []podProcess {
	var found []podProcess
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // the process has ended
		}
		args := strings.Split(string(text), "\x00")
		if len(args) < 2 || args[0] != "/crawlbatch" || args[1] != command || !slices.Contains(args, c.store) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		if err == nil {
			found = append(found, podProcess{pid, args})
		}
	}
	return found
}

// task names the task of a process in a pod.
func (p podProcess) task() string {
	tasks := p.args[slices.Index(p.args, "--tasks")+1]
	env, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", p.pid))
	for _, pair := range strings.Split(string(env), "\x00") {
		if index, ok := strings.CutPrefix(pair, "JOB_COMPLETION_INDEX="); ok {
			return tasks + " " + index
		}
	}
	return tasks
}

// age returns the time since the start of a process.
func (p podProcess) age() time.Duration {
	info, err := os.Stat(fmt.Sprintf("/proc/%d", p.pid))
	if err != nil {
		return 0
	}
	return time.Since(info.ModTime())
}

// ended reports whether a process has ended.
func (p podProcess) ended() bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.pid))
	if err != nil {
		return true
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(rest, "Z") || strings.HasPrefix(rest, "X")
}

// waitUntil waits until a condition holds. The test fails if the condition does not hold in time.
func waitUntil(t *testing.T, what string, most time.Duration, is func() bool) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(most)
	for !is() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("%s: not within %s", what, most)
		}
	}
}

// killProcess ends a process with SIGKILL, and records the time of this disturbance.
func (c *clusterCrawl) killProcess(p podProcess) {
	from := time.Now()
	_ = syscall.Kill(p.pid, syscall.SIGKILL)
	c.waitForBlow(from, p)
}

// waitForBlow waits until a process that the suite disturbed has ended. It then records the time of
// the disturbance.
func (c *clusterCrawl) waitForBlow(from time.Time, p podProcess) {
	waitUntil(c.t, "the end of a process", time.Minute, p.ended)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.blows = append(c.blows, blow{from: from, to: time.Now()})
	c.killed++
}
