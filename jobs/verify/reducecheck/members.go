package reducecheck

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/jobs/verify/audit"
)

// member is a page of a cluster, with the page's row in the duplicates dataset.
type member struct {
	Component uint64
	Page      int64 // number of the page
	features
	Age       int32
	Bucket    int32
	Elsewhere bool // true: the page names another page as canonical
	URL       string
	Standing  bool // true: the page's round lists the page as a representative

	Row                 bool // true: the page has a row in duplicates; the fields below come from this row
	Representative, Via string
	Kind                string
	Distance, Size      int32
	Crawl               string // crawl of the representative
	Round               int32
}

// memberKey puts the representative of each component first. This is the oldest page; among pages
// of the same age, one that does not name another page as canonical; among these, the page with the
// shortest URL, and then the first in the order of URLs.
func memberKey(k table.Key, m *member) table.Key {
	return k.Uint(m.Component).Int(int64(m.Age)).Bool(m.Elsewhere).Int(int64(len(m.URL))).Text(m.URL).Int(m.Page)
}

// elsewhere reports whether a page names another page as canonical.
func elsewhere(canonical, url string) bool { return canonical != "" && canonical != url }

// collect reads the pages again, judges pages outside clusters, and adds the members of clusters to
// the sorter.
func (d *dedupCheck) collect(ctx context.Context) error {
	page := int64(0)
	for p, err := range d.sealedTexts(ctx) {
		if err != nil {
			return err
		}
		if d.isClustered(page) {
			if err := d.members.Add(&member{
				Component: d.find(page), Page: page, features: p.features, Age: int32(p.age), Elsewhere: elsewhere(p.CanonicalURL, p.URL), URL: p.URL,
			}); err != nil {
				return err
			}
		}
		page++
	}
	for bucket := range d.r.Plan.Buckets {
		var at pageFacts
		for m, err := range d.factsOf(ctx, bucket) {
			if err != nil {
				return err
			}
			if m.surt != at.surt || m.url != at.url {
				if err := d.judgeURL(bucket, &at, &page); err != nil {
					return err
				}
				at = pageFacts{surt: m.surt, url: m.url}
			}
			at.add(&m)
		}
		if err := d.judgeURL(bucket, &at, &page); err != nil {
			return err
		}
	}
	return nil
}

// pageFacts holds the round's rows about one URL.
type pageFacts struct {
	surt, url  string
	key        string // key of the file with the URL's last row of pages
	pages      []*pageRow
	duplicates []*schema.Duplicate
	standing   []*schema.Representative
}

func (a *pageFacts) add(m *pageFact) {
	switch {
	case m.page != nil:
		a.key, a.pages = m.key, append(a.pages, m.page)
	case m.duplicate != nil:
		a.duplicates = append(a.duplicates, m.duplicate)
	case m.standing != nil:
		a.standing = append(a.standing, m.standing)
	}
}

// judgeURL judges a URL by its own rows, and adds those pages of the URL that are in clusters to
// the members. page points to the number of the next page, and judgeURL advances it.
func (d *dedupCheck) judgeURL(bucket int, at *pageFacts, page *int64) error {
	duplicate, standing := d.onlyRows(bucket, at)
	for _, p := range at.pages {
		if d.published {
			d.checkPublished(at.key, p, duplicate)
		}
		if standing != nil && (standing.CanonicalURL != p.CanonicalURL || standing.WordCount != p.WordCount || standing.TextDigest != p.TextDigest || standing.SimHash != p.SimHash) {
			d.wrong(d.standingKey(bucket), p.URL, "its row of representatives differs from the page: %+v", *standing)
		}
		l, text := d.featuresOf(p)
		if text {
			*page++
		}
		if text && d.isClustered(*page-1) {
			if err := d.members.Add(d.memberOf(bucket, *page-1, l, p, duplicate, standing)); err != nil {
				return err
			}
			continue
		}
		if duplicate != nil {
			d.wrong(d.duplicatesKey(bucket), p.URL, "it is in a cluster of %s, but it resembles no other page", duplicate.Representative)
		}
		switch {
		case text && standing == nil:
			d.wrong(d.standingKey(bucket), p.URL, "it resembles no other page, but it is missing among the representatives")
		case !text && standing != nil:
			d.wrong(d.standingKey(bucket), p.URL, "it has no text, but is a representative")
		}
	}
	return nil
}

// onlyRows returns the URL's row of duplicates and its row of representatives, if they exist. It
// reports repeated rows, and rows of a URL that has no page.
func (d *dedupCheck) onlyRows(bucket int, at *pageFacts) (duplicate *schema.Duplicate, standing *schema.Representative) {
	for _, t := range []struct {
		table, key string
		rows       int
	}{
		{"pages", at.key, len(at.pages)},
		{"duplicates", d.duplicatesKey(bucket), len(at.duplicates)},
		{"representatives", d.standingKey(bucket), len(at.standing)},
	} {
		if t.rows > 1 {
			d.wrong(t.key, at.url, "%s has %d rows for it in one round", t.table, t.rows)
		}
		if t.rows > 0 && len(at.pages) == 0 {
			d.wrong(t.key, at.url, "it is in %s but not in pages", t.table)
		}
	}
	if len(at.duplicates) > 0 {
		duplicate = at.duplicates[0]
	}
	if len(at.standing) > 0 {
		standing = at.standing[0]
	}
	return duplicate, standing
}

func (d *dedupCheck) memberOf(bucket int, page int64, l features, p *pageRow, row *schema.Duplicate, standing *schema.Representative) *member {
	m := &member{
		Component: d.find(page), Page: page, features: l, Age: int32(len(d.earlier)), Bucket: int32(bucket),
		Elsewhere: elsewhere(p.CanonicalURL, p.URL), URL: p.URL, Standing: standing != nil,
	}
	if row != nil {
		m.Row, m.Representative, m.Via, m.Kind = true, row.Representative, row.Via, string(row.Kind)
		m.Distance, m.Size, m.Crawl, m.Round = row.Distance, row.ClusterSize, row.RepresentativeCrawl, row.RepresentativeRound
	}
	return m
}

// checkPublished compares the columns that describe a page's cluster with the row of duplicates.
func (d *dedupCheck) checkPublished(key string, p *pageRow, row *schema.Duplicate) {
	var of, kind string
	size := int32(1)
	if row != nil {
		size = row.ClusterSize
		if row.Kind != schema.DupRepresentative {
			of, kind = row.Representative, string(row.Kind)
		}
	}
	if p.DuplicateOf != of || p.DuplicateKind != kind || p.ClusterSize != size {
		d.wrong(key, p.URL, "pages says duplicate_of %q, duplicate_kind %q, cluster_size %d; according to duplicates they are %q, %q, %d",
			p.DuplicateOf, p.DuplicateKind, p.ClusterSize, of, kind, size)
	}
}

// cluster is a component of at least two pages.
type cluster struct {
	representative member
	members        int  // pages and representatives of earlier rounds
	size           int  // pages of this round
	chained        bool // true: some page of this round is not similar to the representative
}

// judge compares the rows of each cluster with the expected rows. Two cursors read the members: the
// first counts the members of a cluster, and the second then judges them.
func (d *dedupCheck) judge(ctx context.Context) (err error) {
	chains, err := table.NewSorter(d.a.Scratch, claimKey, audit.SortMemory)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, chains.Close()) }()
	ahead, members := table.Pull(d.members.Sorted(ctx)), table.Pull(d.members.Sorted(ctx))
	defer ahead.Close()
	defer members.Close()
	for {
		first, err := ahead.Peek()
		if err != nil {
			return err
		}
		if first == nil {
			return d.judgeChains(ctx, chains)
		}
		c := &cluster{representative: *first}
		if err := d.measure(c, ahead); err != nil {
			return err
		}
		if err := d.judgeCluster(c, members, chains); err != nil {
			return err
		}
	}
}

// measure reads the members of a cluster to count them.
func (d *dedupCheck) measure(c *cluster, ahead *table.Cursor[member]) error {
	for {
		m, err := ahead.Peek()
		if m == nil || err != nil || m.Component != c.representative.Component {
			return err
		}
		c.members++
		if m.Page >= d.sealed {
			c.size++
			c.chained = c.chained || !m.alike(&c.representative.features, d.maxDistance)
		}
		if _, err := ahead.Next(); err != nil {
			return err
		}
	}
}

// judgeCluster judges the members of a cluster. If some of them resemble the representative only through
// other members, it adds the claims of the cluster to chains.
func (d *dedupCheck) judgeCluster(c *cluster, members *table.Cursor[member], chains *table.Sorter[claim]) error {
	for range c.members {
		m, err := members.Next()
		if err == nil && c.chained {
			err = chains.Add(&claim{Component: m.Component, URL: m.URL, Page: m.Page, features: m.features})
		}
		if err != nil {
			return err
		}
		if m.Page < d.sealed {
			continue
		}
		if claim := d.judgeMember(m, c); claim != nil {
			if err := chains.Add(claim); err != nil {
				return err
			}
		}
	}
	return nil
}

// judgeMember compares a member's row with the expected row. If the row's column via names another
// member, judgeMember returns a claim that asks whether the two resemble each other.
func (d *dedupCheck) judgeMember(m *member, c *cluster) *claim {
	representative, size := &c.representative, int32(min(c.size, math.MaxInt32))
	key := d.duplicatesKey(int(m.Bucket))
	if stands := m.Page == representative.Page; m.Standing != stands {
		if stands {
			d.wrong(d.standingKey(int(m.Bucket)), m.URL, "it represents its cluster, but is missing among the representatives")
		} else {
			d.wrong(d.standingKey(int(m.Bucket)), m.URL, "%s represents its cluster, but it is listed as a representative", representative.URL)
		}
	}
	alone := size == 1 && m.Page != representative.Page && m.URL == representative.URL // the member resembles only its own earlier version
	switch {
	case alone && m.Row:
		d.wrong(key, m.URL, "it is in duplicates, but resembles only its own earlier version")
		return nil
	case alone:
		return nil
	case !m.Row:
		d.wrong(key, m.URL, "it is missing in duplicates: it is in a cluster of %d that %s represents", size, representative.URL)
		return nil
	}
	crawl, round := d.sealedOf(int(representative.Age))
	kind := schema.DupNear
	switch {
	case m.URL == representative.URL:
		kind = schema.DupRepresentative
	case m.compareText(&representative.features) == 0:
		kind = schema.DupExact
	}
	var problems []string
	differ := func(column string, got, want any) {
		if got != want {
			problems = append(problems, fmt.Sprintf("%s is %v, not %v", column, want, got))
		}
	}
	differ("representative", m.Representative, representative.URL)
	differ("representative_crawl", m.Crawl, crawl)
	differ("representative_round", int(m.Round), round)
	differ("kind", m.Kind, string(kind))
	differ("distance", int(m.Distance), m.distance(&representative.features))
	differ("cluster_size", m.Size, size)
	near := m.alike(&representative.features, d.maxDistance)
	var chain *claim
	switch {
	case kind == schema.DupRepresentative:
		differ("via", m.Via, "")
	case near:
		differ("via", m.Via, representative.URL) // a member that resembles the representative must name it as via
	default:
		chain = &claim{Component: m.Component, URL: m.Via, Asks: true, Page: m.Page, features: m.features, Bucket: m.Bucket, Member: m.URL}
	}
	if problems != nil {
		d.wrong(key, m.URL, "recomputed: %s", strings.Join(problems, "; "))
	}
	return chain
}

// claim is a member of a cluster, or a question about one. If c.Asks is true, the question is: does the
// page c.Page, whose URL is c.Member, resemble a member whose URL is c.URL?
type claim struct {
	Component uint64
	URL       string
	Asks      bool
	Page      int64 // number of the member, or of the member that asks
	features
	Bucket int32
	Member string // URL of the member that asks
}

// claimKey orders claims by component and URL. The members with a URL come before the
// questions about this URL.
func claimKey(k table.Key, c *claim) table.Key {
	return k.Uint(c.Component).Text(c.URL).Bool(c.Asks).Int(c.Page)
}

// judgeChains answers the questions of claims: it looks up the member that a row names as via, and
// reports the row if the two do not resemble each other.
func (d *dedupCheck) judgeChains(ctx context.Context, chains *table.Sorter[claim]) error {
	var members []claim // the members with this URL: a page and its earlier versions
	var component uint64
	var url string
	for c, err := range chains.Sorted(ctx) {
		if err != nil {
			return err
		}
		if c.Component != component || c.URL != url {
			component, url, members = c.Component, c.URL, members[:0]
		}
		if !c.Asks {
			members = append(members, c)
			continue
		}
		like := false
		for _, m := range members {
			like = like || m.Page != c.Page && c.alike(&m.features, d.maxDistance)
		}
		switch {
		case len(members) == 0:
			d.wrong(d.duplicatesKey(int(c.Bucket)), c.Member, "its via %q is not a member of its cluster", c.URL)
		case !like:
			d.wrong(d.duplicatesKey(int(c.Bucket)), c.Member, "its via %s is beyond the distance limit", c.URL)
		}
	}
	return nil
}
