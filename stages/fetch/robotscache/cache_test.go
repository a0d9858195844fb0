package robotscache

import (
	"log/slog"
	"slices"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch/polite"
	"crawlbatch.io/crawlbatch/stages/fetch/robots"
)

// clock is a clock that the test moves.
type clock struct {
	stages.SystemClock
	now time.Time
}

func (c *clock) Now() time.Time { return c.now }

func TestEachLookUpThatEndsIsAHitOrAMiss(t *testing.T) {
	canon, err := urlkey.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	now := &clock{now: time.Unix(1_000_000, 0)}
	var looked []bool
	c := New(Options{
		Clock: now, Canon: canon, Token: "bot", TTL: time.Hour, Scratch: t.TempDir(), Memory: 1 << 20,
		Scheduler: polite.New(polite.Options{Config: polite.Config{}, Clock: now, Log: slog.New(slog.DiscardHandler), Breaker: polite.DefaultBreaker(), Slots: 1}),
		Looked:    func(hit bool) { looked = append(looked, hit) },
	})
	defer c.Close()
	e, err := c.EntryOf("http://a.example")
	if err != nil {
		t.Fatal(err)
	}
	look := func(want State, counted ...bool) {
		t.Helper()
		looked = nil
		if state, _, _, err := c.Lookup(e); err != nil || state != want || !slices.Equal(looked, counted) {
			t.Errorf("state %d, want %d; counted %v, want %v; %v", state, want, looked, counted, err)
		}
	}
	look(Unknown, false)
	look(Pending) // the URL waits, and is looked up again
	if _, err := c.Learn(e, &Rules{Group: robots.AllowAll()}); err != nil {
		t.Fatal(err)
	}
	look(Known, true)
	look(Known, true)
	now.now = now.now.Add(2 * time.Hour)
	look(Unknown, false)
	c.Fail(e, Failure{Outcome: schema.RobotsUnreachable})
	look(Failed, true)
}
