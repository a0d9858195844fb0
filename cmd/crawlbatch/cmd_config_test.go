package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/cmd/crawltest"
	"crawlbatch.io/crawlbatch/jobs/config"
)

func TestConfigPrintsWhatHoldsAndWhereItComesFrom(t *testing.T) {
	dir := t.TempDir()
	file, urls := filepath.Join(dir, "c.yaml"), filepath.Join(dir, "urls.txt")
	crawltest.Write(t, file, "politeness: {delay: 3s}\nfetch: {slots: 7}\nplan: {max_depth: 4}\n")
	crawltest.Write(t, urls, "http://a.test/\n")
	flags := []string{"--store", filepath.Join(dir, "store"), "--config", file, "--connect-to", "::127.0.0.1:1"}
	settings := func(args ...string) map[string]string {
		t.Helper()
		out, said, code := runCommandLine(t, append(append([]string{"config", "-o", "json"}, flags...), args...)...)
		var all []config.Setting
		if err := json.Unmarshal([]byte(out), &all); err != nil || code != exitDone {
			t.Fatalf("exit %d, %v: %s", code, err, said)
		}
		from := map[string]string{}
		for _, s := range all {
			from[s.Key] = s.From
		}
		return from
	}
	same := func(got map[string]string, want map[string]string) {
		t.Helper()
		for key, from := range want {
			if got[key] != from {
				t.Errorf("%s comes from %q, want %q", key, got[key], from)
			}
		}
	}
	same(settings("--namespace", "there"), map[string]string{
		"politeness.delay": file + ":1", "plan.max_depth": file + ":3", "dedup.min_words": "default",
		"fetch.connect_to": "--connect-to", "kubernetes.namespace": "--namespace",
	})
	if _, said, code := runCommandLine(t, append([]string{"plan", "--month", "2026-11", "--source", urls}, flags...)...); code != exitDone {
		t.Fatal(said)
	}
	crawltest.Write(t, file, "fetch: {slots: 9}\n")
	same(settings("--month", "2026-11"), map[string]string{
		"politeness.delay": "crawl=2026-11/crawl.json", "fetch.slots": file + ":1", "plan.max_depth": "frozen in crawl=2026-11/crawl.json",
	})
	out, _, code := runCommandLine(t, append([]string{"config"}, flags...)...)
	if code != exitDone || !strings.Contains(out, "  slots: 9                             # "+file+":1\n") {
		t.Errorf("exit %d:\n%s", code, out)
	}
	if _, said, code := runCommandLine(t, "config", "-o", "xml"); code != exitUsage || !strings.Contains(said, "it must be yaml or json") {
		t.Errorf("exit %d: %s", code, said)
	}
}

// A crawl of an older crawlbatch may have frozen the proxy's password as plain text.
func TestASecretThatACrawlFrozeIsWarnedOfOnceAndNotShown(t *testing.T) {
	frozen, err := config.ReadFrozen("crawl=2026-11/crawl.json", []byte(`fetch: {proxy: "http://me:hunter2@proxy.test:3128"}`), os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	c := &common{err: &said}
	if err := c.warnOfSecrets("2026-11", frozen); err != nil {
		t.Fatal(err)
	}
	if s := said.String(); strings.Count(s, "\n") != 1 || !strings.Contains(s, "fetch.proxy") || !strings.Contains(s, "${PROXY_PASSWORD}") || strings.Contains(s, "hunter2") {
		t.Errorf("it says %q", s)
	}
	said.Reset()
	pod := &common{err: &said, settings: "crawl=2026-11/settings-0a1b.json"}
	if err := pod.warnOfSecrets("2026-11", frozen); err != nil || said.Len() > 0 {
		t.Errorf("a pod says %q (%v)", said.String(), err)
	}
}
