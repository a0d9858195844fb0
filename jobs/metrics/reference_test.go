package metrics_test

import (
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/jobs/metrics"
	"crawlbatch.io/crawlbatch/stages"
)

var update = flag.Bool("update", false, "rewrite the generated part of jobs/README.md")

// The README contains the generated reference of all series.
func TestReadmeDocumentsEverySeries(t *testing.T) {
	const file, begin, end = "../README.md", "<!-- generated: metrics -->\n", "<!-- end -->\n"
	readme, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(readme), begin)
	_, tail, found := strings.Cut(rest, end)
	if !ok || !found {
		t.Fatalf("%s has no part between %q and %q", file, begin, end)
	}
	want := head + begin + reference(t) + end + tail
	if want == string(readme) {
		return
	}
	if !*update {
		t.Fatalf("%s is not as generated: run go test ./jobs/metrics -run Documents -update", file)
	}
	if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

// reference returns a table of the series that the server serves.
func reference(t *testing.T) string {
	t.Helper()
	m := metrics.New("test", stages.SystemClock{})
	// These series appear with the first event only.
	m.Progress(stages.NoProgress{}).Add(stages.CountAnswers+"200", 1)
	m.TopHosts(1)
	m.Watcher(nil).Watch(stages.Task{}, func() stages.Activity {
		return stages.Activity{Closes: time.Unix(1, 0), Slowest: []stages.SlowHost{{Host: "a.test"}}}
	})
	s := listen(t, m)
	defer s.Close()
	resp, err := http.Get("http://" + s.Addr().String() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	table.WriteString("| series | type | meaning |\n|---|---|---|\n")
	for _, series := range regexp.MustCompile(`(?m)^# HELP (crawl\S+) (.*)\n# TYPE \S+ (.*)\n(.*)`).FindAllStringSubmatch(string(body), -1) {
		name, meaning, kind, sample := series[1], series[2], series[3], series[4]
		if kind != "histogram" { // the samples of histograms have a label for the bucket
			if _, labels, ok := strings.Cut(sample, "{"); ok {
				name += "{" + strings.Join(regexp.MustCompile(`[a-z_]+(=")`).FindAllString(labels, -1), ", ") + "}"
				name = strings.ReplaceAll(name, `="`, "")
			}
		}
		fmt.Fprintf(&table, "| `%s` | %s | %s |\n", name, kind, meaning)
	}
	return table.String()
}
