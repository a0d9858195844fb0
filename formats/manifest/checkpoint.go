package manifest

import (
	"bytes"
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"

	"crawlbatch.io/crawlbatch/formats/schema"
)

// Checkpoint is the state of a partition. Only the attempt that it names as holder of the lease may
// fetch. An outcome counts only when a checkpoint lists it.
type Checkpoint struct {
	Header
	Plan        string        `json:"plan"`
	Partition   int           `json:"partition"`
	Epoch       int           `json:"epoch"`
	Counter     int64         `json:"counter"` // number of the holder's swap; with Epoch and Holder, it makes every body unique
	Holder      string        `json:"holder"`  // the attempt that holds the lease
	Released    bool          `json:"released"`
	Complete    bool          `json:"complete"`
	CompletedAt int64         `json:"completed_at_ms,omitempty"` // time of completion, milliseconds since 1970, UTC
	LeaseMS     int64         `json:"lease_ms"`                  // time for which the holder may fetch after it sent a swap
	ElapsedMS   int64         `json:"elapsed_ms"`                // part of the fetch window that all attempts have used
	Recorded    []byte        `json:"recorded"`                  // Roaring bitmap of the plan's rows with an outcome
	Files       []File        `json:"files"`                     // committed segments and WARC files
	Hosts       []HostClock   `json:"hosts"`                     // pace and health of the hosts, sorted by host
	Retries     []URLRetry    `json:"retries,omitempty"`         // URLs that wait for another try, in the order of their rows in the plan
	Robots      []OriginRetry `json:"robots,omitempty"`          // origins whose robots.txt waits for another try, sorted by origin
	Counts      []Count       `json:"counts"`

	Politeness int       `json:"politeness,omitempty"` // revision of the politeness section that the holder follows
	Stalled    int       `json:"stalled,omitempty"`    // last attempts, this one included, that recorded no outcome
	Trying     *Trying   `json:"trying,omitempty"`     // in serial mode, the item that the attempt works on
	Suspects   []Suspect `json:"suspects,omitempty"`   // items on which attempts in serial mode died

	// Answerers are hosts that answered. If nothing answers, they tell whether the network is the cause.
	Answerers []Answerer `json:"answerers,omitempty"`

	// Activity tells people what the holder was doing.
	Activity *Activity `json:"activity,omitempty"`

	// Proof is the SHA-256, in hex, of the document's encoding without Proof. Proof must be the
	// last field. Encode sets Proof and Decode checks it.
	Proof string `json:"proof,omitempty"`
}

func (*Checkpoint) kind() string { return "checkpoint" }

// Names of the dataset and the counts that Check compares with the bitmap Recorded.
const (
	datasetFetches = "fetches"  // dataset with one row per recorded URL
	countURLs      = "urls"     // name of the count of recorded URLs
	countOutcomes  = "outcome." // prefix of the names of the counts by outcome, such as outcome.ok
)

// Check returns an error that wraps ErrCorrupt if the checkpoint contradicts itself. Four numbers
// must be equal: the recorded rows, the rows in the files of the dataset `fetches`, the count of URLs,
// and the sum of the counts by outcome. No file may be listed twice.
func (c *Checkpoint) Check() error {
	recorded, err := c.RecordedRows()
	if err != nil {
		return err
	}
	rows, urls, outcomes := int64(0), int64(0), int64(0)
	keys := make(map[string]bool, len(c.Files))
	for _, f := range c.Files {
		if keys[f.Key] {
			return fmt.Errorf("it lists %q twice: %w", f.Key, ErrCorrupt)
		}
		keys[f.Key] = true
		if f.Dataset == datasetFetches {
			rows += f.Rows
		}
	}
	for _, n := range c.Counts {
		if n.Name == countURLs {
			urls += n.N
		}
		if strings.HasPrefix(n.Name, countOutcomes) {
			outcomes += n.N
		}
	}
	if n := int64(recorded.GetCardinality()); n != rows || n != urls || n != outcomes {
		return fmt.Errorf("its sums disagree: the bitmap has %d URLs, the files of fetches have %d rows, and the counts are %d URLs and %d outcomes: %w", n, rows, urls, outcomes, ErrCorrupt)
	}
	return nil
}

// Position is the place of a checkpoint among those of its partition. Each swap raises it.
type Position struct {
	Epoch   int
	Counter int64
}

// Position returns the checkpoint's position.
func (c *Checkpoint) Position() Position { return Position{c.Epoch, c.Counter} }

// Compare compares positions by the order of swaps.
func (p Position) Compare(q Position) int {
	return cmp.Or(cmp.Compare(p.Epoch, q.Epoch), cmp.Compare(p.Counter, q.Counter))
}

// String returns the position as text: epoch and counter with a dot between them, such as 2.17.
func (p Position) String() string { return fmt.Sprintf("%d.%d", p.Epoch, p.Counter) }

// ParsePosition is the inverse of String.
func ParsePosition(s string) (p Position, ok bool) {
	epoch, counter, dot := strings.Cut(s, ".")
	var err1, err2 error
	p.Epoch, err1 = strconv.Atoi(epoch)
	p.Counter, err2 = strconv.ParseInt(counter, 10, 64)
	return p, dot && err1 == nil && err2 == nil && p.String() == s
}

// RecordedRows decodes the bitmap Recorded. The error wraps ErrCorrupt.
func (c *Checkpoint) RecordedRows() (*roaring.Bitmap, error) {
	rows := roaring.New()
	if len(c.Recorded) > 0 {
		if _, err := rows.ReadFrom(bytes.NewReader(c.Recorded)); err != nil {
			return nil, fmt.Errorf("recorded rows: %v: %w", err, ErrCorrupt)
		}
	}
	return rows, nil
}

// Activity describes what the holder does at a checkpoint or a renewal of the lease. Times are by the
// holder's clock. Activity is only for display.
type Activity struct {
	At          int64     `json:"at_ms"`              // milliseconds since 1970, UTC
	InFlight    int       `json:"in_flight"`          // number of requests in progress
	Ready       int       `json:"ready"`              // number of hosts that were due
	Delayed     int       `json:"delayed"`            // number of hosts that waited for their usual delay
	Sitemaps    int       `json:"sitemaps,omitempty"` // number of sitemaps that waited to be requested
	Waits       []Wait    `json:"waits,omitempty"`
	More        int       `json:"more_waits,omitempty"`   // number of waits that Waits omits
	RemainingMS int64     `json:"remaining_ms,omitempty"` // predicted remaining time, in milliseconds
	Closes      int64     `json:"closes_ms,omitempty"`    // time when the window closes, milliseconds since 1970, UTC
	Failures    []Failure `json:"failures,omitempty"`     // failures by class, the newest class first

	// Left also leaves out URLs whose outcome no checkpoint lists yet, so that a display need not wait for the next
	// checkpoint.
	Left      int64  `json:"left_urls,omitempty"`  // number of planned URLs without an outcome; 0 also means unknown
	Bytes     int64  `json:"bytes,omitempty"`      // number of bytes that the attempt received
	ElapsedMS int64  `json:"elapsed_ms,omitempty"` // time that all attempts at the task have taken until At
	Machine   string `json:"machine,omitempty"`    // name of the host or pod

	Began  int64 `json:"began_ms,omitempty"` // time when the holder took the partition, milliseconds since 1970, UTC
	Latest *Wait `json:"latest,omitempty"`   // host that may delay the end beyond RemainingMS, and until when

	BeganLeft int64    `json:"began_left_urls,omitempty"` // number of planned URLs without a recorded outcome when the holder began; 0: unknown
	LeastMS   int64    `json:"least_ms,omitempty"`        // predicted remaining time if the robots.txt of Latest goes on failing, in milliseconds; 0: not shorter than RemainingMS
	Slowest   []string `json:"slowest_hosts,omitempty"`   // the hosts that are predicted to end last, if several end at nearly the same time; at most 20
}

// Reported reports whether the holder has said what it does. Before its first report, only At, Began and
// Machine are set.
func (a *Activity) Reported() bool {
	return a.ElapsedMS > 0 || a.Left > 0 || a.RemainingMS > 0 || a.InFlight+a.Ready+a.Delayed+len(a.Waits)+len(a.Failures) > 0 || a.Began == 0
}

// Wait says why the holder waited, and until when.
type Wait struct {
	Host  string `json:"host,omitempty"` // host that causes the wait, empty if the whole task waited
	Why   string `json:"why"`
	Until int64  `json:"until_ms,omitempty"` // end of the wait, milliseconds since 1970, UTC
	URLs  int64  `json:"urls,omitempty"`     // number of URLs that waited
}

// Failure counts the failed requests of one class in one attempt.
type Failure struct {
	Class string `json:"class"`
	N     int64  `json:"n"`
	Host  string `json:"host,omitempty"` // host of the newest failure
	Text  string `json:"text,omitempty"` // message of the newest failure
	At    int64  `json:"at_ms"`          // time of the newest failure, milliseconds since 1970, UTC
}

// HostClock is a host's pace and health at a checkpoint.
type HostClock struct {
	Host     string       `json:"host"`
	DelayMS  int64        `json:"delay_ms"`            // current delay between two requests, in milliseconds
	BaseMS   int64        `json:"base_ms"`             // part of DelayMS that the config and robots.txt require, in milliseconds
	RaisedMS int64        `json:"raised_ms,omitempty"` // part of DelayMS that the host's responses caused, in milliseconds
	Limited  int          `json:"limited,omitempty"`   // consecutive 429 and 503 responses
	Refusals int          `json:"refusals,omitempty"`  // consecutive refusals
	WaitMS   int64        `json:"wait_ms"`             // time from the checkpoint to the host's next request, in milliseconds
	Breaker  *HostBreaker `json:"breaker,omitempty"`

	FailingMS int64 `json:"failing_ms,omitempty"` // time since the first request without an answer since the last answer, in milliseconds; 0 if there is none
	Postponed bool  `json:"postponed,omitempty"`  // the round left the late try of the host to the next one
}

// Answerer is a host that answered.
type Answerer struct {
	Path    string `json:"path"`   // names, ipv4, ipv6, nat64 or proxy: what the answer shows to work
	Origin  string `json:"origin"` // such as https://example.org:8443, or the name that was looked up
	Domain  string `json:"domain,omitempty"`
	Address string `json:"address,omitempty"` // address and port that answered
}

// Host returns the host of the origin, with its port if it has one.
func (a *Answerer) Host() string {
	_, host, ok := strings.Cut(a.Origin, "://")
	if !ok {
		return a.Origin
	}
	return host
}

// HostBreaker is the state of a host's breaker at a checkpoint. A breaker suspends a failing host.
type HostBreaker struct {
	OK      int   `json:"ok,omitempty"`       // successful requests in the breaker's window
	Failed  int   `json:"failed,omitempty"`   // failed requests in the breaker's window
	Open    bool  `json:"open,omitempty"`     // the host is suspended
	GaveUp  bool  `json:"gave_up,omitempty"`  // the round requests nothing more of the host
	ProbeMS int64 `json:"probe_ms,omitempty"` // time until the next probe, in milliseconds
	PauseMS int64 `json:"pause_ms,omitempty"` // pause before the next probe, in milliseconds
	Probes  int   `json:"probes,omitempty"`   // consecutive failed probes
	Opened  int   `json:"opened,omitempty"`   // number of times that the breaker has opened
}

// RetryCounts holds the number of retries used, by class of failure.
type RetryCounts struct {
	Timeouts     int `json:"timeouts,omitempty"`
	ServerErrors int `json:"server_errors,omitempty"`
	Limited      int `json:"limited,omitempty"` // 429 and 503
	DNS          int `json:"dns,omitempty"`
	Later        int `json:"later,omitempty"` // late retries of a robots.txt, after its other retries were used up
	Late         int `json:"late,omitempty"`  // late tries of the host, which gave no answer
}

// URLRetry is a planned URL that waits for another try.
type URLRetry struct {
	Row      int64 `json:"row"`      // number of the URL's row in the plan file
	Attempts int32 `json:"attempts"` // number of requests sent for the URL
	RetryCounts
	WaitMS int64  `json:"wait_ms"`       // time from the checkpoint to the next try, in milliseconds
	Why    string `json:"why,omitempty"` // reason why the last try failed, for display only
	// Chain describes the URL's redirects so far. Chain is nil if the URL has not been redirected.
	Chain *Chain `json:"chain,omitempty"`
}

// Chain is an unfinished chain of redirects.
type Chain struct {
	Met   []Hop        `json:"met"`             // redirected requests, beginning with the request for the planned URL
	Next  string       `json:"next"`            // URL to send
	Tries int32        `json:"tries,omitempty"` // number of requests sent for Next
	Fetch schema.Fetch `json:"fetch"`           // the URL's row of the fetches dataset, as far as it is known
}

// Hop is a request that was redirected.
type Hop struct {
	URL    string   `json:"url"`              // canonical URL of the request
	Sent   string   `json:"sent,omitempty"`   // URL that was sent, if it is another
	Cookie string   `json:"cookie,omitempty"` // Cookie field of the request
	Set    []string `json:"set,omitempty"`    // Set-Cookie fields of the response that apply to the rest of the chain
	// Certificate says what is wrong with the server's certificate (schema.Request.Certificate).
	Certificate string `json:"certificate,omitempty"`
}

// Asked returns the URL that was sent.
func (h *Hop) Asked() string { return cmp.Or(h.Sent, h.URL) }

// OriginRetry is an origin whose robots.txt waits for another try.
type OriginRetry struct {
	Origin string `json:"origin"`
	Next   string `json:"next"` // URL to send, after redirects
	Host   string `json:"host"` // host of Next
	Hops   int    `json:"hops,omitempty"`
	Met    []Hop  `json:"met,omitempty"` // hops that set cookies
	Tries  int32  `json:"tries"`         // number of requests sent for the robots.txt
	RetryCounts
	WaitMS int64  `json:"wait_ms"`       // time from the checkpoint to the next try, in milliseconds
	Why    string `json:"why,omitempty"` // reason why the last try failed, for display only
}

// Trying names the item that an attempt in serial mode works on: a planned row, the robots.txt of an
// origin, or a sitemap that robots.txt names.
type Trying struct {
	Row     int64  `json:"row"`
	Origin  string `json:"origin,omitempty"`  // origin of the robots.txt, empty if the item is a row or a sitemap
	Sitemap string `json:"sitemap,omitempty"` // URL of the sitemap as robots.txt spells it, empty if the item is a row or a robots.txt
}

// IsRow reports whether the item is a planned row.
func (t Trying) IsRow() bool { return t.Origin == "" && t.Sitemap == "" }

// Suspect is an item on which one or more attempts in serial mode have died.
type Suspect struct {
	Trying
	Deaths int `json:"deaths"`
}

// Taken is the object taken/part-00017.json. An attempt creates it after the partition's first
// checkpoint and before the first request. If a partition has this object but no checkpoint, the
// checkpoint was lost.
type Taken struct {
	Header
	Plan      string `json:"plan"`
	Partition int    `json:"partition"`
}

func (*Taken) kind() string { return "taken" }
