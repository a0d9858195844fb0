package dedup

import (
	"bytes"
	"cmp"
	"context"

	"crawlbatch.io/crawlbatch/formats/simhash"
	"crawlbatch.io/crawlbatch/formats/store"
)

// choice holds the representative of every cluster.
type choice struct {
	p     *pages
	c     *clusters
	cfg   Config
	names *names

	total  []uint32 // number of pages and sealed representatives of each component
	size   []uint32 // number of pages of this round in each component
	stands []uint32 // representative of each component
	// speaks holds the speaker of each class: the page that stands for the class in the column Via.
	// If a page is not alike to its representative, Via names the speaker of the parent class.
	speaks []uint32
	parent []uint32 // parent of each class: the next class on the path to the representative's class
}

// choose picks representatives. The caller must close the returned choice.
func choose(ctx context.Context, b store.Bucket, scratch string, p *pages, c *clusters, cfg Config) (*choice, error) {
	classes := len(c.root)
	ch := &choice{p: p, c: c, cfg: cfg,
		total: make([]uint32, classes), size: make([]uint32, classes),
		stands: make([]uint32, classes), speaks: make([]uint32, classes)}
	for i := range p.count() {
		r := c.root[c.class[i]]
		ch.total[r]++
		if i >= p.sealed {
			ch.size[r]++
		}
	}
	var err error
	if ch.names, err = collectNames(ctx, b, scratch, p, ch.clustered); err != nil {
		return nil, err
	}
	if err := ch.elect(); err != nil {
		ch.close()
		return nil, err
	}
	var roots []uint32
	for _, i := range ch.stands {
		if i != none {
			roots = append(roots, c.class[i])
		}
	}
	ch.parent = c.parents(roots)
	return ch, nil
}

func (ch *choice) close() { ch.names.close() }

// clustered reports whether a page's component has a page of this round and at least one
// other page.
func (ch *choice) clustered(page uint32) bool {
	r := ch.c.root[ch.c.class[page]]
	return ch.size[r] > 0 && ch.total[r] > 1
}

// represents reports whether a page of this round becomes a sealed representative. Such a page is
// neither a duplicate nor alike to an earlier sealed representative.
func (ch *choice) represents(page uint32) bool {
	r := ch.c.root[ch.c.class[page]]
	return ch.total[r] == 1 || ch.stands[r] == page
}

// elect finds the representative of every cluster and the speaker of every class.
func (ch *choice) elect() error {
	for i := range ch.stands {
		ch.stands[i], ch.speaks[i] = none, none
	}
	for i := range ch.p.count() {
		if !ch.clustered(i) {
			continue
		}
		class := ch.c.class[i]
		root := ch.c.root[class]
		if ch.stands[root] == none { // sealed representatives have the lowest numbers, the oldest first
			ch.stands[root] = i
		} else if better, err := ch.stand(i, ch.stands[root]); err != nil {
			return err
		} else if better {
			ch.stands[root] = i
		}
		speaker := ch.speaks[class]
		if speaker == none || speaker < ch.p.sealed && i >= ch.p.sealed { // prefer a page of this round
			ch.speaks[class] = i
		} else if better, err := ch.stand(i, speaker); err != nil {
			return err
		} else if better {
			ch.speaks[class] = i
		}
	}
	return nil
}

// stand reports whether page i is a better representative than page j, where j < i.
func (ch *choice) stand(i, j uint32) (bool, error) {
	p := ch.p
	if j < p.sealed && (i >= p.sealed || p.source(i).age > p.source(j).age) {
		return false, nil
	}
	if c := cmp.Or(cmp.Compare(p.flags[i]&elsewhere, p.flags[j]&elsewhere), cmp.Compare(p.urlLength[i], p.urlLength[j])); c != 0 {
		return c < 0, nil
	}
	url, err := ch.names.url(j)
	if err != nil {
		return false, err
	}
	other := bytes.Clone(url)
	if url, err = ch.names.url(i); err != nil {
		return false, err
	}
	return bytes.Compare(url, other) < 0, nil
}

// alike reports whether two pages are alike.
func (ch *choice) alike(a, b uint32) bool {
	return ch.p.digest[a] == ch.p.digest[b] ||
		ch.p.flags[a]&ch.p.flags[b]&long != 0 && ch.distance(a, b) <= ch.cfg.MaxDistance
}

func (ch *choice) distance(a, b uint32) int {
	return simhash.Distance(ch.p.fingerprint[a], ch.p.fingerprint[b])
}

// via returns the page that connects page i to its cluster. Page i is not the
// representative.
func (ch *choice) via(i, representative uint32) uint32 {
	if ch.alike(i, representative) {
		return representative
	}
	return ch.speaks[ch.parent[ch.c.class[i]]]
}
