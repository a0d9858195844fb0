package takedown

import (
	"bytes"
	"net/netip"
	"strings"

	"crawlbatch.io/crawlbatch/formats/urlkey"
)

// names are what Mentions looks for in a text: those of a Matcher or of a Guard.
type names interface {
	onDomain(host string) bool     // whether a host name in lower case is on a target domain
	reversedHost(name string) bool // the same for a name with its labels in reverse order
	surtHost(labels string) bool   // the same for the labels of a SURT
	surtURL(surt string) bool      // whether a SURT is that of a target URL
	hasURLs() bool                 // whether any target is a URL
	onHosts(host string) bool      // whether a target URL may be on the host
	URL(s string) bool
	singleLabels() bool // whether a target may have only one label
	anyScript() bool    // whether text may spell a target in Unicode
}

// Mentions reports whether a text has a target in any form: a URL of a target or on a target domain, a
// host or domain, a SURT key or a reversed host. Capital letters, percent escapes and the escapes of JSON
// and HTML around a name do not hide it. A longer name, such as example.org.uk or notexample.org for the
// domain example.org, is no mention.
func (m *Matcher) Mentions(text []byte) bool {
	if m.Empty() {
		return false
	}
	for _, a := range m.addresses {
		if bytes.Contains(bytes.ToLower(text), []byte(a)) {
			return true
		}
	}
	return m.mayMention(text) && mentions(m, text)
}

// mayMention reports whether a text has a label of each form of some target. Most texts have not, and this
// is some 20 times faster than mentions.
func (m *Matcher) mayMention(text []byte) bool {
	if m.labels == nil {
		return true
	}
	const overlap = 63 // of the longest label (RFC 1035, section 2.3.4)
	var lowered [4 << 10]byte
	for {
		part := lowered[:min(len(text), len(lowered))]
		for i := range part {
			c := text[i]
			if 'A' <= c && c <= 'Z' {
				c += 'a' - 'A'
			}
			if part[i] = c; c >= 0x80 && len(m.urls) > 0 {
				return true // other scripts have characters that a URL may have instead of letters
			}
		}
		for _, l := range m.labels {
			if bytes.Contains(part, l) {
				return true
			}
		}
		if len(part) == len(text) {
			return false
		}
		text = text[len(part)-overlap:]
	}
}

// findLabels sets m.labels if every mention of every target has one of a few labels.
func (m *Matcher) findLabels() {
	const most = 8 // so that the time does not grow with the number of names
	if m.unicode || len(m.addresses) > 0 || len(m.urls) > 0 && rewrites(m.canonical) || len(m.domains)+len(m.urlHosts) > most {
		return
	}
	var labels [][]byte
	for _, hosts := range []map[string]struct{}{m.domains, m.urlHosts} {
		for host := range hosts {
			longest := ""
			for l := range strings.SplitSeq(host, ".") {
				if len(l) > len(longest) && !strings.HasPrefix(l, "www") { // SURTs have no www
					longest = l
				}
			}
			if _, err := netip.ParseAddr(host); err == nil || longest == "" { // addresses have other forms
				return
			}
			labels = append(labels, []byte(longest))
		}
	}
	m.labels = labels
}

// The methods of names.
func (m *Matcher) reversedHost(name string) bool { return m.ReversedHost(name) }
func (m *Matcher) surtURL(surt string) bool      { return has(m.urlSURTs, surt) }
func (m *Matcher) hasURLs() bool                 { return len(m.urls) > 0 }
func (m *Matcher) singleLabels() bool            { return m.single }
func (m *Matcher) anyScript() bool               { return m.unicode }

// mentions reports whether a text has one of the names.
func mentions(m names, text []byte) bool {
	for i := 0; i < len(text); {
		begin, labels := i, m.singleLabels()
		for i < len(text) && (hostByte(text[i]) || text[i] == ',') {
			labels = labels || text[i] == '.' || text[i] == ',' || text[i] >= 0x80 // other scripts have dots of their own
			i++
		}
		if labels && i > begin && mentionsAt(m, text, begin, i) {
			return true
		}
		if i < len(text) {
			i++
		}
	}
	return false
}

// mentionsAt reports whether the run of name characters text[begin:end] is, with what follows it, a
// mention. Characters of an escape before a name belong to the run: 2F of %2Fexample.org, n of
// \nexample.org.
func mentionsAt(m names, text []byte, begin, end int) bool {
	skips := []int{0}
	switch {
	case begin > 0 && text[begin-1] == '%':
		skips = []int{2, 4} // %252F is escaped twice
	case begin > 0 && text[begin-1] == '\\':
		skips = []int{0, 1, 5}
	}
	for _, skip := range skips {
		if begin+skip < end && mentionsName(m, text, begin+skip, end) {
			return true
		}
	}
	return false
}

func mentionsName(m names, text []byte, begin, end int) bool {
	run := strings.Trim(lower(text[begin:end]), ".,")
	if run == "" {
		return false
	}
	if strings.IndexByte(run, ',') >= 0 && mentionsSURT(m, text, begin, end, run) {
		return true
	}
	for part := range strings.SplitSeq(run, ",") {
		if part = strings.Trim(part, "."); mentionsHost(m, part) {
			return true
		}
	}
	// After a comma, the last name of the run begins a URL.
	if !m.hasURLs() {
		return false
	}
	host := strings.TrimRight(string(text[begin:end]), ".,")
	return mentionsURL(m, text, begin+strings.LastIndexByte(host, ',')+1, end)
}

// mentionsHost reports whether a run of host characters is a target domain or under it, in one order of
// the labels or the other.
func mentionsHost(m names, host string) bool {
	if m.onDomain(host) || m.reversedHost(host) {
		return true
	}
	if !m.anyScript() || ascii(host) {
		return false
	}
	name, err := urlkey.HostName(host)
	return err == nil && m.onDomain(name)
}

// mentionsSURT reports whether run, the text from begin to end, is the host of a target's SURT.
func mentionsSURT(m names, text []byte, begin, end int, run string) bool {
	if m.surtHost(run) {
		return true
	}
	if end == len(text) || text[end] != ')' && text[end] != ':' {
		return false
	}
	for rest := text[begin:urlEnd(text, end)]; len(rest) > end-begin; rest = rest[:len(rest)-1] {
		if m.surtURL(string(rest)) {
			return true
		}
		if !bytes.ContainsRune([]byte(trailing), rune(rest[len(rest)-1])) {
			return false
		}
	}
	return false
}

// trailing holds the characters that end sentences and quotations, and may not belong to the URL
// before them.
const trailing = ".,;:!?)]}'*_\\"

// mentionsURL reports whether the text has a target URL whose host name is text[begin:end].
func mentionsURL(m names, text []byte, begin, end int) bool {
	host, err := urlkey.HostName(strings.TrimRight(string(text[begin:end]), ".,"))
	if err != nil || !m.onHosts(host) {
		return false
	}
	rest := strings.ReplaceAll(string(text[begin:urlEnd(text, end)]), "&amp;", "&")
	rest = strings.ReplaceAll(rest, `\/`, "/")
	rest = strings.ReplaceAll(rest, `\u0026`, "&")
	if after, ok := strings.CutPrefix(rest[end-begin:], "%2F"); ok { // a whole URL that is escaped
		rest = unescape(rest[:end-begin] + "/" + after)
	} else if after, ok := strings.CutPrefix(rest[end-begin:], "%3A"); ok {
		rest = unescape(rest[:end-begin] + ":" + after)
	}
	for range len(trailing) {
		if m.URL("http://" + rest) {
			return true
		}
		shorter := strings.TrimRight(rest, trailing)
		if shorter == rest {
			// A URL within another's query ends at the next parameter.
			i := strings.LastIndexByte(rest, '&')
			if i <= end-begin {
				return false
			}
			shorter = rest[:i]
		}
		rest = shorter
	}
	return false
}

// urlEnd returns where the URL ends of which text[:at] has the host.
func urlEnd(text []byte, at int) int {
	limit := min(len(text), at+urlkey.MaxLength)
	for at < limit && text[at] > ' ' && text[at] != '"' && text[at] != '<' && text[at] != '>' && text[at] != 0x7f && text[at] != '`' {
		at++
	}
	return at
}

// unescape decodes percent escapes once.
func unescape(s string) string {
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			hi, ok1 := unhex(s[i+1])
			lo, ok2 := unhex(s[i+2])
			if ok1 && ok2 {
				out = append(out, hi<<4|lo)
				i += 2
				continue
			}
		}
		out = append(out, s[i])
	}
	return string(out)
}

func unhex(c byte) (byte, bool) {
	i := strings.IndexByte("0123456789abcdef0123456789ABCDEF", c)
	return byte(i & 15), i >= 0
}

// hostByte reports whether a byte may be in a host name. Octets of other scripts may be.
func hostByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '.' || c == '-' || c == '_' || c >= 0x80
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// lower returns text with ASCII letters in lower case.
func lower(text []byte) string {
	b := bytes.Clone(text)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}
