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
	"crawlbatch.io/crawlbatch/stages/fetch/status"
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
			if len(a.Failures) != 1 || a.Failures[0].Class != "http_5xx" || a.Failures[0].Text != "robots.txt answered 503" {
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

// A host pauses for one page while another one waits for another try, and the next attempt requests the
// other one first. The reason of the pause stays.
func TestAResumedTaskDoesNotBlameAnotherPageForAPause(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLab(t, noRobots(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/p00" {
				w.WriteHeader(http.StatusBadGateway)
				return
			}
			w.Header().Set("Retry-After", "600")
			w.WriteHeader(http.StatusTooManyRequests)
		}), urls("h.com", 2)...)
		watch := &onlooker{}
		l.watcher = watch
		for _, want := range []string{"a page answered 429 with Retry-After, asked again", "answered 429 or 503, asked again"} {
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() {
				_, err := l.run(ctx, nil, nil)
				ended <- err
			}()
			time.Sleep(2 * time.Minute)
			if a := watch.now(); len(a.Waits) != 1 || a.Waits[0].Why != want {
				t.Errorf("the task waits for %+v, want %q", a.Waits, want)
			}
			stop()
			<-ended
		}
	})
}

// An attempt reports seconds after it took the partition. The slowest host is named beside a host that
// waits, and the end is predicted for a robots.txt that goes on failing, too.
func TestTheFirstReportNamesTheSlowestHostAndTheLatestEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLab(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/robots.txt" {
				page(w, r)
			} else if r.Host == "bad.com" {
				w.WriteHeader(http.StatusServiceUnavailable)
			} else {
				_, _ = w.Write([]byte("User-agent: *\nCrawl-delay: 20\n"))
			}
		}, append(urls("bad.com", 5), urls("slow.com", 30)...)...)
		l.cfg.Retries.RateLimited = 0
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		began := time.Now()
		go func() {
			_, err := l.run(ctx, nil, nil)
			ended <- err
		}()
		time.Sleep(status.FirstReport / 2)
		if a := l.checkpoint().Activity; a == nil || a.Reported() || time.UnixMilli(a.Began).Sub(began).Abs() > time.Second {
			t.Errorf("before its first report, the attempt says %+v", a)
		}
		time.Sleep(status.FirstReport/2 + time.Second)
		a := l.checkpoint().Activity
		if a == nil || !a.Reported() || a.Began == 0 || len(a.Waits) != 2 || a.Waits[0].Host != "slow.com" || a.Waits[0].Until != 0 || a.Waits[1].Host != "bad.com" {
			t.Fatalf("the first report is %+v", a)
		}
		// The late tries come after 2 and 6 minutes, and each pause may grow by a quarter.
		if a.Latest == nil || a.Latest.Host != "bad.com" || a.Latest.Why != "answered 503" {
			t.Fatalf("the latest end is %+v", a.Latest)
		}
		// Now slow.com ends, and only bad.com is left.
		time.Sleep(12 * time.Minute)
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		stop()
		var last time.Time
		for _, q := range l.web.hits() {
			if q.host == "bad.com" {
				last = q.at
			}
		}
		if latest := time.UnixMilli(a.Latest.Until); last.After(latest) || latest.Sub(last) > 3*time.Minute {
			t.Errorf("the last try came at %s, predicted was at the latest %s", last, latest)
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
