// Package faults is the table of what the servers of the synthetic web do wrong.
//
// In: the page behind a fault and, for faults on the wire, a connection. Out: the altered
// page, a redirect, or the bytes on the connection. For each fault the table also gives
// the outcome that a correct crawler records. The package does not depend on a web, because
// package simweb gives each fault its URL and its page.
//
// It imports only the schema of outcomes and codecs.
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
	Quick   Class = 1 << iota // one response, immediately
	Retried                   // a crawler asks again after a pause
	Slow                      // takes up to all of a crawler's time limits
)

// Part is how much of the page behind a fault a crawler can read.
type Part uint8

const (
	NoPage    Part = iota // no row in pages
	WholePage             // the whole page
	MainPage              // text and links up to the end of the main part
	EmptyPage             // a row in pages, without text
	OtherPage             // a row in pages whose text depends on how the crawler repairs it
)

// Fault is one way in which a server misbehaves, and the result that a correct crawler
// records. On every host it has the URLs /fault/NAME/N for N up to 2^24. Each URL has its
// own page behind it.
type Fault struct {
	Name  string
	About string
	Class Class

	// These fields are the result with the default limits (5 redirects, 5 MiB of body), unless
	// robots.txt or the like causes another result.
	Outcome   schema.Outcome
	Status    int    // status of the last response; 0 if there was none
	Redirects int    // number of redirects followed
	Truncated string // content_truncated
	Warning   bool   // the crawler salvages malformed data
	Page      Part
	// Host marks that the result depends on the host, because it depends on the robots.txt of
	// a redirect's target or on which hosts exist. Package truth computes the result.
	Host bool

	Code     int       // status of the response; 0 means 200
	Header   []string  // additional header fields of a well-formed response: name, value, name, value …
	First    int       // status of the first response at each URL; 0 means Code
	Redirect *Redirect // nil if the fault is not a redirect
	Bomb     int64     // decoded size in bytes of a decompression bomb; otherwise 0
	Refresh  bool      // the page has a meta refresh to its landing page

	alter  func(r *Response)       // changes the well-formed response
	bytes  func(r Response) []byte // returns what the server sends before it closes the connection
	script script                  // what happens on the connection; if set, it replaces all of the above
}

// Response is the well-formed response that a fault alters or sends malformed.
type Response struct {
	MIME string
	Body []byte
	// MainEnd is the offset in bytes at which a page ends if it is cut after its main
	// part.
	MainEnd int
	// NoPage marks a Body that is not an HTML page.
	NoPage bool
	// Text replaces the text of the page, if not nil.
	Text *Text
	// LargeBody is the size in bytes of the large document.
	LargeBody int
}

// Text is the title and the main text of a page that a fault replaced.
type Text struct{ Title, Main string }

// script plays a fault on a connection whose request has been read. It runs until it is
// done or ctx ends. The connection is then closed.
type script func(ctx context.Context, conn net.Conn, r Response, pause time.Duration)

// All is the table of all faults. Callers must not change it.
var All = slices.Concat(statusFaults, redirectFaults, contentFaults, codingFaults, headFaults, bodyFaults, connectionFaults)

// Planned names the fault that redirects to a page which a second link always names, so
// that the target is planned too.
const Planned = "redirect-planned"

var byName = func() map[string]*Fault {
	m := make(map[string]*Fault, len(All))
	for i := range All {
		m[All[i].Name] = &All[i]
	}
	return m
}()

// Named returns the fault with that name, or nil.
func Named(name string) *Fault { return byName[name] }

// Of returns the faults of the given classes.
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

// Hops returns the number of URLs that the fault has after its first.
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

// OnWire reports whether the fault needs the connection, because net/http cannot send it.
func (f *Fault) OnWire() bool { return f.bytes != nil || f.script != nil }

// Scripted reports whether the fault needs pauses, silence or a reset, not only bytes.
func (f *Fault) Scripted() bool { return f.script != nil }

// Play plays a fault on conn, whose request has been read. OnWire must be true. It runs
// until it is done or ctx ends. pause is the time between the pieces of a slow response.
// The caller closes conn.
func (f *Fault) Play(ctx context.Context, conn net.Conn, r Response, pause time.Duration) {
	if f.script != nil {
		f.script(ctx, conn, r, pause)
		return
	}
	_, _ = conn.Write(f.bytes(r)) // if it fails, the client has gone away
}

// page returns a fault that lets a crawler read the whole page.
func page(name, about string, alter func(r *Response)) Fault {
	return Fault{Name: name, About: about, Class: Quick, Outcome: schema.OK, Status: 200, Page: WholePage, alter: alter}
}

func warned(f Fault) Fault {
	f.Warning = true
	return f
}
