package k8s

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

const monitoring = "manifests/components/monitoring"

// ruleGroups is a rule file of Prometheus, and the spec of a PrometheusRule.
type ruleGroups struct {
	Groups []struct {
		Name     string `json:"name"`
		Interval string `json:"interval"`
		Rules    []rule `json:"rules"`
	} `json:"groups"`
}

type rule struct {
	Record      string            `json:"record"`
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         string            `json:"for"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

// prometheusRule is the type PrometheusRule of the Prometheus operator.
type prometheusRule struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              ruleGroups `json:"spec"`
}

// rules returns the rules of the component.
func rules(t *testing.T) []rule {
	t.Helper()
	body, err := os.ReadFile(filepath.Join(monitoring, "rules.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var file ruleGroups
	if err := yaml.UnmarshalStrict(body, &file); err != nil {
		t.Fatal(err)
	}
	var all []rule
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	return all
}

// The operator gets the same rules as a Prometheus that reads rules.yaml.
func TestThePrometheusRuleHoldsTheRules(t *testing.T) {
	body, err := os.ReadFile(filepath.Join(monitoring, "rules.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(monitoring, "prometheusrule.yaml")
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, _, ok := bytes.Cut(got, []byte("  groups:\n"))
	_, groups, ok2 := bytes.Cut(body, []byte("groups:\n"))
	if !ok || !ok2 {
		t.Fatal("a file has no groups")
	}
	want := append(head, "  groups:\n"+regexp.MustCompile(`(?m)^(.)`).ReplaceAllString(string(groups), "  $1")...)
	if bytes.Equal(want, got) {
		return
	}
	if !*update {
		t.Fatalf("%s is not as generated: run go test ./k8s -run PrometheusRule -update", file)
	}
	if err := os.WriteFile(file, want, 0o644); err != nil {
		t.Fatal(err)
	}
}

// foreign matches the series of others: the Go client of Prometheus, and kube-state-metrics.
var foreign = regexp.MustCompile(`^(process_(cpu_seconds_total|resident_memory_bytes)|kube_cronjob_(status_last_successful_time|created|spec_suspend))$`)

// Every series in a rule or a panel is exported, or recorded by a rule. The reference in
// jobs/README.md lists what is exported: a test of jobs/metrics holds it to the code.
func TestEverySeriesInRulesAndPanelsExists(t *testing.T) {
	readme, err := os.ReadFile("../jobs/README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(readme), "<!-- generated: metrics -->\n")
	table, _, ok := strings.Cut(table, "<!-- end -->")
	known := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_0-9]+)[^`]*` \\| (\\w+) ").FindAllStringSubmatch(table, -1) {
		known[row[1]] = true
		if row[2] == "histogram" {
			known[row[1]+"_bucket"], known[row[1]+"_count"], known[row[1]+"_sum"] = true, true, true
		}
	}
	if !ok || len(known) < 20 {
		t.Fatalf("jobs/README.md documents %d series", len(known))
	}
	queries := map[string]string{}
	for _, r := range rules(t) {
		known[r.Record] = true
		queries[r.Expr] = r.Record + r.Alert
	}
	for file, d := range dashboards(t) {
		for _, p := range d.Panels {
			for _, q := range p.Targets {
				queries[q.Expr] = file + ": " + p.Title
				if !strings.Contains(q.Expr, `job=~"$job"`) && !strings.HasPrefix(q.Expr, "crawlbatch:setting_") {
					t.Errorf("%s: %q ignores the chosen job: %s", file, p.Title, q.Expr)
				}
			}
		}
	}
	name := regexp.MustCompile(`[a-z_][a-z0-9_]*[:_][a-z0-9_:]*[a-z0-9]`)
	inQuotes := regexp.MustCompile(`"[^"]*"`)
	words := []string{"group_left", "histogram_quantile", "last_over_time", "status_code", "__rate_interval", "clamp_min"}
	seen := 0
	for query, where := range queries {
		for _, series := range name.FindAllString(inQuotes.ReplaceAllString(query, ""), -1) {
			if seen++; !known[series] && !foreign.MatchString(series) && !slices.Contains(words, series) {
				t.Errorf("%s: nothing exports or records %s", where, series)
			}
		}
	}
	if seen < 100 {
		t.Errorf("%d series found only", seen)
	}
}

// anchor returns GitHub's anchor of a heading.
func anchor(heading string) string {
	return strings.ReplaceAll(regexp.MustCompile(`[^a-z0-9 -]`).ReplaceAllString(strings.ToLower(heading), ""), " ", "-")
}

func TestEveryAlertHasARunbookAndTheOtherWayRound(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(readme), "\n## Alerts\n")
	section, _, _ = strings.Cut(section, "\n## ")
	runbooks := map[string]string{}
	for _, part := range strings.Split(section, "\n### ")[1:] {
		title, text, _ := strings.Cut(part, "\n")
		runbooks[anchor(title)] = text
	}
	used := map[string]bool{}
	for _, r := range rules(t) {
		if r.Alert == "" {
			continue
		}
		at, ok := strings.CutPrefix(r.Annotations["runbook_url"], "https://crawlbatch.io/crawlbatch/k8s/README.md#")
		if used[at] = true; !ok || !strings.Contains(runbooks[at], "`"+r.Alert+"`") {
			t.Errorf("%s: the runbook %q does not name the alert", r.Alert, at)
		}
		if r.Annotations["summary"] == "" || r.Annotations["description"] == "" || r.For == "" {
			t.Errorf("%s lacks an annotation or a duration: %+v", r.Alert, r)
		}
		if priority := map[string]string{"critical": "P1", "warning": "P2", "info": "P3"}[r.Labels["severity"]]; priority == "" || priority != r.Labels["priority"] {
			t.Errorf("%s has the labels %v", r.Alert, r.Labels)
		}
	}
	for at := range runbooks {
		if !used[at] {
			t.Errorf("no alert has the runbook %q", at)
		}
	}
}

// The tests of promtool name every rule, and every alert both firing and not.
func TestEveryRuleIsTested(t *testing.T) {
	body, err := os.ReadFile("testdata/monitoring/rules_test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Tests []struct {
			Queries []struct {
				Expr    string           `json:"expr"`
				Samples []map[string]any `json:"exp_samples"`
			} `json:"promql_expr_test"`
			Alerts []struct {
				Name  string           `json:"alertname"`
				Fires []map[string]any `json:"exp_alerts"`
			} `json:"alert_rule_test"`
		} `json:"tests"`
	}
	if err := yaml.Unmarshal(body, &file); err != nil {
		t.Fatal(err)
	}
	tested := map[string]bool{}
	for _, test := range file.Tests {
		for _, q := range test.Queries {
			if expr := strings.TrimPrefix(q.Expr, "round("); len(q.Samples) > 0 {
				tested[strings.TrimSuffix(expr, ", 1e-6)")] = true
			}
		}
		for _, a := range test.Alerts {
			tested[a.Name+map[bool]string{true: " fires", false: " is quiet"}[len(a.Fires) > 0]] = true
		}
	}
	for _, r := range rules(t) {
		if r.Record != "" && !tested[r.Record] {
			t.Errorf("no test of %s", r.Record)
		}
		if r.Alert != "" && (!tested[r.Alert+" fires"] || !tested[r.Alert+" is quiet"]) {
			t.Errorf("no test of %s that fires, or none that does not", r.Alert)
		}
	}
}

// Overlays replace the settings by their position, so the order of the first group is a promise.
func TestSettingsKeepTheirPositions(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"setting_storage_budget_bytes", "setting_fleet_minimum_ratio", "setting_suspended_hosts", "setting_probe_seconds"}
	for i, r := range rules(t)[:len(want)] {
		if r.Record != "crawlbatch:"+want[i] {
			t.Errorf("rule %d of the first group is %s, want %s", i, r.Record, want[i])
		}
	}
	for i, example := range map[string]string{"0": "storage of a month", "2": "suspended hosts"} {
		if !regexp.MustCompile(`/spec/groups/0/rules/` + i + `/expr, value: [^#]*# ` + example).Match(readme) {
			t.Errorf("the README replaces another rule than %s for the %s", i, example)
		}
	}
}
