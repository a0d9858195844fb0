package html

import (
	"cmp"
	"slices"
	"strings"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/stages/parse/charset"
	"crawlbatch.io/crawlbatch/stages/parse/fold"
	"crawlbatch.io/crawlbatch/stages/parse/text"
)

// The URLs of the links of a document, canonical and as they are linked, may have MinURLs bytes, and URLsPerByte
// more for each byte of the document. Percent-encoding makes an absolute reference at most three times as
// long, and as it is linked too, so only relative references to a much longer base meet the bound. Without
// it, a base of some kilobytes would become gigabytes of URLs.
const (
	MinURLs     = 4 << 20
	URLsPerByte = 8
)

// resolver resolves references to canonical URLs.
type resolver struct {
	canon     *urlkey.Canonicalizer
	doc, base string
	room      int                   // number of bytes of URLs that still fit; see MinURLs
	queries   *charset.QueryEncoder // encodes the queries of links
	seen      map[string]resolvedRef
}

// resolvedRef is a reference with its target. url is the canonical URL, or "" if there is none.
// sent is the URL as it is linked (urlkey.Sent), or "" if this is the canonical URL.
type resolvedRef struct{ url, sent string }

// baseURL returns the base URL of references. This is the URL of the base element if that is an
// http URL, otherwise the document's URL.
func (l *linkList) baseURL(docURL string, queries *charset.QueryEncoder) string {
	if l.base.start == l.base.end {
		return docURL
	}
	b, err := urlkey.WHATWG(string(queries.Encode(l.str(l.base))), docURL)
	if err != nil || !strings.HasPrefix(b, "http:") && !strings.HasPrefix(b, "https:") {
		return docURL
	}
	return b
}

// resolveLink resolves the reference of a link. In a link of the page itself, the query is in the
// page's character set.
func (r *resolver) resolveLink(ref []byte, header bool) resolvedRef {
	if !header {
		ref = r.queries.Encode(ref)
	}
	return r.resolveTarget(ref, header)
}

// resolveTarget resolves a reference. The result is zero if the reference is malformed or has a
// scheme other than http and https. A reference in the header is relative to the document itself.
func (r *resolver) resolveTarget(ref []byte, header bool) resolvedRef {
	if header && r.doc != r.base {
		return resolve(r.canon, string(ref), r.doc)
	}
	if t, ok := r.seen[string(ref)]; ok {
		return t
	}
	raw := string(ref)
	t := resolve(r.canon, raw, r.base)
	r.seen[raw] = t
	return t
}

func resolve(canon *urlkey.Canonicalizer, ref, base string) (t resolvedRef) {
	var err error
	if t.url, t.sent, err = canon.SentURL(ref, base); err != nil {
		return resolvedRef{}
	}
	return t
}

// makeRows returns at most l.max links as rows, and counts the other links in l.over. It drops links
// beyond r.room in document order, except canonical and refresh links. all is the text of the outline.
// bad is the number of links without a canonical target.
func (l *linkList) makeRows(r *resolver, source, surt, all string, pageNofollow bool) (rows []schema.Link, bad int) {
	if len(l.raw) == 0 {
		return nil, l.bad
	}
	bad = l.bad
	rows = make([]schema.Link, 0, min(len(l.raw), l.max))
	left := linksPerClass(l.met, l.max)
	inHeader := "" // canonical URL from a Link field; counts if the page itself names none
	for i := range l.raw {
		raw := &l.raw[i]
		if (left[raw.class] == 0 || r.room <= 0) && raw.class > classRefresh {
			l.over++
			continue
		}
		at := r.resolveLink(l.str(raw.href), raw.header)
		if at.url == "" {
			bad++
			r.room -= len(r.base) // the attempt took as much time as a URL
			continue
		}
		switch {
		case raw.kind == schema.KindRefresh:
			l.refresh = cmp.Or(l.refresh, at.url)
		case raw.kind == schema.KindCanonical && raw.header:
			inHeader = cmp.Or(inHeader, at.url)
		case raw.kind == schema.KindCanonical:
			l.canonical = cmp.Or(l.canonical, at.url)
		}
		if left[raw.class] == 0 {
			l.over++
			continue
		}
		left[raw.class]--
		r.room -= len(at.url) + len(at.sent)
		rows = append(rows, schema.Link{
			SourceSURT: surt, Source: source, Target: at.url, Anchor: l.anchor(raw, all), Rel: intern(l.str(raw.rel)), Kind: raw.kind,
			Nofollow: raw.nofollow || pageNofollow, Position: partNames[raw.part], Hreflang: text.LanguageTag(l.str(raw.hreflang)),
			Ordinal: int32(len(rows)), Sent: at.sent,
		})
		l.noteAuthor(&rows[len(rows)-1])
	}
	l.canonical = cmp.Or(l.canonical, inHeader)
	return rows, bad
}

// anchor returns the text of a link. If the link has no text, the result is the title or the
// alternative text.
func (l *linkList) anchor(raw *rawLink, all string) (anchor string) {
	if raw.to > raw.from {
		anchor = fold.String(all[raw.from:min(int(raw.to), len(all))], fold.MaxAnchor)
	}
	if anchor == "" && raw.alt != (span{}) {
		anchor = fold.Bytes(l.str(raw.alt), fold.MaxAnchor)
	}
	return anchor
}

// noteAuthor keeps the text of the first link with rel=author whose text may be a name.
func (l *linkList) noteAuthor(row *schema.Link) {
	if l.relAuthor == "" && row.Kind == schema.KindA && row.Anchor != "" && len(row.Anchor) <= maxByline &&
		strings.Contains(row.Rel, "author") && slices.Contains(strings.Split(row.Rel, " "), "author") {
		l.relAuthor = row.Anchor
	}
}

// commonRels holds the rels of most links.
var commonRels = func() map[string]string {
	m := map[string]string{}
	for _, rel := range [...]string{"", "nofollow", "noopener", "noopener noreferrer", "stylesheet", "tag", "category tag", "bookmark",
		"alternate", "canonical", "external"} {
		m[rel] = rel
	}
	return m
}()

// intern returns p as a string, without allocation for common values.
func intern(p []byte) string {
	if s, ok := commonRels[string(p)]; ok {
		return s
	}
	return string(p)
}
