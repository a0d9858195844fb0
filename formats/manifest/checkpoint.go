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

// Checkpoint holds the authoritative state of a partition. Only the holder of the lease may fetch.
// An outcome does not count until a checkpoint lists the outcome.
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
	LeaseMS     int64         `json:"lease_ms"`                  // time for which the holder may fetch after it sends a swap, in milliseconds
	ElapsedMS   int64         `json:"elapsed_ms"`                // elapsed part of the fetch window over all attempts, in milliseconds
	Recorded    []byte        `json:"recorded"`                  // Roaring bitmap of the plan's rows with an outcome
	Files       []File        `json:"files"`                     // committed segments and WARC files
	Hosts       []HostClock   `json:"hosts"`                     // pace and health of the hosts, sorted by host
	Retries     []URLRetry    `json:"retries,omitempty"`         // URLs that wait for another try, in the order of their rows in the plan
	Robots      []OriginRetry `json:"robots,omitempty"`          // origins whose robots.txt waits for another try, sorted by origin
	Counts      []Count       `json:"counts"`

	Politeness int       `json:"politeness,omitempty"` // revision of the politeness section that the holder follows
	Stalled    int       `json:"stalled,omitempty"`    // number of consecutive attempts without a recorded outcome, this attempt included
	Trying     *Trying   `json:"trying,omitempty"`     // in serial mode, the item that the attempt works on
	Suspects   []Suspect `json:"suspects,omitempty"`   // items during which attempts in serial mode died

	// Activity shows people what the holder was doing. Checkpoints of format 1 have no Activity.
	Activity *Activity `json:"activity,omitempty"`

	// Proof is the SHA-256, in hex, of the document's encoding without Proof. Proof must be the
	// last field. Encode sets Proof and Decode checks it. Checkpoints of formats 1 and 2 have no
	// Proof.
	Proof string `json:"proof,omitempty"`
}

func (*Checkpoint) kind() string { return "checkpoint" }

// These names select the dataset and the counts that Check compares with a checkpoint's bitmap.
const (
	datasetFetches = "fetches"  // dataset with one row per recorded URL
	countURLs      = "urls"     // name of the count of recorded URLs
	countOutcomes  = "outcome." // prefix of the names of the counts by outcome, such as outcome.ok
)

// Check compares four numbers of a checkpoint, which must be equal. The numbers are the recorded
// rows, the rows in the files of the dataset fetches, the count of URLs, and the sum of the counts
// by outcome. Check also refuses a file that is listed twice. The error wraps ErrCorrupt.
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

// Position orders the checkpoints of a partition. Each swap raises the position.
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

// String returns the position as text, in the form that files use, such as 2.17.
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

// Activity describes the holder's work at a checkpoint or renewal, by the holder's clock. Activity
// is only for display.
type Activity struct {
	At          int64     `json:"at_ms"`              // UTC
	InFlight    int       `json:"in_flight"`          // number of requests in progress
	Ready       int       `json:"ready"`              // number of hosts that were due
	Delayed     int       `json:"delayed"`            // number of hosts that waited for their usual delay
	Sitemaps    int       `json:"sitemaps,omitempty"` // number of sitemaps that waited for their request
	Waits       []Wait    `json:"waits,omitempty"`
	More        int       `json:"more_waits,omitempty"`   // number of waits in addition to those in Waits
	RemainingMS int64     `json:"remaining_ms,omitempty"` // predicted remaining time, in milliseconds
	Closes      int64     `json:"closes_ms,omitempty"`    // time when the window closes, milliseconds since 1970, UTC
	Failures    []Failure `json:"failures,omitempty"`     // failures by class, the newest class first

	// Checkpoints of formats before 9 lack these fields. Outcomes that no checkpoint lists yet count here,
	// so a display need not wait for the next checkpoint.
	Left      int64  `json:"left_urls,omitempty"`  // number of planned URLs without an outcome; 0 also means unknown
	Bytes     int64  `json:"bytes,omitempty"`      // number of bytes that the attempt received
	ElapsedMS int64  `json:"elapsed_ms,omitempty"` // time of all attempts at the task until At, in milliseconds
	Machine   string `json:"machine,omitempty"`    // name of the host or pod
}

// Wait describes why, and until when, the holder waits.
type Wait struct {
	Host  string `json:"host,omitempty"` // host that causes the wait, empty if the whole task waited
	Why   string `json:"why"`
	Until int64  `json:"until_ms,omitempty"` // end of the wait, milliseconds since 1970, UTC
	URLs  int64  `json:"urls,omitempty"`     // number of URLs that waited
}

// Failure is a class of failed requests of one attempt.
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
	WaitMS   int64        `json:"wait_ms"`             // time from the checkpoint to the host's next request, in milliseconds
	Breaker  *HostBreaker `json:"breaker,omitempty"`
}

// HostBreaker is the state of a host's breaker at a checkpoint. A breaker suspends a failing host.
type HostBreaker struct {
	OK      int   `json:"ok,omitempty"`     // successful requests in the breaker's window
	Failed  int   `json:"failed,omitempty"` // failed requests in the breaker's window
	Open    bool  `json:"open,omitempty"`   // the host is suspended
	GaveUp  bool  `json:"gave_up,omitempty"`
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
	Later        int `json:"later,omitempty"` // late retries of a robots.txt, after all other retries failed
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

// Chain is an unfinished chain of redirects, up to the last recorded response.
type Chain struct {
	Met   []Hop        `json:"met"`             // redirected requests, beginning with the request for the planned URL
	Next  string       `json:"next"`            // URL to request
	Tries int32        `json:"tries,omitempty"` // number of requests sent for Next
	Fetch schema.Fetch `json:"fetch"`           // row of the dataset fetches, as far as its columns are known
}

// Hop is a request that was redirected.
type Hop struct {
	URL    string   `json:"url"`
	Cookie string   `json:"cookie,omitempty"` // Cookie field of the request
	Set    []string `json:"set,omitempty"`    // Set-Cookie fields of the response that apply to the rest of the chain
}

// OriginRetry is an origin whose robots.txt waits for another try.
type OriginRetry struct {
	Origin string `json:"origin"`
	Next   string `json:"next"` // URL to request, after redirects
	Host   string `json:"host"` // host of Next
	Hops   int    `json:"hops,omitempty"`
	Tries  int32  `json:"tries"` // number of requests sent for the robots.txt
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

// Taken is the object taken/part-00017.json. An attempt creates Taken after the partition's first
// checkpoint and before the first request. If a partition has the object Taken but no checkpoint,
// the checkpoint was lost.
type Taken struct {
	Header
	Plan      string `json:"plan"`
	Partition int    `json:"partition"`
}

func (*Taken) kind() string { return "taken" }
