package urlkey

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/nlnwa/whatwg-url/url"
	"golang.org/x/net/idna"
)

// standard is the parser of the URL Standard. It is safe for concurrent use. Its options correct two
// deviations of the library from the standard: "^" is escaped in paths, and an ASCII domain is only
// changed to lower case, even if its punycode is broken.
var standard = url.NewParser(
	url.WithPathPercentEncodeSet(url.PathPercentEncodeSet.Set('^')),
	url.WithPreParseHostFunc(hideACE),
	url.WithPostParseHostFunc(func(_ *url.Url, host string) string { return showACE(host) }),
)

// WHATWG resolves the reference raw against the URL base, which may be "", and returns the href of
// the result according to the URL Standard. The href includes fragment and credentials. WHATWG
// accepts any scheme. Errors wrap ErrNotURL, or ErrTooLong if the input has more than 64 KiB.
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

// parse parses raw with the complete parser of the URL Standard.
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

// encodeOpaqueEnd percent-encodes a space at the end of an opaque path before a query or a fragment,
// as the URL Standard's opaque path state does. The library does not.
func encodeOpaqueEnd(href string) string {
	if i := strings.IndexAny(href, "?#"); i > 0 && href[i-1] == ' ' {
		return href[:i-1] + "%20" + href[i:]
	}
	return href
}

// domains is the profile for the URL Standard's algorithm "domain to ASCII" with beStrict false.
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

// badHost replaces a host that hideACE refuses. It is forbidden in hosts, so the parser returns an
// error.
const badHost = "\x00"

// hideACE applies "domain to ASCII" in place of the parser. The parser must not see the ACE prefix
// "xn--" of a label, so hideACE inserts a "q" after "xn-". showACE removes it. IPv6 addresses and
// hosts of schemes that are not special stay unchanged.
func hideACE(u *url.Url, host string) string {
	if host == "" || host[0] == '[' || !u.IsSpecialScheme() {
		return host
	}
	name, ok := domainToASCII(unescape(host))
	if !ok || strings.IndexByte(name, '%') >= 0 || strings.ContainsAny(name, "+-") && endsInNumber(name) {
		return badHost
	}
	return mapLabels(name, "xn-", "xn-q")
}

// endsInNumber reports whether the last label of a host is a decimal or hexadecimal number. The URL
// Standard parses such a host as an IPv4 address. The library wrongly accepts signs in its numbers,
// so hideACE refuses them.
func endsInNumber(name string) bool {
	last := strings.TrimSuffix(name, ".")
	last = last[strings.LastIndexByte(last, '.')+1:]
	if hex, ok := strings.CutPrefix(last, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return last != "" && strings.Trim(last, "0123456789") == ""
}

func showACE(host string) string { return mapLabels(host, "xn-q", "xn-") }

// domainToASCII is the lenient form of the URL Standard's algorithm "domain to ASCII".
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

// mapLabels replaces the prefix old by new in each label that begins with old.
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
