package merge

import (
	"context"
	"encoding/binary"
	"errors"
	"iter"
	"slices"
	"strings"
	"time"

	"crawlbatch.io/crawlbatch/formats/inlinks"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/stages"
)

// clockSkew is how far a date may be in the future and still count: the host's clock
// may be wrong, and the date may lack a time zone.
const clockSkew = 24 * time.Hour

// targetBuilder adds up the links of the partition's pages by target, and by pairs of hosts. Callers
// add links grouped by source, with sources in the order of their SURT keys.
//
// The builder keeps one sum for each target in memory. When the sums take memory bytes, the builder
// moves them to a sorter (a spill) and starts new sums. So a target may have several sums, and finish
// adds them up.
type targetBuilder struct {
	merged map[urlkey.Merged]int64 // number of links that are not as their target's canonical URL, by the steps between both
	m      *merger
	memory int64
	held   int64 // estimated memory of all maps, in bytes
	sums   *table.Sorter[targetSum]
	pairs  *table.Sorter[schema.HostEdge]

	targets map[string]*target
	last    *target // target of the last link
	keyer   urlkey.Keyer
	keyed   keyedHost
	sites   map[site]int32     // number of each site with a target
	links   map[[2]int32]int64 // for each pair of hosts, the number of pairs of pages with a link from the first to the second
	hosts   map[string]int32   // index of each host in names
	names   []string

	source  pageSource
	group   string // part of the current source's SURT key before ")"; sources with equal parts form a group
	number  int32  // number of the current group, from 1; 0 if no source has come yet
	resumed int32  // number of the current group at the last spill; 0 before the first spill
}

// keyedHost is the host of the target that was added last.
type keyedHost struct {
	name, domain string
	number       int32
	site         site
	siteNumber   int32
}

// site is a bucket and the part of SURT keys up to ")". The keys of a site follow each other in the run of targets.
type site struct {
	bucket int32
	group  string
}

// pageSource describes the page whose links are added.
type pageSource struct {
	url    string
	number int32 // number of the source, from 1
	host   int32
	domain string
	ported bool // whether the host's pages may be in several groups
	depth  int32
	focus  float64
	latest schema.Time // a LastMod after this time was in the future when the source was fetched
}

// target is the sum of the links to one target.
type target struct {
	row     schema.Inlink // all columns except Anchors, AnchorCounts and InlinkHosts
	next    *target       // target of the link that last followed a link to this target: pages of a site repeat their links
	bucket  int32
	host    int32
	site    int32  // number of the target's site
	path    uint64 // first 8 bytes of the rest of the SURT key, big-endian
	domain  string // empty if the target has no key
	anchors inlinks.Anchors

	counted int32 // number of the last source that counts as an inlink
	crossed int32 // number of the last source on another host that counts in targetBuilder.links

	// The sources of a group come one after another, and the pages of a host are usually in one
	// group. So the target can count the hosts of a group and forget them when the group ends. Only the
	// hosts in listed may occur again: in another group, or in another sum after a spill.
	closed int64   // number of hosts in groups that have ended
	group  int32   // newest group with a link to the target
	recent hostSet // hosts of this group
	listed hostSet // hosts of the group that a spill divided, and hosts with pages in several groups
}

// hostSet is a set of host numbers. Most sets have one host.
type hostSet struct {
	list  []int32
	index map[int32]bool // the hosts in list if they are more than fewHosts, else nil
}

const fewHosts = 16 // a search in a list of at most this many hosts is faster than in a map

// add adds a host and returns the number of bytes by which the memory of s grew.
func (s *hostSet) add(host int32) (grown int64) {
	if n := len(s.list); n > 0 && s.list[n-1] == host || s.index[host] || s.index == nil && slices.Contains(s.list, host) {
		return 0
	}
	s.list = append(s.list, host)
	switch {
	case s.index != nil:
		s.index[host] = true
	case len(s.list) > fewHosts:
		s.index = make(map[int32]bool, len(s.list))
		for _, h := range s.list {
			s.index[h] = true
		}
	default:
		return 4
	}
	return 20
}

// clear empties the set.
func (s *hostSet) clear() { s.list, s.index = s.list[:0], nil }

// targetSum is a sum in the sorter. Hosts lists those hosts that may also be in another sum of the
// same target. InlinkHosts counts all other hosts.
type targetSum struct {
	schema.TargetLinks
	Hosts []string
}

func newTargets(m *merger) (*targetBuilder, error) {
	sums, err := table.NewSorter(m.env.Scratch, func(k table.Key, s *targetSum) table.Key { return schema.TargetKey(k, &s.TargetLinks) }, m.sortMemory)
	if err != nil {
		return nil, err
	}
	pairs, err := table.NewSorter(m.env.Scratch, hostEdgeKey, m.sortMemory/4)
	if err != nil {
		return nil, errors.Join(err, sums.Close())
	}
	b := &targetBuilder{m: m, merged: map[urlkey.Merged]int64{}, memory: memoryShare(m.env, leastTargetMemory, mostTargetMemory), sums: sums, pairs: pairs}
	b.reset()
	return b, nil
}

// reset empties the maps.
func (b *targetBuilder) reset() {
	b.held, b.last, b.keyed = 0, nil, keyedHost{}
	b.targets, b.links, b.hosts, b.sites, b.names = map[string]*target{}, map[[2]int32]int64{}, map[string]int32{}, map[site]int32{}, nil
}

// close removes the sorters' spilled files.
func (b *targetBuilder) close() {
	_ = b.sums.Close()
	_ = b.pairs.Close()
}

// begin prepares for the links of the next source.
func (b *targetBuilder) begin(surt, url string, of origin) error {
	if b.held >= b.memory {
		if err := b.spill(); err != nil {
			return err
		}
	}
	k, err := urlkey.KeyOf(url)
	if err != nil {
		return err
	}
	if group, _, _ := strings.Cut(surt, ")"); b.number == 0 || group != b.group {
		b.group = strings.Clone(group)
		b.number++
	}
	b.source = pageSource{strings.Clone(url), b.source.number + 1, b.hostNumber(k.Host), strings.Clone(k.Domain), b.m.ported[k.Host], of.depth, of.focus, of.fetched.Add(clockSkew)}
	return nil
}

// hostNumber returns the index of a host in b.names. It adds the host if it is new.
func (b *targetBuilder) hostNumber(host string) int32 {
	n, ok := b.hosts[host]
	if !ok {
		n = int32(len(b.names))
		host = strings.Clone(host)
		b.hosts[host] = n
		b.names = append(b.names, host)
		b.held += int64(len(host)) + 64
	}
	return n
}

// The estimated memory of a target and of a pair of hosts, each with its share of the maps, in bytes.
const (
	targetBytes = 420
	pairBytes   = 48
)

// target returns the sum of the links to a URL. It makes one if there is none.
func (b *targetBuilder) target(url string) *target {
	before := b.last
	if before != nil && before.next != nil && before.next.row.URL == url {
		b.last = before.next
		return b.last
	}
	t, ok := b.targets[url]
	if !ok {
		t = b.newTarget(strings.Clone(url))
	}
	if before != nil {
		before.next = t
	}
	b.last = t
	return t
}

// newTarget adds a sum of the links to a URL.
func (b *targetBuilder) newTarget(url string) *target {
	t := &target{}
	t.row.URL = url
	b.targets[url] = t
	b.held += targetBytes + int64(len(url))
	k, err := b.keyer.KeyOf(url)
	if err != nil {
		b.m.env.Log.Warn("a link's target has no key", "source", b.source.url, "target", url, "error", err)
		return t
	}
	if k.Host != b.keyed.name || !strings.HasPrefix(k.SURT, b.keyed.site.group) {
		s := site{int32(urlkey.Bucket(k.Domain, b.m.plan.Buckets)), k.SURT[:strings.IndexByte(k.SURT, ')')+1]}
		b.keyed = keyedHost{k.Host, k.Domain, b.hostNumber(k.Host), s, b.siteNumber(s)}
	}
	t.row.SURT, t.domain, t.host, t.bucket, t.site = k.SURT, b.keyed.domain, b.keyed.number, b.keyed.site.bucket, b.keyed.siteNumber
	var path [8]byte
	copy(path[:], k.SURT[len(b.keyed.site.group):])
	t.path = binary.BigEndian.Uint64(path[:])
	b.held += int64(len(k.SURT))
	return t
}

// siteNumber returns the number of a site. It adds the site if it is new.
func (b *targetBuilder) siteNumber(s site) int32 {
	n, ok := b.sites[s]
	if !ok {
		n = int32(len(b.sites))
		b.sites[s] = n
		b.held += int64(len(s.group)) + 64
	}
	return n
}

// add adds a link of the source, unless links of this kind are not followed. A
// target without a key cannot be planned, so its link is only counted. (Every canonical URL has a key.)
func (b *targetBuilder) add(l *schema.Link, followed bool) error {
	if !followed {
		return nil
	}
	t := b.target(l.Target)
	if t.domain == "" {
		b.m.count("links_without_key", 1)
		return nil
	}
	b.count(t, l)
	return nil
}

// count counts a link of a followed kind.
func (b *targetBuilder) count(t *target, l *schema.Link) {
	s := &b.source
	if t.counted != s.number && t.row.URL != s.url {
		t.counted = s.number
		t.row.Inlinks++
		b.countHost(t)
	}
	if t.host != s.host && t.crossed != s.number {
		t.crossed = s.number
		pair := [2]int32{s.host, t.host}
		before := len(b.links)
		b.links[pair]++
		b.held += int64(len(b.links)-before) * pairBytes
	}
	b.held += int64(t.anchors.Add(l.Anchor, 1))
	// A date or a priority counts only if the target's own host states it. A date must not have been in
	// the future when the source was fetched.
	if t.host == s.host {
		if l.LastMod <= s.latest {
			t.row.LastMod = max(t.row.LastMod, l.LastMod)
		}
		t.row.Weight = inlinks.Weightier(t.row.Weight, inlinks.Weight(l.Weight))
	}
	if l.Sent != "" {
		b.merged[urlkey.MergedBy(l.Target, l.Sent)]++
	}
	if t.row.Offer(schema.Linked(l.Sent, t.domain == s.domain)) {
		t.row.Sent = strings.Clone(l.Sent)
		b.held += int64(len(l.Sent))
	}
	t.row.SourceFocus = max(t.row.SourceFocus, s.focus)
	inlinks.Source(&t.row, !l.Nofollow, s.depth, s.url)
}

// countHost counts the source's host as a host that links to t.
func (b *targetBuilder) countHost(t *target) {
	if b.source.ported {
		b.held += t.listed.add(b.source.host)
		return
	}
	if t.group != b.number {
		b.endGroup(t)
		t.group = b.number
	}
	b.held += t.recent.add(b.source.host)
}

// endGroup counts the hosts of t's newest group, because the group has ended. If a spill divided the
// group, another sum may have the same hosts, so endGroup lists them instead.
func (b *targetBuilder) endGroup(t *target) {
	if t.group == b.resumed {
		b.list(t)
		return
	}
	t.closed += int64(len(t.recent.list))
	t.recent.clear()
}

// list moves the hosts of t's newest group to t.listed.
func (b *targetBuilder) list(t *target) {
	for _, h := range t.recent.list {
		b.held += t.listed.add(h)
	}
	t.recent.clear()
}

// sum returns the sum of a target for the sorter. counts is false if no link to the target counts. The
// current group may go on after a spill, so sum lists the hosts of this group.
func (b *targetBuilder) sum(t *target) (row targetSum, counts bool) {
	if t.domain == "" || t.row.SentFrom == schema.SentByNobody {
		return targetSum{}, false
	}
	if t.group == b.number {
		b.list(t)
	} else {
		b.endGroup(t)
	}
	row = targetSum{TargetLinks: schema.TargetLinks{Bucket: t.bucket, Inlink: t.row}}
	row.InlinkHosts = t.closed
	for _, h := range t.listed.list {
		row.Hosts = append(row.Hosts, b.names[h])
	}
	row.Anchors, row.AnchorCounts = t.anchors.Kept()
	return row, true
}

// spill moves all sums to the sorters.
func (b *targetBuilder) spill() error {
	for _, t := range b.targets {
		if row, counts := b.sum(t); counts {
			if err := b.sums.Add(&row); err != nil {
				return err
			}
		}
	}
	if err := b.spillPairs(); err != nil {
		return err
	}
	b.resumed = b.number
	b.reset()
	return nil
}

func (b *targetBuilder) spillPairs() error {
	for pair, n := range b.links {
		if err := b.pairs.Add(&schema.HostEdge{Source: b.names[pair[0]], Target: b.names[pair[1]], Links: n}); err != nil {
			return err
		}
	}
	return nil
}

// finish writes the run of targets and the working file of host edges.
func (b *targetBuilder) finish(ctx context.Context) error {
	for steps, n := range b.merged {
		for _, step := range steps.Names() {
			b.m.count(stages.CountMerged+step, n)
		}
	}
	sums := b.inMemory()
	if b.sums.Len() > 0 {
		if err := b.spill(); err != nil {
			return err
		}
		sums = b.sums.Sorted(ctx)
	}
	if err := b.writeTargets(ctx, sums); err != nil {
		return err
	}
	if err := b.spillPairs(); err != nil {
		return err
	}
	return writeHostEdges(ctx, b.m, b.pairs)
}

// writeTargets writes the run of targets, with a row for each target.
func (b *targetBuilder) writeTargets(ctx context.Context, sums iter.Seq2[targetSum, error]) error {
	order := []string{"target_bucket", "url_surtkey", "url"}
	return keepRun(ctx, b.m, stages.FileTargets, order, united(sums), func(row *schema.TargetLinks) int32 { return row.Bucket })
}

// united adds up the sums of each target. sums is sorted by target.
func united(sums iter.Seq2[targetSum, error]) iter.Seq2[schema.TargetLinks, error] {
	return func(yield func(schema.TargetLinks, error) bool) {
		var sum targetSum
		flush := func() bool {
			if sum.URL == "" {
				return true
			}
			slices.Sort(sum.Hosts)
			sum.InlinkHosts += int64(len(slices.Compact(sum.Hosts)))
			return yield(sum.TargetLinks, nil)
		}
		for row, err := range sums {
			if err != nil {
				yield(row.TargetLinks, err)
				return
			}
			if row.URL == sum.URL {
				inlinks.Add(&sum.TargetLinks, &row.TargetLinks)
				sum.Hosts = append(sum.Hosts, row.Hosts...)
				continue
			}
			if !flush() {
				return
			}
			sum = row
		}
		flush()
	}
}

func hostEdgeKey(k table.Key, e *schema.HostEdge) table.Key { return k.Text(e.Source).Text(e.Target) }

// writeHostEdges writes the working file of host edges. It adds up the edges of each pair of hosts.
func writeHostEdges(ctx context.Context, m *merger, edges *table.Sorter[schema.HostEdge]) error {
	return keep(ctx, m, stages.FileHostEdges, []string{"source", "target"}, func(w *table.Writer[schema.HostEdge]) error {
		var sum schema.HostEdge
		flush := func() error {
			if sum.Links == 0 {
				return nil
			}
			return w.Append(&sum)
		}
		for row, err := range edges.Sorted(ctx) {
			if err != nil {
				return err
			}
			if row.Source == sum.Source && row.Target == sum.Target {
				sum.Links += row.Links
				continue
			}
			if err := flush(); err != nil {
				return err
			}
			sum = row
		}
		return flush()
	})
}
