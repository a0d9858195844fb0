package main

import (
	"os/exec"
	"testing"
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
		if got := (&common{store: c.store, config: c.config}).again(); got != c.want {
			t.Errorf("%q, %q: %q, want %q", c.store, c.config, got, c.want)
		}
	}
}

func TestCommandsToRunAgainNameTheClusterGiven(t *testing.T) {
	o := runOptions{common: &common{store: "s3://bucket/prefix"}, executor: executorLocal}
	if got := o.again(); got != " --store s3://bucket/prefix" {
		t.Errorf("local: %q", got)
	}
	o.executor, o.cluster = executorKubernetes, clusterOptions{namespace: "web", image: "registry.example/crawlbatch:v1"}
	if got, want := o.again(), " --store s3://bucket/prefix --executor kubernetes --namespace web --image registry.example/crawlbatch:v1"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestQuotedWordsReachACommandAsTheyWere(t *testing.T) {
	for _, word := range []string{"plain", "two words", "it's", `a"b`, "$HOME", "~", "a;b", "*", "", "línea", "new\nline"} {
		out, err := exec.Command("sh", "-c", "printf %s "+shellQuote(word)).Output()
		if err != nil || string(out) != word {
			t.Errorf("%q became %q (%v)", word, out, err)
		}
	}
}
