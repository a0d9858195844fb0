package worker_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/jobs"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/worker"
	"crawlbatch.io/crawlbatch/planner/source"
	"crawlbatch.io/crawlbatch/stages"
)

// A network that is down suspends every host of a partition.
func TestHostsThatFailDoNotFloodTheLog(t *testing.T) {
	const hosts, pages = 40, 12
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			http.NotFound(w, r)
			return
		}
		w.WriteHeader(http.StatusInternalServerError)
	}))
	defer server.Close()
	var urls strings.Builder
	for i := range hosts * pages {
		fmt.Fprintf(&urls, "http://h%d.example.org/%d\n", i%hosts, i)
	}
	file := filepath.Join(t.TempDir(), "urls.txt")
	if err := os.WriteFile(file, []byte(urls.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	list, err := source.Files(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	b, err := dirstore.Open(filepath.Join(t.TempDir(), "store"), dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	cfg, pause := config.Default(), config.Duration(time.Millisecond)
	cfg.Politeness.Delay = pause
	cfg.Fetch.Pauses = config.Pauses{RateLimited: pause, Timeout: pause, ServerError: pause, DNS: pause, Breaker: pause}
	cfg.Fetch.ConnectTo = []string{"::" + strings.TrimPrefix(server.URL, "http://")}
	var log bytes.Buffer
	r := worker.Runner{
		Bucket: b, Config: cfg, Version: "test", Scratch: t.TempDir(), Clock: stages.SystemClock{}, Progress: stages.NoProgress{},
		Log: slog.New(slog.NewTextHandler(&log, nil)),
	}
	if _, _, err := jobs.Plan(t.Context(), jobs.PlanRequest{
		Bucket: b, Crawl: "2026-11", Sources: []source.Source{list}, Config: cfg, Clock: r.Clock, Version: "test", Scratch: t.TempDir(), Lookup: os.LookupEnv,
	}); err != nil {
		t.Fatal(err)
	}
	if err := r.Run(t.Context(), stages.Task{Stage: stages.Fetch, Crawl: "2026-11"}); err != nil {
		t.Fatal(err)
	}
	lines := regexp.MustCompile(`(?m)^.*msg="host suspended.*$`).FindAllString(log.String(), -1)
	if n := len(lines); n != 21 || !strings.Contains(lines[0], "host=h") || !strings.Contains(lines[0], "task=fetch@2026-11.0:0") || !strings.Contains(lines[n-1], fmt.Sprint("more=", hosts-20)) {
		t.Errorf("%d lines:\n%s", n, log.String())
	}
}
