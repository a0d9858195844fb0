package k8s

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/cost"
	"crawlbatch.io/crawlbatch/jobs/limits"
	"crawlbatch.io/crawlbatch/stages"
)

func TestPodsReadTheSettingsThatTheirDriverHas(t *testing.T) {
	t.Setenv("CONTACT", "https://example.org/bot")
	cfg := rendering(t, `
user_agent: "examplebot/1.0 (+${CONTACT})"
politeness: {delay: 3s, classes: {news: 7s}, domains: {example.org: {delay: 500ms}, example.net: {stop: "asked, ticket 17"}}}
fetch: {slots: 50, max_body: 1MiB, window: 2h, connect_to: ["::10.0.0.1:8080"], allow_private_networks: true}
plan: {strip_params: [utm_*, "a b"], budgets: {domains: {example.org: 7}}}
frontier: {focus: {model: "1 solar power\n0.5 太 陽 光\n", points: 100, threshold: 0.5}}
kubernetes:
  image: registry.example/crawlbatch:1
  max_failed_indexes: 3
  grace: 90s
  resources: {default: {cpu: 500m}, fetch: {memory: 3GiB, scratch: 8GiB}}
  node_selector: {pool: "yes"}
  tolerations: [{key: crawl, operator: Exists, effect: NoSchedule}]
  env: {A: "1", B: "x: y"}
  env_from_secrets: [s3]
`).Config
	l := newLab(t)
	key, settings, err := Settings("2026-11", cfg, "v1")
	if err != nil {
		t.Fatal(err)
	}
	create(t, l.Bucket, key, settings)
	create(t, l.Bucket, key, settings) // must succeed again, because every driver creates the object
	var loaded manifest.Settings
	if _, _, err := manifest.Load(t.Context(), l.Bucket, key, &loaded); err != nil {
		t.Fatal(err)
	}
	got, err := config.Read(key, []byte(loaded.Config), os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	faster := cfg.Clone()
	faster.Politeness = config.Default().Politeness
	if d := cmp.Diff(faster, got, cmpopts.IgnoreUnexported(config.Config{}), cmpopts.EquateEmpty()); d != "" {
		t.Error(d)
	}
	for name, c := range map[string]*config.Config{"that was given these settings": got, "at another pace": faster} {
		if again, _, err := Settings("2026-11", c, "v1"); err != nil || again != key {
			t.Errorf("a driver %s stores its settings under %s (%v), not under %s", name, again, err, key)
		}
	}
}

// Package config cannot import package stages, so it has its own list of the stages. The test compares them.
func TestEveryStageMayHaveResources(t *testing.T) {
	entries := "default"
	for _, stage := range stages.Order {
		entries += ", " + string(stage)
		if _, err := config.Read("c.yaml", []byte("kubernetes: {resources: {"+string(stage)+": {cpu: 500m}}}"), os.LookupEnv); err != nil {
			t.Error(err)
		}
	}
	if _, err := config.Read("c.yaml", []byte("kubernetes: {resources: {mege: {cpu: 500m}}}"), os.LookupEnv); err == nil || !strings.Contains(err.Error(), "it must be "+entries) {
		t.Errorf("a stage that does not exist: %v, want the entries %s", err, entries)
	}
}

func TestThePriceOfAPodIsOfWhatItRequests(t *testing.T) {
	cfg := config.Default()
	p := &manifest.Plan{Buckets: 1, URLs: 500_000, Hosts: 5000, Partitions: []manifest.PlanPartition{{URLs: 500_000, Hosts: 5000, EstimatedSeconds: 9000}}}
	// k8s/README.md computes this memory: 256 + 200 × 2 + 80 × 5 MiB + 500,000 × 64 B + 5,000 × 2 KiB, in steps of 64 MiB.
	// A task of 55.6 URLs a second asks for 0.010 cores for each.
	if got, want := PodSize(p, cfg, stages.Fetch), (cost.Pod{Cores: 0.6, GiB: 1.125}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	cfg.Kubernetes.Resources = map[string]config.Resources{"rank": {CPU: "2500m", Memory: 3 << 30}}
	if got, want := PodSize(p, cfg, stages.Rank), (cost.Pod{Cores: 2.5, GiB: 3}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// The bodies, slots and parsers of a fetch task fit into the memory of its pod, however many CPUs the node has.
func TestParsersOfAFetchTaskFitIntoItsPod(t *testing.T) {
	cfg := config.Default()
	n := needsOf(plan(1), cfg, wholeStage(plan(1), stages.Fetch))
	for _, memory := range []int64{512 << 20, n.memory} {
		l := limits.Limits{Memory: limits.Soft(memory), From: limits.FromCgroup, Files: 1 << 20}
		s, err := l.Divide(limits.Wants{FetchTasks: 1, Slots: cfg.Fetch.Slots, MaxBody: int64(cfg.Fetch.MaxBody), Parsers: 64})
		if err != nil {
			t.Fatal(err)
		}
		const parse = 8 // multiple of a body that parsing it takes, as in package limits
		if parsing := int64(cap(s.Parsing)) * parse * int64(cfg.Fetch.MaxBody); parsing+s.Bodies > l.Memory || cap(s.Parsing) >= 64 {
			t.Errorf("in %d MiB, %d parsers take %d MiB, and bodies %d MiB", memory>>20, cap(s.Parsing), parsing>>20, s.Bodies>>20)
		}
	}
}
