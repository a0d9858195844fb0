package simweb

import (
	"context"
	"net"
	"slices"
	"strings"
	"time"

	"crawlbatch.io/crawlbatch/formats/schema"
)

// FaultClass sorts faults by what they cost a crawler that does right. Classes can
// be joined by |.
type FaultClass uint8

// The classes.
const (
	Quick   FaultClass = 1 << iota // one answer, at once
	Retried                        // a crawler asks again, after a pause
	Slow                           // takes up to all of a crawler's time limits
)

// Part is how much of the page behind a fault a crawler gets to read.
type Part uint8

// The parts.
const (
	NoPage    Part = iota // no row in pages
	WholePage             // all of it
	MainPage              // up to the end of the main part: text and links up to there
	EmptyPage             // a row in pages, without text
	OtherPage             // a row in pages whose text depends on how the crawler mends it
)

// Fault is a way to misbehave, at a URL of its own on every host, and what becomes
// of it: /fault/NAME/N, where N is any number up to 2^24. Other numbers have other
// pages behind them.
type Fault struct {
	Name  string
	About string
	Class FaultClass

	// What a correct crawler records with the default limits (5 redirects, 5 MiB of
	// body) if nothing else stands in the way, such as robots.txt.
	Outcome   schema.Outcome
	Status    int    // of the last answer; 0: none came
	Redirects int    // followed
	Truncated string // content_truncated
	Warning   bool   // something malformed had to be salvaged
	Page      Part
	// Host says that the outcome depends on where it is met: on the robots.txt of
	// the target of a redirect, or on the hosts that there are. Truth knows.
	Host bool

	code     int                            // status of the answer; 0: 200
	header   []string                       // more header lines of a plain answer
	first    int                            // status of the first answer for each URL; then as the rest says
	hops     int                            // of a redirect, the URLs that lead on beyond the first
	redirect func(v visit) hop              // where to; nil: it is no redirect
	refresh  func(v visit) place            // target of a meta refresh; nil: none
	plain    func(v visit, a *answer)       // alters the answer, which goes out well-formed
	wire     func(v visit, a answer) []byte // the bytes that go out before the connection is closed
	script   script                         // what happens on the connection instead of all that
}

// hop is where a redirect leads.
type hop struct {
	location string // as sent; "" for none
	to       place  // what it means; host -1 and no path: nowhere that can be crawled
}

// script plays a fault on a connection whose request has been read, until it is
// done or ctx ends. The connection is closed afterwards.
type script func(ctx context.Context, conn net.Conn, v visit, a answer, pause time.Duration)

// Faults is the table of all faults. It must not be changed.
var Faults = slices.Concat(statusFaults, redirectFaults, contentFaults, codingFaults, headFaults, bodyFaults, connectionFaults)

// faultPlanned redirects to a page that every link to it is followed by.
const faultPlanned = "redirect-planned"

var faultIndex = func() map[string]*Fault {
	m := make(map[string]*Fault, len(Faults))
	for i := range Faults {
		m[Faults[i].Name] = &Faults[i]
	}
	return m
}()

// faultNamed gives the fault of that name, nil if there is none.
func faultNamed(name string) *Fault { return faultIndex[name] }

// enabledFaults lists the faults of the classes.
func enabledFaults(classes FaultClass) []*Fault {
	var list []*Fault
	for i := range Faults {
		if Faults[i].Class&classes != 0 {
			list = append(list, &Faults[i])
		}
	}
	return list
}

// FaultURL is the URL of a fault on a host; num tells several of a kind apart.
func (w *Web) FaultURL(host int, name string, num int) string {
	return w.at(host, faultPath(name, num))
}

// meet is the answer at one of the URLs of a fault. path is the one asked for.
func (w *Web) meet(f *Fault, v visit, path string) answer {
	a := answer{status: 200}
	switch {
	case f.redirect != nil:
		a = statusPage(f.code)
		h := f.redirect(v)
		a.location, a.to = h.location, h.to
	case f.code != 0:
		a = statusPage(f.code)
	case f.Page != NoPage || f.Outcome == schema.OK:
		var refresh *place
		if f.refresh != nil {
			p := f.refresh(v)
			refresh = &p
		}
		a = documentAnswer(w.document(v.host, v.num, "fault:"+f.Name, path, refresh))
	}
	if f.plain != nil {
		f.plain(v, &a)
	}
	a.fault, a.visit = f, v
	return a
}

// ParseFaultURL tells which fault a path belongs to; ok is false where it is none.
func ParseFaultURL(path string) (f *Fault, ok bool) {
	rest, ok := strings.CutPrefix(path, "/fault/")
	if !ok {
		return nil, false
	}
	f, _, hop, ok := readFault(rest)
	return f, ok && hop <= f.hops
}
