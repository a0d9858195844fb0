//go:build lab

package lab

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"crawlbatch.io/crawlbatch/cmd/crawltest"
	"crawlbatch.io/crawlbatch/cmd/demo"
)

// disturbedCluster disturbs the cluster during a crawl. The blows kill processes in pods, let pods
// run out of memory, delete and evict pods, and kill the kubelet and the driver.
func disturbedCluster(t *testing.T, r *clusterRun, salt uint64) {
	c := r.crawl(t, clusterPlan{salt: salt, delay: time.Second}) // the delay makes the crawl long enough for all blows
	blows := []struct {
		name string
		deal func(podProcess)
	}{
		{"SIGKILL", c.killProcess},
		{"delete", c.deletePod},
		{"evict", c.evictPod},
		{"out of memory", c.squeeze},
		{"kubelet", func(podProcess) { c.restartKubelet() }},
		{"driver", nil},
	}
	c.interrupted = true
	driver := c.run()
	dealt, suffered := map[string]int{}, map[string]int{}
	order := c.random.Perm(len(blows))
	for n := 0; ; {
		if !driver.outlives(c.randomDuration(500*time.Millisecond, 2500*time.Millisecond)) {
			code, out := driver.wait()
			if code == 0 {
				break
			}
			if code != exitTasksFailed { // this code is allowed, because an index of the Job may have failed too often
				t.Fatalf("run: exit %d\n%s", code, out)
			}
			driver = c.run()
			continue
		}
		if n == r.kills {
			continue
		}
		b := blows[order[n%len(order)]]
		if b.deal == nil {
			_ = driver.cmd.Process.Signal(syscall.SIGKILL)
			<-driver.ended
			driver = c.run()
		} else {
			// A victim must be old enough to have recorded an outcome. If several processes died without
			// one, the crawl would blame a URL. The suite chooses the task that was killed least often,
			// because each failure doubles the pause before the task's next attempt.
			var victims []podProcess
			for _, p := range c.processes("task") {
				if p.age() < 2*time.Second {
					continue
				}
				if len(victims) > 0 && suffered[p.task()] < suffered[victims[0].task()] {
					victims = nil
				}
				if len(victims) == 0 || suffered[p.task()] == suffered[victims[0].task()] {
					victims = append(victims, p)
				}
			}
			if len(victims) == 0 {
				continue
			}
			victim := victims[c.draw(len(victims))]
			suffered[victim.task()]++
			b.deal(victim)
		}
		dealt[b.name]++
		n++
	}
	t.Logf("dealt: %v", dealt)
	if len(dealt) < len(blows) && r.kills >= len(blows) {
		t.Errorf("only %v were dealt before the crawl's end", dealt)
	}
	c.check(r.chaosRun, c.bucket(), nil)
}

// draw returns a random number below n.
func (c *clusterCrawl) draw(n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.random.IntN(n)
}

// podGroup matches the part of a container's cgroup path that contains the UID of the pod.
var podGroup = regexp.MustCompile(`/pod([0-9a-f-]{36})/`)

// podOf returns the name of a process's pod, or "" if the pod is gone.
func (c *clusterCrawl) podOf(p podProcess) string {
	groups, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", p.pid))
	m := podGroup.FindSubmatch(groups)
	if err != nil || m == nil {
		return ""
	}
	for _, pod := range listObjects[corev1.Pod](c.t, c.namespace, "pods") {
		if string(pod.UID) == string(m[1]) {
			return pod.Name
		}
	}
	return ""
}

// deletePod deletes a process's pod, sometimes without a grace period.
func (c *clusterCrawl) deletePod(p podProcess) {
	args := []string{"-n", c.namespace, "delete", "pod", c.podOf(p), "--wait=false"}
	if c.draw(3) == 0 {
		args = append(args, "--grace-period=0", "--force")
	}
	from := time.Now()
	if out, err := tryKubectl("", args...); err != nil {
		c.t.Logf("delete: %v: %s", err, out)
		return
	}
	c.waitForBlow(from, p)
}

// evictPod evicts a pod in the same way as a drained node does.
func (c *clusterCrawl) evictPod(p podProcess) {
	pod := c.podOf(p)
	eviction := fmt.Sprintf(`{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":%q,"namespace":%q}}`, pod, c.namespace)
	from := time.Now()
	if out, err := tryKubectl(eviction, "create", "--raw", fmt.Sprintf("/api/v1/namespaces/%s/pods/%s/eviction", c.namespace, pod), "-f", "-"); err != nil {
		c.t.Logf("evict: %v: %s", err, out)
		return
	}
	c.waitForBlow(from, p)
}

// memoryGroup matches the line in a process's list of cgroups that names the memory cgroup, for
// cgroups version 1 and 2.
var memoryGroup = regexp.MustCompile(`(?m)^(?:\d+:memory:|0::)(/kube.*)$`)

// squeeze lowers a container's memory limit below its use, until the kernel kills the container.
func (c *clusterCrawl) squeeze(p podProcess) {
	groups, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", p.pid))
	m := memoryGroup.FindSubmatch(groups)
	if err != nil || m == nil {
		if !p.ended() {
			c.t.Errorf("no memory cgroup of process %d: %q (%v)", p.pid, groups, err)
		}
		return
	}
	from := time.Now()
	for _, group := range []struct{ dir, usage, limit string }{
		{"/sys/fs/cgroup/memory", "memory.usage_in_bytes", "memory.limit_in_bytes"},
		{"/sys/fs/cgroup", "memory.current", "memory.max"},
	} {
		dir := filepath.Join(group.dir, string(m[1]))
		if _, err := os.Stat(filepath.Join(dir, group.limit)); err != nil {
			continue
		}
		waitUntil(c.t, "an end for want of memory", time.Minute, func() bool {
			text, err := os.ReadFile(filepath.Join(dir, group.usage))
			if err != nil {
				return true
			}
			used, err := strconv.Atoi(strings.TrimSpace(string(text)))
			if err == nil { // the loop lowers the limit again, because the kernel refuses one that it cannot reach by freeing memory
				_ = os.WriteFile(filepath.Join(dir, group.limit), []byte(strconv.Itoa(used-used%4096-256<<10)), 0o644)
			}
			return p.ended()
		})
		c.waitForBlow(from, p)
		return
	}
	c.t.Errorf("no memory cgroup %s", m[1])
}

// restartKubelet kills the node's kubelet and starts it again with the same command.
func (c *clusterCrawl) restartKubelet() {
	t := c.t
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range files {
		text, err := os.ReadFile(name)
		args := strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
		if err != nil || filepath.Base(args[0]) != "kubelet" {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		if err != nil {
			t.Fatal(err)
		}
		dir, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid))
		if err != nil {
			t.Fatal(err)
		}
		program, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
		if err != nil {
			t.Fatal(err)
		}
		log, err := os.OpenFile(fmt.Sprintf("/proc/%d/fd/1", pid), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer log.Close()
		_ = syscall.Kill(pid, syscall.SIGKILL)
		waitUntil(t, "the kubelet's end", time.Minute, podProcess{pid: pid}.ended)
		time.Sleep(c.randomDuration(0, 3*time.Second)) // time for which the node has no kubelet
		devnull, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		defer devnull.Close()
		started, err := os.StartProcess(program, args, &os.ProcAttr{
			Dir: dir, Env: os.Environ(), Files: []*os.File{devnull, log, log}, Sys: &syscall.SysProcAttr{Setsid: true},
		})
		if err != nil {
			t.Fatal(err)
		}
		_ = started.Release()
		return
	}
	t.Error("found no kubelet to restart")
}

// waitForText waits until the output of a process contains a text. The test fails if the text
// does not come in time.
func (p *process) waitForText(t *testing.T, text string, most time.Duration) {
	t.Helper()
	said := func() string {
		b, _ := os.ReadFile(p.said.Name())
		return string(b)
	}
	limit := time.After(most)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !strings.Contains(said(), text) {
		select {
		case <-tick.C:
		case <-limit:
			t.Errorf("within %s it did not say %q, but:\n%s", most, text, said())
			return
		}
	}
}

// interrupt sends a driver the signal of Ctrl-C.
func (p *process) interrupt(t *testing.T) {
	t.Helper()
	_ = p.cmd.Process.Signal(os.Interrupt)
	if code, out := p.wait(); code != exitInterrupted {
		t.Errorf("interrupted: exit %d, want %d\n%s", code, exitInterrupted, out)
	}
}

// sayWithin is the time within which a driver must report what blocks a crawl.
const sayWithin = 30 * time.Second

// tooLittleMemory lets the kernel kill a pod at its memory limit, and then raises the limit, as the
// driver advises.
func tooLittleMemory(t *testing.T, r *clusterRun, salt uint64) {
	c := r.crawl(t, clusterPlan{salt: salt, delay: clusterDelay, replace: []string{"resources: {", "resources: {fetch: {memory: 192MiB}, "}})
	p := c.run()
	waitUntil(t, "a task", 2*time.Minute, func() bool { return len(c.processes("task")) > 0 })
	c.squeeze(c.processes("task")[0])
	p.waitForText(t, "killed for using more memory than its limit of 192Mi: raise kubernetes.resources.fetch.memory", sayWithin)
	p.interrupt(t)
	c.interrupted = true // because the driver interrupts pods when it replaces their Job
	crawltest.Write(t, c.config, strings.ReplaceAll(c.text, "fetch: {memory: 192MiB}, ", ""))
	c.finish()
	c.check(r.chaosRun, c.bucket(), nil)
	for _, pod := range listObjects[corev1.Pod](t, c.namespace, "pods", "-l", "crawlbatch.io/stage=fetch,crawlbatch.io/round=0") {
		if m := pod.Spec.Containers[0].Resources.Limits.Memory().String(); m != "384Mi" {
			t.Errorf("pod %s has a limit of %s: the driver did not replace the Job", pod.Name, m)
		}
	}
}

// startWatched is start with the process's standard error on a terminal, as if a person watched.
func (c *chaos) startWatched(command string, args ...string) *process {
	c.t.Helper()
	person, terminal, err := pty.Open()
	if err == nil {
		err = pty.Setsize(person, &pty.Winsize{Rows: 50, Cols: 10_000})
	}
	if err != nil {
		c.t.Fatal(err)
	}
	cmd := exec.Command(program, append([]string{command, "--month", demo.Crawl, "--store", c.store}, args...)...)
	cmd.Env, cmd.Stderr = append(cmd.Environ(), "TERM=dumb"), terminal
	p := c.launch(cmd, command)
	const last = "the process has ended" // the reader stops here, because a terminal that is closed may lose what it holds
	read := make(chan struct{})
	go func() {
		defer close(read)
		for lines := bufio.NewScanner(person); lines.Scan() && lines.Text() != last; {
			fmt.Fprintln(p.said, lines.Text())
		}
	}()
	ended := p.ended
	p.ended = make(chan struct{})
	go func() {
		defer close(p.ended)
		<-ended
		fmt.Fprintln(terminal, last)
		<-read
		_, _ = terminal.Close(), person.Close()
	}()
	return p
}

// cannotStart makes several mistakes, one after the other, that keep pods from starting. The driver must
// report each of them. Then the test corrects the mistakes and crawls.
func cannotStart(t *testing.T, r *clusterRun, salt uint64) {
	c := r.crawl(t, clusterPlan{salt: salt, delay: clusterDelay})
	kubeconfig := func(server, token string) string {
		file := filepath.Join(t.TempDir(), "kubeconfig")
		crawltest.Write(t, file, fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: x, contexts: [{name: x, context: {cluster: c, user: u}}],
clusters: [{name: c, cluster: {server: "%s", insecure-skip-tls-verify: true}}], users: [{name: u, user: {token: "%s"}}]}`, server, token))
		return file
	}
	api := strings.TrimSpace(kubectl(t, "config", "view", "--minify", "-o", "jsonpath={.clusters[0].cluster.server}"))
	token := strings.TrimSpace(kubectl(t, "-n", c.namespace, "create", "token", "default"))
	with := func(old, new string) string {
		file := filepath.Join(t.TempDir(), "crawlbatch.yaml")
		text := strings.Replace(c.text, old, new, 1)
		if text == c.text {
			t.Fatalf("%q is not in the config", old)
		}
		crawltest.Write(t, file, text)
		return file
	}
	for _, m := range []struct {
		name  string
		flags []string
		says  []string
	}{
		{"no cluster", []string{"--kubeconfig", kubeconfig("https://"+r.listen+":1", token)}, []string{"no cluster answers: check --kubeconfig"}},
		{"no permission", []string{"--kubeconfig", kubeconfig(api, token)}, []string{"grant what k8s/manifests/rbac.yaml lists"}},
		{"not logged in", []string{"--kubeconfig", kubeconfig(api, "nonsense")}, []string{"log in to the cluster again"}},
		{"no such namespace", []string{"--namespace", "no-such-namespace"}, []string{"--namespace or kubernetes.namespace"}},
		{"no such image", []string{"--image", "registry.invalid/crawlbatch:none"}, []string{`the image "registry.invalid/crawlbatch:none" cannot be pulled`, "correct kubernetes.image"}},
		{"no such Secret", []string{"--config", with("[s3]", "[s4]")}, []string{`secret "s4" not found`, "kubernetes.env_from_secrets"}},
		{"no such service account", []string{"--config", with("kubernetes:\n", "kubernetes:\n  service_account: nobody\n")}, []string{"its service account is missing"}},
		{"no such priority class", []string{"--config", with("kubernetes:\n", "kubernetes:\n  priority_class: nonesuch\n")}, []string{"its priority class is missing"}},
	} {
		// Wait until the Jobs of the previous mistake are gone.
		waitUntil(t, "the end of earlier Jobs", 2*time.Minute, func() bool { return len(listObjects[batchv1.Job](t, c.namespace, "jobs")) == 0 })
		p := c.startWatched("run", append([]string{"--rounds", "2", "--executor", "kubernetes", "--config", c.config}, m.flags...)...)
		if p.outlives(sayWithin) {
			t.Errorf("%s: nothing within %s", m.name, sayWithin)
			_ = p.cmd.Process.Kill()
			kubectl(t, "-n", c.namespace, "delete", "jobs", "--all", "--wait=false")
		}
		code, out := p.wait()
		for _, text := range m.says {
			if !strings.Contains(out, text) {
				t.Errorf("%s: exit %d, it does not say %q:\n%s", m.name, code, text, out)
			}
		}
		if code == exitDone || code == exitInternal || code == exitPermanent {
			t.Errorf("%s: exit %d\n%s", m.name, code, out)
		}
	}

	p := c.start("run", "--rounds", "2", "--executor", "kubernetes", "--config", with("kubernetes:\n", "kubernetes:\n  node_selector: {no: such-node}\n"))
	p.waitForText(t, "fits no node", sayWithin)
	p.interrupt(t)

	kubectl(t, "-n", c.namespace, "create", "quota", "none", "--hard=pods=0")
	waitUntil(t, "the quota", time.Minute, func() bool {
		return strings.Contains(kubectl(t, "-n", c.namespace, "get", "quota", "none", "-o", "jsonpath={.status.hard}"), "pods")
	})
	p = c.run()
	p.waitForText(t, "the namespace's quota is reached", sayWithin)
	kubectl(t, "-n", c.namespace, "delete", "quota", "none")
	if code, out := p.wait(); code != 0 {
		t.Errorf("run: exit %d\n%s", code, out)
	}
	c.check(r.chaosRun, c.bucket(), nil)
}
