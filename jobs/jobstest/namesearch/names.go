// Package namesearch finds, for tests of takedown, every place in a store that holds the name of a URL
// or domain, in any form in which crawlbatch stores names.
//
// The input is a store and the names. The output is a Hit for each place: an object and what in it
// holds the name, such as a column, a statistic, a record of a WARC file or the object's key. Search
// knows the formats only as far as is needed to unpack them, and does not trust what objects are named:
// each object is also searched as it is, as JSON, as gzip, and as Parquet wherever it has Parquet's
// magic number. Package namesearch imports packages schema, store, urlfilter, urlkey and warc.
package namesearch

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// Names are the names to look for.
type Names struct {
	words  []word
	probes []string // exact values that are looked up in Bloom filters
}

// word is a sequence of bytes that names a target if the bytes around it end the name.
type word struct {
	form string // how the name is written: plain, reversed, …
	text []byte // in lower case, unless exact
	// exact words are found with the same case and anything around them.
	exact bool
	// before and after report whether a byte beside the word continues the name, so that the text is
	// another name.
	before, after func(c byte) bool
}

func inHost(c byte) bool {
	return c == '-' || c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func inLabels(c byte) bool { return inHost(c) || c == '.' }
func inSURT(c byte) bool   { return inHost(c) || c == ',' }

// inURL reports whether c continues the path or query of a URL.
func inURL(c byte) bool { return inHost(c) || strings.IndexByte("/%~?=&+;:@", c) >= 0 }

// Domain adds a domain with all its subdomains. hosts are hosts of the domain that are known to have
// been crawled: Bloom filters can only be asked for whole names.
func (n *Names) Domain(domain string, hosts ...string) {
	domain = strings.ToLower(domain)
	labels := strings.Split(domain, ".")
	slices.Reverse(labels)
	n.words = append(n.words,
		word{form: "plain", text: []byte(domain), before: inHost, after: inHost},
		word{form: "reversed", text: []byte(strings.Join(labels, ".")), before: inLabels, after: inHost},
		word{form: "SURT", text: []byte(strings.Join(labels, ",")), before: inSURT, after: inHost})
	n.disguised(domain)
	n.probes = append(append(n.probes, domain), hosts...)
}

// URL adds a canonical http or https URL.
func (n *Names) URL(canonical string) error {
	u, err := url.Parse(canonical)
	if err != nil || u.Host == "" {
		return fmt.Errorf("not an absolute URL: %q: %w", canonical, err)
	}
	_, rest, _ := strings.Cut(canonical, "://")
	labels := strings.Split(u.Hostname(), ".")
	slices.Reverse(labels)
	port := ""
	if u.Port() != "" {
		port = ":" + u.Port()
	}
	path := strings.TrimPrefix(rest, u.Host)
	n.words = append(n.words,
		word{form: "plain", text: []byte(strings.ToLower(rest)), before: inLabels, after: inURL},
		word{form: "SURT", text: []byte(strings.ToLower(strings.Join(labels, ",") + port + ")" + path)), before: inSURT, after: inURL},
		word{form: "escaped", text: []byte(strings.ToLower(url.QueryEscape(rest))), before: inLabels, after: inURL})
	n.disguised(canonical)
	n.probes = append(n.probes, canonical)
	return nil
}

// Probe adds values that Bloom filters are asked for, besides those of Domain and URL.
func (n *Names) Probe(values ...string) { n.probes = append(n.probes, values...) }

// Exact adds text that is looked for as it is, such as the digest of a removed payload.
func (n *Names) Exact(form, text string) {
	n.words = append(n.words, word{form: form, text: []byte(text), exact: true})
}

// disguised adds forms that a reader can turn back into the name, or check against it: base64 at each
// alignment, UTF-16, and digests without a key.
func (n *Names) disguised(name string) {
	for shift := range 3 {
		// The first and last characters of base64 depend on the neighbours too.
		coded := base64.RawStdEncoding.EncodeToString(append(make([]byte, shift), name...))
		from := (8*shift + 5) / 6
		to := (shift + len(name)) * 8 / 6
		if to-from >= 8 {
			n.Exact("base64", coded[from:to])
		}
	}
	var wide []byte
	for _, c := range []byte(name) {
		wide = append(wide, c, 0)
	}
	n.Exact("UTF-16", string(wide))
	one, two := sha1.Sum([]byte(name)), sha256.Sum256([]byte(name))
	for form, sum := range map[string][]byte{"SHA-1": one[:], "SHA-256": two[:]} {
		n.Exact(form, string(sum))
		n.Exact(form, hex.EncodeToString(sum))
		n.Exact(form, base32.StdEncoding.EncodeToString(sum))
		n.Exact(form, base64.RawStdEncoding.EncodeToString(sum))
	}
}

// find returns the form and the neighbourhood of the first name in text.
func (n *Names) find(text []byte) (form, around string, ok bool) {
	var lower []byte
	for _, w := range n.words {
		in := text
		if !w.exact {
			if lower == nil {
				lower = bytes.ToLower(text)
				if len(lower) != len(text) { // letters whose lower case has another length
					lower = asciiLower(text)
				}
			}
			in = lower
		}
		for from := 0; ; {
			i := bytes.Index(in[from:], w.text)
			if i < 0 {
				break
			}
			at := from + i
			if w.exact || w.bounded(in, at) {
				return w.form, excerpt(text, at, at+len(w.text)), true
			}
			from = at + 1
		}
	}
	return "", "", false
}

// bounded reports whether the word at in[at:] is a whole name.
func (w *word) bounded(in []byte, at int) bool {
	end := at + len(w.text)
	if at > 0 && w.before(in[at-1]) && !escapeBefore(in, at) {
		return false
	}
	if end == len(in) {
		return true
	}
	if in[end] == '.' && end+1 < len(in) && inHost(in[end+1]) && w.form == "plain" {
		return !w.after('a') // the name goes on with another label, or the URL with a suffix
	}
	return !w.after(in[end])
}

// escapeBefore reports whether an escape such as %2F or \n ends before at.
func escapeBefore(in []byte, at int) bool {
	return at >= 3 && in[at-3] == '%' || at >= 2 && in[at-2] == '\\' || at >= 6 && in[at-6] == '\\' && in[at-5] == 'u'
}

func asciiLower(text []byte) []byte {
	lower := bytes.Clone(text)
	for i, c := range lower {
		if c >= 'A' && c <= 'Z' {
			lower[i] = c + 'a' - 'A'
		}
	}
	return lower
}

func excerpt(text []byte, from, to int) string {
	return string(text[max(0, from-40):min(len(text), to+40)])
}

// Holds reports whether a text has one of the names.
func (n *Names) Holds(text string) bool {
	_, _, ok := n.find([]byte(text))
	return ok
}
