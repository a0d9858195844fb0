package main

import (
	"os/exec"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/cmd/usage"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/stages"
)

func TestCommandsToRunAgainNameTheStoreAndConfigGiven(t *testing.T) {
	for _, c := range []struct {
		store, config, want string
	}{
		{defaultStore, "", ""},
		{"s3://bucket/prefix", "", " --store s3://bucket/prefix"},
		{defaultStore, "my config.yaml", " --config 'my config.yaml'"},
		{"/data/the crawl", "c.yaml", " --store '/data/the crawl' --config c.yaml"},
	} {
		if got := (&common{store: c.store, config: c.config}).givenFlags(); got != c.want {
			t.Errorf("%q, %q: %q, want %q", c.store, c.config, got, c.want)
		}
	}
}

func TestCommandsToRunAgainNameTheExecutorAndTheClusterGiven(t *testing.T) {
	store := common{store: "s3://b/p", flags: config.Config{UserAgent: "x/1 (+https://x.example)", Kubernetes: config.Kubernetes{Namespace: "n"}}}
	for _, c := range []struct {
		o    runOptions
		want string
	}{
		{runOptions{common: &store, executor: executorLocal}, " --store s3://b/p --user-agent 'x/1 (+https://x.example)'"},
		{runOptions{common: &common{store: "s3://b/p", config: "c.yaml", flags: config.Config{Kubernetes: config.Kubernetes{Namespace: "n", Image: "r/i:1"}}},
			executor: executorKubernetes, cluster: clusterOptions{kubeconfig: "my config", context: "prod"}},
			" --store s3://b/p --config c.yaml --executor kubernetes --kubeconfig 'my config' --kube-context prod --namespace n --image r/i:1"},
		{runOptions{common: &common{store: "s3://b/p", settings: "crawl=2026-11/settings-0a1b.json"}, executor: executorKubernetes},
			" --store s3://b/p --settings crawl=2026-11/settings-0a1b.json --executor kubernetes"},
	} {
		if got := c.o.givenFlags(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
		// Each command must accept the flags that another command prints for it.
		for _, name := range []string{"run", "retry", "status"} {
			cmd, _, err := newRoot(&common{}).Find([]string{name})
			if err != nil {
				t.Fatal(err)
			}
			words, err := exec.Command("sh", "-c", "printf '%s\\n' --month 2026-11"+c.want).Output()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.ParseFlags(strings.Split(strings.TrimSpace(string(words)), "\n")); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	o := runOptions{common: &common{store: defaultStore}, executor: executorKubernetes, rounds: 2}
	if err := o.hint(stages.ErrInterrupted, "2026-11"); !strings.Contains(err.Error(), "`crawlbatch run --month 2026-11 --rounds 2 --executor kubernetes`") {
		t.Error(err)
	}
}

func TestAdvisedCommandsNameTheStoreOnce(t *testing.T) {
	for text, want := range map[string]string{
		"see `crawlbatch status --month 2026-11`, or `crawlbatch retry --month 2026-11r1 --rebuild`":         "see `crawlbatch status --month 2026-11 --store s`, or `crawlbatch retry --month 2026-11r1 --store s --rebuild`",
		"`crawlbatch run --month 2026-11 --store s --config c`; --month 2026-11 is right; `retry --rebuild`": "`crawlbatch run --month 2026-11 --store s --config c`; --month 2026-11 is right; `retry --rebuild`",
	} {
		if got := usage.Advise(text, " --store s"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestQuotedWordsReachACommandAsTheyWere(t *testing.T) {
	for _, word := range []string{"plain", "two words", "it's", `a"b`, "$HOME", "~", "a;b", "*", "", "línea", "new\nline"} {
		out, err := exec.Command("sh", "-c", "printf %s "+usage.Quote(word)).Output()
		if err != nil || string(out) != word {
			t.Errorf("%q became %q (%v)", word, out, err)
		}
	}
}
