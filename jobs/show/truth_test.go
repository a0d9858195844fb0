package show

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/jobs"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/stages"
)

// statusText writes a status on a wide terminal.
func statusText(t *testing.T, s *jobs.Status, now time.Time) string {
	t.Helper()
	var out bytes.Buffer
	if err := Status(&out, s, now, 300); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// After a resume, what earlier attempts did says nothing about the rate of the running one.
func TestTheRateIsThatOfTheRunningAttempt(t *testing.T) {
	at := time.Date(2026, 11, 22, 14, 0, 0, 0, time.Local)
	for name, c := range map[string]struct {
		f    jobs.FetchStatus
		want *Rate
	}{
		"resumed": {jobs.FetchStatus{Planned: 1000, Done: 960, Epoch: 2, Bytes: 9e9, Activity: &manifest.Activity{
			At: at.UnixMilli(), Began: at.Add(-100 * time.Second).UnixMilli(), BeganLeft: 60, Left: 40, Bytes: 5000, ElapsedMS: 400_000,
		}}, &Rate{0.2, 50}},
		"resumed, without a checkpoint of its own": {jobs.FetchStatus{Planned: 1000, Done: 960, Epoch: 2, Bytes: 9e9, Activity: &manifest.Activity{
			At: at.UnixMilli(), Began: at.Add(-100 * time.Second).UnixMilli(), Left: 40, Bytes: 5000, ElapsedMS: 400_000,
		}}, nil},
		"the first attempt": {jobs.FetchStatus{Planned: 1000, Done: 40, Epoch: 1, Activity: &manifest.Activity{At: at.UnixMilli(), Left: 960, Bytes: 800, ElapsedMS: 400_000}}, &Rate{0.1, 2}},
	} {
		s := &jobs.Status{Crawl: "2026-11", Rounds: []jobs.RoundStatus{{State: "running", URLs: 1000, Partitions: 1, Stages: []jobs.StageStatus{
			{Stage: stages.Fetch, Tasks: 1, Running: 1, Fetching: []jobs.FetchStatus{c.f}},
		}}}}
		got := new(Meter).Screen(s, at).Average
		if (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// While a crawl is paused, no time at which a host would be asked again holds.
func TestAPausedCrawlShowsNoTimesOfRetries(t *testing.T) {
	began := time.Date(2026, 11, 22, 14, 0, 0, 0, time.Local)
	for name, released := range map[string]bool{"released": true, "not released yet": false} {
		s := runningStatus(began, 5)
		s.Paused = &ledger.Pause{By: "a@b", Since: "2026-11-22T14:00:00Z", Continue: "crawlbatch continue"}
		for i := range s.Rounds[0].Stages[0].Fetching {
			f := &s.Rounds[0].Stages[0].Fetching[i]
			f.Released, f.GiveUp = released, "crawlbatch retry --give-up"
			f.Activity.Waits = []manifest.Wait{{Host: "bad.test", Why: "robots.txt answered 503, asked again", Until: began.Add(20 * time.Minute).UnixMilli(), URLs: 12}}
			f.Activity.More = 2
		}
		got := statusText(t, s, began.Add(5*time.Minute))
		for _, not := range []string{"asked again", "in 15m0s", "waits for", "left, until", "give-up"} {
			if strings.Contains(got, not) {
				t.Errorf("%s: it says %q:\n%s", name, not, got)
			}
		}
		if !strings.Contains(got, "      paused: bad.test: robots.txt answered 503 (12 URLs)\n      paused: 2 hosts more\n") {
			t.Errorf("%s: the hosts are not paused:\n%s", name, got)
		}
	}
}

// If the last try of a robots.txt fails, the pages of its host need no time.
func TestTheEndIsARangeOnTheLastTryOfARobotsTxt(t *testing.T) {
	began := time.Date(2026, 11, 22, 14, 0, 0, 0, time.Local)
	now := began.Add(5 * time.Minute)
	s := runningStatus(began, 5)
	s.Rounds[0].Stages[0].Done, s.Rounds[0].Stages[0].Recorded, s.Rounds[0].URLs = 2, 2000, 4000 // every other partition is taken or finished
	for i := range s.Rounds[0].Stages[0].Fetching {
		a := s.Rounds[0].Stages[0].Fetching[i].Activity
		a.RemainingMS = 60_000
	}
	a := s.Rounds[0].Stages[0].Fetching[1].Activity
	a.RemainingMS, a.LeastMS = 1_800_000, 120_000
	a.Latest = &manifest.Wait{Host: "bad.test", Why: "answered 503", Until: now.Add(2 * time.Minute).UnixMilli()}
	if screen := new(Meter).Screen(s, now); screen.LeftMS != 1_800_000 || screen.LeastLeftMS != 120_000 || screen.MostLeftMS != 0 {
		t.Errorf("%+v", screen)
	}
	got := statusText(t, s, now)
	for _, want := range []string{
		"ends between 14:07 and 14:35, the earlier if the robots.txt of bad.test goes on failing (it answered 503)",
		"between 2 min and 30 min left, the shorter if the robots.txt of bad.test goes on failing (it answered 503)\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

// In its first seconds, an attempt has heard of the quick hosts only.
func TestAnAttemptThatJustBeganPredictsNoEndWithinAMinute(t *testing.T) {
	began := time.Date(2026, 11, 22, 14, 0, 0, 0, time.Local)
	for age, says := range map[time.Duration]bool{5 * time.Second: false, 30 * time.Second: true} {
		s := runningStatus(began, 0)
		for i := range s.Rounds[0].Stages[0].Fetching {
			a := s.Rounds[0].Stages[0].Fetching[i].Activity
			a.Began, a.At, a.RemainingMS = began.UnixMilli(), began.Add(age).UnixMilli(), 50_000
		}
		if got := strings.Contains(statusText(t, s, began.Add(age)), "hosts between two requests, under a minute left"); got != says {
			t.Errorf("after %s it predicts the end: %v", age, got)
		}
	}
}

func TestNumbersOlderThanAMinuteSayTheirAge(t *testing.T) {
	began := time.Date(2026, 11, 22, 14, 0, 0, 0, time.Local)
	s := runningStatus(began, 5)
	for age, want := range map[time.Duration]string{50 * time.Second: "URLs (40%)\n", 100 * time.Second: "URLs (40%), as of 14:05:00, 1m40s ago\n"} {
		s.Rounds[0].Stages[0].Counts = nil
		if got := statusText(t, s, began.Add(5*time.Minute+age)); !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

func TestAPredictedEndThatMovesByMuchSaysWhy(t *testing.T) {
	now := time.Date(2026, 11, 22, 14, 0, 0, 0, time.Local)
	late := stages.Activity{Waits: []stages.Wait{{Host: "bad.test", Why: "robots.txt answered 503, asked again", URLs: 3}}}
	var f forecast
	for _, c := range []struct {
		after, left time.Duration
		want        string
	}{
		{0, 0, ""},                          // nothing is known yet
		{time.Minute, 20 * time.Minute, ""}, // the first prediction
		{2 * time.Minute, 22 * time.Minute, ""},
		{3 * time.Minute, 60 * time.Minute, "the predicted end moved from 14:21 to 15:03, because of bad.test: robots.txt answered 503, asked again (3 URLs)"},
		{7 * time.Minute, 57 * time.Minute, "the predicted end moved from 14:21 to 15:03, because of bad.test: robots.txt answered 503, asked again (3 URLs)"},
		{9 * time.Minute, 55 * time.Minute, ""}, // that is old
		{10 * time.Minute, 12 * time.Minute, "the predicted end moved from 15:03 to 14:22"},
	} {
		if got := f.take(now.Add(c.after), c.left, late); got != c.want {
			t.Errorf("after %s: %q, want %q", c.after, got, c.want)
		}
	}
}

func TestTheAdviceOfAStatusNamesAllHostsThatEndLast(t *testing.T) {
	began := time.Date(2026, 11, 22, 14, 0, 0, 0, time.Local)
	s := runningStatus(began, 5)
	f := &s.Rounds[0].Stages[0].Fetching[1]
	f.GiveUp, f.Stops = "crawlbatch retry --give-up", []jobs.HostStop{{Host: "a.test", URLs: 3, Command: "crawlbatch host a.test --stop"}, {Host: "b.test", Command: "crawlbatch host b.test --stop"}}
	f.Activity.RemainingMS = 1_200_000
	for range 18 {
		f.Activity.Slowest = append(f.Activity.Slowest, "more.test")
	}
	f.Activity.Slowest = append([]string{"a.test", "b.test"}, f.Activity.Slowest...)
	got := statusText(t, s, began.Add(5*time.Minute))
	if want := "  20 or more hosts end last, within a tenth of the time left: a.test, b.test, more.test and 17 more; to stop only one of them gains little\n  not to wait for a.test: "; !strings.Contains(got, want) {
		t.Errorf("no %q in\n%s", want, got)
	}
}
