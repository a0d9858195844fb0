package worker

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
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
		look, reload, paused, ended := make(chan struct{}, 1), make(chan fetch.Revision, 1), make(chan bool, 1), make(chan bool)
		go func() {
			defer close(ended)
			r.follow(ctx, r.poll(l, stages.Task{}), look, reload, func(l *ledger.Ledger) { paused <- l.Paused("") != nil })
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
		if _, err := ledgertest.Writer().Resume(ctx, r.Bucket, "2026-11", "www.example.org", "", "ana@one"); err != nil {
			t.Fatal(err)
		}
		told := time.Now()
		look <- struct{}{}
		if got := <-reload; time.Since(told) > 0 || got.Config.Stops != nil {
			t.Errorf("told to look, after %s: %+v", time.Since(told), got)
		}
		if _, _, err := ledgertest.Writer().Pause(ctx, r.Bucket, "2026-11", "ana@one", ""); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if !<-paused || time.Since(began) > ControlEvery {
			t.Errorf("the pause came after %s", time.Since(began))
		}
		<-ended
		stop()
	})
}

// hanging is a store that does not return politeness.json before the caller gives up. The second
// call fails with err.
type hanging struct {
	store.Bucket
	gets int
	err  error
}

func (b *hanging) Get(ctx context.Context, key string, most int64) ([]byte, store.Version, error) {
	if key != layout.Politeness("2026-11") {
		return b.Bucket.Get(ctx, key, most)
	}
	if b.gets++; b.gets > 1 {
		return nil, "", b.err
	}
	<-ctx.Done()
	return nil, "", ctx.Err()
}

func TestAPauseBeforeTheLeaseIsNoFailure(t *testing.T) {
	var log bytes.Buffer
	r, l := controlled(t, &log)
	slow := &hanging{Bucket: r.Bucket, err: errors.New("the second attempt")}
	r.Bucket = slow
	synctest.Test(t, func(t *testing.T) {
		errs := make(chan error)
		go func() {
			_, err := r.fetch(t.Context(), &stages.Env{Bucket: r.Bucket}, l, &manifest.Plan{}, stages.Task{Stage: stages.Fetch, Crawl: "2026-11"})
			errs <- err
		}()
		if _, _, err := ledgertest.Writer().Pause(t.Context(), slow.Bucket, "2026-11", "ana@one", ""); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		select {
		case err := <-errs:
			t.Fatalf("the task failed because the crawl was paused: %v", err)
		default:
		}
		if _, _, err := ledgertest.Writer().Continue(t.Context(), slow.Bucket, "2026-11", "ana@one"); err != nil {
			t.Fatal(err)
		}
		if err := <-errs; !errors.Is(err, slow.err) {
			t.Errorf("after the pause: %v", err)
		}
	})
	if slow.gets != 2 || strings.Contains(log.String(), "level=WARN") {
		t.Errorf("%d attempts: %s", slow.gets, log.String())
	}
}

// The politeness that SIGHUP publishes must not bring back the stops of that time.
func TestALaterAttemptKeepsTheStopsThatCameAfterNewPoliteness(t *testing.T) {
	r, _ := controlled(t, &bytes.Buffer{})
	u := &PolitenessUpdates{Bucket: r.Bucket, Crawl: "2026-11", Clock: r.Clock, Log: r.Log}
	if err := u.Publish(t.Context(), "x.yaml", r.Config); err != nil {
		t.Fatal(err)
	}
	if _, _, err := ledgertest.Writer().Stop(t.Context(), r.Bucket, "2026-11", ledger.Stop{Host: "a.example", Reason: "ticket 17"}); err != nil {
		t.Fatal(err)
	}
	look, unsubscribe := u.Tasks.subscribe()
	defer unsubscribe()
	if len(look) > 0 {
		t.Error("a task that starts now is given what was published before")
	}
	l, err := ledger.Load(t.Context(), r.Bucket, "2026-11")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := r.newestPoliteness(t.Context(), l); err != nil || got.Number != 1 || got.Config.Stops.Reason("a.example", "a.example") == "" {
		t.Errorf("%+v, %v", got, err)
	}
	if u.Tasks.Publish(); len(look) != 1 {
		t.Error("a running task is not told")
	}
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
			if err == nil && len(later.Entries()) != len(l.Entries())+1 {
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

// reads counts the bytes that a store transferred for ledgers.
type reads struct {
	store.Bucket
	bytes int
}

func (b *reads) GetNew(ctx context.Context, key string, limit int64, have store.Version) ([]byte, store.Version, error) {
	body, v, err := store.GetNew(ctx, b.Bucket, key, limit, have)
	b.bytes += len(body)
	return body, v, err
}

func TestALedgerIsTransferredOnlyWhenItChanges(t *testing.T) {
	r, l := controlled(t, &bytes.Buffer{})
	b := &reads{Bucket: r.Bucket}
	r.Bucket = b
	p := r.poll(l, stages.Task{})
	for range 100 {
		if p.newer(t.Context()) != nil {
			t.Fatal("a ledger that has not changed is new")
		}
	}
	if b.bytes != 0 {
		t.Errorf("%d bytes were read, though nothing changed", b.bytes)
	}
	if _, _, err := ledgertest.Writer().Stop(t.Context(), b.Bucket, "2026-11", ledger.Stop{Host: "a.example", Reason: "x"}); err != nil {
		t.Fatal(err)
	}
	if got := p.newer(t.Context()); got == nil || len(got.StopsInForce()) != 1 || b.bytes == 0 {
		t.Errorf("after a stop: %+v, %d bytes", got, b.bytes)
	}
}

// A pod that ended would be started again, and the crawl would go on as if nobody had paused it.
func TestAPausedTaskOutlivesADamagedLedger(t *testing.T) {
	for name, damage := range map[string]func([]byte) []byte{
		"cut short": func(body []byte) []byte { return body[:len(body)/2] },
		"gone":      func([]byte) []byte { return nil },
		"changed":   func(body []byte) []byte { return bytes.Replace(body, []byte("ana@one"), []byte("eve@two"), 1) },
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			r, _ := controlled(t, &log)
			w := &waiting{}
			r.Watcher = w
			task := stages.Task{Stage: stages.Fetch, Crawl: "2026-11"}
			l, _, err := ledgertest.Writer().Pause(t.Context(), r.Bucket, "2026-11", "ana@one", "")
			if err != nil {
				t.Fatal(err)
			}
			key := layout.Ledger("2026-11")
			whole, _, err := r.Bucket.Get(t.Context(), key, manifest.MaxBytes)
			if err != nil {
				t.Fatal(err)
			}
			put := func(body []byte) {
				t.Helper()
				err := r.Bucket.Delete(t.Context(), key)
				if err == nil && body != nil {
					_, err = store.CreateBytes(t.Context(), r.Bucket, key, body)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			synctest.Test(t, func(t *testing.T) {
				ended := make(chan error)
				go func() {
					_, err := r.AwaitContinue(t.Context(), l, task)
					ended <- err
				}()
				put(damage(whole))
				time.Sleep(24 * time.Hour)
				synctest.Wait()
				if waits := w.look().Waits; len(waits) != 1 || !strings.Contains(waits[0].Why, "by ana@one") || !strings.Contains(waits[0].Why, "the ledger cannot be read: ") {
					t.Errorf("waits: %+v", waits)
				}
				put(whole)
				time.Sleep(2 * ControlEvery)
				synctest.Wait()
				if why := w.look().Waits[0].Why; strings.Contains(why, "cannot be read") {
					t.Errorf("after the ledger was put back: %s", why)
				}
				if _, _, err := ledgertest.Writer().Continue(t.Context(), r.Bucket, "2026-11", "ana@one"); err != nil {
					t.Fatal(err)
				}
				if err := <-ended; err != nil {
					t.Error(err)
				}
			})
			if s := log.String(); strings.Count(s, "the ledger cannot be read") != 1 || strings.Count(s, "readable again") != 1 || !strings.Contains(s, "level=ERROR") {
				t.Errorf("log: %s", s)
			}
		})
	}
}

func TestARunningTaskKeepsItsStopsWhileTheLedgerIsDamaged(t *testing.T) {
	var log bytes.Buffer
	r, _ := controlled(t, &log)
	l, err := ledgertest.Writer().Append(t.Context(), r.Bucket, "2026-11", func(*ledger.Ledger) ([]manifest.Entry, error) {
		return []manifest.Entry{{What: manifest.EntryStop, Host: "a.example", By: "ana@one", Reason: "ticket 17"}}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	replace(t, r.Bucket, layout.Ledger("2026-11"), []byte("{}"))
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		reload, ended := make(chan fetch.Revision, 1), make(chan bool)
		go func() {
			defer close(ended)
			r.follow(ctx, r.poll(l, stages.Task{}), nil, reload, func(*ledger.Ledger) { t.Error("paused") })
		}()
		time.Sleep(time.Hour)
		stop()
		<-ended
		if len(reload) > 0 {
			t.Errorf("the task got %+v", <-reload)
		}
	})
	if n := strings.Count(log.String(), "the ledger cannot be read"); n != 1 {
		t.Errorf("logged %d times: %s", n, log.String())
	}
}

func TestAPausedTaskEndsIfItsCrawlIsGone(t *testing.T) {
	r, _ := controlled(t, &bytes.Buffer{})
	l, _, err := ledgertest.Writer().Pause(t.Context(), r.Bucket, "2026-11", "ana@one", "")
	if err != nil {
		t.Fatal(err)
	}
	for o, err := range r.Bucket.List(t.Context(), "") {
		if err == nil {
			err = r.Bucket.Delete(t.Context(), o.Key)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		if _, err := r.AwaitContinue(t.Context(), l, stages.Task{Stage: stages.Fetch, Crawl: "2026-11"}); !errors.Is(err, ledger.ErrNoCrawl) {
			t.Errorf("%v", err)
		}
	})
}
