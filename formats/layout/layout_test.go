package layout

import (
	"path"
	"strings"
	"testing"
)

func TestParseMonthTakesOnlyMonths(t *testing.T) {
	for _, s := range []string{"2026-11", "2027-01"} {
		if _, err := ParseMonth(s); err != nil {
			t.Errorf("ParseMonth(%q): %v", s, err)
		}
	}
	for _, s := range []string{"", "2026", "2026-13", "2026-00", "2026-11-01", "november", "2026-1", "0000-01", "../x"} {
		if _, err := ParseMonth(s); err == nil {
			t.Errorf("ParseMonth(%q) returned no error", s)
		}
	}
}

func TestParsePartIsTheInverseOfPart(t *testing.T) {
	for _, n := range []int{0, 7, 17, 99999, 123456} {
		if got, err := ParsePart(Part(n)); err != nil || got != n {
			t.Errorf("ParsePart(Part(%d)) = %d, %v", n, got, err)
		}
	}
	for _, s := range []string{"", "part-", "part-1", "part--0001", "part-00001.json", "00001"} {
		if _, err := ParsePart(s); err == nil {
			t.Errorf("ParsePart(%q) returned no error", s)
		}
	}
}

func TestNoKeyIsTheFolderOfAnother(t *testing.T) {
	keys := []string{
		Active(), CrawlManifest("2026-11"), Settings("2026-11", "0a1b"), Sealed("2026-11", 0), FileList("2026-11", 0, 3, "0a1b"),
		PlanManifest("2026-11", 0, "p"), PlanPart("2026-11", 0, "p", 3), PlanRefused("2026-11", 0, "p"),
		Checkpoint("2026-11", 0, 3), Taken("2026-11", 0, 3), Segment("2026-11", 0, "p", 3, 1, 2, "pages"),
		WARC("2026-11", 0, "p", 3, 1, 2), CDXJ(WARC("2026-11", 0, "p", 3, 1, 2)),
		Table("pages", "2026-11", 0, 3), Captures("2026-11", "warc", 0, 3),
	}
	for _, stage := range []string{"fetch", "merge", "dedup", "rank", "frontier", "publish"} {
		keys = append(keys, TaskList("2026-11", 0, stage, "0a1b"), Inputs("2026-11", 0, stage), Result("2026-11", 0, stage, 3),
			Attempt("2026-11", 0, stage, 3, 2), Working("2026-11", 0, stage, "edges", 3), Run("2026-11", 0, stage, "targets", 3))
	}
	for i, a := range keys {
		for j, b := range keys {
			if i != j && (a == b || strings.HasPrefix(b, a+"/")) {
				t.Errorf("key %q equals the key %q or a folder of it", a, b)
			}
		}
	}
}

// Archive tools identify WARC files by their base names.
func TestNamesOfWARCFilesAreUnique(t *testing.T) {
	names := map[string]string{}
	for _, crawl := range []string{"2026-11", "2026-12"} {
		for round := range 2 {
			for _, plan := range []string{"4f2a", "5e11"} {
				key := WARC(crawl, round, plan, 17, 1, 3)
				if other := names[path.Base(key)]; other != "" {
					t.Errorf("%q and %q have the same base name", key, other)
				}
				names[path.Base(key)] = key
				if c, r, p, ok := ParseWARC(key); c != crawl || r != round || p != 17 || !ok {
					t.Errorf("%q: %q, %d, %d, %t", key, c, r, p, ok)
				}
			}
		}
	}
	if names["2026-11-r0-4f2a-part-00017-e1-00003.warc.gz"] == "" {
		t.Errorf("names are %v", names)
	}
	for _, key := range []string{"", "part-00009-e1-00003.warc.gz", "warc/crawl=2026-10/round=2/x/part-00009-e1-00003.warc.gz", "warc/crawl=2026-10/round=2/part-00009-e1-00003.warc.gz", "warc/crawl=2026-10/round=2/apart-00009-e1-00003.warc.gz",
		CDXJ(WARC("2026-11", 0, "p", 3, 1, 2))} {
		if _, _, _, ok := ParseWARC(key); ok {
			t.Errorf("%q is accepted as the key of a WARC file", key)
		}
	}
}

func TestKeysOfAttemptsAreParsedBack(t *testing.T) {
	dir := AttemptsDir("2026-11", 0, "merge")
	if p, n, ok := ParseAttempt(dir, Attempt("2026-11", 0, "merge", 17, 3)); p != 17 || n != 3 || !ok {
		t.Errorf("%d, %d, %t", p, n, ok)
	}
	if p, _, ok := ParseAttempt(dir, Attempt("2026-11", 0, "merge", 123456, 1)); p != 123456 || !ok {
		t.Errorf("%d, %t", p, ok)
	}
	for _, key := range []string{"", "part-00001-e1.json", dir, dir + "part-00001-e0.json", dir + "part-00001-e01.json", dir + "part-1-e1.json", dir + "part-00001-e1", dir + "part-00001.json"} {
		if _, _, ok := ParseAttempt(dir, key); ok {
			t.Errorf("%q is accepted as the key of an attempt", key)
		}
	}
}

func TestAReparseIsNamedAfterItsMonth(t *testing.T) {
	for name, want := range map[string]struct {
		month string
		ok    bool
		again bool
	}{
		"2026-11": {"2026-11", true, false}, "2026-11r1": {"2026-11", true, true}, "2026-11r12": {"2026-11", true, true},
		"2026-11r": {"2026-11", false, false}, "2026-11r0": {"2026-11", false, false}, "2026-11r1r2": {"2026-11", false, false},
		"2026-13r1": {"2026-13", false, false}, "0001-01r1": {"0001-01", false, false}, "r1": {"", false, false}, "": {"", false, false},
	} {
		month, ok := MonthOf(name)
		if month != want.month && ok || ok != want.ok || IsReparse(name) != want.again {
			t.Errorf("%q: %q, %t, a reparse: %t", name, month, ok, IsReparse(name))
		}
	}
}
