package retries

import (
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/manifest"
)

// The last try for a robots.txt comes after all retries of its class of failure and all late tries.
// Each pause may grow by a quarter.
func TestTheLastTryOfARobotsTxt(t *testing.T) {
	limits := Limits{Timeout: 1, ServerError: 2, RateLimited: 3, DNS: 1, Robots: 2}
	pauses := Pauses{RateLimited: 30 * time.Second, Timeout: 15 * time.Second, ServerError: 10 * time.Second, DNS: time.Minute}
	next := time.Unix(1000, 0)
	longest := func(pauses ...time.Duration) (sum time.Duration) {
		for _, d := range pauses {
			sum += d + d/4
		}
		return sum
	}
	const s, m = time.Second, time.Minute
	for name, c := range map[string]struct {
		counts  manifest.RetryCounts
		limited int
		want    time.Duration
	}{
		"503, the first retry is next": {manifest.RetryCounts{Limited: 1}, 1, longest(m, 2*m, 4*m, 8*m)}, // the host's doubled pauses are longer than the late ones, 2 and 6 minutes
		"503 in an earlier round, too": {manifest.RetryCounts{Limited: 1}, 7, longest(8*m, 8*m, 8*m, 8*m)},
		"503, the last try is next":    {manifest.RetryCounts{Limited: 3, Later: 2}, 5, 0},
		"500":                          {manifest.RetryCounts{ServerErrors: 1}, 0, longest(10*s, 2*m, 6*m)},
		"no answer":                    {manifest.RetryCounts{Timeouts: 1}, 0, longest(2*m, 6*m) + 3*15*s},
		"no address":                   {manifest.RetryCounts{DNS: 1}, 0, 0},
		"only late tries":              {manifest.RetryCounts{Later: 1}, 0, longest(6 * m)},
	} {
		if got := LastTry(&limits, &pauses, c.counts, c.limited, next, 15*time.Second).Sub(next); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestTheTriesOfARobotsTxtOnAverage(t *testing.T) {
	limits, pauses := Limits{RateLimited: 3, Robots: 2}, Pauses{RateLimited: 30 * time.Second, ServerError: 10 * time.Second}
	sum := 30*time.Second + 15*time.Minute
	if got, want := RobotsTries(&limits, &pauses, time.Minute), sum+sum/8; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, want := RobotsTriesAgain(&limits, &pauses), 6*9*time.Minute; got != want {
		t.Errorf("again: %s, want %s", got, want)
	}
}
