package manifest

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/schema"
)

func TestEveryDocumentReadsBackAsItWasWritten(t *testing.T) {
	docs := []struct{ in, out Document }{
		{&Crawl{Crawl: "2026-11", Config: "user_agent: <x> & ${Y}\n"}, &Crawl{}},
		{&Plan{ID: "p", Partitions: []PlanPartition{{Partition: 1, URLs: 7}}, Refused: []Count{{"not_url", 3}}}, &Plan{}},
		{&Inputs{Stage: "merge", Tasks: []InputTask{{"fetch", 0, "ab"}}}, &Inputs{}},
		{&Result{Task: "merge@2026-11.0:0", Files: []File{{Dataset: "pages", Key: "k", Rows: 1}}}, &Result{}},
		{&Attempt{Task: "merge@2026-11.0:0", Error: "boom\n"}, &Attempt{}},
		{&Sealed{Crawl: "2026-11", Files: []File{{Dataset: "pages"}}}, &Sealed{}},
		{&Active{Crawl: "2026-11", Nonce: "n"}, &Active{}},
		{&Checkpoint{Epoch: 2, Recorded: []byte{1, 2}, Hosts: []HostClock{{Host: "a", Breaker: &HostBreaker{Failed: 3}}},
			Retries: []URLRetry{{Row: 7, RetryCounts: RetryCounts{Limited: 1}}}, Trying: &Trying{Row: 8}}, &Checkpoint{}},
		{&Taken{Plan: "p", Partition: 17}, &Taken{}},
		{&Tasks{Crawl: "2026-11", Stage: "fetch", Plan: "p", Partitions: []int{3, 17}}, &Tasks{}},
		{&Settings{Config: "fetch: {slots: 7}\n"}, &Settings{}},
		{&Politeness{Revision: 2, Config: "delay: 2s\n"}, &Politeness{}},
		{&Ledger{Crawl: "2026-11", Entries: []Entry{{N: 1, What: EntryCrawl, Object: "k", SHA256: "ab", Digest: "cd"}}}, &Ledger{}},
		{&Crawls{Crawls: []CrawlName{{Crawl: "2026-11", At: "t"}}}, &Crawls{}},
	}
	for _, d := range docs {
		body, err := Encode(d.in)
		if err != nil {
			t.Fatal(err)
		}
		if err := Decode("key", body, d.out); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(d.in, d.out); diff != "" {
			t.Errorf("%s: %s", d.in.kind(), diff)
		}
	}
}

func TestDamagedDocumentsAndThoseOfAnotherFormatAreRefusedByName(t *testing.T) {
	header := func(kind string) string {
		return fmt.Sprintf(`{"format_version":%d,"kind":%q`, schema.FormatVersion, kind)
	}
	cases := []struct {
		name, body string
		want       error
	}{
		{"empty", "", ErrCorrupt},
		{"truncated", header("plan") + `,"plan":"x"`, ErrCorrupt},
		{"other JSON", `{"a":1}`, ErrCorrupt},
		{"other kind", header("taken") + `,"plan":"x"}`, ErrCorrupt},
		{"unknown field", header("plan") + `,"plans":"x"}`, ErrCorrupt},
		{"newer", fmt.Sprintf(`{"format_version":%d,"kind":"plan","what":1}`, schema.FormatVersion+1), ErrFormat},
		{"older", fmt.Sprintf(`{"format_version":%d,"kind":"plan"}`, schema.FormatVersion-1), ErrFormat},
	}
	for _, c := range cases {
		err := Decode("crawl=2026-11/x.json", []byte(c.body), &Plan{})
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), `"crawl=2026-11/x.json"`) {
			t.Errorf("%s: %v, want %v with the key", c.name, err, c.want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	body, err := Encode(&Plan{ID: "p"})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(body)
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, d := range []Document{&Plan{}, &Result{}, &Checkpoint{}, &Sealed{}} {
			if err := Decode("k", body, d); err != nil && !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrFormat) {
				t.Errorf("%v wraps neither ErrCorrupt nor ErrFormat", err)
			}
		}
	})
}

func TestADocumentThatCouldNotBeReadBackIsNotWritten(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	if body, err := Encode(&Removal{Crawl: strings.Repeat("x", MaxBytes)}); err != nil || len(body) <= MaxBytes {
		t.Errorf("a list of objects: %d bytes, %v", len(body), err)
	}
	if _, err := Encode(&Checkpoint{Recorded: make([]byte, MaxBytes/4*3)}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a bitmap of %d bytes: %v", MaxBytes/4*3, err)
	}
}
