package stages

// What fetch tasks count as it happens. Work that an attempt lost and another did
// again happened twice.
const (
	CountURLs     = "urls"      // outcomes recorded; negative as an attempt fails of which nothing is kept
	CountPages    = "pages"     // documents recorded
	CountRequests = "requests"  // requests written
	CountBytes    = "bytes"     // bytes received
	CountAnswers  = "status."   // with the status code: answers
	CountTimeouts = "timeouts"  // requests that failed for a time-out
	CountRetries  = "retries."  // with the class of the failure: requests to be made again for it
	CountFlights  = "in_flight" // requests under way; -1 as one ends
	CountRecorded = "recorded." // with the outcome: URLs whose outcome was recorded
)

// What fetch tasks count when a swapped checkpoint lists it: at most once for a
// URL, however many attempts its task takes.
const (
	CountOutcomes = "outcome." // with the outcome: URLs
	CountQueued   = "queued"   // URLs without a listed outcome, of tasks that run; negative as they get one, or the task ends
)

// CountRows is what reduce tasks count: rows written.
const CountRows = "rows"

// RetryClasses are the classes of failure that CountRetries knows.
var RetryClasses = []string{"timeout", "server_error", "rate_limited", "dns"}

// Progress receives what a running task has done; its methods may be called by
// several goroutines at a time and must be quick.
type Progress interface {
	// Add counts n more of what name says, one of the Count constants.
	Add(name string, n int64)
}

// NoProgress ignores all.
type NoProgress struct{}

// Add does nothing.
func (NoProgress) Add(string, int64) {}
