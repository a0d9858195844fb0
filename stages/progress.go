package stages

// Fetch tasks add to these counts at each event. Work that one attempt loses and another
// repeats counts twice.
const (
	CountURLs     = "urls"      // outcomes recorded; negative when an attempt fails and its outcomes are lost
	CountPages    = "pages"     // documents recorded
	CountRequests = "requests"  // requests written
	CountBytes    = "bytes"     // bytes received
	CountAnswers  = "status."   // responses; the status code is appended
	CountTimeouts = "timeouts"  // requests that failed with a time-out
	CountRetries  = "retries."  // requests that will be retried; the class of the failure is appended
	CountFlights  = "in_flight" // requests in flight; -1 when a request ends
	CountRecorded = "recorded." // URLs whose outcome was recorded; the outcome is appended
)

// Fetch tasks add to these counts when a committed checkpoint lists the URLs, so a URL
// counts at most once, however many attempts the task takes.
const (
	CountOutcomes = "outcome." // URLs; the outcome is appended
	CountQueued   = "queued"   // URLs of running tasks without a listed outcome; negative when they get one or the task ends
)

// CountRows counts the rows that reduce tasks write.
const CountRows = "rows"

// RetryClasses are the classes of failure that CountRetries knows.
var RetryClasses = []string{"timeout", "server_error", "rate_limited", "dns"}

// Progress receives the counts of running tasks. Its methods are safe for concurrent use
// and return at once.
type Progress interface {
	// Add adds n to a count. Name is one of the Count constants, some with a suffix.
	Add(name string, n int64)
}

// NoProgress ignores all counts.
type NoProgress struct{}

// Add does nothing.
func (NoProgress) Add(string, int64) {}
