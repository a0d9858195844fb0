package fetch

import (
	"strconv"
	"strings"

	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch/response"
	"crawlbatch.io/crawlbatch/stages/fetch/segments"
)

// retryCounts are the names that retries are counted under.
var retryCounts = [response.RetryClasses]string{
	response.AfterTimeout:     stages.CountRetries + "timeout",
	response.AfterServerError: stages.CountRetries + "server_error",
	response.AfterLimit:       stages.CountRetries + "rate_limited",
	response.AfterDNS:         stages.CountRetries + "dns",
	response.ForRobots:        stages.CountRetries + "robots",
}

// answerCount is the name that answers of a status are counted under.
func answerCount(status int) string {
	var b [len(stages.CountAnswers) + 3]byte
	return string(strconv.AppendInt(append(b[:0], stages.CountAnswers...), int64(status), 10))
}

// queue tells of n more URLs that are to get an outcome.
func (a *attempt) queue(n int64) {
	a.queued += n
	a.env.Progress.Add(stages.CountQueued, n)
}

// listed tells what of a segment counts now.
func (a *attempt) listed(g *segments.Segment) {
	for name, n := range g.Counts() {
		if strings.HasPrefix(name, stages.CountOutcomes) {
			a.env.Progress.Add(name, n)
		}
	}
	a.queue(-g.Counts()["urls"])
}
