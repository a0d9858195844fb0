package frontier

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/urlkey"
)

// Some parameters of a query change nothing: the number of a session, where a visitor came from, an item that
// goes into a cart. The same holds for an identifier in a path. The evidence is pairs of URLs that differ
// only in the parameter. Both must be the same document, or one must redirect to the URL without
// the parameter.
const (
	samePercent  = 98     // least percentage of pairs that are the same
	leastBases   = 10     // least number of URLs without the parameter in which it changes nothing
	leastSpread  = 5      // a parameter is useless on all pages of a host if it is so in as many patterns
	maxParams    = 8      // number of parameters of a URL that count as evidence
	maxUsages    = 10_000 // bounds the numbers of parameters of a host, and of their patterns
	pathParam    = "/"    // begins the name of an identifier in a path; the number of its segment follows
	withoutParam = ""     // name that stands for a URL as it is
)

// useless is a parameter that changes nothing.
type useless struct {
	verdict
	anywhere bool            // in all patterns but those
	patterns map[string]bool // if anywhere, the patterns in which it changes something; otherwise those in which it changes nothing
	values   map[uint64]int  // as in usage
}

// at reports whether a parameter with a value is useless in URLs of a pattern. If it was seen with few values,
// only these are: page=1 may change nothing, and page=2 much.
func (u *useless) at(pattern, value string) bool {
	return u.anywhere != u.patterns[pattern] && (len(u.values) > fewValues || u.values[hash(value)] >= leastOfValue)
}

// uselessAt returns the useless parameters of a URL.
func (t *traps) uselessAt(host, pattern, url string) (names []string) {
	for _, name := range paramNames(url) {
		u := t.params[host+" "+name]
		if u == nil {
			continue
		}
		if _, value := without(url, func(n string) bool { return n == name }); u.at(pattern, value) {
			names = append(names, name)
		}
	}
	return names
}

// paramNames returns the names of a URL's parameters, each once.
func paramNames(url string) (names []string) {
	path, query, has := strings.Cut(afterHost(url), "?")
	for n, s := range strings.Split(path, "/") {
		if identifier(s) {
			names = append(names, pathParam+strconv.Itoa(n))
		}
	}
	if has {
		for f := range strings.SplitSeq(query, "&") {
			if name, _, _ := strings.Cut(f, "="); name != "" && !strings.HasPrefix(name, pathParam) && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// afterHost returns a URL's path and query.
func afterHost(url string) string {
	_, rest, _ := strings.Cut(hostAndPath(url), "/")
	return rest
}

// without returns a URL's host, path and query without the parameters for which drop returns true, and the
// values of these. An identifier in a path leaves its place.
func without(url string, drop func(name string) bool) (base, values string) {
	path, query, has := strings.Cut(hostAndPath(url), "?")
	segments, fields := strings.Split(path, "/"), []string(nil)
	var taken []string
	for n := range segments {
		if s := segments[n]; n > 0 && identifier(s) && drop(pathParam+strconv.Itoa(n-1)) {
			taken, segments[n] = append(taken, s), "*"
		}
	}
	if has {
		for f := range strings.SplitSeq(query, "&") {
			if name, _, _ := strings.Cut(f, "="); drop(name) {
				taken = append(taken, f)
			} else {
				fields = append(fields, f)
			}
		}
	}
	base = strings.Join(segments, "/")
	if len(fields) > 0 {
		base += "?" + strings.Join(fields, "&")
	}
	return base, strings.Join(taken, "&")
}

// variant is a captured or redirected URL, as evidence about one of its parameters.
type variant struct {
	Host    string
	Base    string // the URL without the parameter
	Param   string // withoutParam: the URL is Base
	Value   string
	URL     string
	Pattern string
	To      string // target of a redirect; it has no such parameter
	content
}

func variantKey(k table.Key, v *variant) table.Key {
	return k.Text(v.Host).Text(v.Base).Text(v.Param).Text(v.Value).Text(v.URL)
}

// variants collects evidence about the parameters of a bucket.
type variants struct {
	*table.Sorter[variant]
	plain []*known // captured URLs without a query that are prefixes of the current URL, in the order of URLs
}

func newVariants(i *inputs) (*variants, error) {
	s, err := table.NewSorter(i.env.Scratch, variantKey, i.cfg.Memory)
	return &variants{Sorter: s}, err
}

// begin starts with other hosts.
func (v *variants) begin() { v.plain = v.plain[:0] }

// add adds a URL, if it says something about a parameter. The URL without a query precedes those with one,
// so it waits until one of these comes.
func (v *variants) add(k *known) error {
	for len(v.plain) > 0 && !strings.HasPrefix(k.surt, v.plain[len(v.plain)-1].surt) {
		v.plain = v.plain[:len(v.plain)-1]
	}
	// Nobody knows yet to which new URLs a page leads that the round fetched first (leads).
	if k.fresh || k.Digest == "" && k.state != schema.StateRedirected {
		return nil
	}
	names := paramNames(k.url)
	if len(names) == 0 {
		if k.Digest != "" {
			v.plain = append(v.plain, k)
		}
		return nil
	}
	host, p := pattern(k.url)
	for _, name := range names[:min(len(names), maxParams)] {
		only := func(n string) bool { return n == name }
		base, value := without(k.url, only)
		row := variant{Host: host, Base: base, Param: name, Value: value, URL: k.url, Pattern: p, content: k.content}
		if k.redirectTo != "" && k.state == schema.StateRedirected {
			to, still := without(k.redirectTo, only)
			if row.To = to; still != "" {
				continue // another scheme, a canonical path: the parameter stays
			}
		}
		if err := v.Add(&row); err != nil {
			return err
		}
	}
	if k.Digest == "" {
		return nil
	}
	if err := v.addPlain(k); err != nil {
		return err
	}
	for n := len(v.plain) - 1; n >= 0; n-- {
		plain := v.plain[n]
		if base, _, _ := strings.Cut(k.url, "?"); hostAndPath(plain.url) == hostAndPath(base) {
			v.plain = slices.Delete(v.plain, n, n+1)
			return v.addPlain(plain)
		}
	}
	return nil
}

// hostAndPath returns a URL without its scheme.
func hostAndPath(url string) string {
	_, rest, _ := strings.Cut(url, "://")
	return rest
}

func (v *variants) addPlain(k *known) error {
	host, p := pattern(k.url)
	base := hostAndPath(k.url)
	return v.Add(&variant{Host: host, Base: base, Param: withoutParam, URL: k.url, Pattern: p, content: k.content})
}

// usage counts pairs of URLs that differ only in a parameter.
type usage struct {
	pairs, same int
	bases       int            // number of URLs without the parameter in which it changed nothing
	lastBase    string         // the last of them
	to          string         // last target of a redirect other than the URL without the parameter
	values      map[uint64]int // how often each value changed nothing; at most one more than fewValues of them
}

func (u *usage) add(base, value string, result int) {
	if result == unclear {
		return
	}
	u.count(value, result)
	u.pairs++
	if result == same {
		if u.same++; u.lastBase != base {
			u.bases, u.lastBase = u.bases+1, base
		}
	}
}

// count counts a value. A value that changed something once has too few counts for ever.
func (u *usage) count(value string, result int) {
	if result == unclear {
		return
	}
	if u.values == nil {
		u.values = map[uint64]int{}
	}
	v := hash(value)
	if _, known := u.values[v]; !known && len(u.values) > fewValues {
		return
	}
	if u.values[v]++; result == different {
		u.values[v] = math.MinInt32
	}
}

// redirected compares the target of a redirect with the one before. If all URLs with a parameter redirect to the
// same page, such as a cart, it leads to nothing else.
func (u *usage) redirected(to string) int {
	before := u.to
	switch u.to = to; before {
	case "":
		return unclear
	case to:
		return same
	}
	return different
}

// proves reports whether a parameter changes nothing.
func (u *usage) proves(least int) bool {
	return u.pairs >= least && u.bases >= leastBases && 100*u.same >= samePercent*u.pairs
}

// leads counts, by host and parameter, the URLs of the domain to which pages with the parameter led first. Pages of a list
// lead to URLs without it, although they may share title and text; pages of a session do not.
type leads struct {
	n     map[uint64]int // by host and parameter
	names map[string]int // number of entries of each host in n
}

// maxLeads bounds the entries of a host. If it has more, no parameter of it is proven.
const maxLeads = 10_000

func (l *leads) add(k *known) {
	names := paramNames(k.firstSource)
	if len(names) == 0 {
		return
	}
	host, _ := pattern(k.firstSource)
	to, _ := pattern(k.url)
	if to != host && domainOf(to) != domainOf(host) {
		return // other domains may be in another bucket
	}
	own := paramNames(k.url)
	for _, name := range names[:min(len(names), maxParams)] {
		if slices.Contains(own, name) {
			continue
		}
		h := hash(host, name)
		if _, known := l.n[h]; !known {
			if l.names[host]++; l.names[host] > maxLeads {
				continue
			}
		}
		l.n[h]++
	}
}

// of returns the number of such URLs, or a large one if nobody knows.
func (l *leads) of(host, name string) int {
	if l.names[host] > maxLeads {
		return math.MaxInt32
	}
	return l.n[hash(host, name)]
}

// domainOf returns the registered domain of a host.
func domainOf(host string) string {
	name, _ := urlkey.SplitPort(host)
	return urlkey.Domain(name)
}

// param is a parameter in the URLs of a pattern.
type param struct{ name, pattern string }

// judge finds the useless parameters.
func (v *variants) judge(ctx context.Context, t *traps) error {
	var host, base string
	usages := map[param]*usage{} // of the host; with an empty pattern, of all its patterns
	var plain, last *variant
	end := func() {
		t.judgeHost(host, usages)
		clear(usages)
	}
	for row, err := range v.Sorted(ctx) {
		if err != nil {
			return err
		}
		if row.Host != host {
			end()
			host = row.Host
		}
		if row.Base != base {
			base, plain, last = row.Base, nil, nil
		}
		if row.Param == withoutParam {
			plain = cmp.Or(plain, &row)
			continue
		}
		if last == nil || last.Param != row.Param {
			last = plain
		} else if last.Value == row.Value {
			continue // the URLs differ only in their scheme
		}
		of, total := usageOf(usages, param{row.Param, row.Pattern}), usageOf(usages, param{name: row.Param})
		switch {
		case row.To == base:
			of.add(base, row.Value, same)
			total.add(base, row.Value, same)
		case row.To != "":
			result := of.redirected(row.To)
			of.add(base, row.Value, result)
			if total.count(row.Value, result); result == different {
				total.add(base, row.Value, different)
			}
		case last != nil:
			result := row.compare(&last.content)
			of.add(base, row.Value, result)
			total.add(base, row.Value, result)
		}
		if row.To == "" {
			last = &row
		}
	}
	end()
	return nil
}

func usageOf(usages map[param]*usage, p param) *usage {
	u := usages[p]
	if u == nil {
		if len(usages) >= maxUsages {
			for least := 1; len(usages) > maxUsages/2; least *= 2 {
				maps.DeleteFunc(usages, func(_ param, u *usage) bool { return u.pairs <= least })
			}
		}
		u = &usage{}
		usages[p] = u
	}
	return u
}

// judgeHost finds the useless parameters of a host. A parameter that changes nothing in several patterns is
// useless in all others, except those in which it has changed something.
func (t *traps) judgeHost(host string, usages map[param]*usage) {
	byName := map[string][]param{}
	for p := range usages {
		byName[p.name] = append(byName[p.name], p)
	}
	for name, all := range byName { // their order does not matter, because each has an entry of its own
		total := usages[param{name: name}]
		if total == nil {
			continue
		}
		u := &useless{patterns: map[string]bool{}, values: total.values}
		changing := map[string]bool{}
		for _, p := range all {
			if p.pattern == "" {
				continue
			}
			of := usages[p]
			if of.proves(leastPairs) {
				u.patterns[p.pattern] = true
			} else if of.same < of.pairs {
				changing[p.pattern] = true
			}
		}
		spread := 0
		for _, p := range all {
			if of := usages[p]; p.pattern != "" && of.same > 0 && of.same == of.pairs {
				spread++
			}
		}
		if total.proves(leastPairs) && spread >= leastSpread {
			u.anywhere, u.patterns = true, changing
		}
		if (u.anywhere || len(u.patterns) > 0) && 100*t.leads.of(host, name) <= newPercent*total.pairs {
			what := "parameter " + name
			if strings.HasPrefix(name, pathParam) {
				what = "identifier in segment " + name[len(pathParam):]
			}
			u.share = total.pairs < enough*leastPairs
			u.why = fmt.Sprintf("%s changes nothing at %s (%d of %d pairs of pages are the same)", what, host, total.same, total.pairs)
			t.params[host+" "+name] = u
		}
	}
}

const (
	leastPairs   = 25 // least number of pairs that prove something
	fewValues    = 24 // a parameter with more values may have any: numbers of sessions, items
	leastOfValue = 3  // least number of pairs that prove something about one of few values
)

// strip returns a URL without useless parameters and without its scheme, and whether it has any.
func (t *traps) strip(url string) (base string, has bool) {
	host, p := pattern(url)
	names := t.uselessAt(host, p, url)
	base, _ = without(url, func(name string) bool { return slices.Contains(names, name) })
	return base, len(names) > 0
}

// bearer is a URL of a host with useless parameters.
type bearer struct {
	Base string // the URL without them
	Rank int32  // rankKnown …
	SURT string
	URL  string
}

// The ranks of bearers of the same base. The first one stands for all.
const (
	rankKnown  = iota // it was fetched, or waits and has no useless parameter
	rankOpen          // it may be refused
	rankLinked        // a link leads to it, and the frontier may refuse it for another reason
)

// needed is a URL with useless parameters that is needed, because no other URL stands for its page.
type needed struct{ SURT, URL string }

// ofThisCrawl reports whether this crawl found or planned a URL that is known.
func (i *inputs) ofThisCrawl(k *known) bool {
	crawl := i.in.Task.Crawl + "."
	return k.state == "" || strings.HasPrefix(k.rounds[0], crawl) || strings.HasPrefix(k.rounds[1], crawl)
}

// addNeeded adds the URLs with useless parameters that must not be refused: the first of those whose
// base is unknown.
func (i *inputs) addNeeded(ctx context.Context, t *traps) error {
	hosts := map[string]bool{}
	for name := range t.params {
		host, _, _ := strings.Cut(name, " ")
		hosts[host] = true
	}
	bearers, err := table.NewSorter(i.env.Scratch, func(k table.Key, b *bearer) table.Key {
		return k.Text(b.Base).Int(int64(b.Rank)).Text(b.SURT).Text(b.URL)
	}, i.cfg.Memory)
	if err != nil {
		return err
	}
	defer bearers.Close()
	for k, err := range i.knownURLs(ctx, true) {
		if err != nil {
			return fmt.Errorf("read known URLs: %w", err)
		}
		if host, _ := pattern(k.url); !hosts[host] {
			continue
		}
		base, has := t.strip(k.url)
		rank := int32(rankOpen)
		switch {
		case k.gone, i.in.Listed && !k.answered && !i.ofThisCrawl(k):
			continue
		case k.state == schema.StateFetched, k.state == schema.StateDeferred, !has && k.state == schema.StateFound:
			rank = rankKnown
		case k.state == "" && k.linked:
			rank = rankLinked
		case !has || !k.waits():
			continue
		}
		if err := bearers.Add(&bearer{base, rank, k.surt, k.url}); err != nil {
			return err
		}
	}
	wanted, err := table.NewSorter(i.env.Scratch, func(k table.Key, n *needed) table.Key { return k.Text(n.SURT).Text(n.URL) }, i.cfg.Memory)
	if err != nil {
		return err
	}
	i.closers = append(i.closers, wanted)
	base, rank := "", int32(rankKnown) // rank of the first bearer of the base
	for b, err := range bearers.Sorted(ctx) {
		if err != nil {
			return err
		}
		// Of links alone, each may be refused for another reason.
		if b.Base == base && rank != rankLinked {
			continue
		}
		if b.Base != base {
			base, rank = b.Base, b.Rank
		}
		if b.Rank != rankKnown {
			if err := wanted.Add(&needed{b.SURT, b.URL}); err != nil {
				return err
			}
		}
	}
	rows := table.Pull(wanted.Sorted(ctx))
	i.closers = append(i.closers, rows)
	i.streams = append(i.streams, table.Convert(rows, func(n *needed) (item, bool) { return item{surt: n.SURT, url: n.URL, row: n}, true }))
	return nil
}
