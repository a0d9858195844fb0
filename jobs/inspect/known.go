package inspect

import (
	"fmt"
	"io"
	"time"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/jobs/lookup"
)

// KnownURL is what a crawl's store knows about a URL. Fields are nil if the store does not know
// them.
type KnownURL struct {
	State   *knownState   `json:"state"`
	Skip    *knownSkip    `json:"skip"`
	Planned *knownPlanned `json:"planned"`
}

type knownState struct {
	Round     string          `json:"round"` // such as 2026-11.0
	State     schema.URLState `json:"state"`
	Outcome   schema.Outcome  `json:"outcome"` // "" if it was never planned
	FirstSeen string          `json:"first_seen"`
	NextDue   string          `json:"next_due"` // RFC 3339, UTC, "at once" or "never"
}

type knownSkip struct {
	Round  string            `json:"round"`
	Reason schema.SkipReason `json:"reason"`
	Detail string            `json:"detail"`
}

type knownPlanned struct {
	Round     string `json:"round"`
	Partition int    `json:"partition"`
}

func newKnownURL(f lookup.Found) *KnownURL {
	var k KnownURL
	if s := f.State; s != nil {
		k.State = &knownState{s.Round.String(), s.State, s.Outcome, s.FirstSeen, nextDue(&s.URLRecord)}
	}
	if s := f.Skip; s != nil {
		k.Skip = &knownSkip{s.Round.String(), s.Reason, s.Detail}
	}
	if p := f.Planned; p != nil {
		k.Planned = &knownPlanned{p.Round.String(), p.Partition}
	}
	return &k
}

// nextDue returns the time at which a URL is due again, or a word such as "never".
func nextDue(r *schema.URLRecord) string {
	switch {
	case schema.Spellings(r.Spellings).Overflow():
		return "never"
	case r.NextDue != 0:
		return time.UnixMilli(r.NextDue).UTC().Format(time.RFC3339)
	case r.State == schema.StateFound || r.State == schema.StateDeferred:
		return "at once"
	}
	return "never"
}

// print writes what the store knows as lines of text.
func (k *KnownURL) print(w io.Writer) {
	if k.State == nil && k.Skip == nil && k.Planned == nil {
		fmt.Fprintln(w, "known      no: neither a sealed round nor the newest plan has it")
		return
	}
	if s := k.State; s != nil {
		fmt.Fprintf(w, "state      %s since round %s\noutcome    %s\nfirst seen %s\nnext due   %s\n",
			s.State, s.Round, dash(string(s.Outcome)), s.FirstSeen, s.NextDue)
	}
	if s := k.Skip; s != nil {
		why := string(s.Reason)
		if s.Detail != "" {
			why += ": " + s.Detail
		}
		fmt.Fprintf(w, "skipped    %s in round %s\n", why, s.Round)
	}
	if p := k.Planned; p != nil {
		fmt.Fprintf(w, "planned    partition %d of round %s\n", p.Partition, p.Round)
	}
}
