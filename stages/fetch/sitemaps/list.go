package sitemaps

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/zeebo/xxh3"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/stages/fetch/response"
)

// Limits bounds the sitemaps of a host in a crawl, and the sitemaps of all hosts of a registered
// domain together. When one of these bounds is reached, no further sitemap is requested. The zero
// value means that no sitemaps are fetched.
type Limits struct {
	Files int   // number of files
	URLs  int64 // number of entries; further entries are left out
	Bytes int64 // length of the decoded bodies, in bytes
}

// Default is the default of Limits.
func Default() Limits { return Limits{Files: 100, URLs: 1_000_000, Bytes: 1 << 30} }

// FirstID is the least ID of a task. IDs of planned rows are smaller.
const FirstID = 1 << 40

// maxWaiting bounds the memory of all waiting tasks, in bytes. The sitemaps of a partition may name
// more, if it has many hosts. Sitemaps beyond this bound are not fetched in this round.
const maxWaiting = 64 << 20

// taskSize is the approximate memory of a waiting task without its text, in bytes.
const taskSize = 320

// Task is a sitemap on its way to its outcome. It belongs to the goroutine that has the grant for
// its ID.
type Task struct {
	ID        int64
	Named     string     // canonical URL that robots.txt or an index names
	Key       urlkey.Key // URL to request next: Named or a redirect's target
	Sent      string     // that URL as robots.txt, an index or a redirect names it, and as it is sent; "" if canonical
	Redirects int32
	Tries     int32 // number of requests for the URL in Key
	// cookies are those that the redirects have set. A crash loses them: the sitemap then ends as redirected
	// perhaps, and the next round tries it again.
	cookies response.Cookies

	suspect bool        // whether earlier attempts died at it
	claimed bool        // whether the task has reserved the URL in Key
	failed  schema.Time // time of the last failed request in an earlier round; 0 if there was none
	lane    *lane
}

// asked returns the URL to send next.
func (t *Task) asked() string { return cmp.Or(t.Sent, t.Key.URL) }

// row returns the row of a task without an outcome, as the task is now.
func (t *Task) row() schema.Sitemap {
	row := schema.Sitemap{
		SURT: t.Key.SURT, URL: t.Key.URL, Host: t.Key.Host, Domain: t.Key.Domain, Sent: t.Sent, Redirects: t.Redirects, Tries: t.Tries,
		FetchedAt: t.failed,
	}
	if t.Named != t.Key.URL {
		row.Named = t.Named
	}
	return row
}

// size returns the approximate memory of the task, in bytes.
func (t *Task) size() int { return taskSize + len(t.Named) + len(t.Key.SURT) + len(t.Sent) }

// lane holds the sitemaps of one host. At most one of them at a time has a request in flight.
type lane struct {
	waiting []*Task
	dropped bool   // whether no further sitemap of the host is requested in this round
	host    usage  // sums over the host
	domain  *usage // sums over all hosts of the registered domain
}

// usage holds the numbers that Limits bounds.
type usage struct {
	files   int // sitemaps with an outcome
	waiting int // sitemaps in lane.waiting
	busy    int // sitemaps under way: the scheduler has their items, or they are in flight
	urls    int64
	bytes   int64
}

// count adds to the numbers of waiting tasks and of tasks under way.
func (la *lane) count(waiting, busy int) {
	for _, u := range []*usage{&la.host, la.domain} {
		u.waiting += waiting
		u.busy += busy
	}
}

// List is the list of a fetch task's sitemaps. It is safe for concurrent use.
type List struct {
	Tools
	limits Limits

	mu    sync.Mutex
	known map[uint64]bool   // by hash of URL: true if the sitemap has its outcome or its URL is planned, false before that
	lanes map[string]*lane  // by host
	used  map[string]*usage // by registered domain
	tasks map[int64]*Task   // tasks under way
	last  int64             // ID of the newest task
	held  int               // memory of all waiting tasks, in bytes
}

// New makes an empty list.
func New(limits Limits, tools Tools) *List {
	return &List{
		Tools: tools, limits: limits, known: map[uint64]bool{}, lanes: map[string]*lane{}, used: map[string]*usage{}, tasks: map[int64]*Task{}, last: FirstID - 1,
	}
}

// On reports whether sitemaps are fetched at all.
func (l *List) On() bool { return l.limits.Files > 0 }

// addNamed adds a sitemap that a robots.txt or index of the given registered domain names (ref),
// and returns the new task and its row. It returns nil if the list knows the sitemap already or
// must not take it. The task waits until next returns it. If the URL is planned, addNamed returns
// only a row that tells this to later rounds, unless they know it.
func (l *List) addNamed(ref, base, domain string) (*Task, schema.Sitemap, error) {
	var row schema.Sitemap
	if !l.On() {
		return nil, row, nil
	}
	key, sent, err := l.Canon.Sent(ref, base)
	if err != nil || key.Domain != domain {
		return nil, row, nil //nolint:nilerr // not a URL, or one of another domain
	}
	here, err := l.Index.Has(key.URL)
	if err != nil {
		return nil, row, err
	}
	if here {
		row, _ = l.notePlanned(key)
		return nil, row, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.add(key, sent)
	if t != nil {
		row = t.row()
	}
	return t, row, nil
}

// add adds a new task. It returns nil if the list knows the URL or has no room. The caller holds
// l.mu.
func (l *List) add(key urlkey.Key, sent string) *Task {
	h := xxh3.HashString(key.URL)
	if _, ok := l.known[h]; ok {
		return nil
	}
	if !l.takes(key) || l.held+taskSize+len(key.URL)+len(key.SURT)+len(sent) > maxWaiting {
		return nil
	}
	la := l.lane(key)
	l.known[h] = false
	l.last++
	url := strings.Clone(key.URL)
	t := &Task{
		ID: l.last, Named: url, lane: la, Sent: strings.Clone(sent),
		Key: urlkey.Key{URL: url, SURT: strings.Clone(key.SURT), Host: strings.Clone(key.Host), Domain: strings.Clone(key.Domain)},
	}
	la.waiting = append(la.waiting, t)
	la.count(1, 0)
	l.held += t.size()
	return t
}

// takes reports whether the bounds of a URL's host and of its registered domain leave room for a
// task. It makes no lane: a robots.txt can name a new host in each of its lines, and lanes stay until
// the end of the round. The caller holds l.mu.
func (l *List) takes(key urlkey.Key) bool {
	if la := l.lanes[key.Host]; la != nil {
		return !l.full(la, true)
	}
	domain := l.used[key.Domain]
	if domain == nil {
		domain = &usage{}
	}
	return !l.full(&lane{domain: domain}, true)
}

// lane returns the lane of a URL's host. It makes one if there is none, so it must be called only for
// a host with a sitemap that waits or was requested. The caller holds l.mu.
func (l *List) lane(key urlkey.Key) *lane {
	la := l.lanes[key.Host]
	if la == nil {
		u := l.used[key.Domain]
		if u == nil {
			u = &usage{}
			l.used[strings.Clone(key.Domain)] = u
		}
		la = &lane{domain: u}
		l.lanes[strings.Clone(key.Host)] = la
	}
	return la
}

// waitingOf returns the waiting tasks of a host. The caller holds l.mu.
func (l *List) waitingOf(host string) []*Task {
	if la := l.lanes[host]; la != nil {
		return la.waiting
	}
	return nil
}

// full reports whether a host or its registered domain has reached one of its bounds. Files with an
// outcome or under way count; if toWait is true, waiting files count too. The caller holds l.mu.
func (l *List) full(la *lane, toWait bool) bool {
	for _, u := range []*usage{&la.host, la.domain} {
		files := u.files + u.busy
		if toWait {
			files += u.waiting
		}
		if files >= l.limits.Files || u.urls >= l.limits.URLs || u.bytes >= l.limits.Bytes {
			return true
		}
	}
	return false
}

// next returns the next task of the host to which t belongs, which is then under way. It returns
// nil if a task of the host is under way already or none is left. Tasks that failed in earlier
// rounds come last. The caller pushes the task.
func (l *List) next(t *Task) *Task {
	l.mu.Lock()
	defer l.mu.Unlock()
	la := t.lane
	if la.dropped || la.host.busy > 0 || len(la.waiting) == 0 {
		return nil
	}
	if l.full(la, false) {
		l.clear(la)
		return nil
	}
	first := slices.MinFunc(la.waiting, func(a, b *Task) int {
		if a.suspect != b.suspect {
			if a.suspect {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.failed, b.failed)
	})
	l.forget(slices.Index(la.waiting, first), la)
	la.count(0, 1)
	l.tasks[first.ID] = first
	return first
}

// forget removes the waiting task i of a lane. The caller holds l.mu.
func (l *List) forget(i int, la *lane) {
	l.held -= la.waiting[i].size()
	la.waiting = slices.Delete(la.waiting, i, i+1)
	la.count(-1, 0)
}

// clear removes all waiting tasks of a lane. The caller holds l.mu.
func (l *List) clear(la *lane) {
	for len(la.waiting) > 0 {
		l.forget(len(la.waiting)-1, la)
	}
}

// drop forbids further requests for sitemaps of a lane in this round. The caller holds l.mu.
func (l *List) drop(la *lane) {
	la.dropped = true
	l.clear(la)
}

// dropHosts forbids further requests for sitemaps of two hosts in this round: the host on which the
// request of t failed, and the host of the URL that t had before redirects. More failures would
// delay the pages of these hosts.
func (l *List) dropHosts(t *Task) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop(t.lane)
	l.drop(l.lane(t.Key))
}

// Reserve reserves the URL that the task requests next. It returns false if another task has
// reserved it.
func (l *List) Reserve(t *Task) bool {
	t.claimed = t.claimed || l.Claim(t.Key.URL)
	return t.claimed
}

// Task returns the task under way with an ID.
func (l *List) Task(id int64) *Task {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tasks[id]
}

// Drop ends a task that sent no request and must not send one in this round. Its host gets no
// further requests for sitemaps.
func (l *List) Drop(t *Task) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.tasks, t.ID)
	t.lane.count(0, -1)
	l.drop(t.lane)
}

// finish ends a task with its outcome and returns its row. entries and bytes count towards the
// bounds of the host and its domain.
func (l *List) finish(t *Task, o schema.Outcome, entries, bytes int64) schema.Sitemap {
	row := t.row()
	row.Outcome, row.Entries, row.Bytes, row.FetchedAt = o, entries, bytes, 0 // addResponse sets FetchedAt if a request was sent
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.tasks, t.ID)
	l.account(t.lane, &row)
	t.lane.count(0, -1)
	return row
}

// account counts a sitemap that has its outcome. The caller holds l.mu.
func (l *List) account(la *lane, row *schema.Sitemap) {
	for _, u := range []*usage{&la.host, la.domain} {
		u.files++
		u.urls += row.Entries
		u.bytes += row.Bytes
	}
	l.known[xxh3.HashString(row.URL)] = true
	if row.Named != "" {
		l.known[xxh3.HashString(row.Named)] = true
	}
}

// isFinal reports whether a sitemap with this outcome is not requested again in the crawl.
func isFinal(o schema.Outcome) bool {
	switch o {
	case schema.OK, schema.HTTP4xx, schema.MIMEFiltered, schema.Redirected, schema.RedirectLimit, schema.ProtocolError, schema.AddressBlocked, schema.InternalError:
		return true
	}
	return false
}

// countsAgainstHost reports whether a sitemap with this outcome failed in a way that counts against
// its host.
func countsAgainstHost(o schema.Outcome) bool {
	switch o {
	case schema.HTTP5xx, schema.RateLimited, schema.DNSError, schema.ConnectError, schema.TLSError, schema.Timeout:
		return true
	}
	return false
}

// Restore takes over a row of an earlier attempt. A later row of a sitemap replaces an earlier row,
// but a row with an outcome is preferred to a row without one. It returns false if the row changes
// nothing.
func (l *List) Restore(row *schema.Sitemap) (bool, error) {
	named := row.URL
	if row.Named != "" {
		named = row.Named
	}
	key, err := urlkey.KeyOf(named)
	if err != nil {
		return false, fmt.Errorf("sitemap %q: %v: %w", named, err, table.ErrCorrupt)
	}
	if row.Planned {
		_, news := l.notePlanned(key)
		return news, nil
	}
	if row.Outcome == "" {
		here, err := l.Index.Has(named)
		if err != nil {
			return false, err
		}
		if here { // an index named the URL in an earlier round, and then the frontier planned it
			var news bool
			*row, news = l.notePlanned(key)
			return news, nil
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known[xxh3.HashString(named)] {
		return false, nil
	}
	waiting := l.waitingOf(key.Host)
	i := slices.IndexFunc(waiting, func(t *Task) bool { return t.Named == named })
	if row.Outcome != "" {
		la := l.lane(key)
		if i >= 0 {
			l.forget(i, la)
		}
		l.account(la, row)
		if countsAgainstHost(row.Outcome) {
			l.drop(la)
		}
		l.Claim(row.URL)
		l.Claim(named)
		return true, nil
	}
	var t *Task
	if i >= 0 {
		t = waiting[i]
	} else if t = l.add(key, row.Sent); t == nil {
		return false, nil
	}
	l.held -= t.size()
	defer func() { l.held += t.size() }()
	if row.Named != "" {
		at, err := urlkey.KeyOf(row.URL)
		if err != nil {
			return false, fmt.Errorf("sitemap %q: %v: %w", row.URL, err, table.ErrCorrupt)
		}
		t.Key = urlkey.Key{URL: strings.Clone(at.URL), SURT: strings.Clone(at.SURT), Host: strings.Clone(at.Host), Domain: strings.Clone(at.Domain)}
	}
	t.Sent, t.Redirects, t.Tries, t.failed = strings.Clone(row.Sent), row.Redirects, row.Tries, row.FetchedAt
	if t.Redirects+t.Tries > 0 { // the attempt that recorded the row had reserved both URLs
		l.Claim(row.URL)
		l.Claim(named)
		t.claimed = true
	}
	return true, nil
}

// waiting returns one waiting task for each host that has any.
func (l *List) waiting() []*Task {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []*Task
	for _, la := range l.lanes {
		if la.host.busy == 0 && len(la.waiting) > 0 {
			out = append(out, la.waiting[0])
		}
	}
	slices.SortFunc(out, func(a, b *Task) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// Waiting returns the number of waiting sitemaps of a host, without the one that is queued or in
// flight.
func (l *List) Waiting(host string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.waitingOf(host))
}

// Left returns the number of sitemaps that wait, are queued or are in flight.
func (l *List) Left() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.tasks)
	for _, la := range l.lanes {
		n += len(la.waiting)
	}
	return n
}

// take returns the links of a sitemap that count, and the number of entries among them. It leaves
// out entries of another registered domain (foreign), and entries beyond the bounds of the host and
// its domain (beyond).
func (l *List) take(t *Task, links []schema.Link) (taken []schema.Link, entries, foreign, beyond int64) {
	l.mu.Lock()
	room := max(l.limits.URLs-max(t.lane.host.urls, t.lane.domain.urls), 0)
	l.mu.Unlock()
	taken = links[:0]
	for i := range links {
		if k := links[i].Kind; k == schema.KindSitemap || k == schema.KindSitemapIndex {
			key, err := urlkey.KeyOf(links[i].Target)
			if err != nil || key.Domain != t.Key.Domain {
				foreign++
				continue
			}
			if entries == room {
				beyond++
				continue
			}
			entries++
		}
		taken = append(taken, links[i])
	}
	return taken, entries, foreign, beyond
}
