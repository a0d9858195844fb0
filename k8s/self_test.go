package k8s

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/stages"
)

func TestTheNameOfAJobTellsTheMonth(t *testing.T) {
	for _, c := range []struct{ name, want string }{
		{"crawl-2026-11", "2026-11"},
		{"2026-11", "2026-11"},
		{"crawlbatch-29881440", "2026-10"}, // minute 2026-10-25T00:00Z
		{"crawlbatch-29891519", "2026-10"}, // minute 2026-10-31T23:59Z, the last of October
		{"crawlbatch-29891520", "2026-11"}, // minute 2026-11-01T00:00Z
		{"crawl-2026-13", ""},
		{"crawl-20261101", ""}, // a date is not a number of minutes
		{"crawl-99999999999", ""},
		{"crawlbatch", ""},
		{"", ""},
	} {
		if got := MonthOfJob(c.name); got != c.want {
			t.Errorf("%q: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestACompletionIndexChoosesAPartitionOfTheTaskList(t *testing.T) {
	b := newLab(t).Bucket
	key := layout.TaskList("2026-11", 0, "fetch", "0a1b")
	list := &manifest.Tasks{Crawl: "2026-11", Stage: "fetch", Plan: "p1", Partitions: []int{3, 17, 40}}
	if _, err := manifest.Create(t.Context(), b, key, list); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, key, index string
		stage            stages.Stage
		round            int
		want             int
		err              error
	}{
		{"first", key, "0", stages.Fetch, 0, 3, nil},
		{"last", key, "2", stages.Fetch, 0, 40, nil},
		{"beyond the list", key, "3", stages.Fetch, 0, 0, ErrIndex},
		{"negative", key, "-1", stages.Fetch, 0, 0, ErrIndex},
		{"not set", key, "", stages.Fetch, 0, 0, ErrIndex},
		{"no number", key, "1x", stages.Fetch, 0, 0, ErrIndex},
		{"another stage's list", key, "0", stages.Merge, 0, 0, stages.ErrPermanent},
		{"another round's list", key, "0", stages.Fetch, 1, 0, stages.ErrPermanent},
		{"no list", key + "x", "0", stages.Fetch, 0, 0, store.ErrNotFound},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := PartitionAt(t.Context(), b, c.key, c.index, stages.Task{Stage: c.stage, Crawl: "2026-11", Round: c.round})
			if !errors.Is(err, c.err) || err == nil && got != c.want {
				t.Errorf("partition %d, %v", got, err)
			}
		})
	}
}

func TestTheLastWordsOfATaskAreOneLineOfBoundedLength(t *testing.T) {
	file := filepath.Join(t.TempDir(), "termination-log")
	for _, c := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("fetch@2026-11.0:3: %w", stages.ErrInterrupted), "fetch@2026-11.0:3: interrupted\n"},
		{errors.New("fault: boom\n\tgoroutine 1"), "fault: boom goroutine 1\n"},
		{errors.New(strings.Repeat("é", maxTermination)), strings.Repeat("é", maxTermination/2) + "\n"},
	} {
		if err := WriteTermination(file, c.err); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != c.want {
			t.Errorf("%q, %v; want %q", got, err, c.want)
		}
	}
}
