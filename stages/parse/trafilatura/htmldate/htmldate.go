// Package htmldate replaces a module of the same name (see this repository's go.mod).
// github.com/markusmobius/go-trafilatura imports that module for the date of a page. This project
// needs no such date, because package parse reads dates itself. The replaced module would load 78
// MB of tables (125 ms) at every start of the program. This package declares the names that
// go-trafilatura needs to compile, and it finds no dates.
package htmldate

import (
	"time"

	"golang.org/x/net/html"
)

// Options has only the fields that go-trafilatura sets.
type Options struct {
	ExtractTime         bool
	UseOriginalDate     bool
	SkipExtensiveSearch bool
	URL                 string
	MinDate, MaxDate    time.Time
	EnableLog           bool
}

// Result is a date. The zero value means no date.
type Result struct {
	DateTime    time.Time
	HasTime     bool
	HasTimezone bool
}

// IsZero reports whether there is no date.
func (r Result) IsZero() bool { return r.DateTime.IsZero() }

// FromDocument finds no date.
func FromDocument(*html.Node, Options) (Result, error) { return Result{}, nil }
