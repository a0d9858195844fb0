package urlkey

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/nlnwa/whatwg-url/url"
	"golang.org/x/net/idna"
)

// standard is the parser of the URL Standard. It corrects two deviations of the library: "^"
// belongs to the path percent-encode set, and an ASCII domain is only lowercased, even if its
// punycode is broken. It is safe for concurrent use.
var standard = url.NewParser(
	url.WithPathPercentEncodeSet(url.PathPercentEncodeSet.Set('^')),
	url.WithPreParseHostFunc(hideACE),
	url.WithPostParseHostFunc(func(_ *url.Url, host string) string { return showACE(host) }),
)

// WHATWG parses raw, relative to base unless that is "". It returns the href as the URL Standard
// defines it, with fragment and credentials, for any scheme. Errors wrap ErrNotURL, or ErrTooLong
// if the input has more than 64 KiB.
func WHATWG(raw, base string) (string, error) {
	u, err := parse(raw, base)
	if err != nil {
		return "", err
	}
	if u.OpaquePath() && (u.Query() != "" || u.Fragment() != "" || strings.ContainsAny(u.Href(false), "?#")) {
		return encodeOpaqueEnd(u.Href(false)), nil
	}
	return u.Href(false), nil
}

// parse runs the slow, complete parser.
func parse(raw, base string) (*url.Url, error) {
	if len(raw) > maxRaw || len(base) > maxRaw {
		return nil, fmt.Errorf("parse %s: %w", quoted(raw), ErrTooLong)
	}
	var b *url.Url
	if base != "" {
		var err error
		if b, err = standard.Parse(base); err != nil {
			return nil, fmt.Errorf("parse base %s: %w", quoted(base), ErrNotURL)
		}
	}
	u, err := standard.BasicParser(raw, b, nil, url.NoState)
	if err != nil {
		return nil, fmt.Errorf("parse %s: %w", quoted(raw), ErrNotURL)
	}
	return u, nil
}

// encodeOpaqueEnd percent-encodes the last space of an opaque path if a query or a fragment
// follows, as the standard's opaque path state does.
func encodeOpaqueEnd(href string) string {
	if i := strings.IndexAny(href, "?#"); i > 0 && href[i-1] == ' ' {
		return href[:i-1] + "%20" + href[i:]
	}
	return href
}

// domains maps non-ASCII names like the standard's "domain to ASCII" with beStrict false.
var domains = idna.New(
	idna.MapForLookup(),
	idna.BidiRule(),
	idna.CheckJoiners(true),
	idna.CheckHyphens(false),
	idna.StrictDomainName(false),
	idna.ValidateLabels(true),
	idna.VerifyDNSLength(false),
	idna.Transitional(false),
)

// badHost replaces a refused host. It has a forbidden code point, so the parser fails.
const badHost = "\x00"

// hideACE runs domain to ASCII before the parser does so itself. It hides the ACE prefixes ("xn--")
// of the result from the parser: every label that starts with "xn-" gets a "q" after it, which
// showACE removes again. IPv6 addresses and hosts of schemes that are not special pass unchanged.
func hideACE(u *url.Url, host string) string {
	if host == "" || host[0] == '[' || !u.IsSpecialScheme() {
		return host
	}
	name, ok := domainToASCII(unescape(host))
	if !ok || strings.IndexByte(name, '%') >= 0 {
		return badHost
	}
	return mapLabels(name, "xn-", "xn-q")
}

func showACE(host string) string { return mapLabels(host, "xn-q", "xn-") }

// domainToASCII is the standard's algorithm of that name, in its lenient form.
func domainToASCII(name string) (string, bool) {
	if !strings.ContainsFunc(name, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return strings.ToLower(name), true
	}
	if !utf8.ValidString(name) {
		return "", false
	}
	name, err := domains.ToASCII(name)
	return name, err == nil && name != ""
}

// mapLabels replaces the prefix old of every label with new.
func mapLabels(host, old, new string) string {
	if !strings.Contains(host, old) {
		return host
	}
	labels := strings.Split(host, ".")
	for i, l := range labels {
		if rest, ok := strings.CutPrefix(l, old); ok {
			labels[i] = new + rest
		}
	}
	return strings.Join(labels, ".")
}
