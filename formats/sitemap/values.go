package sitemap

import (
	"bytes"
	"cmp"
	"net/url"
	"strconv"
	"strings"
)

// maxExtras bounds the length of each list of an entry (alternates, images, videos and enclosures).
// Google's image extension allows 1,000 images per entry.
const maxExtras = 1000

// set stores the text of the current field in the entry or, outside entries, in the summary.
func (x *reader) set() {
	v := bytes.TrimSpace(x.buf)
	if len(v) == 0 {
		return
	}
	if !x.open {
		x.setOfFeed(v)
		return
	}
	e := &x.entry
	if len(x.buf) > MaxLoc && x.field.reference() { // the rest of the text was dropped, so v may be another reference
		if x.field == fieldLoc && e.Loc == "" {
			e.Loc = string(x.buf) // too long, so finish counts it
		}
		return
	}
	switch x.field {
	case fieldLoc:
		if e.Loc == "" {
			e.Loc = reference(v)
		}
	case fieldGUID:
		x.guid = reference(v)
	case fieldLastMod:
		x.date(v, true)
	case fieldPublished:
		x.date(v, false)
	case fieldChangeFreq:
		e.ChangeFreq = frequency(v)
	case fieldPriority:
		if p, ok := priority(v); ok {
			e.Priority = p
		}
	case fieldTitle:
		e.Title = cmp.Or(e.Title, plain(v, MaxSummary))
	case fieldSummary:
		e.Summary = cmp.Or(e.Summary, plain(v, MaxSummary))
	case fieldContent:
		x.content = cmp.Or(x.content, plain(v, MaxSummary))
	case fieldComments:
		e.Comments = reference(v)
	case fieldImage:
		e.Images = withRef(e.Images, v)
	case fieldVideo:
		e.Videos = withRef(e.Videos, v)
	case fieldImageText:
		withText(e.Images, v)
	case fieldVideoText:
		withText(e.Videos, v)
	}
}

func withRef(refs []Ref, v []byte) []Ref {
	if len(v) > MaxLoc || len(refs) >= maxExtras {
		return refs
	}
	loc := reference(v)
	if loc == "" {
		return refs
	}
	return append(refs, Ref{Loc: loc})
}

// withText sets the text of the last reference if it has none yet.
func withText(refs []Ref, v []byte) {
	if n := len(refs); n > 0 && refs[n-1].Text == "" {
		refs[n-1].Text = plain(v, MaxSummary)
	}
}

// date sets the date of the entry to v, unless the entry has a better one: its first modification date
// or, if there is none, its first publication date.
func (x *reader) date(v []byte, modified bool) {
	if !x.entry.LastMod.IsZero() && (x.modified || !modified) {
		return
	}
	if t, ok := timeOf(v); ok {
		x.entry.LastMod, x.modified = t, modified
	}
}

// frequency returns v in lower case if the sitemaps protocol defines this word, otherwise "".
func frequency(v []byte) string {
	for _, w := range [...]string{"daily", "weekly", "monthly", "always", "hourly", "yearly", "never"} {
		if len(v) == len(w) && strings.EqualFold(string(v), w) {
			return w
		}
	}
	return ""
}

// priority reads a number from 0 to 1. Some files have a decimal comma in it.
func priority(v []byte) (float64, bool) {
	if len(v) == 3 && v[0] == '0' && v[1] == '.' && v[2] >= '0' && v[2] <= '9' {
		return float64(v[2]-'0') / 10, true
	}
	p, err := strconv.ParseFloat(strings.Replace(string(v[:min(len(v), 32)]), ",", ".", 1), 64)
	return p, err == nil && p >= 0 && p <= 1
}

// setOfFeed stores the text of a field of the feed itself.
func (x *reader) setOfFeed(v []byte) {
	s := &x.sum
	switch x.field {
	case fieldTitle:
		s.Title = cmp.Or(s.Title, plain(v, MaxSummary))
	case fieldSummary:
		s.Description = cmp.Or(s.Description, plain(v, MaxSummary))
	case fieldAuthor:
		s.Author = cmp.Or(s.Author, plain(v, MaxSummary))
	case fieldLanguage:
		s.Lang = cmp.Or(s.Lang, trimmedText(v))
	case fieldSite:
		x.addFeedLink(linkAttrs{rel: "alternate", href: reference(v)})
	case fieldUpdated:
		if t, ok := timeOf(v); ok && t.After(s.Updated) {
			s.Updated = t
		}
	}
}

// baseOf returns the value of an attribute xml:base. A base longer than MaxLoc counts as missing: many
// elements may have to be joined with it, and hardly any result would be short enough to be kept.
func baseOf(val []byte) string {
	if b := reference(val); len(b) <= MaxLoc {
		return b
	}
	return ""
}

// joinBase resolves the xml:base of an element of the feed against the base of the feed. If the result
// is longer than MaxLoc, the base of the feed holds.
func (x *reader) joinBase(base string) string {
	if base == "" {
		return x.feedBase
	}
	if b := join(x.feedBase, base); len(b) <= MaxLoc {
		return b
	}
	return x.feedBase
}

// join resolves ref against base, a URL that may be relative or empty. It returns ref unchanged if one
// of them is malformed.
func join(base, ref string) string {
	b, err := url.Parse(base)
	if err != nil || base == "" {
		return ref
	}
	r, err := url.Parse(ref)
	switch {
	case err != nil:
		return ref
	case b.IsAbs() || b.Host != "" || strings.HasPrefix(base, "/"):
		return b.ResolveReference(r).String()
	case r.IsAbs() || r.Host != "" || strings.HasPrefix(ref, "/"):
		return ref
	}
	// Two relative references are merged as in RFC 3986, 5.2.3. The caller of Read removes dot
	// segments.
	if i := strings.IndexAny(base, "?#"); i >= 0 {
		base = base[:i]
	}
	if r.Path != "" {
		base = base[:strings.LastIndexByte(base, '/')+1]
	}
	return base + ref
}
