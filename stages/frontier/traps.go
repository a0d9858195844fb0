package frontier

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"github.com/zeebo/xxh3"

	"crawlbatch.io/crawlbatch/formats/schema"
)

const (
	farFuture  = 92     // only days at least this far after the crawl are refused
	farPast    = 400    // … and at least this far before it: events may lie behind a long time without any
	newPercent = 2      // pages are no trap if they lead to more new URLs per 100 pages
	maxForms   = 20_000 // bounds the patterns of adjacent hosts
	maxYields  = 100_000
	keptShare  = 32 // one of this many URLs of a trap is kept …
	enough     = 4  // … until it has this many times the evidence that makes it one
)

// traps holds what the frontier has learned about the hosts of a bucket. All of it follows from what is
// known about the URLs after the round, so a trap ends when its pages change or are gone.
type traps struct {
	except    func(url string) bool
	today     int                   // day on which the crawl was created, in days since 1970
	patterns  map[string]verdict    // by host and pattern
	calendars map[string][2]verdict // by host and pattern: of the past and of the future
	params    map[string]*useless   // by host and parameter
	leads     leads
}

// verdict says why URLs are refused. The zero verdict refuses none.
type verdict struct {
	why string
	// share is whether one of keptShare URLs is not refused, so that there is more evidence. A trap with much
	// evidence has no such share: else a trap with many links would grow by them.
	share bool
}

// of returns the reason for which a URL is refused, or "".
func (v verdict) of(url string) string {
	if v.share && hash(url)>>32%keptShare == 0 {
		return ""
	}
	return v.why
}

// The times of a calendar.
const (
	past = iota
	future
	always // of a pattern without dates
)

// place is a pattern of URLs, or the URLs of a calendar at one time.
type place struct {
	host, pattern string
	time          int
}

// form counts the known URLs of a pattern.
type form struct {
	urls, dated int
	samples     [3]*sample
}

// sample counts the captured pages of a place.
type sample struct {
	pages  int
	same   int // number of pages that resemble the page before; of a calendar, the page before in the same cell
	surt   string
	last   content       // of a place without dates
	shapes map[int]int64 // of a calendar, the shape of the last page of each cell
}

// yield counts the URLs that pages of a place led to first. to is the pattern of the URLs, or 0 if they
// cannot be a trap.
type yield struct{ from, to uint64 }

// learner collects evidence about adjacent hosts. These have equal SURTs, so they differ only in
// "www." and the scheme. They count apart.
type learner struct {
	*traps
	cfg    *Config
	hosts  string
	forms  map[place]*form // by host and pattern
	yields map[yield]int
	lost   int // largest number of URLs that yields of one place may lack
}

// learn finds the traps of the bucket.
func (i *inputs) learn(ctx context.Context) (*traps, error) {
	t := &traps{except: i.cfg.Except, today: days(i.in.Created), patterns: map[string]verdict{}, calendars: map[string][2]verdict{}, params: map[string]*useless{}, leads: leads{map[uint64]int{}, map[string]int{}}}
	if t.except == nil {
		t.except = func(string) bool { return false }
	}
	if i.cfg.SimilarPages <= 0 {
		return t, nil
	}
	l := &learner{traps: t, cfg: i.cfg, forms: map[place]*form{}, yields: map[yield]int{}}
	v, err := newVariants(i)
	if err != nil {
		return nil, err
	}
	defer v.Close()
	for k, err := range i.knownURLs(ctx, false) {
		if err != nil {
			return nil, fmt.Errorf("read known URLs: %w", err)
		}
		if host := hostOf(k.surt); host != l.hosts {
			l.end()
			l.hosts = host
			v.begin()
		}
		if k.state == "" || t.except(k.url) {
			continue
		}
		l.add(k)
		if err := v.add(k); err != nil {
			return nil, err
		}
	}
	l.end()
	if err := v.judge(ctx, t); err != nil {
		return nil, err
	}
	if len(t.params) > 0 {
		return t, i.addNeeded(ctx, t)
	}
	return t, nil
}

func hash(parts ...string) uint64 {
	return xxh3.HashString(strings.Join(parts, "\x00"))
}

func (p *place) hash() uint64 { return hash(p.host, p.pattern, string(rune('0'+p.time))) }

// varies reports whether a pattern can have more than one URL.
func varies(pattern string) bool { return strings.ContainsAny(pattern, patternNumber+"?") }

// timeOf returns the time of a date in a calendar; far is false for dates that are near the crawl.
func (t *traps) timeOf(d urlDate) (time int, far bool) {
	least := farPast
	if d.monthly { // few pages, so that even an old archive is read to its end
		least = 366 * plausibleYears
	}
	if d.day < t.today {
		return past, t.today-d.day >= least
	}
	return future, d.day-t.today >= farFuture
}

// add counts a URL.
func (l *learner) add(k *known) {
	host, p := pattern(k.url)
	date, dated := dateOf(k.url)
	l.addYield(k, host, p, date.bare && dated)
	if !varies(p) {
		return
	}
	f := l.form(place{host: host, pattern: p})
	f.urls++
	years := plausibleYears
	if date.monthly {
		years *= 3 // its past counts from there on (timeOf)
	}
	if dated && date.day-l.today <= 366*plausibleYears && l.today-date.day <= 366*years {
		f.dated++
	}
	f.sample(always).add(k)
	if time, far := l.timeOf(date); dated && far {
		f.sample(time).addDay(k, date)
	}
}

func (l *learner) form(at place) *form {
	f := l.forms[at]
	if f == nil {
		// The URLs of a pattern are mostly near each other. So a form with few URLs is less likely to grow than
		// the new one.
		if len(l.forms) >= maxForms {
			for least := 1; len(l.forms) > maxForms/2; least *= 2 {
				maps.DeleteFunc(l.forms, func(_ place, f *form) bool { return f.urls <= least })
			}
		}
		f = &form{}
		l.forms[at] = f
	}
	return f
}

func (f *form) sample(time int) *sample {
	if f.samples[time] == nil {
		f.samples[time] = &sample{}
	}
	return f.samples[time]
}

// add counts a page, but only one of the URLs that differ in their scheme.
func (s *sample) add(k *known) {
	if k.Digest == "" || k.Words == 0 || k.surt == s.surt {
		return
	}
	if s.pages > 0 && k.resembles(&s.last) {
		s.same++
	}
	s.pages++
	s.last, s.surt = k.content, k.surt
}

// addDay counts a page of a calendar.
func (s *sample) addDay(k *known, d urlDate) {
	if k.Digest == "" || k.Words == 0 || k.surt == s.surt {
		return
	}
	if s.shapes == nil {
		s.shapes = map[int]int64{}
	}
	shape := k.Shape
	if !k.says() {
		shape = 0
	}
	if shape != 0 && s.shapes[d.cell()] == shape {
		s.same++
	}
	s.pages++
	s.shapes[d.cell()], s.surt = shape, k.surt
}

// addYield counts a URL as one that its first source led to.
func (l *learner) addYield(k *known, host, p string, day bool) {
	switch k.state {
	case schema.StateFound, schema.StateDeferred, schema.StateFetched, schema.StateRedirected:
	default:
		return
	}
	if k.firstSource == "" || day {
		return
	}
	l.leads.add(k)
	from := place{time: always}
	if from.host, from.pattern = pattern(k.firstSource); !varies(from.pattern) || from.host == host && from.pattern == p {
		return
	}
	y := yield{from: from.hash()}
	if varies(p) {
		to := place{host, p, always}
		y.to = to.hash()
	}
	l.count(y, 1)
	if date, ok := dateOf(k.firstSource); ok {
		if time, far := l.timeOf(date); far {
			from.time = time
			y.from = from.hash()
			l.count(y, 1)
		}
	}
}

// count adds to a yield. If there are too many yields, those to rare patterns stop to depend on whether
// these patterns are traps: they are not. If that is not enough, rare yields are lost, and lost bounds
// what a place may lack.
func (l *learner) count(y yield, n int) {
	if _, known := l.yields[y]; known || len(l.yields) < maxYields {
		l.yields[y] += n
		return
	}
	for least := 1; len(l.yields) > maxYields/2; least *= 2 {
		folded := map[yield]int{}
		for y, n := range l.yields {
			if n <= least {
				y.to = 0
			}
			folded[y] += n
		}
		if l.yields = folded; len(folded) > maxYields/2 {
			maps.DeleteFunc(folded, func(_ yield, n int) bool { return n <= least })
			l.lost += least
		}
	}
	l.yields[y] += n
}

// end judges the patterns of the current hosts.
func (l *learner) end() {
	suspects := map[uint64]place{}
	for at, f := range l.forms {
		calendar := 100*f.dated >= alikePercent*f.urls
		for time, s := range f.samples {
			if s == nil || s.pages < l.cfg.SimilarPages || calendar == (time == always) {
				continue
			}
			compared := s.pages - max(len(s.shapes), 1)
			if compared-s.same <= mostUnlike && 100*s.same >= alikePercent*compared && 2*compared >= l.cfg.SimilarPages {
				at.time = time
				suspects[at.hash()] = at
			}
		}
	}
	l.acquit(suspects)
	for _, at := range suspects { // their order does not matter, because each has entries of its own
		f, name := l.forms[place{host: at.host, pattern: at.pattern}], at.host+at.pattern
		s := f.samples[at.time]
		share := s.pages < enough*l.cfg.SimilarPages
		if at.time == always {
			l.patterns[name] = verdict{fmt.Sprintf("pages at %s are the same (%d of %d)", name, s.same+1, s.pages), share}
			continue
		}
		c := l.calendars[name]
		c[at.time].share, c[at.time].why = share, fmt.Sprintf("calendar: pages of the %s at %s are the same (%d of %d)", [...]string{"past", "future"}[at.time], name, s.same+len(s.shapes), s.pages)
		l.calendars[name] = c
	}
	clear(l.forms)
	clear(l.yields)
	l.lost = 0
}

// acquit removes the places whose pages lead to new URLs which are no traps themselves. A place that is removed
// makes the URLs of its pattern count, so this repeats until no place is removed.
func (l *learner) acquit(suspects map[uint64]place) {
	for {
		traps, leads := map[uint64]bool{0: false}, map[uint64]int{}
		for _, at := range suspects {
			at.time = always
			traps[at.hash()] = true
		}
		for y, n := range l.yields {
			if !traps[y.to] {
				leads[y.from] += n
			}
		}
		before := len(suspects)
		maps.DeleteFunc(suspects, func(h uint64, at place) bool {
			s := l.forms[place{host: at.host, pattern: at.pattern}].samples[at.time]
			return 100*(leads[h]+l.lost) > newPercent*s.pages
		})
		if len(suspects) == before {
			return
		}
	}
}

// refuses returns why a URL is a trap, or "" if it is none. needed is whether no URL that differs only in
// useless parameters is known.
func (t *traps) refuses(url string, needed bool) string {
	if len(t.patterns)+len(t.calendars)+len(t.params) == 0 || t.except(url) {
		return ""
	}
	host, p := pattern(url)
	if c, ok := t.calendars[host+p]; ok {
		if date, ok := dateOf(url); ok {
			if time, far := t.timeOf(date); far {
				if why := c[time].of(url); why != "" {
					return why
				}
			}
		}
	}
	if why := t.patterns[host+p].of(url); why != "" || needed {
		return why
	}
	return t.useless(host, p, url)
}

// useless returns why a URL has a parameter that changes nothing, or "" if it has none.
func (t *traps) useless(host, p, url string) string {
	names := t.uselessAt(host, p, url)
	if len(names) == 0 {
		return ""
	}
	return t.params[host+" "+names[0]].of(url)
}
