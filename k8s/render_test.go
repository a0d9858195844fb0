package k8s

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/stages"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// plan returns a plan of n partitions, each with 1000 URLs and a predicted time of 500 s.
func plan(n int) *manifest.Plan {
	p := &manifest.Plan{ID: "p1", Crawl: "2026-11", Buckets: 2, URLs: int64(n) * 1000, EstimatedBytes: int64(n) * 100e6}
	for i := range n {
		p.Partitions = append(p.Partitions, manifest.PlanPartition{Partition: i, URLs: 1000, EstimatedSeconds: 500})
	}
	return p
}

func tasks(stage stages.Stage, partitions ...int) []stages.Task {
	var out []stages.Task
	for _, n := range partitions {
		out = append(out, stages.Task{Stage: stage, Crawl: "2026-11", Partition: n})
	}
	return out
}

func rendering(t *testing.T, text string) *Renderer {
	t.Helper()
	cfg, err := config.Read("crawlbatch.yaml", []byte(text), os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	return &Renderer{Config: cfg, Plan: plan(20), Store: "s3://bucket/crawls", Settings: "crawl=2026-11/settings-0a1b.json", Env: map[string]string{"AWS_REGION": "eu-west-1"}}
}

func TestRenderedJobsAreAsTheGoldenFilesHaveThem(t *testing.T) {
	for _, c := range []struct {
		name, config string
		tasks        []stages.Task
	}{
		{"fetch", "kubernetes: {image: 'registry.example/crawlbatch:1'}", tasks(stages.Fetch, 0, 1, 2, 3)},
		{"fetch-retry-all-set", `
kubernetes:
  image: registry.example/crawlbatch:1
  image_pull_policy: Always
  image_pull_secrets: [pull]
  parallelism: {max: 2}
  max_failed_indexes: 1
  grace: 90s
  resources: {default: {cpu: "2"}, fetch: {memory: 3GiB, scratch: 8GiB}}
  priority_class: crawl-low
  spot: false
  node_selector: {pool: crawl}
  tolerations: [{key: crawl, operator: Exists, effect: NoSchedule}]
  service_account_token: true
  env: {AWS_REGION: us-east-1}
  env_from_secrets: [s3]
  annotations: {example.org/team: web}
  labels: {kueue.x-k8s.io/queue-name: crawls, sidecar.istio.io/inject: "false"}
  metrics_port: 9100
  metrics_legacy_names: true
  metrics_top_hosts: 20
`, tasks(stages.Fetch, 3, 17)},
		{"merge", "kubernetes: {image: 'registry.example/crawlbatch:1'}", tasks(stages.Merge, 0, 1)},
		{"merge-credentials-file", "kubernetes: {image: 'registry.example/crawlbatch:1', credentials_secret: crawlbatch-aws}", tasks(stages.Merge, 0, 1)},
		{"merge-web-identity", "kubernetes: {image: 'registry.example/crawlbatch:1', web_identity_role: 'arn:aws:iam::123456789012:role/crawl'}", tasks(stages.Merge, 0, 1)},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := rendering(t, c.config)
			batches, err := Split(r.Plan, c.tasks, 10, "v1")
			if err != nil {
				t.Fatal(err)
			}
			got, err := yaml.Marshal(r.Job(&batches[0], Shares(batches, r.Config.Kubernetes.Parallelism.Max)[0]))
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join("testdata", c.name+".yaml")
			if *update {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), string(got)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestWithoutAMetricsPortPodsServeNone(t *testing.T) {
	r := rendering(t, "kubernetes: {image: 'registry.example/crawlbatch:1', metrics_port: 0}")
	batches, err := Split(r.Plan, tasks(stages.Fetch, 0), 10, "v1")
	if err != nil {
		t.Fatal(err)
	}
	c := r.Job(&batches[0], 1).Spec.Template.Spec.Containers[0]
	if len(c.Ports) > 0 || slices.Contains(c.Args, "--metrics-listen") {
		t.Errorf("ports %v, arguments %v", c.Ports, c.Args)
	}
}

func TestAStageOfMoreTasksThanAJobMayHoldIsSplit(t *testing.T) {
	p := plan(25)
	all := make([]int, 25)
	for i := range all {
		all[i] = i
	}
	batches, err := Split(p, tasks(stages.Fetch, all...), 10, "v1")
	if err != nil {
		t.Fatal(err)
	}
	var joined []int
	names := map[string]bool{}
	for _, b := range batches {
		joined = append(joined, b.Partitions...)
		names[b.Name()] = true
	}
	if len(batches) != 3 || len(names) != 3 || !slices.Equal(joined, all) {
		t.Errorf("%d batches, %d names, partitions %v", len(batches), len(names), joined)
	}
	if shares := Shares(batches, 5); !slices.Equal(shares, []int{2, 2, 1}) {
		t.Errorf("shares %v", shares)
	}
}

func TestRangesAreReadBackAsTheyWereWritten(t *testing.T) {
	for text, want := range map[string][]int{"": nil, "0": {0}, "0-4,7": {0, 1, 2, 3, 4, 7}, "3,17": {3, 17}} {
		if got := ranges(want); got != text {
			t.Errorf("ranges(%v) = %q, want %q", want, got, text)
		}
		if got := parseRanges(text, 100); !slices.Equal(got, want) {
			t.Errorf("parseRanges(%q) = %v, want %v", text, got, want)
		}
	}
	if got := parseRanges("x,1-y,-3,2-999999999", 4); !slices.Equal(got, []int{2, 3}) {
		t.Errorf("%v", got)
	}
}

func TestCredentialsInFilesAreAlsoTheDriversAndGiveWayToTheEnvironment(t *testing.T) {
	r := rendering(t, `kubernetes: {image: 'registry.example/crawlbatch:1', web_identity_role: 'arn:aws:iam::123456789012:role/crawl', web_identity_audience: minio,
  env: {AWS_WEB_IDENTITY_TOKEN_FILE: /elsewhere}}`)
	spec := r.DriverJob("2026-11", 1).Spec.Template.Spec
	env := map[string]string{}
	for _, v := range spec.Containers[0].Env {
		env[v.Name] = v.Value
	}
	if env["AWS_ROLE_ARN"] != "arn:aws:iam::123456789012:role/crawl" || env["AWS_WEB_IDENTITY_TOKEN_FILE"] != "/elsewhere" {
		t.Errorf("environment %v", env)
	}
	for _, v := range spec.Volumes {
		if v.Projected != nil && v.Projected.Sources[0].ServiceAccountToken.Audience == "minio" {
			return
		}
	}
	t.Errorf("volumes %v hold no token", spec.Volumes)
}

func TestConfiguredLabelsAreOnJobsAndPodsButInNoSelector(t *testing.T) {
	r := rendering(t, "kubernetes: {image: 'registry.example/crawlbatch:1', labels: {kueue.x-k8s.io/queue-name: crawls}}")
	batches, err := Split(r.Plan, tasks(stages.Fetch, 0), 10, "v1")
	if err != nil {
		t.Fatal(err)
	}
	for _, job := range []*batchv1.Job{r.Job(&batches[0], 1), r.DriverJob("2026-11", 1)} {
		pod := &job.Spec.Template
		for what, labels := range map[string]map[string]string{"Job": job.Labels, "pod": pod.Labels} {
			if labels["kueue.x-k8s.io/queue-name"] != "crawls" || labels[LabelCrawl] != "2026-11" {
				t.Errorf("%s: the %s has the labels %v", job.Name, what, labels)
			}
		}
		for _, s := range pod.Spec.TopologySpreadConstraints {
			if _, ok := s.LabelSelector.MatchLabels["kueue.x-k8s.io/queue-name"]; ok {
				t.Errorf("%s: pods are spread by %v", job.Name, s.LabelSelector.MatchLabels)
			}
		}
	}
}

// Package config has its own check of labels, because it imports no package of Kubernetes. The test compares it
// with that of Kubernetes.
func TestTheConfigAcceptsTheLabelsThatKubernetesAccepts(t *testing.T) {
	long := strings.Repeat("a", 63)
	for _, s := range []string{
		"", "a", "queue-name", "A_b.c", "-a", "a-", "a b", "é", long, long + "a", "x/y", "kueue.x-k8s.io/queue-name", "X.io/y", "x..io/y", "x.io/", "/y", "x.io/y/z",
		strings.Repeat("a.", 126) + "a/b", strings.Repeat("a.", 127) + "a/b",
	} {
		for what, c := range map[string]struct {
			labels map[string]string
			wrong  []string
		}{
			"key":   {map[string]string{s: "x"}, validation.IsQualifiedName(s)},
			"value": {map[string]string{"example.org/team": s}, validation.IsValidLabelValue(s)},
		} {
			cfg := config.Default()
			cfg.Kubernetes.Labels = c.labels
			if err := cfg.Validate(); (err == nil) != (len(c.wrong) == 0) {
				t.Errorf("the %s %q: %v, but Kubernetes says %q", what, s, err, c.wrong)
			}
		}
	}
	for _, own := range []string{LabelName, LabelComponent, LabelCrawl, LabelAttempt, batchv1.JobNameLabel, batchv1.JobCompletionIndexAnnotation, "job-name", "controller-uid"} {
		cfg := config.Default()
		cfg.Kubernetes.Labels = map[string]string{own: "x"}
		if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), "kubernetes.labels."+own+" is a label that crawlbatch or Kubernetes sets") {
			t.Errorf("the key %s: %v", own, err)
		}
	}
}
