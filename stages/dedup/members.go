package dedup

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/simhash"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/stages"
)

// member is a page whose class has several pages or is near another class.
type member struct {
	Page        uint64
	Cluster     uint64
	Class       uint64 // number of the class in the trees; 0 if the cluster has only one class
	Fingerprint uint64 // fingerprint of the class, or of the digest for short pages
	Long        bool
}

func memberKey(k table.Key, m *member) table.Key { return k.Uint(m.Page) }

// clusters finds the members of all clusters.
type clusters struct {
	members *table.Sorter[member]
	forest  *forest

	pages, sealed int64 // numbers of pages with text, and of sealed representatives among them
}

// newClusters prepares the sorters.
func newClusters(env *stages.Env) (c *clusters, err error) {
	c = &clusters{}
	if c.members, err = table.NewSorter(env.Scratch, memberKey, sortMemory); err != nil {
		return nil, err
	}
	c.forest, err = newForest(env.Scratch)
	return c, err
}

// close removes the scratch files. Later calls do nothing.
func (c *clusters) close() {
	closeSorter(&c.members)
	c.forest.close()
}

// find finds the members of all clusters, and returns the trees of the clusters that have several
// classes. It reads all pages itself: a round of one bucket has no digest and similar.
func (c *clusters) find(ctx context.Context, env *stages.Env, sources []source, cfg Config) (trees, error) {
	g, err := newGrouping(env.Scratch)
	if err != nil {
		return nil, err
	}
	defer g.close()
	if err := g.load(ctx, env.Bucket, sources, cfg.MinWords, shard{}); err != nil {
		return nil, err
	}
	if err := g.split(ctx, func(class uint64, t *text) error { return c.addExact(class, t.Page, t.Fingerprint) }); err != nil {
		return nil, err
	}
	c.pages, c.sealed = g.pages, g.sealed
	search, err := simhash.NewSearch(env.Scratch, cfg.MaxDistance, simhash.Part{})
	if err != nil {
		return nil, err
	}
	defer search.Close() //nolint:errcheck // the scratch directory is removed later
	if err := c.forest.search(ctx, search, g.long.Sorted(ctx)); err != nil {
		return nil, err
	}
	return c.join(ctx, g.long.Sorted(ctx))
}

// gather is like find, but reads the classes and their pairs from the results of digest and similar.
func (c *clusters) gather(ctx context.Context, env *stages.Env, in *stages.Input) (trees, error) {
	count := uint64(0) // number of long pages, so at least the number of their classes
	for i, r := range in.Results[stages.Digest] {
		c.pages += r.Count(countPages)
		c.sealed += r.Count(countSealed)
		for _, f := range r.FilesOf(stages.FileClasses) {
			count += uint64(f.Rows)
		}
		shards := uint64(len(in.Results[stages.Digest]))
		for m, err := range table.Concat[schema.ClassMember](ctx, env.Bucket, stages.Keys(in.Results[stages.Digest][i:i+1], stages.FileExact)) {
			if err != nil {
				return nil, fmt.Errorf("read equal texts: %w", err)
			}
			if err := c.addExact(uint64(m.Class)*shards+uint64(i), uint64(m.Page), uint64(m.Fingerprint)); err != nil {
				return nil, err
			}
		}
	}
	c.forest.begin(count)
	for p, err := range table.MergeFiles(ctx, env.Bucket, env.Scratch, stages.Keys(in.Results[stages.Similar], stages.FilePairs), classPairKey) {
		if err != nil {
			return nil, fmt.Errorf("read pairs: %w", err)
		}
		if uint64(p.Low) >= count || uint64(p.High) >= count {
			return nil, fmt.Errorf("classes %d and %d are a pair, but only %d classes exist: %w", p.Low, p.High, count, stages.ErrPermanent)
		}
		if err := c.forest.add(uint64(p.Low), uint64(p.High)); err != nil {
			return nil, err
		}
	}
	return c.join(ctx, longTexts(ctx, env, in))
}

// addExact adds a member of a class of short pages.
func (c *clusters) addExact(class, page, fingerprint uint64) error {
	return c.members.Add(&member{Page: page, Cluster: class<<2 | shortClass, Fingerprint: fingerprint})
}

// join joins the classes whose pairs are in the forest, and adds the members of all classes of long
// pages.
func (c *clusters) join(ctx context.Context, long iter.Seq2[longText, error]) (trees, error) {
	if err := c.forest.join(ctx, c.forest.addEdge); err != nil {
		return nil, err
	}
	if err := c.addLong(long); err != nil {
		return nil, err
	}
	return c.forest.plant(ctx)
}

// addLong adds the members of the classes of long pages, which come sorted by fingerprint. It skips a
// page that is alone in its class if no other class is near.
func (c *clusters) addLong(long iter.Seq2[longText, error]) error {
	var first longText
	class, size := uint64(0), 0
	for t, err := range long {
		if err != nil {
			return err
		}
		if size > 0 && t.Fingerprint != first.Fingerprint {
			class, size = class+1, 0
		}
		if size == 0 {
			first = t
		}
		size++
		alike := c.forest.alike(class)
		if !alike && size == 1 {
			continue
		}
		m := member{Fingerprint: t.Fingerprint, Long: true}
		m.Cluster, m.Class = c.forest.place(class)
		if !alike && size == 2 {
			m.Page = first.Page
			err = c.members.Add(&m)
		}
		m.Page = t.Page
		if err := errors.Join(err, c.members.Add(&m)); err != nil {
			return err
		}
	}
	return nil
}
