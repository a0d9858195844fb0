//go:build lab

package lab

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/yaml"

	"crawlbatch.io/crawlbatch/cmd/crawltest"
)

const monitoringDir = "../../k8s/manifests/components/monitoring"

// TestMonitoringRules lets promtool check the rules, and compute what each of them yields.
func TestMonitoringRules(t *testing.T) {
	needPrometheus(t)
	dir := t.TempDir()
	for _, file := range []string{monitoringDir + "/rules.yaml", "../../k8s/testdata/monitoring/rules_test.yaml"} {
		crawltest.Write(t, filepath.Join(dir, filepath.Base(file)), readText(t, file))
	}
	for _, args := range [][]string{{"check", "rules", "rules.yaml"}, {"test", "rules", "rules_test.yaml"}} {
		cmd := exec.Command("promtool", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

func needPrometheus(t *testing.T) {
	t.Helper()
	for _, name := range []string{"prometheus", "promtool"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Fatalf("%v: as root: apt-get install prometheus", err)
		}
	}
}

func readText(t *testing.T, file string) string {
	t.Helper()
	body, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// inSeconds scales the time of rules, so that a test lasts for seconds: a minute becomes a second,
// an hour a minute, and a day 24 minutes.
func inSeconds(rules string) string {
	scaled := map[string]string{"m": "s", "h": "m"}
	return regexp.MustCompile(`(\[|for: |interval: )(\d+)([mhd])`).ReplaceAllStringFunc(rules, func(duration string) string {
		unit := duration[len(duration)-1:]
		if unit != "d" {
			return duration[:len(duration)-1] + scaled[unit]
		}
		i := strings.IndexAny(duration, "0123456789")
		days, _ := strconv.Atoi(duration[i : len(duration)-1]) // the expression matched digits
		return fmt.Sprintf("%s%dm", duration[:i], 24*days)
	})
}

// prometheus is a running Prometheus.
type prometheus struct {
	t    *testing.T
	addr string
}

// startPrometheus starts a Prometheus that scrapes target. Its rules count a minute as a second.
func startPrometheus(t *testing.T, target string) *prometheus {
	t.Helper()
	dir := t.TempDir()
	crawltest.Write(t, filepath.Join(dir, "rules.yaml"), inSeconds(readText(t, monitoringDir+"/rules.yaml")))
	crawltest.Write(t, filepath.Join(dir, "prometheus.yml"), fmt.Sprintf(`
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [rules.yaml]
scrape_configs: [{job_name: crawl, static_configs: [{targets: ["%s"]}]}]
`, target))
	p := &prometheus{t, "127.0.0.1:" + crawltest.FreePort(t)}
	startProcess(t, exec.Command("prometheus", "--config.file="+filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+p.addr, "--log.level=warn"))
	eventually(t, "Prometheus is ready", func() bool {
		resp, err := http.Get("http://" + p.addr + "/-/ready")
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
	return p
}

// startProcess starts a program, and stops it at the end of the test. The returned channel gets the
// result of the program.
func startProcess(t *testing.T, cmd *exec.Cmd) (ended <-chan error) {
	t.Helper()
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	result, gone := make(chan error, 1), make(chan struct{})
	go func() { defer close(gone); result <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGCONT)
		_ = cmd.Process.Signal(os.Interrupt)
		<-gone
		if t.Failed() {
			t.Logf("%s said:\n%s", filepath.Base(cmd.Path), said.String())
		}
	})
	return result
}

// eventually waits for at most 90 s until the condition holds.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(90 * time.Second); !condition(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within 90 s: %s", what)
		}
	}
}

// ask calls Prometheus's API.
func (p *prometheus) ask(path string, query url.Values, data any) {
	p.t.Helper()
	resp, err := http.Get("http://" + p.addr + "/api/v1/" + path + "?" + query.Encode())
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	answer := struct {
		Error string `json:"error"`
		Data  any    `json:"data"`
	}{Data: data}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || answer.Error != "" {
		p.t.Fatalf("%s %v: %v, %s", path, query, err, answer.Error)
	}
}

// series returns the number of series that a query returns now.
func (p *prometheus) series(query string) int {
	p.t.Helper()
	var data struct {
		Result []any `json:"result"`
	}
	p.ask("query", url.Values{"query": {query}}, &data)
	return len(data.Result)
}

// seriesSince returns the number of series that a query returned at any time since began.
func (p *prometheus) seriesSince(began time.Time, query string) int {
	p.t.Helper()
	var data struct {
		Result []any `json:"result"`
	}
	p.ask("query_range", url.Values{
		"query": {query}, "step": {"1s"}, "start": {fmt.Sprint(began.Unix())}, "end": {fmt.Sprint(time.Now().Unix())},
	}, &data)
	return len(data.Result)
}

// checkRules fails the test if a rule could not be evaluated, or a recording rule has recorded
// nothing.
func (p *prometheus) checkRules(began time.Time) {
	p.t.Helper()
	var data struct {
		Groups []struct {
			Rules []struct{ Name, Type, Health, LastError string }
		}
	}
	p.ask("rules", nil, &data)
	recorded := 0
	for _, g := range data.Groups {
		for _, r := range g.Rules {
			if r.Health != "ok" {
				p.t.Errorf("rule %s is %s: %s", r.Name, r.Health, r.LastError)
			}
			if r.Type != "recording" {
				continue
			}
			if recorded++; p.seriesSince(began, r.Name) == 0 {
				p.t.Errorf("rule %s recorded nothing", r.Name)
			}
		}
	}
	if recorded < 30 {
		p.t.Errorf("%d recording rules only", recorded)
	}
}

// checkPanels fails the test if a query of a dashboard returned no series since began.
func (p *prometheus) checkPanels(began time.Time) {
	p.t.Helper()
	files, err := filepath.Glob(monitoringDir + "/dashboards/*.json")
	if err != nil || len(files) != 3 {
		p.t.Fatalf("dashboards %v, %v", files, err)
	}
	queries := 0
	for _, file := range files {
		var dashboard struct {
			Panels []struct {
				Title   string
				Targets []struct{ Expr string }
			}
		}
		if err := json.Unmarshal([]byte(readText(p.t, file)), &dashboard); err != nil {
			p.t.Fatal(err)
		}
		for _, panel := range dashboard.Panels {
			for _, target := range panel.Targets {
				query := strings.NewReplacer("$job", "crawl", "$__rate_interval", "5s").Replace(target.Expr)
				if queries++; p.seriesSince(began, query) == 0 {
					p.t.Errorf("%s, panel %q: no series for %s", filepath.Base(file), panel.Title, query)
				}
			}
		}
	}
	p.t.Logf("%d queries of %d dashboards returned series", queries, len(files))
}

// TestMonitoringOfARunningCrawl runs a crawl of the synthetic web under a real Prometheus. While the
// web is paused, the alert for a stalled crawl fires; it ends when the web continues.
func TestMonitoringOfARunningCrawl(t *testing.T) {
	needPrometheus(t)
	began := time.Now()
	dir := t.TempDir()
	conf, seeds, web := filepath.Join(dir, "c.yaml"), filepath.Join(dir, "urls.txt"), "127.0.0.1:"+crawltest.FreePort(t)
	simweb := exec.Command(program, "simweb", "--listen", web, "--seeds", seeds, "--hosts", "20", "--pages", "70",
		"--faults", "0.2", "--fault-classes", "quick", "--crawl-delay", "0s", "--retry-after", "0s")
	startProcess(t, simweb)
	eventually(t, "the web has written its seeds", func() bool {
		info, err := os.Stat(seeds)
		return err == nil && info.Size() > 0
	})
	crawltest.Write(t, conf, `
politeness: {delay: 300ms, slow_factor: 0}
fetch: {pauses: {rate_limited: 500ms, timeout: 500ms, server_error: 500ms, breaker: 2s}, checkpoint: {every: 1s, lease: 70s}}
plan: {scope: {exclude: ["*.d00017.test/*"]}} # a host whose robots.txt answers 503, which takes long
`)
	month := []string{"--month", "2026-11", "--store", filepath.Join(dir, "store"), "--config", conf, "--connect-to", "::" + web}
	mustRun(t, append([]string{"plan", "--source", seeds}, month...)...)
	target := "127.0.0.1:" + crawltest.FreePort(t)
	p := startPrometheus(t, target)
	ended := startProcess(t, exec.Command(program, append([]string{"run", "--rounds", "2", "--metrics-listen", target, "--metrics-top-hosts", "20"}, month...)...))

	const stalled = `ALERTS{alertname="CrawlbatchStalled", alertstate="firing"}`
	eventually(t, "the second round fetches, and no alert says that it stands still", func() bool {
		return p.series("crawlbatch:urls_processed:rate5m > 0 and on (job) crawler_sealed_rounds == 1") > 0 && p.series(stalled) == 0
	})
	resp, err := http.Get("http://" + target + "/readyz")
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("readyz of a crawl that fetches: %v, %v", resp, err)
	}
	resp.Body.Close()
	if err := simweb.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the alert fires while the web is paused", func() bool { return p.series(stalled) > 0 })
	if err := simweb.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	eventually(t, "URLs are processed after the web continues, and the alert ends", func() bool {
		return p.series("crawlbatch:urls_processed:rate5m > 0") > 0 && p.series(stalled) == 0
	})
	select {
	case err := <-ended:
		if err != nil {
			t.Fatalf("run: %v", err)
		}
	case <-time.After(2 * time.Minute):
		t.Fatal("the crawl still runs 2 minutes after the web continued")
	}
	p.checkRules(began)
	p.checkPanels(began)
}

// TestTheProbesCommandsCrawlAndVerify runs the containers of the probe's CronJob, with their
// arguments and config, as processes of this machine.
func TestTheProbesCommandsCrawlAndVerify(t *testing.T) {
	var cron batchv1.CronJob
	if err := yaml.UnmarshalStrict([]byte(readText(t, monitoringDir+"/probe.yaml")), &cron); err != nil {
		t.Fatal(err)
	}
	dir, port := t.TempDir(), crawltest.FreePort(t)
	for _, name := range []string{"urls.txt", "crawlbatch.yaml"} {
		crawltest.Write(t, filepath.Join(dir, name), strings.ReplaceAll(readText(t, monitoringDir+"/probe/"+name), ":8080", ":"+port))
	}
	pod := cron.Spec.JobTemplate.Spec.Template.Spec
	here := strings.NewReplacer("$(PROBE_STORE)", dir, "$(JOB_NAME)", "job", "/etc/crawlbatch", dir, "=:8080", "=127.0.0.1:"+port)
	var ran []string
	for _, c := range append(pod.InitContainers, pod.Containers...) {
		var args []string
		for _, arg := range c.Args {
			args = append(args, here.Replace(arg))
		}
		ran = append(ran, c.Name)
		if c.RestartPolicy != nil { // a sidecar
			startProcess(t, exec.Command("crawlbatch", args...))
			eventually(t, "the synthetic web answers", func() bool {
				resp, err := http.Get("http://127.0.0.1:" + port)
				if err == nil {
					resp.Body.Close()
				}
				return err == nil
			})
			continue
		}
		if out, err := exec.Command("crawlbatch", args...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", c.Name, err, out)
		}
	}
	if got := strings.Join(ran, " "); got != "simweb plan run verify" {
		t.Errorf("containers %s", got)
	}
	sealed, err := crawltest.SealedFiles(t.Context(), crawltest.OpenDir(t, filepath.Join(dir, "job")), "2000-01")
	if err != nil || len(sealed) != 2 {
		t.Fatalf("%d rounds are sealed, %v", len(sealed), err)
	}
	if pages := crawltest.RowsOf[struct {
		URL string `parquet:"url"`
	}](t, crawltest.OpenDir(t, filepath.Join(dir, "job")), sealed, "pages"); len(pages) < 10 {
		t.Errorf("%d pages", len(pages))
	}
}
