package stages

// Fetch tasks add to these counts at each event. Work counts twice if an attempt loses the work and
// another attempt does the work again.
const (
	CountURLs     = "urls"      // number of recorded outcomes; reduced when an attempt fails and loses its outcomes
	CountPages    = "pages"     // number of recorded documents
	CountRequests = "requests"  // number of written requests
	CountBytes    = "bytes"     // number of received bytes
	CountTook     = "took_ms"   // duration of written requests, in milliseconds; added once for each request
	CountAnswers  = "status."   // number of responses by status; the status code is appended
	CountTimeouts = "timeouts"  // number of requests that failed with a time-out
	CountMerged   = "merged."   // number of links or listed entries that a step of the canonical form merged with others; the step is appended (urlkey.Merged)
	CountRetries  = "retries."  // number of requests that will be retried; the class of the failure is appended
	CountFlights  = "in_flight" // number of requests in flight; reduced when a request ends
	CountRecorded = "recorded." // number of URLs with a recorded outcome; the outcome is appended
)

// Fetch tasks add to these counts when a committed checkpoint lists the URLs. A URL counts at most
// once, however many attempts the task takes.
const (
	CountOutcomes = "outcome." // number of URLs by outcome; the outcome is appended
	CountQueued   = "queued"   // number of URLs of running tasks without a listed outcome; reduced when an outcome is listed or the task ends
)

// CountHits and CountMisses count the look-ups in the caches of fetch tasks: those that the cache
// answered, and those that needed a request. The name of the cache, one of Caches, is appended.
const (
	CountHits   = "cache_hits."
	CountMisses = "cache_misses."
)

// The caches of a fetch task.
const (
	CacheRobots = "robots" // robots.txt files; a failed one counts too
	CacheDNS    = "dns"    // addresses of hosts; a name without an address counts too
)

// Caches are the names of all caches.
var Caches = []string{CacheDNS, CacheRobots}

// Lookups returns a function that counts look-ups in a cache.
func Lookups(p Progress, cache string) func(hit bool) {
	hits, misses := CountHits+cache, CountMisses+cache // so that no look-up makes a text
	return func(hit bool) {
		if hit {
			p.Add(hits, 1)
		} else {
			p.Add(misses, 1)
		}
	}
}

// CountFilter counts the answers of the URL filters of earlier rounds about listed URLs, in a process
// that plans. The answer, one of FilterAnswers, is appended.
const CountFilter = "url_filter."

// FilterAnswers are the answers of a URL filter: the URL is absent, or it may be there, and is then found
// or not found.
var FilterAnswers = []string{"absent", "found", "not_found"}

// CountRows counts the rows that reduce tasks write.
const CountRows = "rows"

// RetryClasses are the classes of failure after which requests are repeated. Each class has a count,
// whose name is CountRetries and the class.
var RetryClasses = []string{"timeout", "server_error", "rate_limited", "dns", "robots", "late"}

// Progress receives the counts of running tasks. The methods are safe for concurrent use and do not
// block.
type Progress interface {
	// Add adds n to a count. The name is a Count constant; some constants need a suffix.
	Add(name string, n int64)
}

// NoProgress ignores all counts.
type NoProgress struct{}

// Add does nothing.
func (NoProgress) Add(string, int64) {}
