package worker

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/stages/frontier"
)

func TestTheConfigDecidesWhenURLsAreDueAgain(t *testing.T) {
	c := config.Default()
	if d := cmp.Diff(frontier.Default(), frontierConfig(c)); d != "" {
		t.Errorf("the defaults of config and stage differ (-stage +config):\n%s", d)
	}
	c.Frontier.Recrawl = config.Recrawl{First: config.Duration(time.Hour), Min: config.Duration(15 * time.Minute), Max: config.Duration(48 * time.Hour), RetryAfter: config.Duration(5 * time.Minute)}
	got := frontierConfig(c)
	if got.Interval != time.Hour || got.MinInterval != 15*time.Minute || got.MaxInterval != 48*time.Hour || got.RetryAfter != 5*time.Minute {
		t.Errorf("%+v", got)
	}
}
