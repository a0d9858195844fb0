package schema

import (
	"cmp"
	"slices"
	"strings"
)

// Form is the form in which a URL is asked for. The canonical URL is its identity; servers may know it only as it was
// linked (urlkey.Sent).
//
// Each URL has one form, by a rule that depends on no order: a form of a higher class wins (SentFrom); within a class the
// canonical form, then the shortest, then that with the least bytes. So new links never change a form that works.
type Form struct {
	Sent     string   `parquet:"sent,optional" doc:"URL as it is asked for: url with path and query as they were linked; null: url itself"`
	SentFrom SentFrom `parquet:"sent_from,optional,dict" doc:"who gave the form in which url is asked for: source, answered (it last answered 2xx or 304), domain, stranger; null: nobody, or it failed for good"`
}

// SentFrom is the class of a Form.
type SentFrom string

// The classes, the highest first.
const (
	SentBySource   SentFrom = "source"   // a source of this plan; of an earlier one, it is SentByDomain
	SentAnswered   SentFrom = "answered" // it last answered 2xx or 304, and has not failed for good since
	SentByDomain   SentFrom = "domain"   // a page of the URL's own domain
	SentByStranger SentFrom = "stranger" // a page of another domain
	SentByNobody   SentFrom = ""
)

var sentFroms = []SentFrom{SentBySource, SentAnswered, SentByDomain, SentByStranger, SentByNobody}

// Linked returns the form of a link's target. sent is "" for the canonical URL. own says whether the page is of the
// target's domain.
func Linked(sent string, own bool) Form {
	if own {
		return Form{sent, SentByDomain}
	}
	return Form{sent, SentByStranger}
}

// Offer replaces f by another form of the same URL if that comes first, and reports whether it does.
func (f *Form) Offer(o Form) bool {
	if *f == o || o.compare(f) >= 0 {
		return false
	}
	*f = o
	return true
}

func (f *Form) compare(o *Form) int {
	return cmp.Or(
		cmp.Compare(slices.Index(sentFroms, f.SentFrom), slices.Index(sentFroms, o.SentFrom)),
		cmp.Compare(len(f.Sent), len(o.Sent)), strings.Compare(f.Sent, o.Sent))
}

// Of returns the URL to send for a canonical URL.
func (f *Form) Of(url string) string { return cmp.Or(f.Sent, url) }
