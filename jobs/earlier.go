package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/stages"
)

const (
	earlierEvery = time.Minute    // time after which a plan that waits looks at the store again
	sayEvery     = 24 * time.Hour // time after which it says again why it waits
)

// startWithin is the time for which a plan waits for an earlier month without a crawl window: from the time when the
// month was planned, or when its open round began. It is long enough for the Job of a planned month to start, and a
// month that was forgotten delays the next one by no more than this time.
const startWithin = 6 * time.Hour

// EarlierWait says how AwaitEarlier waits.
type EarlierWait struct {
	UntilPlanned bool   // end the wait if the month has a plan
	Flags        string // flags for this store, for commands in the log; begins with a space
}

// AwaitEarlier waits while an earlier month is unfinished and within its crawl window, so that Plan then takes the
// frontier that this month leaves. The log says why it waits, and says it again each day. Once it has read the store,
// AwaitEarlier also waits while the store does not answer or refuses access. planned is true if the wait ended because
// the month has a plan. The error wraps stages.ErrInterrupted if ctx ends.
func (r PlanRequest) AwaitEarlier(ctx context.Context, how EarlierWait) (planned bool, err error) {
	looks := &earlierLooks{request: r, flags: how.Flags, known: map[string]*ledger.Ledger{}}
	began, looked, waitsFor := r.Clock.Now(), false, ""
	said, saidAt := "", time.Time{}
	say := func(level slog.Level, text string, args ...any) {
		if now := r.Clock.Now(); text != said || !now.Before(saidAt.Add(sayEvery)) {
			r.Log.Log(ctx, level, text, args...)
			said, saidAt = text, now
		}
	}
	for {
		var e *earlierMonth
		if planned = false; how.UntilPlanned {
			planned, err = Planned(ctx, r.Bucket, r.Crawl)
		}
		if err == nil && !planned {
			e, err = looks.next(ctx)
		}
		switch {
		case ctx.Err() != nil:
		case errors.Is(err, store.ErrUnavailable), looked && errors.Is(err, store.ErrDenied):
			waitsFor = "the store"
			say(slog.LevelWarn, fmt.Sprintf("the store does not answer or refuses access, so the plan of %s waits, and asks again every minute", r.Crawl), "error", err)
		case err != nil:
			return false, err
		case e == nil:
			if waitsFor != "" {
				why := "goes on"
				if planned {
					why = "waits no longer, because the month was planned meanwhile"
				}
				r.Log.Info(fmt.Sprintf("the plan of %s %s", r.Crawl, why), "waited", r.Clock.Now().Sub(began).Round(time.Second).String())
			}
			return planned, nil
		default:
			looked, waitsFor = true, e.crawl
			say(slog.LevelInfo, fmt.Sprintf("the plan of %s waits for %s, which %s; to end the wait sooner, %sgive the same command without `--after-earlier`: it plans without what %[2]s will find, and the `run` of %[1]s then begins to fetch when the round of %[2]s has been fetched",
				r.Crawl, e.crawl, e.why, e.remedy))
		}
		if r.Clock.Sleep(ctx, earlierEvery) != nil {
			if waitsFor != "" {
				waitsFor = " waited for " + waitsFor
			}
			return false, fmt.Errorf("the plan of %s%s: %w: nothing was planned; the same command waits again", r.Crawl, waitsFor, stages.ErrInterrupted)
		}
	}
}

// earlierMonth is a month for which the plan of a later month waits.
type earlierMonth struct {
	crawl, why string
	remedy     string // what a person can do about the month, which ends with ", or "; or ""
}

// earlierLooks looks for months to wait for. It keeps the ledgers, so that the store sends only those that have changed.
type earlierLooks struct {
	request PlanRequest
	flags   string
	known   map[string]*ledger.Ledger
}

// next returns the oldest month for which the plan must wait now, or nil.
func (s *earlierLooks) next(ctx context.Context) (*earlierMonth, error) {
	r := s.request
	month, err := layout.ParseMonth(r.Crawl)
	if err != nil {
		return nil, err
	}
	named, err := namedCrawls(ctx, r.Bucket, r.Crawl)
	if err != nil {
		return nil, err
	}
	oldest := month.AddDate(0, -reach, 0).Format("2006-01")
	for _, crawl := range slices.Sorted(maps.Keys(named)) {
		if crawl < oldest || crawl >= r.Crawl || layout.IsReparse(crawl) { // a reparse sends no requests, and no frontier is taken from it
			continue
		}
		l, err := s.ledger(ctx, crawl)
		if errors.Is(err, ledger.ErrLost) || errors.Is(err, ledger.ErrNoCrawl) {
			continue // Plan reports it if it needs the month
		}
		if err != nil {
			return nil, err
		}
		if e := waitFor(l, r.Clock.Now(), s.flags); e != nil {
			return e, nil
		}
	}
	return nil, nil
}

// ledger returns the newest ledger of a crawl.
func (s *earlierLooks) ledger(ctx context.Context, crawl string) (l *ledger.Ledger, err error) {
	if l = s.known[crawl]; l != nil {
		l, err = l.Newer(ctx, s.request.Bucket)
	}
	if l == nil || errors.Is(err, store.ErrUnavailable) { // Newer makes only one try
		l, err = ledger.Load(ctx, s.request.Bucket, crawl)
	}
	if err == nil {
		s.known[crawl] = l
	}
	return l, err
}

// waitFor says why, at the time now, the plan of a later month waits for the month of a ledger. It returns nil if the
// plan need not wait.
func waitFor(l *ledger.Ledger, now time.Time, flags string) *earlierMonth {
	finish := "finish it with `" + FinishCommand(l.Crawl, finalRounds(l), flags) + "`, or "
	w, ok := l.Window()
	choice, started := l.Plan(0)
	switch {
	case ok:
		if !l.Unfinished() || !now.Before(w.End) {
			return nil
		}
		why := fmt.Sprintf("is not finished (its crawl window ends %s)", w.End.UTC().Format(time.RFC3339))
		if p := l.Paused(flags); p != nil {
			why += fmt.Sprintf("; it is %s; continue it with `%s`", p.Cause(), p.Continue)
		}
		return &earlierMonth{l.Crawl, why, finish}
	case l.InRound(): // by `task` without `run`, or the ledger was rebuilt
		if until := timeOf(l.Started(l.Rounds() - 1)).Add(startWithin); now.Before(until) {
			return &earlierMonth{l.Crawl, fmt.Sprintf("is being crawled, and its window is not known (if no `run` begins one, the wait ends %s)", until.UTC().Format(time.RFC3339)), finish}
		}
	case choice != nil && !started:
		if until := timeOf(choice).Add(startWithin); now.Before(until) {
			return &earlierMonth{l.Crawl, fmt.Sprintf("is planned and not yet crawled (if nobody begins to crawl it, the wait ends %s)", until.UTC().Format(time.RFC3339)), ""}
		}
	}
	return nil
}

// FinishCommand returns the command that finishes a month that ends with the given number of rounds.
func FinishCommand(crawl string, rounds int, flags string) string {
	return fmt.Sprintf("crawlbatch run --month %s --rounds %d%s", crawl, rounds, flags)
}

// sealedRounds returns the number of sealed rounds of a crawl.
func sealedRounds(l *ledger.Ledger) (n int) {
	for round := range l.Rounds() {
		if l.Newest(manifest.EntrySealed, round) != nil {
			n++
		}
	}
	return n
}

// finalRounds returns the number of rounds that a crawl has if it begins no further one.
func finalRounds(l *ledger.Ledger) int {
	n := sealedRounds(l)
	if l.InRound() {
		n++
	}
	return max(n, 1) // run --rounds 0 has another meaning
}

// timeOf returns the time at which an entry was appended.
func timeOf(e *manifest.Entry) time.Time {
	at, _ := time.Parse(time.RFC3339Nano, e.At) // the zero time, which is long ago, if it is invalid
	return at
}

// missed returns those of the months that are unfinished, oldest first: the crawl before, which may be "", and later ones,
// which are given with the newest first. It leaves out months that the store does not have or has lost.
func (r PlanRequest) missed(ctx context.Context, before string, later []string) (all []MissedMonth, err error) {
	months := append(slices.Clone(later), before)
	slices.Reverse(months)
	for _, crawl := range months {
		if crawl == "" {
			continue
		}
		l, err := ledger.Load(ctx, r.Bucket, crawl)
		if errors.Is(err, ledger.ErrLost) || errors.Is(err, ledger.ErrNoCrawl) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if l.Unfinished() {
			all = append(all, MissedMonth{Crawl: crawl, Sealed: sealedRounds(l), Final: finalRounds(l)})
		}
	}
	return all, nil
}
