package fetch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch/partition"
	"crawlbatch.io/crawlbatch/stages/fetch/robotscache"
	"crawlbatch.io/crawlbatch/stages/fetch/segments"
)

// These tests check which state a new attempt takes over and how it begins.

// fetcherOf makes a fetcher for the lab's partition, without hosts.
func (l *lab) fetcherOf() *fetcher {
	l.t.Helper()
	scratch := l.t.TempDir()
	env := l.env(l.bucket, scratch)
	p, err := partition.Load(l.t.Context(), l.bucket, &l.plan.Partitions[0], scratch)
	if err != nil {
		l.t.Fatal(err)
	}
	c, err := newFetcher(env, l.cfg, options{parser: l.parser, index: p, gate: openGate{}})
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() {
		c.client.Close()
		if err := p.Close(); err != nil {
			l.t.Error(err)
		}
	})
	return c
}

// robotsSegment stores robots entries like a segment.
func (l *lab) robotsSegment(epoch, number int, rows ...schema.RobotsFile) manifest.File {
	l.t.Helper()
	w, err := table.NewWriter[schema.RobotsFile](filepath.Join(l.t.TempDir(), "robots.parquet"))
	if err != nil {
		l.t.Fatal(err)
	}
	if err := w.Write(rows); err != nil {
		l.t.Fatal(err)
	}
	f, err := table.Finish(l.t.Context(), w, l.bucket, stages.FileRobots, layout.Segment("2026-11", 0, l.planID, 0, epoch, number, stages.FileRobots))
	if err != nil {
		l.t.Fatal(err)
	}
	return f
}

func TestOfWhatIsKnownOfARobotsFileTheLatestCounts(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLab(t, nil, "http://a.com/", "http://b.org/", "http://c.net/")
		hour := schema.TimeOf(time.Now().Add(time.Hour))
		known := func(origin string) schema.RobotsFile { return schema.RobotsFile{Origin: origin, Until: hour} }
		failed := func(origin string) schema.RobotsFile {
			return schema.RobotsFile{Origin: origin, Outcome: schema.InternalError, Failure: "robots.txt: died"}
		}
		// The later segment in this list is newer, whatever the order of the keys.
		d := &manifest.Checkpoint{Files: []manifest.File{
			l.robotsSegment(9, 99999, known("http://a.com"), failed("http://c.net")),
			l.robotsSegment(10, 0, failed("http://a.com"), known("http://b.org")),
			l.robotsSegment(10, 1, failed("http://b.org")),
			l.robotsSegment(100, 0, known("http://c.net")),
		}}
		slices.SortFunc(d.Files, func(a, b manifest.File) int { return strings.Compare(a.Key, b.Key) }) // checkpoints list files in the order of keys
		c := l.fetcherOf()
		err := segments.Rows(t.Context(), l.bucket, d.Files, stages.FileRobots, func() error { return nil }, func(row *schema.RobotsFile) error {
			_, err := c.robots.Restore(row)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		for origin, want := range map[string]robotscache.State{"http://a.com": robotscache.Failed, "http://b.org": robotscache.Failed, "http://c.net": robotscache.Known} {
			e, err := c.robots.EntryOf(origin)
			if err != nil {
				t.Fatal(err)
			}
			if got, _, _, err := c.robots.Lookup(e); err != nil || got != want {
				t.Errorf("%s: state %d, %v; want %d", origin, got, err, want)
			}
		}
	})
}

// failingBucket is a bucket that cannot open objects whose keys contain at. It calls beforeFailure
// just before each failure.
type failingBucket struct {
	store.Bucket
	at            string
	beforeFailure func()
	err           error
}

func (f failingBucket) Open(ctx context.Context, key string) (store.Object, error) {
	if !strings.Contains(key, f.at) {
		return f.Bucket.Open(ctx, key)
	}
	if f.beforeFailure != nil {
		f.beforeFailure()
	}
	return nil, cmp.Or(f.err, ctx.Err())
}

func (f failingBucket) Unwrap() store.Bucket { return f.Bucket }

// toldAt makes an attempt that is told to stop when it reads a file whose key contains a given
// text.
func (l *lab) toldAt(bucket store.Bucket, at string, in *Input) error {
	ctx, stop := context.WithCancel(l.t.Context())
	defer stop()
	_, err := l.run(ctx, failingBucket{Bucket: bucket, at: at, beforeFailure: stop}, in)
	return err
}

func TestAnAttemptThatEndsBeforeItFetchesHandsThePartitionBack(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	for name, c := range map[string]struct {
		told    bool
		err     error
		stalled int
	}{
		"told to stop":       {told: true},
		"store away":         {err: fmt.Errorf("open: %w", store.ErrUnavailable)},
		"disk full":          {err: fmt.Errorf("write: %w", syscall.ENOSPC)},
		"a fault of its own": {err: errors.New("boom"), stalled: 1},
	} {
		for _, at := range []string{"/plan-", "-robots.parquet", "-crawldiagnostics"} {
			t.Run(name+" at "+at, func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					l := newLab(t, noRobots(func(w http.ResponseWriter, r *http.Request) {
						if r.URL.Path == "/p00" {
							w.Header().Set("Location", "/p01")
							w.WriteHeader(http.StatusFound)
							return
						}
						page(w, r)
					}), urls("a.com", 20)...)
					shared := apart{l.bucket}
					if at != "/plan-" { // an earlier attempt must leave segments that the next one opens
						ctx, stop := context.WithCancel(t.Context())
						time.AfterFunc(15*time.Second, stop)
						if _, err := l.run(ctx, shared, nil); !errors.Is(err, stages.ErrInterrupted) {
							t.Fatal(err)
						}
					}
					var err error
					if c.told {
						err = l.toldAt(shared, at, nil)
					} else {
						_, err = l.run(t.Context(), failingBucket{Bucket: shared, at: at, err: c.err}, nil)
					}
					if want := cmp.Or(c.err, stages.ErrInterrupted); !errors.Is(err, want) {
						t.Errorf("the attempt ended with %v, want %v", err, want)
					}
					if d := l.checkpointOf(); !d.Released || d.Stalled != c.stalled {
						t.Errorf("released %t, stalled %d, want released and %d", d.Released, d.Stalled, c.stalled)
					}
					began := time.Now()
					hits := len(l.web.hits())
					r, err := l.run(t.Context(), shared, nil)
					if err != nil {
						t.Fatal(err)
					}
					if stood := l.web.hits()[hits].at.Sub(began); stood > l.cfg.Politeness.Delay {
						t.Errorf("the next attempt sent its first request only after %v", stood)
					}
					l.outcomes(r)
					l.checkPace(r)
				})
			})
		}
	}
}

func TestAnAttemptThatEndsBeforeItFetchesDoesNotHideACrash(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLab(t, noRobots(page), urls("a.com", 20)...)
		if _, err := l.run(t.Context(), dying{l.bucket, time.Now().Add(5 * time.Second)}, nil); !errors.Is(err, errKilled) {
			t.Fatalf("got %v, want the bucket's error", err)
		}
		crashed := l.checkpointOf()
		for range 2 * maxStalled {
			if err := l.toldAt(l.bucket, "/plan-", nil); !errors.Is(err, stages.ErrInterrupted) {
				t.Fatal(err)
			}
		}
		if d := l.checkpointOf(); d.Released || d.Stalled != crashed.Stalled {
			t.Errorf("released %t, stalled %d; the crash had left %t, %d", d.Released, d.Stalled, crashed.Released, crashed.Stalled)
		}
		began, hits := time.Now(), len(l.web.hits())
		r, err := l.run(t.Context(), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if waited := l.web.hits()[hits].at.Sub(began); waited < l.cfg.Politeness.Delay {
			t.Errorf("the first request came %v after the takeover, want a whole delay", waited)
		}
		l.outcomes(r)
		l.web.checkPace(t, l.cfg.Politeness.Delay)
	})
}

func TestAnAttemptThatEndsBeforeItFetchesLeavesTheHostsOfTheRoundBefore(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLab(t, noRobots(page), urls("a.com", 3)...)
		l.task.Round = 1
		before := []*manifest.Result{{
			CompletedAt: time.Now().UnixMilli(), Hosts: []manifest.HostClock{{Host: "a.com", DelayMS: 2000, WaitMS: 600_000}},
		}}
		began := time.Now()
		if err := l.toldAt(l.bucket, "/plan-", &Input{Before: before}); !errors.Is(err, stages.ErrInterrupted) {
			t.Fatal(err)
		}
		if _, err := l.run(t.Context(), nil, &Input{Before: before}); err != nil {
			t.Fatal(err)
		}
		if waited := l.web.hits()[0].at.Sub(began); waited < 10*time.Minute {
			t.Errorf("a host got a request %v after a Retry-After of 600 s", waited)
		}
	})
}

func TestThePaceOfAnAddressSurvivesTheAttempt(t *testing.T) {
	const gap = 10 * time.Second
	for _, ends := range []string{"released", "killed"} {
		t.Run(ends, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				hosts := []string{"a.com", "b.org", "c.net", "d.com"}
				var planned []string
				for _, h := range hosts {
					planned = append(planned, urls(h, 2)...)
				}
				l := newLab(t, noRobots(page), planned...)
				l.web.shares = map[string]string{"b.org": "a.com", "c.net": "a.com", "d.com": "a.com"}
				l.cfg.Politeness.Delay, l.cfg.Politeness.PerAddressDelay = time.Second, gap
				ctx, stop := context.WithCancel(t.Context())
				bucket := l.bucket
				if ends == "killed" {
					bucket = dying{l.bucket, time.Now().Add(2*gap + time.Millisecond)}
				}
				time.AfterFunc(2*gap+time.Millisecond, stop)
				if _, err := l.run(ctx, bucket, nil); err == nil {
					t.Fatal("the first attempt must end early")
				}
				r, err := l.run(t.Context(), nil, nil)
				if err != nil {
					t.Fatal(err)
				}
				l.outcomes(r)
				hits := l.web.hits()
				for i := 1; i < len(hits); i++ {
					if got := hits[i].at.Sub(hits[i-1].at); got < gap {
						t.Errorf("the address got the request for %s%s %v after the previous one, want %v", hits[i].host, hits[i].path, got, gap)
					}
				}
			})
		})
	}
}

// TestAConvictedRobotsFileThatWaitedForAnotherTryIsNotAskedForAgain has a robots.txt that is
// unavailable at the first request. Each later request for it kills the attempt.
func TestAConvictedRobotsFileThatWaitedForAnotherTryIsNotAskedForAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var mu sync.Mutex
		var died chan struct{}
		asked := 0
		l := newLab(t, func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			if asked++; asked > 1 {
				close(died)
			}
			w.WriteHeader(http.StatusBadGateway)
		}, urls("kill.com", 3)...)
		l.cfg.Checkpoint.Every = time.Second
		for attempts := 0; ; attempts++ {
			mu.Lock()
			died = make(chan struct{})
			mu.Unlock()
			r, err := l.run(t.Context(), mortal{l.bucket, died}, nil)
			if err == nil {
				for u, f := range l.outcomes(r) {
					if f.Outcome != schema.InternalError {
						t.Errorf("%s: %s (%s)", u, f.Outcome, f.Error)
					}
				}
				if n := len(l.web.hits()); attempts != 6 || n != 7 {
					t.Errorf("%d attempts died and the robots.txt was requested %d times, want 6 attempts (3 of them in serial mode) and 7 requests", attempts, n)
				}
				return
			}
			if !errors.Is(err, errKilled) || attempts > 7 {
				t.Fatalf("attempt %d: %v", attempts, err)
			}
			if d := l.checkpointOf(); len(d.Robots) != 1 {
				t.Fatalf("%d origins wait for another try, want 1", len(d.Robots))
			}
		}
	})
}

// sluggish is a bucket whose segments take long to open.
type sluggish struct {
	store.Bucket
	takes time.Duration
}

func (s sluggish) Open(ctx context.Context, key string) (store.Object, error) {
	if strings.Contains(key, "/segments/") {
		time.Sleep(s.takes)
	}
	return s.Bucket.Open(ctx, key)
}

// TestAnAttemptThatResumesForLongerThanItsLeaseKeepsThePartition lets another attempt wait for the
// partition while the holder resumes.
func TestAnAttemptThatResumesForLongerThanItsLeaseKeepsThePartition(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	bubble(t, func(t *testing.T) {
		l := newLab(t, noRobots(page), urls("a.com", 60)...)
		l.cfg.Checkpoint.Every = 5 * time.Second
		shared := apart{l.bucket}
		ctx, stop := context.WithCancel(t.Context())
		time.AfterFunc(70*time.Second, stop)
		if _, err := l.run(ctx, shared, nil); !errors.Is(err, stages.ErrInterrupted) {
			t.Fatal(err)
		}
		epoch, asked := l.checkpointOf().Epoch, len(l.web.hits())
		var wg sync.WaitGroup
		for range 2 {
			scratch := t.TempDir()
			wg.Go(func() {
				cfg := l.cfg
				if _, err := runWith(t.Context(), l.env(sluggish{shared, 50 * time.Second}, scratch), &Input{Task: l.task, Plan: l.plan}, cfg, l.parser, hooks{tune: l.web.tune}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		d := l.checkpointOf()
		if d.Epoch != epoch+1 || !d.Complete {
			t.Errorf("epoch %d, complete %t: want one attempt after that of epoch %d", d.Epoch, d.Complete, epoch)
		}
		if n := len(l.web.hits()); n != 61 || asked == n {
			t.Errorf("%d requests, %d of them by the first attempt", n, asked)
		}
	})
}
