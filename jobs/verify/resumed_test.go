package verify

import (
	"context"
	"errors"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/simweb"
	"crawlbatch.io/crawlbatch/stages/simweb/faults"
)

// TestACrawlThatWasInterruptedIsAsPromised stops a crawl several times. Each attempt must take over
// the rules of robots.txt, the pace and the outcomes from the attempt before it.
func TestACrawlThatWasInterruptedIsAsPromised(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	w := simweb.Default()
	w.Hosts, w.PagesPerHost, w.CrawlDelay, w.RetryAfter = 20, 60, 40*time.Millisecond, 0
	w.Faults = faults.Quick
	l := newSimwebLab(t, w, func(*config.Config) {})
	interruptions := 0
	for range 4 {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		err := l.driver.Run(ctx, testCrawl, 1)
		cancel()
		if errors.Is(err, stages.ErrInterrupted) {
			interruptions++
		} else if err != nil && !errors.Is(err, context.DeadlineExceeded) { // a busy machine may not even begin in time
			t.Fatal(err)
		}
		l.verify(t, true)
	}
	if err := l.driver.Run(t.Context(), testCrawl, 1); err != nil {
		t.Fatal(err)
	}
	l.verify(t, true)
	if interruptions < 2 {
		t.Errorf("the crawl was interrupted only %d times", interruptions)
	}
}
