package parse

import (
	"strings"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/urlkey"
)

// resolver makes canonical targets of references.
type resolver struct {
	canon     *urlkey.Canonicalizer
	doc, base string
	seen      map[string]string
}

// baseURL is what references are relative to: the document's URL, or what its base
// element says if that is an http URL.
func (l *linkList) baseURL(docURL string) string {
	if l.base == (span{}) {
		return docURL
	}
	b, err := urlkey.WHATWG(string(l.str(l.base)), docURL)
	if err != nil || !strings.HasPrefix(b, "http:") && !strings.HasPrefix(b, "https:") {
		return docURL
	}
	return b
}

// target returns the canonical URL of a reference, "" if it has none: another scheme,
// or no URL. A reference of the header is relative to the document itself.
func (r *resolver) target(ref []byte, header bool) string {
	if header && r.doc != r.base {
		t, err := r.canon.URL(string(ref), r.doc)
		if err != nil {
			return ""
		}
		return t
	}
	if t, ok := r.seen[string(ref)]; ok {
		return t
	}
	raw := string(ref)
	t, err := r.canon.URL(raw, r.base)
	if err != nil {
		t = ""
	}
	r.seen[raw] = t
	return t
}

// rows returns the links as rows, at most l.max; the others are counted in l.over. all
// is the outline's text. bad is how many links have no canonical target.
func (l *linkList) rows(r *resolver, source, surt, all string, pageNofollow bool) (rows []schema.Link, bad int) {
	if len(l.raw) == 0 {
		return nil, l.bad
	}
	bad = l.bad
	rows = make([]schema.Link, 0, min(len(l.raw), l.max))
	left := allowed(l.met, l.max)
	inHeader := "" // the Link field's canonical gives way to the page's own
	for i := range l.raw {
		raw := &l.raw[i]
		if left[raw.class] == 0 && raw.class > classRefresh {
			l.over++
			continue
		}
		target := r.target(l.str(raw.href), raw.header)
		if target == "" {
			bad++
			continue
		}
		switch {
		case raw.kind == schema.KindRefresh && l.refresh == "":
			l.refresh = target
		case raw.kind == schema.KindCanonical && raw.header && inHeader == "":
			inHeader = target
		case raw.kind == schema.KindCanonical && !raw.header && l.canonical == "":
			l.canonical = target
		}
		if left[raw.class] == 0 {
			l.over++
			continue
		}
		left[raw.class]--
		anchor := ""
		if raw.to > raw.from {
			anchor = foldString(all[raw.from:min(int(raw.to), len(all))], maxAnchor)
		}
		if anchor == "" && raw.alt != (span{}) {
			anchor = fold(l.str(raw.alt), maxAnchor)
		}
		rel := intern(l.str(raw.rel))
		if l.relAuthor == "" && raw.kind == schema.KindA && anchor != "" && len(anchor) <= maxByline && hasWord(rel, "author") {
			l.relAuthor = anchor
		}
		rows = append(rows, schema.Link{
			SourceSURT: surt, Source: source, Target: target, Anchor: anchor, Rel: rel, Kind: raw.kind,
			Nofollow: raw.nofollow || pageNofollow, Position: partNames[raw.part], Hreflang: languageTag(l.str(raw.hreflang)),
			Ordinal: int32(len(rows)),
		})
	}
	if l.canonical == "" {
		l.canonical = inHeader
	}
	return rows, bad
}

// hasWord reports whether words that single spaces part hold one.
func hasWord(words, word string) bool {
	if len(words) < len(word) {
		return false
	}
	for w := range strings.SplitSeq(words, " ") {
		if w == word {
			return true
		}
	}
	return false
}

// intern returns p as a string, without allocating for what most links say.
func intern(p []byte) string {
	switch string(p) {
	case "":
		return ""
	case "nofollow":
		return "nofollow"
	case "noopener":
		return "noopener"
	case "noopener noreferrer":
		return "noopener noreferrer"
	case "stylesheet":
		return "stylesheet"
	case "tag":
		return "tag"
	case "category tag":
		return "category tag"
	case "bookmark":
		return "bookmark"
	case "alternate":
		return "alternate"
	case "canonical":
		return "canonical"
	case "external":
		return "external"
	}
	return string(p)
}
