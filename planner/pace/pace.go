// Package pace predicts the pace of a host that begins a round with a raised delay.
//
// The input is the delay that the round before left, and what earlier rounds observed of the host. The
// output is the mean time between its requests. Package pace also holds and sorts these
// observations. It imports formats packages and package source.
package pace

import (
	"math"
	"time"
)

// SlowFrom is the latency below which a host is never slow. Only its robots.txt, 429 and 503 make the
// delay of such a host longer than the config says.
const SlowFrom = time.Second

// calmAfter is the number of responses in a row without 429 or 503 after which a raised delay is halved.
const calmAfter = 10

// Raised returns the mean time between the requests for the given number of URLs. The raised delay is
// halved until it reaches usual, the observed time between requests. If the host limits so many of its
// requests (perURL for each URL) that its delay is as likely to double as to be halved, the delay stays.
func Raised(delay, usual time.Duration, urls int64, perURL float64) time.Duration {
	if math.Pow(min(1/perURL, 1), calmAfter) < 0.5 {
		return delay
	}
	requests := max(1, int64(float64(urls)*perURL))
	left, sum := requests, time.Duration(0)
	for ; left > 0 && delay > usual; delay /= 2 {
		n := min(left, calmAfter)
		left, sum = left-n, sum+time.Duration(n)*delay
	}
	return (sum + time.Duration(left)*usual) / time.Duration(requests)
}
