package worker

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/jobs/ledger/ledgertest"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch"
)

// waiting is a watcher that keeps the newest activity's source.
type waiting struct{ look func() stages.Activity }

func (w *waiting) Watch(_ stages.Task, look func() stages.Activity) func() {
	w.look = look
	return func() { w.look = nil }
}

// controlled returns a runner for a crawl without rounds, and the crawl's ledger.
func controlled(t *testing.T, log *bytes.Buffer) (Runner, *ledger.Ledger) {
	t.Helper()
	b, err := dirstore.Open(t.TempDir(), dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	create(t, b, layout.CrawlManifest("2026-11"), &manifest.Crawl{Crawl: "2026-11"})
	ledgertest.Make(t, b, "2026-11")
	l, err := ledger.Load(t.Context(), b, "2026-11")
	if err != nil {
		t.Fatal(err)
	}
	return Runner{Bucket: b, Config: config.Default(), Clock: stages.SystemClock{}, Log: slog.New(slog.NewTextHandler(log, nil)), Flags: " --store x"}, l
}

func TestARunningFetchTaskFollowsTheLedgerWithinSeconds(t *testing.T) {
	r, l := controlled(t, &bytes.Buffer{})
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		reload, paused, ended := make(chan fetch.Revision, 1), make(chan bool, 1), make(chan bool)
		go func() {
			defer close(ended)
			r.follow(ctx, l, reload, func() { paused <- true })
		}()
		next := func() fetch.Revision {
			began := time.Now()
			got := <-reload
			if late := time.Since(began); late > ControlEvery {
				t.Errorf("a change came after %s", late)
			}
			return got
		}
		if _, _, err := ledgertest.Writer().Stop(ctx, r.Bucket, "2026-11", ledger.Stop{Host: "www.example.org", Reason: "ticket 17"}); err != nil {
			t.Fatal(err)
		}
		if got := next(); got.Number != 0 || got.Config.Stops.Reason("www.example.org", "example.org") != "ticket 17" || got.Config.Delay != 2*time.Second {
			t.Errorf("after a stop: %+v", got)
		}
		slow := config.Default().Politeness
		slow.Delay = config.Duration(7 * time.Second)
		if _, err := roundstate.PublishPoliteness(ctx, r.Bucket, "2026-11", slow, ledgertest.Writer()); err != nil {
			t.Fatal(err)
		}
		if got := next(); got.Number != 1 || got.Config.Delay != 7*time.Second || got.Config.Stops.Reason("www.example.org", "example.org") != "ticket 17" {
			t.Errorf("after new politeness, which must not end the stop: %+v", got)
		}
		time.Sleep(10 * ControlEvery)
		select {
		case got := <-reload:
			t.Errorf("nothing changed, but the task got %+v", got)
		default:
		}
		if _, _, err := ledgertest.Writer().Pause(ctx, r.Bucket, "2026-11", "ana@one", ""); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if <-paused; time.Since(began) > ControlEvery {
			t.Errorf("the pause came after %s", time.Since(began))
		}
		<-ended
		stop()
	})
}

func TestATaskWaitsWhileTheCrawlIsPaused(t *testing.T) {
	var log bytes.Buffer
	r, l := controlled(t, &log)
	w := &waiting{}
	r.Watcher = w
	task := stages.Task{Stage: stages.Fetch, Crawl: "2026-11"}
	if same, err := r.AwaitContinue(t.Context(), l, task); err != nil || same != l {
		t.Fatalf("not paused: %v", err)
	}
	l, _, err := ledgertest.Writer().Pause(t.Context(), r.Bucket, "2026-11", "ana@one", "new proxy")
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		interrupted, stop := context.WithCancel(t.Context())
		errs := make(chan error)
		go func() {
			_, err := r.AwaitContinue(interrupted, l, task)
			errs <- err
		}()
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		if waits := w.look().Waits; len(waits) != 1 || !strings.HasSuffix(waits[0].Why, "by ana@one (new proxy): continue with `crawlbatch continue --month 2026-11 --store x`") {
			t.Errorf("waits: %+v", waits)
		}
		stop()
		if err := <-errs; err != stages.ErrInterrupted {
			t.Errorf("interrupted: %v", err)
		}
		go func() {
			later, err := r.AwaitContinue(t.Context(), l, task)
			if err == nil && later.Size() != l.Size()+1 {
				t.Errorf("an old ledger came back")
			}
			errs <- err
		}()
		if _, _, err := ledgertest.Writer().Continue(t.Context(), r.Bucket, "2026-11", "ana@one"); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := <-errs; err != nil || time.Since(began) > ControlEvery {
			t.Errorf("continued after %s: %v", time.Since(began), err)
		}
	})
	if w.look != nil || strings.Count(log.String(), "2026-11 continues") != 1 {
		t.Errorf("log: %s", log.String())
	}
}
