package owner

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/jobs"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/jobstest"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/jobs/ledger/ledgertest"
	"crawlbatch.io/crawlbatch/jobs/local"
	"crawlbatch.io/crawlbatch/jobs/prune"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/jobs/worker"
	"crawlbatch.io/crawlbatch/planner/source"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/simweb"
)

const crawl = "2026-11"

func TestEveryFormNamesTheSameHost(t *testing.T) {
	for given, want := range map[string]string{
		"EXAMPLE.org.": "example.org", "example.org:443": "example.org", "https://Example.org/a?b#c": "example.org",
		"//example.org/": "example.org", " example.org/path ": "example.org", "bücher.example:8080": "xn--bcher-kva.example:8080",
		"127.0.0.1:99": "127.0.0.1:99", "www.example.org": "www.example.org",
	} {
		if got, err := Parse(given, false); err != nil || got.Host != want {
			t.Errorf("%q: %q, %v, want %q", given, got.Host, err, want)
		}
	}
	for _, given := range []string{"", "a b", "ftp://example.org/", "http://"} {
		if _, err := Parse(given, false); !errors.Is(err, ErrName) {
			t.Errorf("%q: %v", given, err)
		}
	}
}

// The test runs a crawl of two rounds, in which a host's robots.txt denies some URLs.
func TestTheAnswerHasEveryRequestOfTheHost(t *testing.T) {
	b, cfg, driver := lab(t)
	if err := driver.Run(t.Context(), crawl, 1); err != nil {
		t.Fatal(err)
	}
	target, err := Parse("HTTP://H00000.D00000.test.:80/x", false)
	if err != nil {
		t.Fatal(err)
	}
	q := &Question{Bucket: b, Crawl: crawl, Config: cfg, Target: target, Scratch: t.TempDir()}
	first := answer(t, q)
	if err := driver.Run(t.Context(), crawl, 2); err != nil {
		t.Fatal(err)
	}
	rows := answer(t, q)
	if len(rows.Requests) <= len(first.Requests) || len(rows.Summary.Rounds) < 2 || !rows.Summary.Rounds[1].Finished {
		t.Errorf("%d rows after round 0, %d after round 1: %+v", len(first.Requests), len(rows.Requests), rows.Summary.Rounds)
	}
	var sent, listed int64
	gap := int64(1 << 60)
	for i, r := range rows.Requests {
		if r.Host != "h00000.d00000.test" {
			t.Errorf("a request to %s", r.Host)
		}
		if r.Purpose == NotRequested {
			continue
		}
		if i > 0 && rows.Requests[i-1].Purpose != NotRequested && rows.Requests[i-1].Round == r.Round && rows.Requests[i-1].Time > r.Time {
			t.Errorf("row %d is earlier than the row before", i)
		}
		if r.GapMS != nil {
			gap = min(gap, *r.GapMS)
		} else if sent > 0 {
			t.Errorf("the gap before %s at %s is unknown", r.URL, r.Time)
		}
		sent++
	}
	for _, r := range rounds(t, q) {
		for h, err := range q.hosts(t.Context(), r) {
			if err != nil {
				t.Fatal(err)
			}
			listed += h.Requests
		}
	}
	s := rows.Summary
	if sent != s.Requests || listed != sent || sent == 0 || s.SmallestGapMS == nil || *s.SmallestGapMS != gap {
		t.Errorf("%d rows, %d in hosts, summary %+v", sent, listed, s)
	}
	if s.Stored.Documents == 0 || s.Stored.RobotsFiles == 0 || s.Stored.Bytes == 0 || len(s.Stored.WARCFiles) == 0 || len(s.Robots) == 0 || s.Robots[0].Digest == "" {
		t.Errorf("stored %+v, robots %+v", s.Stored, s.Robots)
	}
	for _, want := range []string{"User-agent: examplebot\n", "https://example.org/bot", "opt-out list"} {
		if !strings.Contains(s.Reply, want) {
			t.Errorf("the reply lacks %q:\n%s", want, s.Reply)
		}
	}
	var table, text strings.Builder
	if err := q.CSV(t.Context(), &table); err != nil {
		t.Fatal(err)
	}
	if records, err := csv.NewReader(strings.NewReader(table.String())).ReadAll(); err != nil || len(records) != len(rows.Requests)+1 {
		t.Errorf("CSV has %d records, %v", len(records), err)
	}
	if err := q.Text(t.Context(), &text, 2, "crawlbatch host x", ""); err != nil || !strings.Contains(text.String(), "The last 2 of ") || !strings.Contains(text.String(), "crawlbatch host x -o csv") {
		t.Errorf("%v\n%s", err, text.String())
	}
	unknownAndLost(t, *q)
}

// unknownAndLost asks for hosts that the crawl does not know, and then for a host whose part of a
// table is gone.
func unknownAndLost(t *testing.T, q Question) {
	host := q.Target
	var out strings.Builder
	for given, want := range map[string]string{"h99999.d00000.test": "h00000.d00000.test", "h00000.d0000.test": "It knows similar names: h00000.d00000.test", "nowhere.example": "of nowhere.example"} {
		q.Target, _ = Parse(given, false)
		if err := q.CSV(t.Context(), &out); !errors.Is(err, ErrUnknown) || !strings.Contains(err.Error(), want) || out.Len() > 0 {
			t.Errorf("%s: %v, printed %q", given, err, out.String())
		}
	}
	q.Target, _ = Parse("d0000.test", true)
	if err := q.Known(t.Context()); !errors.Is(err, ErrUnknown) || !strings.Contains(err.Error(), "It knows similar names: d00000.test") {
		t.Error(err)
	}
	q.Target = host
	key := rounds(t, &q)[0].keys(stages.FileRequests, "")[0]
	if err := q.Bucket.Delete(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	if _, err := q.Answer(t.Context(), func(*Row) error { return nil }); !errors.Is(err, stages.ErrPermanent) || !strings.Contains(err.Error(), key) {
		t.Errorf("without %s: %v", key, err)
	}
}

// The owner asks for the gap between two requests, whichever attempts sent them.
func TestTheGapCountsAcrossAttemptsAndRounds(t *testing.T) {
	own := int64(2000)
	all := tally{purposes: map[string]int64{}, statuses: map[string]int64{}}
	for _, c := range []struct {
		request schema.Request
		gap     int64 // -1: unknown
	}{
		{schema.Request{Host: "a", Epoch: 1, Start: 1000_000, BytesSent: 1}, -1},
		{schema.Request{Host: "a", Epoch: 1, Start: 3000_000, BytesSent: 1, GapMS: &own}, 2000},
		{schema.Request{Host: "a", Epoch: 2, Start: 9000_000}, -1},                              // got no connection
		{schema.Request{Host: "a", Epoch: 2, Start: 10_000_000, BytesSent: 1}, 7000},            // the next attempt
		{schema.Request{Host: "b", Epoch: 2, Start: 10_000_000, BytesSent: 1}, -1},              // another host
		{schema.Request{Host: "a", Epoch: 1, Start: 9000_000, BytesSent: 1}, -1},                // the next round, on a machine whose clock is late
		{schema.Request{Host: "b", Epoch: 1, Start: 10_500_000, BytesSent: 1, GapMS: nil}, 500}, // the next round
	} {
		r := c.request
		all.completeGap(&r)
		all.request(&r)
		if gap := r.GapMS; (gap == nil) != (c.gap < 0) || gap != nil && *gap != c.gap {
			t.Errorf("%+v: the gap is not %d ms", r, c.gap)
		}
	}
	if s := all.SmallestGapMS; s == nil || *s != 500 {
		t.Errorf("the smallest gap is %v", s)
	}
}

func TestAnUnfinishedRoundAnswersFromItsCheckpoints(t *testing.T) {
	b, cfg, driver := lab(t)
	target, err := Parse("h00000.d00000.test", true)
	if err != nil {
		t.Fatal(err)
	}
	q := &Question{Bucket: b, Crawl: crawl, Config: cfg, Target: target, Scratch: t.TempDir()}
	if a := answer(t, q); len(a.Requests) != 0 || a.Summary.Rounds[0].Planned == 0 || a.Summary.Rounds[0].Finished {
		t.Errorf("a planned round: %+v", a.Summary)
	}
	try := driver.Executor.(*local.Executor).Try
	driver.Executor.(*local.Executor).Try = func(ctx context.Context, task stages.Task) error {
		if task.Stage != stages.Fetch {
			return stages.ErrPermanent
		}
		return try(ctx, task)
	}
	if err := driver.Run(t.Context(), crawl, 1); err == nil {
		t.Fatal("the round ended")
	}
	a := answer(t, q)
	if s := a.Summary; s.Requests == 0 || s.Rounds[0].Finished || s.Stored.Documents == 0 || len(s.Robots) != 1 || s.Robots[0].Digest == "" || s.Robots[0].ReadAt == "" {
		t.Errorf("a fetched round: %+v", s)
	}
	if !slices.IsSortedFunc(a.Requests, func(a, b Row) int { return strings.Compare(a.Time, b.Time) }) {
		t.Error("the requests are not in the order of time")
	}
}

func rounds(t *testing.T, q *Question) []*round {
	t.Helper()
	all, err := q.rounds(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return all
}

type whole struct {
	Requests []Row   `json:"requests"`
	Summary  Summary `json:"summary"`
}

// answer returns the answer that q writes as JSON.
func answer(t *testing.T, q *Question) (a whole) {
	t.Helper()
	var out strings.Builder
	if err := q.JSON(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(out.String()), &a); err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	return a
}

// An owner asks about all months at once. The answer is one list and one text.
func TestAnAnswerAboutAllMonthsHasTheRequestsOfEach(t *testing.T) {
	b, cfg, driver := lab(t, "2026-12")
	target, err := Parse("h00000.d00000.test", false)
	if err != nil {
		t.Fatal(err)
	}
	q := &Question{Bucket: b, Crawl: crawl, Config: cfg, Target: target, Scratch: t.TempDir()}
	var requests []int64
	for _, month := range []string{crawl, "2026-12"} {
		if err := driver.Run(t.Context(), month, 1); err != nil {
			t.Fatal(err)
		}
		requests = append(requests, answer(t, q.about(month)).Summary.Requests)
	}
	stop := ledger.Stop{Host: target.Host, Reason: "ticket 17", By: "ana@one"}
	if _, _, err := ledgertest.Writer().Stop(t.Context(), b, crawl, stop); err != nil {
		t.Fatal(err)
	}
	all := *q.about("2026-12")
	all.Earlier = []string{crawl}
	a := answer(t, &all)
	s := a.Summary
	if s.Requests != requests[0]+requests[1] || requests[0] == 0 || requests[1] == 0 || s.Month != "2026-11 to 2026-12" || len(s.Rounds) != 2 || s.Rounds[0].Round != "2026-11.0" || s.Rounds[1].Round != "2026-12.0" {
		t.Errorf("%d requests in both months, %+v", requests, s)
	}
	if !strings.Contains(s.Reply, fmt.Sprintf("Our crawler sent %d requests to h00000.d00000.test between %s and %s.", s.Requests, s.First, s.Last)) || a.Requests[0].Round != "2026-11.0" || a.Requests[len(a.Requests)-1].Round != "2026-12.0" {
		t.Errorf("%s\n%+v", s.Reply, a.Requests)
	}
	// A stop of an earlier month keeps no request away, so the answer still says how to stop the host.
	if len(s.Stops) != 1 || s.Stops[0].Crawl != crawl || strings.Contains(s.Reply, "we stopped") {
		t.Errorf("stops %+v, %s", s.Stops, s.Reply)
	}
	show := func() string {
		var text strings.Builder
		if err := all.Text(t.Context(), &text, 1, "crawlbatch host x", "crawlbatch host x --month 2026-12"); err != nil {
			t.Fatal(err)
		}
		return text.String()
	}
	const advice = `crawlbatch host x --month 2026-12 --stop "asked by the owner"`
	if text := show(); !strings.Contains(text, "stop       2026-11: h00000.d00000.test: no requests since ") || !strings.Contains(text, "ticket 17 (for this crawl only)\n") || !strings.Contains(text, advice) {
		t.Error(text)
	}
	if _, _, err := ledgertest.Writer().Stop(t.Context(), b, "2026-12", stop); err != nil {
		t.Fatal(err)
	}
	if text := show(); !strings.Contains(text, "stop       2026-12: h00000.d00000.test: no requests since ") || !strings.Contains(text, "ticket 17\n") || strings.Contains(text, advice) || !strings.Contains(text, "we stopped our requests") {
		t.Error(text)
	}
	var object strings.Builder
	if err := all.JSON(t.Context(), &object); err != nil || !strings.Contains(object.String(), `{"crawl":"2026-11","host":"h00000.d00000.test",`) {
		t.Errorf("%v\n%s", err, object.String())
	}
}

// A domain with many hosts, or many months, has more reads of robots.txt than a summary lists.
func TestTheReplyNamesTheNewestReadOfRobots(t *testing.T) {
	const day schema.Time = 24 * 60 * 60 * 1e6
	cfg := config.Default()
	for _, c := range []struct {
		name  string
		state func(n int) string // state of the robots.txt of host n of 60 in a finished round
		late  *schema.Request    // request of an unfinished round
		says  string
	}{
		{"the last host's is the newest", func(int) string { return "rules" }, nil, "last read that of h59.test at 1970-03-01T00:00:00.000Z."},
		{"only the last host's was read", func(n int) string {
			if n == 59 {
				return "none"
			}
			return stateUnreachable
		}, nil, "last read that of h59.test at 1970-03-01T00:00:00.000Z."},
		{"none was read", func(int) string { return stateUnreachable }, nil, "It could not read robots.txt"},
		{"an unfinished round read one", func(int) string { return "rules" }, &schema.Request{Host: "late.test", Purpose: schema.ForRobots, Status: 200, Start: 90 * day}, "last read that of late.test at 1970-04-01T00:00:00.000Z."},
		{"an unfinished round got no answer", func(int) string { return "rules" }, &schema.Request{Host: "late.test", Purpose: schema.ForRobots, Status: 503, Start: 90 * day}, "last read that of h59.test"},
	} {
		var all tally
		for n := range 60 {
			all.robotsOf("2026-11.0", &schema.Host{Host: fmt.Sprintf("h%02d.test", n), RobotsState: c.state(n), RobotsAt: schema.Time(n) * day})
		}
		if c.late != nil {
			all.readRobots("2026-11.1", c.late, len(all.Robots))
		}
		if reply := all.reply(cfg, crawl, nil); !strings.Contains(reply, c.says) || strings.Contains(reply, "could not read") == strings.Contains(reply, "last read") || len(all.Robots) != mostRobots {
			t.Errorf("%s: %d listed, %s", c.name, len(all.Robots), reply)
		}
	}
}

// A process that is killed leaves only the record that it began. Its last requests are in no table.
func TestTheAnswerNamesKilledAttempts(t *testing.T) {
	b, cfg, driver := lab(t)
	task := stages.Task{Stage: stages.Fetch, Crawl: crawl}
	begun := &manifest.Begun{Task: task.String(), At: "2026-11-02T10:00:00Z", Machine: "one"}
	if key := roundstate.CreateBegun(t.Context(), b, task, begun); key == "" {
		t.Fatal("the beginning was not recorded")
	}
	if err := driver.Run(t.Context(), crawl, 1); err != nil {
		t.Fatal(err)
	}
	target, err := Parse("h00000.d00000.test", false)
	if err != nil {
		t.Fatal(err)
	}
	q := &Question{Bucket: b, Crawl: crawl, Config: cfg, Target: target, Scratch: t.TempDir()}
	s := answer(t, q).Summary
	if killed := s.Rounds[0].Killed; len(killed) != 1 || killed[0].Began != "2026-11-02T10:00:00.000Z" {
		t.Fatalf("%+v", s.Rounds)
	}
	if !strings.Contains(s.Reply, "Our crawler has recorded ") || !strings.Contains(s.Reply, "The list may lack requests: one process of the crawl died") {
		t.Error(s.Reply)
	}
	var list strings.Builder
	if err := q.CSV(t.Context(), &list); err != nil || !strings.Contains(list.String(), "\n2026-11.0,2026-11-02T10:00:00.000Z,h00000.d00000.test,unrecorded,,,,,,,,,,,0,0,,") || !strings.Contains(list.String(), "requests after its last checkpoint are missing here\"\n") {
		t.Errorf("%v\n%s", err, list.String())
	}
	var text strings.Builder
	if err := q.Text(t.Context(), &text, 3, "crawlbatch host h", ""); err != nil || !strings.Contains(text.String(), "an attempt was killed (began 2026-11-02T10:00:00.000Z, ") {
		t.Errorf("%v\n%s", err, text.String())
	}
}

// The captures dataset still lists responses whose WARC files were pruned.
func TestTheAnswerSaysWhichResponsesWerePruned(t *testing.T) {
	b, cfg, driver := lab(t, "2026-12")
	for _, month := range []string{crawl, "2026-12"} {
		if err := driver.Run(t.Context(), month, 1); err != nil {
			t.Fatal(err)
		}
	}
	target, err := Parse("h00000.d00000.test", false)
	if err != nil {
		t.Fatal(err)
	}
	q := &Question{Bucket: b, Crawl: "2026-12", Earlier: []string{crawl}, Config: cfg, Target: target, Scratch: t.TempDir()}
	count := func(s Stored) int64 { return s.Documents + s.Diagnostics + s.RobotsFiles }
	shows := func(s Summary, text, reply string) {
		t.Helper()
		var out strings.Builder
		if err := q.Text(t.Context(), &out, 1, "crawlbatch host x", ""); err != nil || !strings.Contains(out.String(), text) || !strings.Contains(s.Reply, reply) {
			t.Errorf("%v, want %q and %q\n%s\n%s", err, text, reply, out.String(), s.Reply)
		}
	}
	before := answer(t, q).Summary.Stored
	if len(before.Deleted) > 0 || count(before) == 0 {
		t.Fatalf("%+v", before)
	}

	// A prune that was interrupted may have deleted any of the files, except those that stay.
	for _, kept := range [][]string{before.WARCFiles[:1], {}} {
		list := &manifest.Prune{Crawl: crawl, Prune: manifest.Pruning{Policy: manifest.PruneRaw, Months: 1, Rounds: 1}, Kept: kept}
		if _, err := ledgertest.Writer().BeginPruning(t.Context(), b, list); err != nil {
			t.Fatal(err)
		}
		s := answer(t, q).Summary
		if d := s.Stored.Deleted; len(kept) == 1 && len(d) > 0 || len(kept) == 0 && (len(d) != 1 || !d[0].Unfinished || d[0].Crawl != crawl || d[0].Responses+count(s.Stored) != count(before)) {
			t.Errorf("%v stays: %+v", kept, s.Stored)
		}
	}
	shows(answer(t, q).Summary, "not finished: some may still be stored\n", fmt.Sprintf(" responses of the crawl %s by their age, since 20", crawl))

	days := map[string]string{crawl: "2027-01-15", "2026-12": "2027-06-15"} // when the crawls lose their raw captures
	for n, month := range []string{crawl, "2026-12"} {
		at, err := time.Parse(time.DateOnly, days[month])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := prune.Apply(t.Context(), prune.Request{Bucket: b, Raw: 1, Clock: fixed{now: at}, Version: "test"}); err != nil {
			t.Fatal(err)
		}
		s := answer(t, q).Summary
		sum, bytes := count(s.Stored), s.Stored.Bytes
		for _, d := range s.Stored.Deleted {
			sum, bytes = sum+d.Responses, bytes+d.Bytes
			if day := days[d.Crawl]; d.Unfinished || d.At != day+"T00:00:00Z" {
				t.Errorf("at %s: %+v", day, d)
			}
			shows(s, fmt.Sprintf("\ndeleted    %s\n", d.line()), fmt.Sprintf("We have deleted %d responses of the crawl %s by their age, on %s at the latest.\n", d.Responses, d.Crawl, days[d.Crawl]))
		}
		if sum != count(before) || bytes != before.Bytes || len(s.Stored.Deleted) != n+1 || !slices.Equal(s.Stored.WARCFiles, before.WARCFiles[n+1:]) {
			t.Errorf("without %s: %+v, before %+v", month, s.Stored, before)
		}
		if left := count(s.Stored); strings.Contains(s.Reply, fmt.Sprintf("We still store %d responses.\n", left)) != (left > 0) {
			t.Errorf("%d are left: %s", left, s.Reply)
		}
	}
}

// Without the list of the WARC files that stay, nobody knows which responses are deleted. The requests are known.
func TestTheAnswerDoesNotNeedTheListOfWhatPruneLeft(t *testing.T) {
	b, cfg, driver := lab(t)
	if err := driver.Run(t.Context(), crawl, 1); err != nil {
		t.Fatal(err)
	}
	target, err := Parse("h00000.d00000.test", false)
	if err != nil {
		t.Fatal(err)
	}
	q := &Question{Bucket: b, Crawl: crawl, Config: cfg, Target: target, Scratch: t.TempDir()}
	before := answer(t, q)
	old := fixed{now: time.Date(2028, 1, 15, 0, 0, 0, 0, time.UTC)}
	if _, err := prune.Apply(t.Context(), prune.Request{Bucket: b, Raw: 1, Clock: old, Version: "test"}); err != nil {
		t.Fatal(err)
	}
	l, err := ledger.Load(t.Context(), b, crawl)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Delete(t.Context(), l.Pruning().Object); err != nil {
		t.Fatal(err)
	}
	a := answer(t, q)
	if d := a.Summary.Stored.Deleted; len(a.Requests) != len(before.Requests) || len(d) != 1 || !d[0].Unfinished || d[0].Bytes != before.Summary.Stored.Bytes {
		t.Errorf("%d of %d requests, %+v, stored before: %+v", len(a.Requests), len(before.Requests), d, before.Summary.Stored)
	}
}

// Other stores name their WARC files as this one does. A reparse of such files has its responses whatever this store
// pruned of the month that they name.
func TestResponsesOfAnotherStoreAreNotPruned(t *testing.T) {
	archive, cfg, driver := lab(t)
	if err := driver.Run(t.Context(), crawl, 1); err != nil {
		t.Fatal(err)
	}
	var files []string
	for o, err := range archive.List(t.Context(), layout.WARCDir(crawl)) {
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(o.Key, ".warc.gz") {
			files = append(files, o.Key)
		}
	}
	target, err := Parse("h00000.d00000.test", false)
	if err != nil {
		t.Fatal(err)
	}
	namesake, _, later := lab(t)
	if err := later.Run(t.Context(), crawl, 1); err != nil {
		t.Fatal(err)
	}
	old := fixed{now: time.Date(2028, 1, 15, 0, 0, 0, 0, time.UTC)}
	if _, err := prune.Apply(t.Context(), prune.Request{Bucket: namesake, Raw: 1, Clock: old, Version: "test"}); err != nil {
		t.Fatal(err)
	}
	empty, err := dirstore.Open(filepath.Join(t.TempDir(), "store"), dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string]store.Bucket{"no crawl of that name": empty, "a pruned crawl of that name": namesake} {
		const as = crawl + "r1"
		if _, err := jobs.Reparse(t.Context(), jobs.ReparseRequest{
			Bucket: b, As: as, Config: cfg, Archive: archive, ArchiveName: "archive", Files: files, Clock: stages.SystemClock{}, Version: "test", Scratch: t.TempDir(), Lookup: os.LookupEnv,
		}); err != nil {
			t.Fatal(err)
		}
		open := func(context.Context, string) (store.Bucket, error) { return archive, nil }
		if err := driverOf(t, b, cfg, open).Run(t.Context(), as, 1); err != nil {
			t.Fatal(err)
		}
		q := &Question{Bucket: b, Crawl: as, Config: cfg, Target: target, Scratch: t.TempDir()}
		if s := answer(t, q).Summary.Stored; len(s.Deleted) > 0 || s.Documents == 0 || len(s.WARCFiles) == 0 {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

// fixed is a clock that stands still.
type fixed struct {
	stages.SystemClock
	now time.Time
}

func (f fixed) Now() time.Time { return f.now }

// lab plans a crawl of a synthetic web, which is served until the test ends.
func lab(t *testing.T, later ...string) (store.Bucket, *config.Config, *jobs.Driver) {
	t.Helper()
	w := simweb.Default()
	w.Hosts, w.PagesPerHost, w.FaultShare, w.CrawlDelay = 3, 12, 0, 0
	web, err := simweb.New(w)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serving, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- simweb.NewServer(web, nil).Serve(serving, ln) }()
	t.Cleanup(func() {
		stop()
		<-served
	})
	b, err := dirstore.Open(filepath.Join(t.TempDir(), "store"), dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	seeds := filepath.Join(t.TempDir(), "urls.txt")
	if err := os.WriteFile(seeds, []byte(strings.Join(slices.Collect(web.Seeds()), "\n")), 0o644); err != nil {
		t.Fatal(err)
	}
	from, err := source.Files(seeds, nil)
	if err != nil {
		t.Fatal(err)
	}
	cfg := config.Default()
	cfg.UserAgent = "examplebot/1.0 (+https://example.org/bot)"
	cfg.Politeness.Delay = config.Duration(10 * time.Millisecond)
	cfg.Fetch.ConnectTo = []string{"::" + ln.Addr().String()}
	for _, month := range append([]string{crawl}, later...) {
		if _, _, err := jobs.Plan(t.Context(), jobs.PlanRequest{
			Bucket: b, Crawl: month, Sources: []source.Source{from}, Config: cfg, Clock: stages.SystemClock{}, Version: "test", Scratch: t.TempDir(), Lookup: os.LookupEnv,
		}); err != nil {
			t.Fatal(err)
		}
	}
	return b, cfg, driverOf(t, b, cfg, nil)
}

// driverOf returns a driver of the crawls of a store. archive opens the stores of external WARC files.
func driverOf(t *testing.T, b store.Bucket, cfg *config.Config, archive func(context.Context, string) (store.Bucket, error)) *jobs.Driver {
	clock, log, scratch := stages.SystemClock{}, slog.New(slog.DiscardHandler), t.TempDir()
	try := worker.Runner{Bucket: b, Config: cfg, Version: "test", Scratch: scratch, Clock: clock, Log: log, Progress: stages.NoProgress{}, Archive: archive}
	return &jobs.Driver{
		Bucket: b, Observer: jobstest.NoObserver{}, Config: cfg, Clock: clock, Log: log, Version: "test", Scratch: scratch, Lookup: os.LookupEnv,
		Executor: &local.Executor{Try: try.Run, FetchTasks: 4, Tasks: 2, Attempts: 1, Clock: clock, Log: log},
	}
}
