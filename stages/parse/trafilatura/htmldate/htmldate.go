// Package htmldate stands in, by a replace directive in this repository's go.mod, for the
// module of that name, which github.com/markusmobius/go-trafilatura imports for the date
// of a page. Dates are read by package parse, so that module would never be asked; but its
// parser of dates loads 78 MB of tables (125 ms) when a program starts, whatever the
// program then does. This package declares the names that go-trafilatura compiles with and
// knows no dates.
package htmldate

import (
	"time"

	"golang.org/x/net/html"
)

// Options are those that go-trafilatura sets.
type Options struct {
	ExtractTime         bool
	UseOriginalDate     bool
	SkipExtensiveSearch bool
	URL                 string
	MinDate, MaxDate    time.Time
	EnableLog           bool
}

// Result is a date; the zero value is none.
type Result struct {
	DateTime    time.Time
	HasTime     bool
	HasTimezone bool
}

// IsZero reports whether there is no date.
func (r Result) IsZero() bool { return r.DateTime.IsZero() }

// FromDocument finds no date.
func FromDocument(*html.Node, Options) (Result, error) { return Result{}, nil }
