//go:build lab

package lab

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/cmd/crawltest"
	"crawlbatch.io/crawlbatch/cmd/demo"
	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/s3store"
	"crawlbatch.io/crawlbatch/formats/table/tabletest"
	"crawlbatch.io/crawlbatch/stages/simweb"
	"crawlbatch.io/crawlbatch/stages/simweb/truth"
)

// These environment variables configure the chaos suite.
const (
	chaosSeed  = "CRAWLBATCH_CHAOS_SEED"
	chaosKills = "CRAWLBATCH_CHAOS_KILLS" // number of kills in each scenario that kills; default 100
)

// These constants set the pace of the suite's crawls. The delays are so long that a restarted
// process that ignores a delay leaves a clearly shorter gap in the server's log.
const (
	chaosDelay = 400 * time.Millisecond
	chaosSlack = 240 * time.Millisecond // largest accepted difference of a gap to the delay; to start a process takes longer
	chaosEvery = time.Second
	chaosLease = 7 * time.Second // least lease that the time-outs of chaosConfig allow
)

// chaosConfig is the config of the suite's crawls. The web answers every request. The time-outs are
// long, so that a busy machine does not add requests that the truth lacks.
const chaosConfig = `
politeness: {delay: %s}
fetch:
  sitemaps: robots
  slots: 20
  max_body: 256KiB
  timeout: {connect: 3s, first_byte: 3s, total: 3s}
  checkpoint: {every: %s, lease: %s}
  pauses: {rate_limited: 100ms, server_error: 100ms, timeout: 100ms, dns: 100ms, breaker: 200ms}
plan: {partition_urls: 100}
`

// chaos is one crawl with its web. It also records each blow, which is a disturbance of the crawl by the
// suite.
type chaos struct {
	t      *testing.T
	random *rand.Rand
	web    *simweb.Web
	addr   string                // address of the web's server
	stop   func() []simweb.Entry // stops the web's server and returns its log
	store  string
	// objects holds the store's objects. It is nil if the suite cannot read the store at any time.
	objects store.Bucket
	env     []string // environment that the crawl's processes get in addition to this process's environment
	flags   []string // flags of `crawlbatch run`
	pace    truth.Pace

	mu          sync.Mutex
	blows       []blow
	outputs     []string // files with the output of the crawl's processes
	killed      int
	interrupted bool // true: the suite told some process by a signal to end
}

// blow is one disturbance of a process, between the times from and to. At from, the process was still
// undisturbed.
type blow struct {
	from, to time.Time
	hosts    map[string]bool // the blow explains repeated requests to these hosts; nil: to all hosts
	// committed holds the planned URLs whose outcomes the checkpoints listed after the blow. The blow
	// explains no second request for such a URL. It is nil if the suite could not read the checkpoints.
	committed map[string]bool
}

// chaosRun holds the facts that all crawls of one run of the suite share.
type chaosRun struct {
	listen   string // the web's address
	seed     uint64
	kills    int
	baseline store.Bucket   // store of the undisturbed crawl
	repeated map[string]int // number of requests for each page, by host and path, that even the undisturbed crawl requested more than once
}

func newChaosRun(t *testing.T) *chaosRun {
	return startChaosRun(t, "127.0.0.1")
}

// startChaosRun makes the undisturbed crawl that the other crawls are compared with.
func startChaosRun(t *testing.T, listen string) *chaosRun {
	r := &chaosRun{listen: listen, seed: uint64(time.Now().UnixNano()) % 1_000_000, kills: 100, repeated: map[string]int{}}
	for name, set := range map[string]func(uint64){
		chaosSeed:  func(n uint64) { r.seed = n },
		chaosKills: func(n uint64) { r.kills = int(n) },
	} {
		if text := os.Getenv(name); text != "" {
			n, err := strconv.ParseUint(text, 10, 32)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			set(n)
		}
	}
	t.Logf("%s=%d %s=%d", chaosSeed, r.seed, chaosKills, r.kills)
	c := r.crawl(t, filepath.Join(t.TempDir(), "baseline"), 0, 20*time.Millisecond)
	c.finish()
	asked := map[string]int{}
	for _, e := range c.stop() {
		if asked[e.Host+e.Path]++; asked[e.Host+e.Path] > 1 {
			r.repeated[e.Host+e.Path] = asked[e.Host+e.Path]
		}
	}
	r.baseline = crawltest.OpenDir(t, c.store)
	return r
}

// crawl plans a crawl of a new web into a store.
func (r *chaosRun) crawl(t *testing.T, store string, salt uint64, delay time.Duration, env ...string) *chaos {
	t.Helper()
	return r.plan(t, chaosPlan{store: store, salt: salt, web: chaosWeb(t), config: fmt.Sprintf(chaosConfig, delay, chaosEvery, chaosLease), env: env})
}

// chaosPlan describes a crawl.
type chaosPlan struct {
	store  string
	salt   uint64 // varies the random numbers of the crawl
	web    *simweb.Web
	config string
	env    []string
}

func (r *chaosRun) plan(t *testing.T, p chaosPlan) *chaos {
	t.Helper()
	c := &chaos{t: t, random: rand.New(rand.NewPCG(r.seed, p.salt)), web: p.web, store: p.store, env: p.env,
		pace: truth.Pace{Delay: chaosDelay, Slack: chaosSlack}}
	if !strings.HasPrefix(p.store, s3store.Scheme) {
		c.objects = crawltest.OpenDir(t, p.store)
	}
	c.addr = c.serve(net.JoinHostPort(r.listen, "0"))
	dir := t.TempDir()
	seeds, conf := filepath.Join(dir, "urls.txt"), filepath.Join(dir, "c.yaml")
	if err := p.web.WriteSeeds(t.Context(), seeds, true); err != nil {
		t.Fatal(err)
	}
	crawltest.Write(t, conf, p.config)
	if code, out := c.start("plan", "--source", seeds, "--config", conf, "--connect-to", "::"+c.addr).wait(); code != 0 {
		t.Fatalf("plan: exit %d\n%s", code, out)
	}
	return c
}

// chaosWeb returns a web that has the faults of crawltest.WebConfig but fewer pages.
func chaosWeb(t *testing.T) *simweb.Web {
	t.Helper()
	return webOf(t, 20, 40)
}

// webOf returns a web with the faults of crawltest.WebConfig and the given size.
func webOf(t *testing.T, hosts, pages int) *simweb.Web {
	t.Helper()
	c := crawltest.WebConfig()
	c.Hosts, c.PagesPerHost = hosts, pages
	return newWeb(t, c)
}

// faultlessWeb is like webOf, but the pages have no faults.
func faultlessWeb(t *testing.T, hosts, pages int) *simweb.Web {
	t.Helper()
	c := crawltest.WebConfig()
	c.Hosts, c.PagesPerHost, c.FaultShare = hosts, pages, 0
	return newWeb(t, c)
}

func newWeb(t *testing.T, c simweb.Config) *simweb.Web {
	t.Helper()
	w, err := simweb.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// serve starts the web's server on an address.
func (c *chaos) serve(listen string) (addr string) {
	t := c.t
	logFile := filepath.Join(t.TempDir(), "log.jsonl")
	server := exec.Command(program, "simweb", "--listen", listen,
		"--hosts", strconv.Itoa(c.web.Config().Hosts), "--pages", strconv.Itoa(c.web.Config().PagesPerHost),
		"--faults", fmt.Sprint(c.web.Config().FaultShare), "--fault-classes", "quick,retried", "--crawl-delay", "90ms", "--retry-after", "0s", "--log", logFile)
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	// The log says when requests came, so busy crawls must not delay the server. Only root may
	// raise the server's priority.
	_ = syscall.Setpriority(syscall.PRIO_PROCESS, server.Process.Pid, -15)
	ended := sync.OnceFunc(func() {
		_ = server.Process.Signal(os.Interrupt)
		_ = server.Wait()
	})
	t.Cleanup(ended)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	var hosts int
	if _, err := fmt.Sscanf(line, "serving %d hosts at %s", &hosts, &addr); err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	c.stop = func() []simweb.Entry {
		ended()
		return crawltest.RequestLog(t, logFile)
	}
	return strings.TrimSuffix(addr, ";")
}

// process is a crawlbatch process of a crawl.
type process struct {
	cmd   *exec.Cmd
	said  *os.File
	ended chan struct{}
}

// start runs a command on the crawl.
func (c *chaos) start(command string, args ...string) *process {
	c.t.Helper()
	cmd := exec.Command(program, append([]string{command, "--month", demo.Crawl, "--store", c.store}, args...)...)
	return c.launch(cmd, command)
}

// launch starts a process of the crawl.
func (c *chaos) launch(cmd *exec.Cmd, command string) *process {
	c.t.Helper()
	said, err := os.CreateTemp(c.t.TempDir(), command)
	if err != nil {
		c.t.Fatal(err)
	}
	cmd.Env = append(cmd.Environ(), c.env...)
	cmd.Stdout = said
	if cmd.Stderr == nil {
		cmd.Stderr = said
	}
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.mu.Lock()
	c.outputs = append(c.outputs, said.Name())
	c.mu.Unlock()
	p := &process{cmd, said, make(chan struct{})}
	go func() {
		defer close(p.ended)
		_ = cmd.Wait() // process.wait returns the exit code
	}()
	c.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-p.ended
		if _, out := p.wait(); c.t.Failed() && command == "run" {
			c.t.Logf("a run said at its end:\n%s", out)
		}
		_ = said.Close()
	})
	return p
}

// run continues the crawl.
func (c *chaos) run() *process {
	return c.start("run", append([]string{"--rounds", "2"}, c.flags...)...)
}

// wait returns the exit code and the end of the process's output.
func (p *process) wait() (int, string) {
	<-p.ended
	text, _ := os.ReadFile(p.said.Name())
	return p.cmd.ProcessState.ExitCode(), string(text[max(0, len(text)-4000):])
}

// outlives waits until the process ends, but at most for the duration d. It reports whether the process
// still runs.
func (p *process) outlives(d time.Duration) bool {
	select {
	case <-p.ended:
		return false
	case <-time.After(d):
		return true
	}
}

// kill ends a process with SIGKILL.
func (c *chaos) kill(p *process) {
	b := blow{from: time.Now()}
	_ = p.cmd.Process.Signal(syscall.SIGKILL)
	<-p.ended
	b.to = time.Now()
	b.committed = c.committedURLs()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.blows = append(c.blows, b)
	c.killed++
}

// committedURLs returns the planned URLs whose outcomes the checkpoints of the crawl list.
func (c *chaos) committedURLs() map[string]bool {
	if c.objects == nil {
		return nil
	}
	urls := map[string]bool{}
	for o, err := range c.objects.List(c.t.Context(), layout.CrawlDir(demo.Crawl)) {
		if err != nil {
			c.t.Error(err)
			return urls
		}
		if path.Base(o.Key) != "checkpoint.json" {
			continue
		}
		var d manifest.Checkpoint
		if _, _, err := manifest.Load(c.t.Context(), c.objects, o.Key, &d); err != nil {
			c.t.Error(err)
			return urls
		}
		c.addCommitted(urls, o.Key, &d)
	}
	return urls
}

// addCommitted adds the planned URLs whose outcomes a checkpoint lists. It returns all planned URLs
// of the checkpoint's partition.
func (c *chaos) addCommitted(urls map[string]bool, key string, d *manifest.Checkpoint) (planned []schema.PlannedURL) {
	var round int
	if _, err := fmt.Sscanf(strings.TrimPrefix(key, layout.CrawlDir(demo.Crawl)), "round=%d/", &round); err != nil {
		c.t.Errorf("%s: %v", key, err)
		return nil
	}
	rows, err := d.RecordedRows()
	if err != nil {
		c.t.Errorf("%s: %v", key, err)
		return nil
	}
	planned = tabletest.Read[schema.PlannedURL](c.t, c.objects, layout.PlanPart(demo.Crawl, round, d.Plan, d.Partition))
	for _, n := range rows.ToArray() {
		urls[planned[n].URL] = true
	}
	return planned
}

// randomDuration draws a random duration between least and most.
func (c *chaos) randomDuration(least, most time.Duration) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return least + time.Duration(c.random.Int64N(int64(most-least)))
}

// finish runs the crawl to its end.
func (c *chaos) finish() {
	c.t.Helper()
	if code, out := c.run().wait(); code != 0 {
		c.t.Fatalf("run: exit %d\n%s", code, out)
	}
}
