package manifest

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"

	"crawlbatch.io/crawlbatch/formats/schema"
)

// Checkpoint holds the authoritative state of a partition. Only its holder may fetch, and
// an outcome counts only once a checkpoint lists it.
type Checkpoint struct {
	Header
	Plan        string        `json:"plan"`
	Partition   int           `json:"partition"`
	Epoch       int           `json:"epoch"`
	Counter     int64         `json:"counter"` // makes every body unique, together with Epoch and Holder
	Holder      string        `json:"holder"`  // the attempt that holds the lease
	Released    bool          `json:"released"`
	Complete    bool          `json:"complete"`
	CompletedAt int64         `json:"completed_at_ms,omitempty"` // UTC
	LeaseMS     int64         `json:"lease_ms"`                  // how long the holder may fetch after it sends a swap
	ElapsedMS   int64         `json:"elapsed_ms"`                // elapsed part of the fetch window, over all attempts
	Recorded    []byte        `json:"recorded"`                  // Roaring bitmap of the plan's rows with an outcome
	Files       []File        `json:"files"`                     // committed segments and WARC files
	Hosts       []HostClock   `json:"hosts"`                     // sorted by host
	Retries     []URLRetry    `json:"retries,omitempty"`         // URLs that wait for another try, by row
	Robots      []OriginRetry `json:"robots,omitempty"`          // origins whose robots.txt waits for another try, by origin
	Counts      []Count       `json:"counts"`

	Politeness int       `json:"politeness,omitempty"` // the revision that the holder follows, see Politeness
	Stalled    int       `json:"stalled,omitempty"`    // consecutive attempts that recorded no outcome, with this one
	Trying     *Trying   `json:"trying,omitempty"`     // in serial mode: the item that may kill the attempt
	Suspects   []Suspect `json:"suspects,omitempty"`   // items at which attempts in serial mode died

	// Activity shows people what the holder was doing. Checkpoints of format 1 have none.
	Activity *Activity `json:"activity,omitempty"`

	// Proof is the SHA-256 of the document's encoding without it, in hex. It is the last
	// field. Encode sets it, Decode checks it. Checkpoints of formats 1 and 2 have none.
	Proof string `json:"proof,omitempty"`
}

func (*Checkpoint) kind() string { return "checkpoint" }

// proven reports whether the proof matches the checkpoint's encoding.
func (c *Checkpoint) proven(body []byte) bool {
	if c.Proof == "" {
		return c.Format < provenSince
	}
	before, ok := bytes.CutSuffix(body, fmt.Appendf(nil, ",\n \"proof\": %q\n}\n", c.Proof))
	return ok && Digest(append(slices.Clip(before), "\n}\n"...)) == c.Proof
}

// provenSince is the format since which checkpoints have a proof.
const provenSince = 3

// Names of the numbers in a checkpoint that must agree with its bitmap.
const (
	datasetFetches = "fetches"  // dataset with one row for each recorded URL
	countURLs      = "urls"     // name of the number of recorded URLs
	countOutcomes  = "outcome." // before an outcome: name of the number of recorded URLs with it
)

// Check compares the numbers in a checkpoint. These must be equal: the recorded rows, the rows of
// its files of fetches, its number of URLs, and the sum of its numbers by outcome. No file may be
// listed twice. The error says what disagrees and wraps ErrCorrupt.
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
		return fmt.Errorf("its sums disagree: its bitmap records %d URLs, its files of fetches have %d rows, it counts %d URLs and %d outcomes: %w", n, rows, urls, outcomes, ErrCorrupt)
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

// String writes a position as files hold it: 2.17.
func (p Position) String() string { return fmt.Sprintf("%d.%d", p.Epoch, p.Counter) }

// ParsePosition is the inverse of String.
func ParsePosition(s string) (p Position, ok bool) {
	epoch, counter, dot := strings.Cut(s, ".")
	var err1, err2 error
	p.Epoch, err1 = strconv.Atoi(epoch)
	p.Counter, err2 = strconv.ParseInt(counter, 10, 64)
	return p, dot && err1 == nil && err2 == nil && p.String() == s
}

// RecordedRows decodes Recorded. The error wraps ErrCorrupt.
func (c *Checkpoint) RecordedRows() (*roaring.Bitmap, error) {
	rows := roaring.New()
	if len(c.Recorded) > 0 {
		if _, err := rows.ReadFrom(bytes.NewReader(c.Recorded)); err != nil {
			return nil, fmt.Errorf("recorded rows: %v: %w", err, ErrCorrupt)
		}
	}
	return rows, nil
}

// Activity tells what the holder of a partition was doing at a checkpoint or renewal, on
// its own clock. It is only for display.
type Activity struct {
	At          int64     `json:"at_ms"`     // UTC
	InFlight    int       `json:"in_flight"` // requests in progress
	Ready       int       `json:"ready"`     // hosts that were due
	Delayed     int       `json:"delayed"`   // hosts that waited for their usual delay
	Waits       []Wait    `json:"waits,omitempty"`
	More        int       `json:"more_waits,omitempty"`   // number of waits that Waits leaves out
	RemainingMS int64     `json:"remaining_ms,omitempty"` // predicted remaining time
	Closes      int64     `json:"closes_ms,omitempty"`    // UTC, when the window closes
	Failures    []Failure `json:"failures,omitempty"`     // by class, newest first
}

// Wait describes something that the holder waits for.
type Wait struct {
	Host  string `json:"host,omitempty"` // empty if the whole task waited
	Why   string `json:"why"`
	Until int64  `json:"until_ms,omitempty"` // UTC
	URLs  int64  `json:"urls,omitempty"`     // number of URLs that wait
}

// Failure is a class of failed requests of one attempt.
type Failure struct {
	Class string `json:"class"`
	N     int64  `json:"n"`
	Host  string `json:"host,omitempty"` // host of the newest failure
	Text  string `json:"text,omitempty"` // message of the newest failure
	At    int64  `json:"at_ms"`          // time of the newest failure, UTC
}

// HostClock is a host's pace and health at a checkpoint.
type HostClock struct {
	Host     string       `json:"host"`
	DelayMS  int64        `json:"delay_ms"`            // the current delay
	BaseMS   int64        `json:"base_ms"`             // the part that config and robots.txt require
	RaisedMS int64        `json:"raised_ms,omitempty"` // the part added because of the host's responses
	Limited  int          `json:"limited,omitempty"`   // consecutive 429 and 503 responses
	WaitMS   int64        `json:"wait_ms"`             // time until its next request, at the checkpoint
	Breaker  *HostBreaker `json:"breaker,omitempty"`
}

// HostBreaker is a host's breaker at a checkpoint.
type HostBreaker struct {
	OK      int   `json:"ok,omitempty"`     // successful requests in the breaker's window
	Failed  int   `json:"failed,omitempty"` // failed requests in the breaker's window
	Open    bool  `json:"open,omitempty"`   // the host is suspended
	GaveUp  bool  `json:"gave_up,omitempty"`
	ProbeMS int64 `json:"probe_ms,omitempty"` // time until the next probe
	PauseMS int64 `json:"pause_ms,omitempty"` // pause before that probe
	Probes  int   `json:"probes,omitempty"`   // consecutive failed probes
	Opened  int   `json:"opened,omitempty"`   // how often the breaker has opened
}

// RetryCounts holds the number of retries used, by class of failure.
type RetryCounts struct {
	Timeouts     int `json:"timeouts,omitempty"`
	ServerErrors int `json:"server_errors,omitempty"`
	Limited      int `json:"limited,omitempty"` // 429 and 503
	DNS          int `json:"dns,omitempty"`
	Later        int `json:"later,omitempty"` // retries of a robots.txt after all other retries failed
}

// URLRetry is a planned URL that waits for another try.
type URLRetry struct {
	Row      int64 `json:"row"`      // row in the plan file
	Attempts int32 `json:"attempts"` // requests sent for the URL
	RetryCounts
	WaitMS int64  `json:"wait_ms"`       // at the checkpoint: time until the next try
	Why    string `json:"why,omitempty"` // why the last try failed, for people
	// Chain is where the URL's redirects have led so far, or nil if it has not been
	// redirected.
	Chain *Chain `json:"chain,omitempty"`
}

// Chain is an unfinished chain of redirects, up to the last recorded response.
type Chain struct {
	Met   []Hop        `json:"met"`             // redirected requests; the first is for the planned URL
	Next  string       `json:"next"`            // URL to request
	Tries int32        `json:"tries,omitempty"` // requests sent for Next
	Fetch schema.Fetch `json:"fetch"`           // the row so far
}

// Hop is a request that was redirected.
type Hop struct {
	URL    string   `json:"url"`
	Cookie string   `json:"cookie,omitempty"` // sent with the request
	Set    []string `json:"set,omitempty"`    // Set-Cookie fields of the response that apply to the rest of the chain
}

// OriginRetry is an origin whose robots.txt waits for another try.
type OriginRetry struct {
	Origin string `json:"origin"`
	Next   string `json:"next"` // URL to request, after redirects
	Host   string `json:"host"` // host of Next
	Hops   int    `json:"hops,omitempty"`
	Tries  int32  `json:"tries"` // requests sent for the robots.txt
	RetryCounts
	WaitMS int64  `json:"wait_ms"`       // at the checkpoint: time until the next try
	Why    string `json:"why,omitempty"` // why the last try failed, for people
}

// Trying names what an attempt in serial mode is working on: a planned row, or the
// robots.txt of an origin.
type Trying struct {
	Row    int64  `json:"row"`
	Origin string `json:"origin,omitempty"` // empty if it works on the row
}

// Suspect is what attempts in serial mode were working on when they died.
type Suspect struct {
	Trying
	Deaths int `json:"deaths"`
}

// Taken is taken/part-00017.json. It is created after the first checkpoint of a partition and
// before its first request. A partition that has this object but no checkpoint has lost its
// checkpoint.
type Taken struct {
	Header
	Plan      string `json:"plan"`
	Partition int    `json:"partition"`
}

func (*Taken) kind() string { return "taken" }
