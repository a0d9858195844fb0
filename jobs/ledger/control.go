package ledger

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
)

// This file holds what people tell a running crawl: stops of hosts, and pauses. Each is one entry
// of the ledger, so it takes effect with one swap, and only a later entry ends it.

// Stop is a stop of a host or of a registered domain.
type Stop struct {
	Host    string `json:"host,omitempty"`   // host, as in the tables; "" for a whole domain
	Domain  string `json:"domain,omitempty"` // registered domain of which all hosts are stopped
	Reason  string `json:"reason"`
	By      string `json:"by"`
	Since   string `json:"since"`              // RFC 3339, UTC
	EndedBy string `json:"ended_by,omitempty"` // who resumed it; "" while the stop is in force
	Ended   string `json:"ended,omitempty"`
}

// Name returns the host, or "all hosts of" and the domain.
func (s *Stop) Name() string {
	if s.Host == "" {
		return "all hosts of " + s.Domain
	}
	return s.Host
}

// String says what was stopped, when, by whom and why.
func (s *Stop) String() string {
	text := fmt.Sprintf("%s: no requests since %s, by %s: %s", s.Name(), Moment(s.Since), s.By, s.Reason)
	if s.Ended != "" {
		text = fmt.Sprintf("%s: no requests from %s to %s: stopped by %s (%s), resumed by %s", s.Name(), Moment(s.Since), Moment(s.Ended), s.By, s.Reason, s.EndedBy)
	}
	return text
}

// Moment formats a time of the ledger in UTC, without fractions of a second. It returns invalid
// times unchanged.
func Moment(at string) string {
	t, err := time.Parse(time.RFC3339Nano, at)
	if err != nil {
		return at
	}
	return t.UTC().Format(time.RFC3339)
}

// Stops returns all stops of the crawl, ended ones included, oldest first.
func (l *Ledger) Stops() []Stop { return StopsOf(l.doc.Entries) }

// StopsOf returns the stops in the entries of a ledger, ended ones included, oldest first.
func StopsOf(entries []manifest.Entry) []Stop {
	var all []Stop
	for _, e := range entries {
		if e.What != manifest.EntryStop && e.What != manifest.EntryResume {
			continue
		}
		for i := range all { // a resume ends the earlier stop, and so does a stop with another reason
			if s := &all[i]; s.Ended == "" && s.Host == e.Host && s.Domain == e.Domain {
				s.Ended, s.EndedBy = e.At, e.By
			}
		}
		if e.What == manifest.EntryStop {
			all = append(all, Stop{Host: e.Host, Domain: e.Domain, Reason: e.Reason, By: e.By, Since: e.At})
		}
	}
	return all
}

// StopsInForce returns the stops that no one has resumed, oldest first.
func (l *Ledger) StopsInForce() []Stop {
	return slices.DeleteFunc(l.Stops(), func(s Stop) bool { return s.Ended != "" })
}

// Stopped returns the hosts and domains that get no requests, or nil if nothing is stopped.
func (l *Ledger) Stopped() (stopped *manifest.Stops) {
	for _, s := range l.StopsInForce() {
		if stopped == nil {
			stopped = &manifest.Stops{}
		}
		stopped.Stop(s.Host, s.Domain, s.Reason)
	}
	return stopped
}

// Pause is a pause of a crawl's requests.
type Pause struct {
	By     string `json:"by"`
	Since  string `json:"since"` // RFC 3339, UTC
	Reason string `json:"reason,omitempty"`
	Ended  string `json:"ended,omitempty"` // "" while the pause is in force
	// Continue is the command that ends the pause.
	Continue string `json:"continue"`
}

// String says since when, by whom and why the crawl is paused, and how to continue it.
func (p *Pause) String() string { return fmt.Sprintf("%s: continue with `%s`", p.Cause(), p.Continue) }

// Cause says since when, by whom and why the crawl is paused.
func (p *Pause) Cause() string {
	why := ""
	if p.Reason != "" {
		why = " (" + p.Reason + ")"
	}
	return fmt.Sprintf("paused since %s by %s%s", Moment(p.Since), p.By, why)
}

// Pauses returns all pauses of the crawl, ended ones included, oldest first. They have no command.
func (l *Ledger) Pauses() (all []Pause) {
	for _, e := range l.doc.Entries {
		switch {
		case e.What == manifest.EntryPause:
			all = append(all, Pause{By: e.By, Since: e.At, Reason: e.Reason})
		case e.What == manifest.EntryContinue && len(all) > 0:
			all[len(all)-1].Ended = e.At
		}
	}
	return all
}

// Paused returns the pause in force, or nil. The command that continues the crawl ends with flags.
func (l *Ledger) Paused(flags string) *Pause {
	all := l.Pauses()
	if len(all) == 0 || all[len(all)-1].Ended != "" {
		return nil
	}
	p := &all[len(all)-1]
	p.Continue = "crawlbatch continue --month " + l.Crawl + flags
	return p
}

// Stop records that a host, or all hosts of a registered domain, get no more requests. If s is in force
// for the same reason, Stop changes nothing. It returns the stop in force, and whether it is new.
func (w Writer) Stop(ctx context.Context, b store.Bucket, crawl string, s Stop) (inForce Stop, changed bool, err error) {
	l, err := w.Append(ctx, b, crawl, func(l *Ledger) ([]manifest.Entry, error) {
		was := l.stop(s.Host, s.Domain)
		if changed = was == nil || was.Reason != s.Reason; !changed {
			return nil, nil
		}
		return []manifest.Entry{{What: manifest.EntryStop, Host: s.Host, Domain: s.Domain, By: s.By, Reason: s.Reason}}, nil
	})
	if err != nil {
		return s, false, err
	}
	return *cmp.Or(l.stop(s.Host, s.Domain), &s), changed, nil
}

// Resume ends a stop. It returns the stop that it ended, or nil if none was in force.
func (w Writer) Resume(ctx context.Context, b store.Bucket, crawl, host, domain, by string) (was *Stop, err error) {
	_, err = w.Append(ctx, b, crawl, func(l *Ledger) ([]manifest.Entry, error) {
		if was = l.stop(host, domain); was == nil {
			return nil, nil
		}
		return []manifest.Entry{{What: manifest.EntryResume, Host: host, Domain: domain, By: by}}, nil
	})
	return was, err
}

// stop returns the stop in force of a host or domain, or nil.
func (l *Ledger) stop(host, domain string) *Stop {
	for _, s := range l.StopsInForce() {
		if s.Host == host && s.Domain == domain {
			return &s
		}
	}
	return nil
}

// Pause records that the crawl sends no requests until Continue. It returns the ledger, and whether
// the crawl was not paused before.
func (w Writer) Pause(ctx context.Context, b store.Bucket, crawl, by, reason string) (l *Ledger, changed bool, err error) {
	return w.turn(ctx, b, crawl, manifest.Entry{What: manifest.EntryPause, By: by, Reason: strings.TrimSpace(reason)})
}

// Continue ends a pause. It returns whether the crawl was paused.
func (w Writer) Continue(ctx context.Context, b store.Bucket, crawl, by string) (l *Ledger, changed bool, err error) {
	return w.turn(ctx, b, crawl, manifest.Entry{What: manifest.EntryContinue, By: by})
}

func (w Writer) turn(ctx context.Context, b store.Bucket, crawl string, e manifest.Entry) (l *Ledger, changed bool, err error) {
	l, err = w.Append(ctx, b, crawl, func(l *Ledger) ([]manifest.Entry, error) {
		if changed = (l.Paused("") == nil) == (e.What == manifest.EntryPause); !changed {
			return nil, nil
		}
		return []manifest.Entry{e}, nil
	})
	return l, changed && err == nil, err
}
