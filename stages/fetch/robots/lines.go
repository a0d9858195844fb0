package robots

import (
	"bytes"
	"strings"

	"golang.org/x/text/encoding/unicode"
)

const (
	// MaxBytes is how much of a robots.txt is parsed, in bytes; the rest is ignored. RFC 9309,
	// section 2.5, demands at least 500 KiB.
	MaxBytes = 500 << 10

	// maxLine is how many octets of a line are read; the rest is ignored. Google's parser has the
	// same limit: 8 times the longest URL of Internet Explorer, without the final NUL.
	maxLine = 2083*8 - 1
)

// key is the name before the colon of a line, such as Disallow. Common misspellings count as the
// standard name.
type key uint8

const (
	keyUnknown key = iota
	keyUserAgent
	keyAllow
	keyDisallow
	keySitemap
	keyCrawlDelay
	keyRequestRate
	keyContentSignal
)

// keyPrefixes lists, in lower case, the prefixes by which a key is recognised: its standard name,
// then common misspellings.
var keyPrefixes = []struct {
	key      key
	prefixes []string
}{
	{keyUserAgent, []string{"user-agent", "useragent", "user agent"}},
	{keyAllow, []string{"allow"}},
	{keyDisallow, []string{"disallow", "dissallow", "dissalow", "disalow", "diasllow", "disallaw"}},
	{keySitemap, []string{"sitemap", "site-map"}},
	{keyCrawlDelay, []string{"crawl-delay", "crawldelay"}},
	{keyRequestRate, []string{"request-rate", "requestrate"}},
	{keyContentSignal, []string{"content-signal"}},
}

// line is a "key: value" line with a known key.
type line struct {
	key   key
	value string
	text  string // line as written, without comment and surrounding space
	num   int    // number of the line, from 1
}

// eachLine calls yield for every line with a known key. Lines end in LF, CR or CRLF. eachLine reads UTF-16 after its
// byte-order mark, and else skips the mark of UTF-8, even an incomplete one. In each line, it ignores everything after maxLine
// octets, a NUL, or '#'.
func eachLine(body []byte, yield func(line)) {
	body = skipMark(fromUTF16(body))
	for num := 1; ; num++ {
		end := bytes.IndexAny(body, "\r\n")
		raw := body
		if end >= 0 {
			raw = body[:end]
		}
		if l, ok := splitLine(raw); ok {
			l.num = num
			yield(l)
		}
		if end < 0 {
			return
		}
		if body[end] == '\r' && end+1 < len(body) && body[end+1] == '\n' {
			end++
		}
		body = body[end+1:]
	}
}

// skipMark removes a UTF-8 byte-order mark, even an incomplete one, from the start of body.
// fromUTF16 returns a body in UTF-16 with a byte-order mark as UTF-8, and any other body as it is. Editors on Windows save
// so, and without this every line would be unknown, and nothing forbidden.
func fromUTF16(body []byte) []byte {
	if !bytes.HasPrefix(body, []byte{0xFF, 0xFE}) && !bytes.HasPrefix(body, []byte{0xFE, 0xFF}) {
		return body
	}
	text, err := unicode.UTF16(unicode.LittleEndian, unicode.ExpectBOM).NewDecoder().Bytes(body)
	if err != nil { // cannot happen, because the decoder replaces what it cannot read
		return body
	}
	return text
}

func skipMark(body []byte) []byte {
	for _, b := range []byte{0xEF, 0xBB, 0xBF} {
		if len(body) == 0 || body[0] != b {
			break
		}
		body = body[1:]
	}
	return body
}

// splitLine splits a line at the colon. If a line without a colon consists of two words, splitLine
// splits it between the two words.
func splitLine(raw []byte) (line, bool) {
	if len(raw) > maxLine {
		raw = raw[:maxLine]
	}
	if i := bytes.IndexByte(raw, 0); i >= 0 {
		raw = raw[:i]
	}
	if i := bytes.IndexByte(raw, '#'); i >= 0 {
		raw = raw[:i]
	}
	text := trimSpace(string(raw))
	sep := strings.IndexByte(text, ':')
	if sep < 0 {
		sep = strings.IndexAny(text, " \t")
		if sep < 0 || strings.ContainsAny(strings.TrimLeft(text[sep:], " \t"), " \t") {
			return line{}, false
		}
	}
	name := trimSpace(text[:sep])
	if name == "" {
		return line{}, false
	}
	k := keyOf(name)
	if k == keyUnknown {
		return line{}, false
	}
	return line{key: k, value: trimSpace(text[sep+1:]), text: text}, true
}

func keyOf(name string) key {
	for _, kp := range keyPrefixes {
		for _, p := range kp.prefixes {
			if len(name) >= len(p) && strings.EqualFold(name[:len(p)], p) {
				return kp.key
			}
		}
	}
	return keyUnknown
}

// trimSpace trims ASCII white space only, because other spaces may belong to a path.
func trimSpace(s string) string { return strings.Trim(s, " \t\n\v\f\r") }

func isSpace(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' }
