package k8s

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// dashboard is the part of Grafana's JSON model that our dashboards use. The model is decoded strictly,
// because Grafana ignores a field that it does not know, such as one with a typing error.
type dashboard struct {
	UID           string                        `json:"uid"`
	Title         string                        `json:"title"`
	Tags          []string                      `json:"tags"`
	SchemaVersion int                           `json:"schemaVersion"`
	Version       int                           `json:"version"`
	Editable      bool                          `json:"editable"`
	Refresh       string                        `json:"refresh"`
	Time          struct{ From, To string }     `json:"time"`
	Links         []map[string]any              `json:"links"`
	Templating    struct{ List []dashboardVar } `json:"templating"`
	Panels        []panel                       `json:"panels"`
}

// dashboardVar is a variable that the reader of a dashboard chooses.
type dashboardVar struct {
	Name, Label, Type, Query, AllValue string
	Datasource                         *datasource
	IncludeAll, Multi                  bool
	Current                            struct{ Text, Value string }
	Refresh                            int
}

// datasource names where a panel or a variable gets its series.
type datasource struct{ Type, UID string }

type panel struct {
	ID          int                      `json:"id"`
	Type        string                   `json:"type"`
	Title       string                   `json:"title"`
	Description string                   `json:"description"`
	GridPos     struct{ X, Y, W, H int } `json:"gridPos"`
	Collapsed   bool                     `json:"collapsed"`
	Panels      []panel                  `json:"panels"`
	Datasource  *datasource              `json:"datasource"`
	FieldConfig struct {
		Defaults  fieldDefaults
		Overrides []any
	} `json:"fieldConfig"`
	Options json.RawMessage `json:"options"`
	Targets []struct {
		RefID  string `json:"refId"`
		Expr   string `json:"expr"`
		Legend string `json:"legendFormat"`
	} `json:"targets"`
}

// fieldDefaults says how a panel shows its numbers.
type fieldDefaults struct {
	Unit       string
	Min, Max   *float64
	Custom     json.RawMessage
	Thresholds *struct {
		Mode  string
		Steps []struct {
			Color string
			Value *float64
		}
	}
}

// dashboards returns the parsed dashboards of the component.
func dashboards(t *testing.T) map[string]dashboard {
	t.Helper()
	all := map[string]dashboard{}
	for file, body := range dashboardFiles(t) {
		d, err := readDashboard(body)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all[file] = d
	}
	return all
}

func dashboardFiles(t *testing.T) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(monitoring, "dashboards", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no dashboards: %v", err)
	}
	all := map[string][]byte{}
	for _, file := range files {
		if all[file], err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func readDashboard(body []byte) (d dashboard, err error) {
	in := json.NewDecoder(bytes.NewReader(body))
	in.DisallowUnknownFields()
	return d, in.Decode(&d)
}

// unitOf returns the unit of a query's values, as Grafana names it, or "" if the query does not tell.
func unitOf(expr string) string {
	rate := strings.Contains(expr, "rate(") || strings.Contains(expr, "deriv(")
	switch {
	case strings.Contains(expr, ":ratio") || strings.Contains(expr, "error_rate"):
		if strings.Contains(expr, "_bytes_per_") {
			return "bytes"
		}
		return "percentunit"
	case strings.Contains(expr, "_percent"):
		return "percent"
	case strings.Contains(expr, "_bytes"):
		if rate {
			return "Bps"
		}
		return "bytes"
	case strings.Contains(expr, "_seconds_count"):
		return "wps" // the histograms of which a panel shows the count are of writes
	case strings.Contains(expr, "_seconds") && !strings.Contains(expr, "cpu_seconds"):
		return "s"
	case strings.Contains(expr, ":rate5m") || rate && !strings.Contains(expr, "cpu_seconds"):
		return "reqps"
	}
	return "short"
}

// problemsOf returns what keeps Grafana from loading a dashboard, or makes it show something wrong.
func problemsOf(body []byte) (wrong []string) {
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	d, err := readDashboard(body)
	if err != nil {
		return []string{err.Error()}
	}
	if d.UID == "" || len(d.UID) > 40 || d.Title == "" || d.SchemaVersion == 0 || d.Time.From == "" || d.Time.To == "" || len(d.Panels) == 0 {
		say("uid %q, title %q, schema %d, time %v, %d panels", d.UID, d.Title, d.SchemaVersion, d.Time, len(d.Panels))
	}
	defined := map[string]bool{"__rate_interval": true, "__all": true} // of Grafana itself
	for _, v := range d.Templating.List {
		if defined[v.Name] {
			say("two variables %q", v.Name)
		}
		defined[v.Name] = true
		if v.Type == "query" && (v.Datasource == nil || *v.Datasource != chosen || v.Refresh == 0) {
			say("the variable %q does not ask the chosen Prometheus", v.Name)
		}
		if v.Name == "datasource" && (v.Type != "datasource" || v.Query != "prometheus") {
			say("the variable datasource is a %q of %q", v.Type, v.Query)
		}
	}
	for _, m := range variable.FindAllSubmatch(body, -1) {
		if !defined[string(m[1])] {
			say("no variable %q", m[1])
		}
	}
	ids, cells := map[int]bool{}, map[[2]int]string{}
	for _, p := range d.Panels {
		if ids[p.ID] || p.ID <= 0 {
			say("%q has the id %d, which is not its own", p.Title, p.ID)
		}
		ids[p.ID] = true
		wrong = append(wrong, p.problems()...)
		wrong = append(wrong, p.place(cells)...)
	}
	return wrong
}

// chosen is the Prometheus that the reader chooses.
var chosen = datasource{"prometheus", "${datasource}"}

// variable matches the use of a variable.
var variable = regexp.MustCompile(`\$\{?([A-Za-z_]+)`)

// place puts a panel on the grid, which is 24 cells wide.
func (p *panel) place(cells map[[2]int]string) (wrong []string) {
	g := p.GridPos
	if g.X < 0 || g.Y < 0 || g.W <= 0 || g.H <= 0 || g.X+g.W > 24 || g.H > 100 {
		return []string{fmt.Sprintf("%q lies beyond the edge: %+v", p.Title, g)}
	}
	for x := g.X; x < g.X+g.W; x++ {
		for y := g.Y; y < g.Y+g.H; y++ {
			if other := cells[[2]int{x, y}]; other != "" {
				return []string{fmt.Sprintf("%q lies on %q", p.Title, other)}
			}
			cells[[2]int{x, y}] = p.Title
		}
	}
	return nil
}

// problems returns what is wrong with a panel itself.
func (p *panel) problems() (wrong []string) {
	say := func(format string, args ...any) {
		wrong = append(wrong, fmt.Sprintf("%q: ", p.Title)+fmt.Sprintf(format, args...))
	}
	if p.Title == "" || !slices.Contains([]string{"row", "stat", "timeseries"}, p.Type) || p.Collapsed || len(p.Panels) > 0 {
		say("a panel of type %q, without a title, or hidden", p.Type)
	}
	if p.Type == "row" {
		if len(p.Targets) > 0 {
			say("a row with queries")
		}
		return wrong
	}
	if p.Datasource == nil || *p.Datasource != chosen {
		say("its source is %v, not the chosen one", p.Datasource)
	}
	if len(p.Targets) == 0 || len(p.Options) == 0 || p.Type == "timeseries" && len(p.FieldConfig.Defaults.Custom) == 0 {
		say("no queries, options or style")
	}
	refs, legends := map[string]bool{}, map[string]bool{}
	for _, q := range p.Targets {
		if q.RefID == "" || refs[q.RefID] || q.Expr == "" || p.Type == "timeseries" && q.Legend == "" || legends[q.Legend] {
			say("query %q (%s) needs a name, an expression and a legend of its own", q.RefID, q.Expr)
		}
		refs[q.RefID], legends[q.Legend] = true, true
		if unit := unitOf(q.Expr); unit != p.FieldConfig.Defaults.Unit {
			say("%s is in %q, but shown in %q", q.Expr, unit, p.FieldConfig.Defaults.Unit)
		}
	}
	if s := p.FieldConfig.Defaults.Thresholds; s != nil {
		for i, step := range s.Steps {
			if step.Color == "" || (i == 0) != (step.Value == nil) || i > 1 && *step.Value <= *s.Steps[i-1].Value {
				say("threshold %d does not rise", i)
			}
		}
	}
	return wrong
}

func TestDashboardsLoad(t *testing.T) {
	uids := map[string]string{}
	for file, body := range dashboardFiles(t) {
		for _, wrong := range problemsOf(body) {
			t.Errorf("%s: %s", file, wrong)
		}
		d, err := readDashboard(body)
		if err != nil || uids[d.UID] != "" {
			t.Errorf("%s and %q have the uid %q, %v", file, uids[d.UID], d.UID, err)
		}
		uids[d.UID] = file
	}
}

func TestADamagedDashboardIsNoticed(t *testing.T) {
	body := string(dashboardFiles(t)[filepath.Join(monitoring, "dashboards", "overview.json")])
	for _, c := range []struct{ old, damaged, want string }{
		{`"title": "Pace"`, `"titel": "Pace"`, "unknown field"},
		{`"uid": "crawlbatch-overview"`, `"uid": ""`, `uid ""`},
		{`"id": 3,`, `"id": 2,`, "the id 2, which is not its own"},
		{`"uid": "${datasource}"`, `"uid": "prometheus"`, "chosen"},
		{`"name": "job"`, `"name": "jobs"`, `no variable "job"`},
		{`"unit": "reqps"`, `"unit": "bytes"`, `shown in "bytes"`},
		{`"unit": "reqps"`, `"unit": ""`, `shown in ""`},
		{`"refId": "B"`, `"refId": "A"`, "a name, an expression and a legend of its own"},
		{`"legendFormat": "planned"`, `"legendFormat": "remaining"`, "a name, an expression and a legend of its own"},
		{`"x": 4, "y": 1`, `"x": 3, "y": 1`, `lies on "Round done"`},
		{`"x": 12, "y": 5`, `"x": 13, "y": 5`, "beyond the edge"},
		{`"type": "timeseries"`, `"type": "graph"`, `of type "graph"`},
	} {
		damaged := strings.Replace(body, c.old, c.damaged, 1)
		if damaged == body {
			t.Fatalf("the dashboard has no %s", c.old)
		}
		if got := strings.Join(problemsOf([]byte(damaged)), "\n"); !strings.Contains(got, c.want) {
			t.Errorf("with %s: %q, want %q", c.damaged, got, c.want)
		}
	}
}

func TestDashboardsHaveThePromisedPanels(t *testing.T) {
	var titles []string
	for _, d := range dashboards(t) {
		for _, p := range d.Panels {
			titles = append(titles, p.Title)
		}
	}
	for _, want := range []string{
		"Burn-down", "Throughput by outcome", "HTTP status codes", "Domain health: hosts by state", "Tasks that run, by stage", "Queue of the running tasks",
		"Deferred URLs", "Writes to the store", "Failed URLs by outcome", "Error budget that is left", "Burn rate of the error budget", "Storage of a month",
		"Storage of the sealed rounds by dataset", "Bytes written by dataset", "Cache hits", "Answers of URL filters", "Throughput by domain: the slowest hosts", "Domain health: time left of the slowest hosts", "Duplicates",
	} {
		if !slices.Contains(titles, want) {
			t.Errorf("no panel %q", want)
		}
	}
}
