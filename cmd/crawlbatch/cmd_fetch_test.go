package main

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/jobs/inspect"
	"crawlbatch.io/crawlbatch/stages"
)

func TestFetchExitsByWhatBecameOfTheURL(t *testing.T) {
	had0 := []schema.Outcome{schema.OK, schema.NotModified, schema.Redirected, schema.MIMEFiltered, schema.HTTP4xx, schema.Blocked, schema.PaymentRequired}
	never := []schema.Outcome{schema.RobotsDenied, schema.AddressBlocked, schema.Stopped, schema.RedirectLimit}
	help, _, _ := runCommandLine(t, "fetch", "--help")
	for _, outcome := range schema.Outcomes {
		want := exitTasksFailed
		switch {
		case slices.Contains(had0, outcome):
			want = exitDone
		case slices.Contains(never, outcome):
			want = exitPermanent
		}
		err := inspect.Answered(schema.Fetch{URL: "http://a.test/", Outcome: outcome, HTTPStatus: 418})
		if got := exitCode(err); got != want {
			t.Errorf("%s: exit %d, want %d", outcome, got, want)
		}
		if err != nil && !strings.HasPrefix(err.Error(), "http://a.test/: "+string(outcome)+": ") {
			t.Errorf("%s: %v", outcome, err)
		}
		if want != exitTasksFailed && !strings.Contains(help, string(outcome)) {
			t.Errorf("the help does not say that %s exits with %d", outcome, want)
		}
	}
	denied := inspect.Answered(schema.Fetch{URL: "http://a.test/x", Outcome: schema.RobotsDenied, RobotsRule: "Disallow: /x"})
	if want := "http://a.test/x: robots_denied: Disallow: /x: retrying cannot help"; denied == nil || denied.Error() != want {
		t.Errorf("%v, want %s", denied, want)
	}
}

func TestFetchSaysWhatItWaitsFor(t *testing.T) {
	var said bytes.Buffer
	c := &common{err: &said}
	c.printWait(stages.Wait{Host: "a.test", Why: "robots.txt answered 503, asked again", Until: time.Now().Add(5*time.Second + 200*time.Millisecond)})
	c.printWait(stages.Wait{Host: "a.test", Why: "a request failed, made again"})
	if want := "crawlbatch: a.test: robots.txt answered 503, asked again in 5s\ncrawlbatch: a.test: a request failed, made again\n"; said.String() != want {
		t.Errorf("%q, want %q", said.String(), want)
	}
}

// A mistyped --store would be an empty directory, without the list of takedowns of the store that was meant.
func TestFetchRefusesAMistypedStore(t *testing.T) {
	for _, store := range []string{"", "s3:/bucket/x", "s3:bucket", "S3://bucket/x", "file:///store"} {
		t.Run(store, func(t *testing.T) {
			_, said, code := runCommandLine(t, "fetch", "http://a.test/", "--store", store, "--user-agent", "a/1 (+https://a.test)", "--connect-to", "::127.0.0.1:1")
			if code != exitUsage || !strings.Contains(said, "give a directory or s3://bucket/prefix") {
				t.Errorf("exit %d: %s", code, said)
			}
		})
	}
	if _, err := new(common).openArchive(t.Context(), filepath.Join(t.TempDir(), "s3:", "x")); err != nil {
		t.Errorf("a directory with such a name: %v", err)
	}
}
