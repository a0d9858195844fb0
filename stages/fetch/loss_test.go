package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch/segments"
)

// In these tests a checkpoint is lost, damaged, or replaced by an older one. After that, no attempt
// may fetch or delete anything.

// history keeps every state of the checkpoint.
type history struct {
	store.Bucket
	mu     sync.Mutex
	states [][]byte
}

func (h *history) Swap(ctx context.Context, key string, body io.ReaderAt, size int64, old store.Version) (store.Version, error) {
	v, err := h.Bucket.Swap(ctx, key, body, size, old)
	if err == nil && strings.HasSuffix(key, "/checkpoint.json") {
		state, _ := io.ReadAll(io.NewSectionReader(body, 0, size))
		h.mu.Lock()
		h.states = append(h.states, state)
		h.mu.Unlock()
	}
	return v, err
}

func (h *history) Unwrap() store.Bucket { return h.Bucket }

// snapshot returns the content of each object in the lab's store, by key.
func (l *lab) snapshot() map[string]string {
	l.t.Helper()
	objects := map[string]string{}
	for o, err := range l.bucket.List(l.t.Context(), "") {
		if err != nil {
			l.t.Fatal(err)
		}
		body, _, err := l.bucket.Get(l.t.Context(), o.Key, 1<<30)
		if err != nil {
			l.t.Fatal(err)
		}
		objects[o.Key] = string(body)
	}
	return objects
}

// restore gives the lab a new store with only the given objects.
func (l *lab) restore(objects map[string]string) {
	l.t.Helper()
	d, err := dirstore.Open(filepath.Join(l.t.TempDir(), "store"), dirstore.Options{})
	if err != nil {
		l.t.Fatal(err)
	}
	for key, body := range objects {
		if _, err := store.CreateBytes(l.t.Context(), d, key, []byte(body)); err != nil {
			l.t.Fatal(err)
		}
	}
	l.bucket = d
}

// refused checks that an attempt sends no request and changes no object, and that its error
// contains the given texts.
func (l *lab) refused(bucket store.Bucket, want ...string) {
	l.t.Helper()
	before, asked := l.snapshot(), len(l.web.hits())
	_, err := l.run(l.t.Context(), bucket, nil)
	if !errors.Is(err, stages.ErrPermanent) && !errors.Is(err, manifest.ErrCorrupt) {
		l.t.Fatalf("got %v, want ErrPermanent", err)
	}
	for _, w := range append(want, "restore its last state") {
		if !strings.Contains(err.Error(), w) {
			l.t.Errorf("the error is %q, want %q in it", err, w)
		}
	}
	if n := len(l.web.hits()) - asked; n != 0 {
		l.t.Errorf("%d requests were sent", n)
	}
	if after := l.snapshot(); !maps.Equal(before, after) {
		l.t.Errorf("the store was changed: %d objects, %d before", len(after), len(before))
	}
}

// halfway starts an attempt. After the given time, it kills the attempt or tells the attempt to
// stop. It returns all states of the checkpoint.
func (l *lab) halfway(after time.Duration, killed bool) [][]byte {
	l.t.Helper()
	h := &history{Bucket: l.bucket}
	if killed {
		h.Bucket = dying{l.bucket, time.Now().Add(after)}
		if _, err := l.run(l.t.Context(), h, nil); !errors.Is(err, errKilled) {
			l.t.Fatal(err)
		}
		return h.states
	}
	ctx, stop := context.WithCancel(l.t.Context())
	defer stop()
	time.AfterFunc(after, stop)
	if _, err := l.run(ctx, h, nil); !errors.Is(err, stages.ErrInterrupted) {
		l.t.Fatal(err)
	}
	return h.states
}

// TestAnOlderCheckpointIsRefused puts back every earlier state of a checkpoint. A state must be
// refused if two or more segments are missing from it, or if a segment is missing that was finished
// after a later swap. All other states must be accepted, because an attempt that dies between an
// upload and its swap leaves the same traces.
func TestAnOlderCheckpointIsRefused(t *testing.T) {
	for name, killed := range map[string]bool{"killed": true, "released": false} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				l := newLab(t, noRobots(page), urls("a.com", 60)...)
				l.cfg.Checkpoint.Every = 9 * time.Second
				l.cfg.Checkpoint.Lease = 75 * time.Second
				states := l.halfway(70*time.Second, killed)
				states = append(states, l.halfway(30*time.Second, killed)...)
				whole := l.snapshot()
				key := layout.Checkpoint("2026-11", 0, 0)
				told := 0
				for i, state := range states {
					objects := maps.Clone(whole)
					objects[key] = string(state)
					l.restore(objects)
					var d, next manifest.Checkpoint
					if err := manifest.Decode(key, state, &d); err != nil {
						t.Fatal(err)
					}
					last := i == len(states)-1
					if !last {
						if err := manifest.Decode(key, states[i+1], &next); err != nil {
							t.Fatal(err)
						}
					}
					evidence, err := segments.EvidenceOfPutBack(t.Context(), l.bucket, l.task, &d)
					if err != nil {
						t.Fatal(err)
					}
					if last && evidence != "" {
						t.Errorf("the last state is refused: %s", evidence)
					}
					if evidence != "" {
						told++
						l.refused(nil, "an older one was put back")
					} else if missing := len(states) - 1 - i; missing > 3 {
						t.Errorf("state %d of %d (%v) is taken for the last", i, len(states), d.Position())
					}
				}
				if told < len(states)-5 {
					t.Errorf("%d of %d states are refused", told, len(states))
				}
			})
		})
	}
}

// mute is a bucket on which the n-th write and all later writes fail. If takes is true, the n-th
// write returns an error but takes effect.
type mute struct {
	store.Bucket
	mu    *sync.Mutex
	left  *int
	takes bool
}

func (m mute) write(do func() (store.Version, error)) (store.Version, error) {
	m.mu.Lock()
	*m.left--
	left := *m.left
	m.mu.Unlock()
	if left == 0 && m.takes {
		_, _ = do()
	}
	if left <= 0 {
		return "", errKilled
	}
	return do()
}

func (m mute) Swap(ctx context.Context, key string, body io.ReaderAt, size int64, old store.Version) (store.Version, error) {
	return m.write(func() (store.Version, error) { return m.Bucket.Swap(ctx, key, body, size, old) })
}

func (m mute) Create(ctx context.Context, key string, body io.ReaderAt, size int64) (store.Version, error) {
	return m.write(func() (store.Version, error) { return m.Bucket.Create(ctx, key, body, size) })
}

// TestNoCrashIsTakenForALoss kills an attempt at each of its writes in turn, before or after the
// write takes effect. It also kills a second attempt soon after its start. The third attempt must
// not be refused.
func TestNoCrashIsTakenForALoss(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	for _, takes := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			for at := 1; !survives(t, at, takes); at++ {
				if at > 200 {
					t.Fatal("no attempt ended without an error")
				}
			}
		})
	}
}

// survives makes an attempt and kills it at the given write. It returns true if the attempt ends
// before this write.
func survives(t *testing.T, at int, takes bool) bool {
	l := newLab(t, noRobots(page), urls("a.com", 8)...)
	l.cfg.Checkpoint.Every = 9 * time.Second
	left := at
	_, err := l.run(t.Context(), mute{l.bucket, &sync.Mutex{}, &left, takes}, nil)
	if err == nil {
		if at < 20 {
			t.Errorf("an attempt makes %d writes only", at)
		}
		return true
	}
	if !errors.Is(err, errKilled) {
		t.Fatalf("killed at write %d: %v", at, err)
	}
	left = 1 + at%7
	if _, err := l.run(t.Context(), mute{l.bucket, &sync.Mutex{}, &left, takes}, nil); err != nil && !errors.Is(err, errKilled) {
		t.Fatalf("killed at write %d, then at %d: %v", at, 1+at%7, err)
	}
	r, err := l.run(t.Context(), nil, nil)
	if err != nil {
		t.Fatalf("after a kill at write %d: %v", at, err)
	}
	l.outcomes(r)
	l.web.checkPace(t, l.cfg.Politeness.Delay)
	_ = l.web.server.Close()
	return false
}

// TestACheckpointThatIsGoneIsMissed deletes the checkpoint and some of the objects that prove its
// existence.
func TestACheckpointThatIsGoneIsMissed(t *testing.T) {
	for name, gone := range map[string][]string{
		"the checkpoint": {"crawl=2026-11/round=0/fetch/part-00000/checkpoint.json"},
		"the folder":     {"crawl=2026-11/round=0/fetch/part-00000/"},
		"with WARC":      {"crawl=2026-11/round=0/fetch/part-00000/", "warc/"},
		"all but WARC":   {"crawl=2026-11/round=0/fetch/"},
		"all but tables": {"crawl=2026-11/round=0/fetch/part-00000/checkpoint.json", "crawl=2026-11/round=0/fetch/taken/", "warc/"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				l := newLab(t, noRobots(page), urls("a.com", 40)...)
				l.halfway(31*time.Second, true)
				objects := l.snapshot()
				maps.DeleteFunc(objects, func(key, _ string) bool {
					return slices.ContainsFunc(gone, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
				})
				l.restore(objects)
				l.refused(nil, "checkpoint.json", "is missing")
				l.refused(apart{l.bucket}, "checkpoint.json", "is missing")
			})
		})
	}
}

// TestAPartitionIsTakenBeforeItsFirstRequest checks that the object `taken` exists before the first
// request and the first upload. If it is missing later, the next attempt creates it again.
func TestAPartitionIsTakenBeforeItsFirstRequest(t *testing.T) {
	bubble(t, func(t *testing.T) {
		taken := layout.Taken("2026-11", 0, 0)
		var l *lab
		l = newLab(t, noRobots(func(w http.ResponseWriter, r *http.Request) {
			if there, err := manifest.Exists(r.Context(), l.bucket, taken); err != nil || !there {
				t.Errorf("%s was requested, but %q exists: %t, %v", r.URL, taken, there, err)
			}
			page(w, r)
		}), urls("a.com", 20)...)
		l.halfway(15*time.Second, false)
		if err := l.bucket.Delete(t.Context(), taken); err != nil {
			t.Fatal(err)
		}
		if _, err := l.run(t.Context(), nil, nil); err != nil {
			t.Fatal(err)
		}
		var d manifest.Taken
		if _, _, err := manifest.Load(t.Context(), l.bucket, taken, &d); err != nil || d.Plan != l.planID || d.Partition != 0 {
			t.Errorf("%+v, %v", d, err)
		}
	})
}

// TestADamagedCheckpointIsRefused changes the checkpoint as a person or a faulty disk might.
func TestADamagedCheckpointIsRefused(t *testing.T) {
	edit := func(change func(*manifest.Checkpoint)) func(t *testing.T, body string) string {
		return func(t *testing.T, body string) string {
			var d manifest.Checkpoint
			if err := manifest.Decode("checkpoint", []byte(body), &d); err != nil {
				t.Fatal(err)
			}
			change(&d)
			changed, err := manifest.Encode(&d)
			if err != nil {
				t.Fatal(err)
			}
			return string(changed)
		}
	}
	for name, c := range map[string]struct {
		damage func(t *testing.T, body string) string
		say    string
	}{
		"a byte": {func(_ *testing.T, body string) string { return strings.Replace(body, `"rows": `, `"rows": 1`, 1) }, "proof"},
		"no proof": {func(_ *testing.T, body string) string {
			i := strings.Index(body, ",\n \"proof\"")
			return body[:i] + "\n}\n"
		}, "proof"},
		"emptied":   {func(*testing.T, string) string { return "" }, ""},
		"truncated": {func(_ *testing.T, body string) string { return body[:len(body)/2] }, ""},
		"no bitmap": {edit(func(d *manifest.Checkpoint) { d.Recorded = nil }), "the bitmap has 0 URLs"},
		"a file less": {edit(func(d *manifest.Checkpoint) {
			d.Files = slices.DeleteFunc(d.Files, func(f manifest.File) bool { return f.Dataset == "fetches" })
		}), "have 0 rows"},
		"no counts":         {edit(func(d *manifest.Checkpoint) { d.Counts = nil }), "the counts are 0 URLs"},
		"another partition": {edit(func(d *manifest.Checkpoint) { d.Partition = 1 }), "to partition 1"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				l := newLab(t, noRobots(page), urls("a.com", 20)...)
				l.halfway(15*time.Second, false)
				objects, key := l.snapshot(), layout.Checkpoint("2026-11", 0, 0)
				objects[key] = c.damage(t, objects[key])
				l.restore(objects)
				l.refused(nil, key, c.say)
			})
		})
	}
}

// TestTheHolderStopsWhenItsCheckpointIsPutBackOrRemoved changes the checkpoint while its holder
// fetches.
func TestTheHolderStopsWhenItsCheckpointIsPutBackOrRemoved(t *testing.T) {
	for _, removed := range []bool{false, true} {
		t.Run(fmt.Sprint("removed ", removed), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				l := newLab(t, noRobots(page), urls("a.com", 60)...)
				l.cfg.Checkpoint.Every = 9 * time.Second
				h := &history{Bucket: l.bucket}
				time.AfterFunc(45*time.Second, func() {
					file := filepath.Join(l.bucket.String(), filepath.FromSlash(layout.Checkpoint("2026-11", 0, 0)))
					err := os.Remove(file)
					if !removed && err == nil {
						err = os.WriteFile(file, h.states[2], 0o666)
					}
					if err != nil {
						t.Error(err)
					}
				})
				_, err := l.run(t.Context(), h, nil)
				if !errors.Is(err, stages.ErrPermanent) || errors.Is(err, stages.ErrTaken) {
					t.Errorf("the holder ended with %v", err)
				}
				asked := len(l.web.hits())
				if asked > 40 {
					t.Errorf("the holder sent %d requests", asked)
				}
				l.refused(nil)
			})
		})
	}
}

// TestEachFileNamesTheCheckpointThatItFollows checks the position of the checkpoint that is stored
// in each table and WARC file of two attempts.
func TestEachFileNamesTheCheckpointThatItFollows(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLab(t, noRobots(page), urls("a.com", 40)...)
		l.cfg.Checkpoint.Every = 9 * time.Second
		l.halfway(31*time.Second, false)
		r, err := l.run(t.Context(), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		last := l.checkpointOf().Position()
		kinds, epochs := map[string]bool{}, map[int]bool{}
		for _, f := range r.Files {
			at, ok, err := segments.Follows(t.Context(), l.bucket, f.Key)
			if f.Dataset == stages.FileCDXJ {
				continue
			}
			if err != nil || !ok || at.Counter < 1 || at.Compare(last) >= 0 {
				t.Errorf("%q follows %v, %t, %v; the last is %v", f.Key, at, ok, err, last)
			}
			if !strings.Contains(f.Key, fmt.Sprintf("-e%d-", at.Epoch)) {
				t.Errorf("%q follows %v, of another epoch", f.Key, at)
			}
			kinds[f.Dataset], epochs[at.Epoch] = true, true
		}
		if !kinds[stages.FileWARC] || !kinds[stages.FileFetches] || len(epochs) != 2 {
			t.Errorf("files of %v, epochs %v", kinds, epochs)
		}
	})
}
