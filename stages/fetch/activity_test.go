package fetch

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/stages"
)

// onlooker asks running tasks for their activity.
type onlooker struct {
	mu   sync.Mutex
	look func() stages.Activity
}

func (o *onlooker) Watch(_ stages.Task, look func() stages.Activity) func() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.look = look
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.look = nil
	}
}

func (o *onlooker) now() stages.Activity {
	o.mu.Lock()
	look := o.look
	o.mu.Unlock()
	if look == nil {
		return stages.Activity{}
	}
	return look()
}

// checkpoint reads the lab's checkpoint.
func (l *lab) checkpoint() *manifest.Checkpoint {
	l.t.Helper()
	var c manifest.Checkpoint
	if _, _, err := manifest.Load(l.t.Context(), l.bucket, layout.Checkpoint(l.task.Crawl, l.task.Round, l.task.Partition), &c); err != nil {
		l.t.Fatal(err)
	}
	return &c
}

func TestATaskTellsWhatItWaitsForNowInItsCheckpointAndAfterIt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLab(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/robots.txt" {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		}, urls("h.com", 5)...)
		watch := &onlooker{}
		l.watcher = watch
		check := func(when string, a stages.Activity) {
			t.Helper()
			if len(a.Waits) != 1 || a.Waits[0].Host != "h.com" || a.Waits[0].Why != "robots.txt answered 503, asked again" ||
				!a.Waits[0].Until.After(time.Now()) || a.Waits[0].URLs < 5 {
				t.Errorf("%s: the task waits for %+v", when, a.Waits)
			}
			if len(a.Failures) != 1 || a.Failures[0].Class != "robots_unreachable" || a.Failures[0].Text != "robots.txt answered 503" {
				t.Errorf("%s: failures %+v", when, a.Failures)
			}
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() {
			_, err := l.run(ctx, nil, nil)
			ended <- err
		}()
		time.Sleep(5 * time.Minute) // the retries come after about two and about eight minutes
		a := watch.now()
		check("while it runs", a)
		if a.Remaining < time.Until(a.Waits[0].Until) {
			t.Errorf("the remaining time is %s, but the task waits until %s", a.Remaining, a.Waits[0].Until)
		}
		// The task publishes its activity with each renewal of the lease, even when nothing is
		// recorded.
		told := l.checkpoint().Activity
		if told == nil || time.Since(time.UnixMilli(told.At)) > 2*time.Minute || len(told.Waits) != 1 || told.Waits[0].Why != "robots.txt answered 503, asked again" ||
			told.Waits[0].Until != a.Waits[0].Until.UnixMilli() {
			t.Errorf("the activity in the checkpoint is %+v", told)
		}
		stop()
		<-ended

		// The next attempt reads the reason for its wait from the checkpoint.
		ctx, stop = context.WithCancel(t.Context())
		go func() {
			_, err := l.run(ctx, nil, nil)
			ended <- err
		}()
		time.Sleep(30 * time.Second)
		if a := watch.now(); len(a.Waits) != 1 || a.Waits[0].Why != "robots.txt answered 503, asked again" {
			t.Errorf("the resumed task waits for %+v", a.Waits)
		}
		stop()
		<-ended
		if _, err := l.run(t.Context(), nil, &Input{GiveUp: true}); err != nil {
			t.Fatal(err)
		}
		if c := l.checkpoint(); c.Activity != nil {
			t.Errorf("the activity of a complete task is %+v", c.Activity)
		}
	})
}

// The store fails at the last request, so the last checkpoint waits for the store.
func TestATaskTellsThatItWaitsForTheStoreAtItsEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		away := &freezing{}
		l := newLab(t, noRobots(func(w http.ResponseWriter, r *http.Request) {
			away.set(true)
			page(w, r)
		}), urls("h.com", 1)...)
		away.Bucket = l.bucket
		watch := &onlooker{}
		l.watcher = watch
		ended := make(chan error)
		go func() {
			_, err := l.run(t.Context(), away, nil)
			ended <- err
		}()
		time.Sleep(10 * time.Minute)
		if a := watch.now(); a.Left != 0 || len(a.Waits) != 1 || !strings.HasPrefix(a.Waits[0].Why, "the store does not answer") {
			t.Errorf("%d URLs left, the task waits for %+v", a.Left, a.Waits)
		}
		away.set(false)
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		if a := watch.now(); len(a.Waits) > 0 {
			t.Errorf("after its end, the task waits for %+v", a.Waits)
		}
	})
}

func TestATaskThatStandsBySaysForWhom(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLab(t, noRobots(page), urls("h.com", 200)...)
		first, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() {
			_, err := l.run(first, apart{l.bucket}, nil)
			ended <- err
		}()
		time.Sleep(10 * time.Second)
		watch := &onlooker{}
		l.watcher = watch
		second, stopSecond := context.WithCancel(t.Context())
		go func() {
			_, err := l.run(second, apart{l.bucket}, nil)
			ended <- err
		}()
		time.Sleep(10 * time.Second)
		if a := watch.now(); len(a.Waits) != 1 || !strings.HasPrefix(a.Waits[0].Why, "another attempt holds this partition") || a.Waits[0].Until.IsZero() {
			t.Errorf("the task waits for %+v", a.Waits)
		}
		stopSecond()
		stop()
		<-ended
		<-ended
	})
}
