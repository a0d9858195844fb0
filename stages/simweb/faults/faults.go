// Package faults lists the mistakes that the servers of the synthetic web make on purpose.
//
// A fault alters a well-formed page, redirects, or writes bytes to the connection. For each fault,
// the table All also gives the outcome that a correct crawler records. Package simweb chooses the
// URLs and pages that have faults.
//
// Package faults imports package formats/schema (outcomes), the compressors of
// github.com/klauspost/compress and github.com/andybalholm/brotli, and golang.org/x/text/encoding.
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
	Quick   Class = 1 << iota // the server responds immediately, and a crawler need not retry
	Retried                   // a crawler sends the request again after a pause
	Slow                      // the response may take as long as a crawler's time limits allow
)

// Part says how much of the page with a fault a crawler can read.
type Part uint8

const (
	NoPage    Part = iota // no row in the pages dataset
	WholePage             // a row in pages with the whole page
	MainPage              // a row in pages with text and links up to the end of the main part
	EmptyPage             // a row in pages without text
	OtherPage             // a row in pages whose text depends on how the crawler repairs the page
)

// Fault is one way in which a server misbehaves, with the result that a correct crawler records. On
// every host, its URLs are /fault/NAME/N for N up to 2^24, each with its own page.
type Fault struct {
	Name  string
	About string
	Class Class

	// Outcome and the fields after it, up to Page, are the result with the default limits (5
	// redirects, 5 MiB of body). A rule of robots.txt, for example, may cause another result.
	Outcome   schema.Outcome
	Status    int    // status of the last response; 0 without a response
	Redirects int    // number of redirects that a crawler follows
	Truncated string // value of content_truncated
	Warning   bool   // whether the crawler salvages malformed data
	Page      Part
	// Host is true if the result also depends on which hosts exist, or on the robots.txt of a
	// redirect's target. Package truth computes such results.
	Host bool

	Code     int       // status of the response; 0 means 200
	Header   []string  // further header fields of a well-formed response: name, value, name, value …
	First    int       // status of the first response for a URL; 0 means Code
	Redirect *Redirect // nil if the fault is not a redirect
	Bomb     int64     // decoded size of a decompression bomb in bytes; otherwise 0
	Refresh  bool      // whether the page has a meta refresh to its landing page

	alter  func(r *Response)       // changes the well-formed response; may be nil
	bytes  func(r Response) []byte // returns the raw bytes of the response; may be nil
	script script                  // uses the connection in place of a response; may be nil
}

// Response is the well-formed response that a fault spoils.
type Response struct {
	MIME string
	Body []byte
	// MainEnd is where the main part ends in Body, in bytes. Some faults cut the page there.
	MainEnd int
	// NoPage marks a Body that is not an HTML page.
	NoPage bool
	// Text, if not nil, replaces the text of the page.
	Text *Text
	// LargeBody is the size in bytes of the large document.
	LargeBody int
}

// Text is the title and the main text of a page that a fault sends instead of the well-formed one.
type Text struct{ Title, Main string }

// script plays a fault on a connection whose request the server has read. It returns when it has
// finished or ctx ends. Then the connection is closed.
type script func(ctx context.Context, conn net.Conn, r Response, pause time.Duration)

// All is the table of all faults. Callers must not change it.
var All = slices.Concat(statusFaults, redirectFaults, contentFaults, codingFaults, headFaults, bodyFaults, connectionFaults)

// Planned is the name of the fault that redirects to a planned page. Every page that links to the
// redirect also links to the redirect's target, so crawlers plan the target too.
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

// InClasses returns the faults of the given classes.
func InClasses(classes Class) []*Fault {
	var list []*Fault
	for i := range All {
		if All[i].Class&classes != 0 {
			list = append(list, &All[i])
		}
	}
	return list
}

// HasPage reports whether the fault is based on a page of the web.
func (f *Fault) HasPage() bool { return f.Page != NoPage || f.Outcome == schema.OK }

// Hops returns the number of redirects of the fault after its first one. Each of them has a URL of its
// own.
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

// OnWire reports whether the fault needs the connection itself, because net/http cannot send such a
// response.
func (f *Fault) OnWire() bool { return f.bytes != nil || f.script != nil }

// Scripted reports whether the fault needs a script: for pauses, silence, or a reset.
func (f *Fault) Scripted() bool { return f.script != nil }

// Play plays a fault on conn, whose request has been read. OnWire must be true. Play returns when
// the fault has ended or ctx ends. The pause is the time between the pieces of a slow response. The
// caller closes conn.
func (f *Fault) Play(ctx context.Context, conn net.Conn, r Response, pause time.Duration) {
	if f.script != nil {
		f.script(ctx, conn, r, pause)
		return
	}
	_, _ = conn.Write(f.bytes(r)) // an error means that the client has gone away
}

// page returns a fault with which a crawler can read the whole page.
func page(name, about string, alter func(r *Response)) Fault {
	return Fault{Name: name, About: about, Class: Quick, Outcome: schema.OK, Status: 200, Page: WholePage, alter: alter}
}

func warned(f Fault) Fault {
	f.Warning = true
	return f
}
