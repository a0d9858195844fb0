//go:build lab

package lab

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/cmd/crawltest"
	"crawlbatch.io/crawlbatch/formats/schema"
)

// limitedWeb is a web whose hosts answer at one address.
type limitedWeb struct {
	handler http.HandlerFunc
	hosts   int
	pages   int // of each host
	split   int // plan.partition_urls
}

// plan serves the web until the test ends, and plans all its pages in a new store.
func (w limitedWeb) plan(t *testing.T) (store string) {
	t.Helper()
	ln := crawltest.Listen(t)
	server := &http.Server{Handler: w.handler}
	go server.Serve(ln) //nolint:errcheck // it ends with the test
	t.Cleanup(func() { server.Close() })
	dir := t.TempDir()
	var urls strings.Builder
	for host := range w.hosts {
		for page := range w.pages {
			fmt.Fprintf(&urls, "http://site%d.test/page%d\n", host, page)
		}
	}
	source, conf, store := filepath.Join(dir, "urls.txt"), filepath.Join(dir, "c.yaml"), filepath.Join(dir, "store")
	crawltest.Write(t, source, urls.String())
	crawltest.Write(t, conf, fmt.Sprintf("user_agent: limitbot/1.0 (+https://example.org/bot)\npoliteness: {delay: 20ms}\nplan: {partition_urls: %d}\nfetch: {connect_to: [\"::%s\"]}\n", w.split, ln.Addr()))
	mustRun(t, "plan", "--source", source, "--config", conf, "--month", "2026-11", "--store", store)
	return store
}

// runLimited crawls one round of a copy of a planned store in a shell that sets the limits first. It returns how each URL
// ended, and what the program said.
func runLimited(t *testing.T, planned, limits string) (outcomes map[string]string, said string) {
	t.Helper()
	store := filepath.Join(t.TempDir(), "store")
	if err := os.CopyFS(store, os.DirFS(planned)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", limits+` && exec "$0" "$@"`, program, "run", "--rounds", "1", "--month", "2026-11", "--store", store)
	var out bytes.Buffer
	cmd.Stdout = &out
	began := time.Now()
	peak, cpu, err := crawltest.PeakOf(cmd)
	if err != nil {
		t.Fatalf("%s: %v\n%s", limits, err, out.Bytes())
	}
	b := crawltest.OpenDir(t, store)
	sealed, err := crawltest.SealedFiles(t.Context(), b, "2026-11")
	if err != nil {
		t.Fatal(err)
	}
	outcomes = map[string]string{}
	for _, f := range crawltest.RowsOf[schema.Fetch](t, b, sealed, "fetches") {
		outcomes[f.URL] = fmt.Sprintf("%s %d, attempts %d, %s", f.Outcome, f.HTTPStatus, f.Attempts, f.Error)
	}
	t.Logf("%s: %d URLs in %v, peak memory %d MiB, CPU %v", limits, len(outcomes), time.Since(began).Round(time.Second/10), peak>>20, cpu.Round(time.Second/10))
	return outcomes, out.String()
}

// With few open files, fewer fetches run at the same time, and every URL ends as without that limit.
func TestLimitsOfOpenFiles(t *testing.T) {
	const hosts, pages = 600, 5
	web := limitedWeb{hosts: hosts, pages: pages, split: hosts * pages / 8, handler: func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			http.NotFound(w, r)
			return
		}
		// Each host is slow, so that many connections are open at the same time.
		select {
		case <-time.After(200 * time.Millisecond):
		case <-r.Context().Done():
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, "<title>%s %s</title><p>words of a page", r.Host, r.URL.Path)
	}}
	store := web.plan(t)
	want, _ := runLimited(t, store, "true")
	if len(want) != hosts*pages {
		t.Fatalf("%d outcomes of %d URLs", len(want), hosts*pages)
	}
	for _, limits := range []string{"ulimit -n 256", "ulimit -Sn 64 && ulimit -Hn 1024"} {
		if got, _ := runLimited(t, store, limits); !maps.Equal(got, want) {
			t.Errorf("%s: %d URLs, not all as without limits", limits, len(got))
			shown := 0
			for url, how := range got {
				if how != want[url] && shown < 5 {
					t.Errorf("%s: %s, not %s", url, how, want[url])
					shown++
				}
			}
		}
	}
	var errs bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `ulimit -n 64 && exec "$0" "$@"`, program, "run", "--month", "2026-11", "--store", store)
	cmd.Stderr = &errs
	if _ = cmd.Run(); cmd.ProcessState.ExitCode() != exitUsage || !strings.Contains(errs.String(), "at least 176 are needed") {
		t.Errorf("with 64 open files: exit %d\n%s", cmd.ProcessState.ExitCode(), errs.Bytes())
	}
}

// 360 pages of 5 MB are crawled in cgroups with little memory.
func TestLimitsOfMemory(t *testing.T) {
	const hosts, pages = 120, 3
	var page bytes.Buffer
	page.WriteString("<!doctype html><title>a large page</title>")
	for i := 0; page.Len() < 5<<20-300; i++ {
		fmt.Fprintf(&page, "<p>paragraph %d", i)
		for j := range 30 {
			fmt.Fprintf(&page, " w%x", (i*31+j*17)*2654435761%(1<<20))
		}
		fmt.Fprintf(&page, " <a href=/x%d>link %d</a>\n", i%500, i)
	}
	web := limitedWeb{hosts: hosts, pages: pages, split: hosts * pages / 8, handler: func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, "<!-- %s %s -->", r.Host, r.URL.Path)
		w.Write(page.Bytes()) //nolint:errcheck // the client may be gone
	}}
	store := web.plan(t)
	for _, c := range []struct {
		size  int64
		procs string // as on a machine with more CPUs than this one; "" for those that it has
	}{{512 << 20, ""}, {512 << 20, "64"}, {1 << 30, ""}} {
		size := c.size
		group := newCgroup(t, size)
		got, _ := runLimited(t, store, fmt.Sprintf("export GOMAXPROCS=%s && echo $$ >%s/cgroup.procs", c.procs, group))
		ok := 0
		for _, how := range got {
			if strings.HasPrefix(how, "ok 200, attempts 1,") {
				ok++
			}
		}
		if ok != hosts*pages {
			t.Errorf("%d MiB: %d of %d URLs are ok at the first attempt", size>>20, ok, hosts*pages)
		}
	}
	group := newCgroup(t, 200<<20)
	var errs bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `echo $$ >"$0"/cgroup.procs && exec "$@"`, group, program, "run", "--month", "2026-11", "--store", store)
	cmd.Stderr = &errs
	if _ = cmd.Run(); cmd.ProcessState.ExitCode() != exitUsage || !strings.Contains(errs.String(), "the cgroup allows 200 MiB of memory, but at least") {
		t.Errorf("in 200 MiB: exit %d\n%s", cmd.ProcessState.ExitCode(), errs.Bytes())
	}
}

// newCgroup makes a cgroup, of version 1 or 2, below that of the test, and removes it at the end of the test.
func newCgroup(t *testing.T, memory int64) (dir string) {
	t.Helper()
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Skip(err)
	}
	var limit string
	for line := range strings.Lines(string(own)) {
		if _, path, ok := strings.Cut(strings.TrimSpace(line), ":memory:"); ok {
			dir, limit = filepath.Join("/sys/fs/cgroup/memory", path), "memory.limit_in_bytes"
			break
		} else if path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			dir, limit = filepath.Join("/sys/fs/cgroup", path), "memory.max"
		}
	}
	if dir, err = os.MkdirTemp(dir, "crawlbatch-lab-"); err != nil {
		t.Skipf("a cgroup cannot be made (run this as root): %v", err)
	}
	t.Cleanup(func() {
		if err := os.Remove(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.WriteFile(filepath.Join(dir, limit), []byte(strconv.FormatInt(memory, 10)), 0o644); err != nil {
		t.Skipf("the memory of a cgroup cannot be limited here: %v", err)
	}
	return dir
}
