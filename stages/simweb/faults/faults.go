// Package faults is the table of the mistakes that the servers of the synthetic web make.
//
// A fault takes the page behind it and, for faults on the wire, a connection. The fault returns the
// altered page or a redirect, or writes bytes to the connection. For each fault the table also
// gives the outcome that a correct crawler records. Package faults does not depend on a web,
// because package simweb gives each fault its URL and its page.
//
// Package faults imports only the schema of outcomes and codecs.
package faults

import (
	"context"
	"net"
	"slices"
	"time"

	"crawlbatch.io/crawlbatch/formats/schema"
)

// Class groups faults by their cost to a correct crawler. Classes can be combined with |.
type Class uint8

const (
	Quick   Class = 1 << iota // the server gives one response, immediately
	Retried                   // a crawler sends the request again after a pause
	Slow                      // the response takes up to all of a crawler's time limits
)

// Part says how much of the page behind a fault a crawler can read.
type Part uint8

const (
	NoPage    Part = iota // the dataset pages has no row
	WholePage             // the dataset pages has a row with the whole page
	MainPage              // the dataset pages has a row with text and links up to the end of the main part
	EmptyPage             // the dataset pages has a row without text
	OtherPage             // the dataset pages has a row, but its text depends on how the crawler repairs the page
)

// Fault is one way in which a server misbehaves, and the result that a correct crawler records. On
// every host a fault has the URLs /fault/NAME/N for N up to 2^24. Each URL of a fault has its own
// page.
type Fault struct {
	Name  string
	About string
	Class Class

	// Outcome and the next fields are the result with the default limits (5 redirects, 5 MiB of
	// body), unless robots.txt or the like causes another result.
	Outcome   schema.Outcome
	Status    int    // status of the last response; 0 if there was no response
	Redirects int    // number of redirects that are followed
	Truncated string // value of content_truncated
	Warning   bool   // whether the crawler salvages malformed data
	Page      Part
	// Host marks that the result depends on the host: on the robots.txt of a redirect's target or
	// on which hosts exist. Package truth computes the result.
	Host bool

	Code     int       // status of the response; 0 means 200
	Header   []string  // additional header fields of a well-formed response: name, value, name, value …
	First    int       // status of the first response at each URL; 0 means Code
	Redirect *Redirect // nil if the fault is not a redirect
	Bomb     int64     // decoded size in bytes of a decompression bomb; otherwise 0
	Refresh  bool      // whether the page has a meta refresh to its landing page

	alter  func(r *Response)       // changes the well-formed response; may be nil
	bytes  func(r Response) []byte // returns the bytes that the server sends before it closes the connection; may be nil
	script script                  // actions on the connection; if set, they replace the response
}

// Response is the well-formed response that a fault changes or makes malformed.
type Response struct {
	MIME string
	Body []byte
	// MainEnd is the offset in Body, in bytes, of the end of the main part. A fault may end the
	// page there.
	MainEnd int
	// NoPage marks a Body that is not an HTML page.
	NoPage bool
	// Text, if not nil, replaces the text of the page.
	Text *Text
	// LargeBody is the size in bytes of the large document.
	LargeBody int
}

// Text is the title and the main text of a page that a fault replaced.
type Text struct{ Title, Main string }

// script plays a fault on a connection whose request has been read. A script returns when its
// actions are done or ctx ends. The connection is closed after the script.
type script func(ctx context.Context, conn net.Conn, r Response, pause time.Duration)

// All is the table of all faults. Callers must not change the table.
var All = slices.Concat(statusFaults, redirectFaults, contentFaults, codingFaults, headFaults, bodyFaults, connectionFaults)

// Planned is the name of a fault. The fault redirects to a page that a second link always names, so
// crawlers plan this page too.
const Planned = "redirect-planned"

var byName = func() map[string]*Fault {
	m := make(map[string]*Fault, len(All))
	for i := range All {
		m[All[i].Name] = &All[i]
	}
	return m
}()

// Named returns the fault with the given name, or nil.
func Named(name string) *Fault { return byName[name] }

// Of lists the faults of the given classes.
func Of(classes Class) []*Fault {
	var list []*Fault
	for i := range All {
		if All[i].Class&classes != 0 {
			list = append(list, &All[i])
		}
	}
	return list
}

// HasPage reports whether a page is behind the fault.
func (f *Fault) HasPage() bool { return f.Page != NoPage || f.Outcome == schema.OK }

// Hops returns the number of URLs that the fault has after its first URL.
func (f *Fault) Hops() int {
	if f.Redirect == nil {
		return 0
	}
	return f.Redirect.Hops
}

// Alter changes the well-formed response.
func (f *Fault) Alter(r *Response) {
	if f.alter != nil {
		f.alter(r)
	}
}

// OnWire reports whether the fault needs the connection, because net/http cannot send such a
// response.
func (f *Fault) OnWire() bool { return f.bytes != nil || f.script != nil }

// Scripted reports whether the fault consists not only of bytes, but also of pauses, silence or a
// reset.
func (f *Fault) Scripted() bool { return f.script != nil }

// Play plays a fault on conn, whose request has been read. OnWire must be true. Play returns when
// the fault is done or ctx ends. The parameter pause is the time between the pieces of a slow
// response. The caller closes conn.
func (f *Fault) Play(ctx context.Context, conn net.Conn, r Response, pause time.Duration) {
	if f.script != nil {
		f.script(ctx, conn, r, pause)
		return
	}
	_, _ = conn.Write(f.bytes(r)) // an error means that the client has gone away
}

// page returns a fault that lets a crawler read the whole page.
func page(name, about string, alter func(r *Response)) Fault {
	return Fault{Name: name, About: about, Class: Quick, Outcome: schema.OK, Status: 200, Page: WholePage, alter: alter}
}

func warned(f Fault) Fault {
	f.Warning = true
	return f
}
