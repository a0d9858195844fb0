package response

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"

	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/stages/fetch/wire"
)

// IsRedirect reports whether a response redirects to another URL: its status says so, and it has a Location.
// The Location of a 300 response names the choice that the server prefers (RFC 9110, 15.4.1).
func IsRedirect(x *wire.Exchange) bool { return redirects(x.Status) && location(x) != "" }

// HasDocument reports whether the body of a response is a document. It is if the status is 2xx. A redirect
// without a Location is shown as it is (Fetch Standard, 4.3), so its body is a document too, unless it is empty.
func HasDocument(x *wire.Exchange) bool {
	return x.Status >= 200 && x.Status <= 299 || redirects(x.Status) && location(x) == "" && len(x.Payload) > 0
}

// redirects reports whether a status is that of a redirect (Fetch Standard, "redirect status"), or 300.
func redirects(status int) bool {
	switch status {
	case 300, 301, 302, 303, 307, 308:
		return true
	}
	return false
}

// location returns the first Location that is not blank, or "".
func location(x *wire.Exchange) string {
	for loc := range x.Header.Values("Location") {
		if strings.TrimSpace(loc) != "" {
			return loc
		}
	}
	return ""
}

// NoDocument returns the failure of a response that has neither a document nor a redirect target.
func NoDocument(status int) Failure {
	switch {
	case status == http.StatusNotModified:
		return Failure{Phrase: "HTTP status 304 without a known document"}
	case redirects(status):
		return Failure{Phrase: ErrNoLocation.Error()}
	case status == http.StatusUseProxy:
		return Failure{Phrase: "HTTP status 305, which names a proxy to use"}
	}
	return Failed("HTTP status with neither a document nor a target", "%d", status)
}

// NoTarget returns the failure of a redirect whose target is not valid.
func NoTarget(err error) Failure {
	return Failure{"redirect target is not a URL", err.Error()}
}

// ErrNoLocation means that a redirect names no target.
var ErrNoLocation = errors.New("redirect without a Location or a document")

// Location returns the target of a redirect in canonical form, and the URL to send as the server wrote it (urlkey.Sent).
// base is the URL that was sent.
func Location(canon *urlkey.Canonicalizer, x *wire.Exchange, base string) (urlkey.Key, string, error) {
	if loc := location(x); loc != "" {
		return canon.Sent(locationText(loc), base)
	}
	return urlkey.Key{}, "", ErrNoLocation
}

// locationText returns a Location as valid UTF-8. If loc is not valid UTF-8, each octet outside
// ASCII is percent-encoded, as browsers do.
func locationText(loc string) string {
	if utf8.ValidString(loc) {
		return loc
	}
	var b strings.Builder
	for i := range len(loc) {
		if c := loc[i]; c < utf8.RuneSelf {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// CloneKey copies a key, so that it does not keep a larger buffer in memory.
func CloneKey(k urlkey.Key) urlkey.Key {
	return urlkey.Key{URL: strings.Clone(k.URL), SURT: strings.Clone(k.SURT), Host: strings.Clone(k.Host), Domain: strings.Clone(k.Domain)}
}
