package fetch

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/stages"
)

// In these tests somebody removes the store's folder of locks while a partition is fetched.

// emptying is a store that calls the function at before each Lock. If at returns true, all locks of
// the store are removed first.
type emptying struct {
	*dirstore.Store
	root string
	at   func() bool // reports whether to remove the locks
}

func (e *emptying) Lock(name string) (store.Lock, bool, error) {
	if e.at() {
		_ = os.RemoveAll(filepath.Join(e.root, store.Reserved))
	}
	return e.Store.Lock(name)
}

// askedServer records which attempt, by its user agent, sent each request.
type askedServer struct {
	mu   sync.Mutex
	runs []string
}

func (a *askedServer) note(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		a.runs = append(a.runs, r.UserAgent())
		a.mu.Unlock()
		next(w, r)
	}
}

// turns returns how often a request came from another run than the request before it.
func (a *askedServer) turns() (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := 1; i < len(a.runs); i++ {
		if a.runs[i] != a.runs[i-1] {
			n++
		}
	}
	return n
}

// TestTwoRunsWhoseLocksAreRemovedDoNotTakeTurns starts two runs of the same partition. If a run
// finds the partition taken, it tries again later. The locks are removed either just before the
// second run takes its lock, or at another time.
func TestTwoRunsWhoseLocksAreRemovedDoNotTakeTurns(t *testing.T) {
	const planned = 60
	for name, atLook := range map[string]bool{"as another run looks": true, "at some time": false} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				var who askedServer
				l := newLab(t, noRobots(who.note(page)), urls("a.com", planned)...)
				root := l.bucket.String()
				began := time.Now()
				var wg sync.WaitGroup
				for i, agent := range []string{"first/1.0 (+https://example.org/)", "second/1.0 (+https://example.org/)"} {
					d, err := dirstore.Open(root, dirstore.Options{})
					if err != nil {
						t.Fatal(err)
					}
					bucket := &emptying{Store: d, root: root, at: func() bool {
						return atLook && i == 1 && time.Since(began) > 20*time.Second && time.Since(began) < 40*time.Second
					}}
					cfg := l.cfg
					cfg.UserAgent = agent
					wg.Go(func() {
						time.Sleep(time.Duration(i) * 10 * time.Second)
						for range 20 {
							_, err := runWith(t.Context(), l.env(bucket, t.TempDir()), &Input{Task: l.task, Plan: l.plan}, cfg, l.parser, hooks{tune: l.web.tune})
							if err == nil {
								return
							}
							if !errors.Is(err, stages.ErrTaken) {
								t.Error(err)
								return
							}
						}
						t.Error("the run found 20 times that another attempt has the partition")
					})
				}
				if !atLook {
					time.AfterFunc(20300*time.Millisecond, func() { _ = os.RemoveAll(filepath.Join(root, store.Reserved)) })
				}
				wg.Wait()
				checkpoint := l.checkpointOf()
				r, err := l.run(t.Context(), nil, nil)
				if err != nil {
					t.Fatal(err)
				}
				for u, f := range l.outcomes(r) {
					if f.Outcome != schema.OK {
						t.Errorf("%s: %s", u, f.Outcome)
					}
				}
				l.web.checkPace(t, l.cfg.Politeness.Delay)
				if n := who.turns(); n > 1 || atLook && n == 0 {
					t.Errorf("%d times a request came from the other run than the one before, epoch %d", n, checkpoint.Epoch)
				}
				// As after a crash, the second run may repeat what the first did after its last
				// checkpoint.
				if n := len(l.web.hits()); n > planned+2+20 {
					t.Errorf("%d requests for %d URLs, epoch %d", n, planned, checkpoint.Epoch)
				}
			})
		})
	}
}

// TestARunWhoseLockIsRemovedGoesOn removes the lock of the only run. The run must take its lock again
// and swap the checkpoint before its next request.
func TestARunWhoseLockIsRemovedGoesOn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLab(t, noRobots(page), urls("a.com", 40)...)
		time.AfterFunc(31*time.Second, func() { _ = os.RemoveAll(filepath.Join(l.bucket.String(), store.Reserved)) })
		r, err := l.run(t.Context(), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		l.outcomes(r)
		l.checkPace(r)
		if n, epoch := len(l.web.hits()), l.checkpointOf().Epoch; n != 41 || epoch != 1 {
			t.Errorf("%d requests for 40 URLs and robots.txt, epoch %d", n, epoch)
		}
	})
}
