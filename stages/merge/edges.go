package merge

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"strings"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/stages"
)

// edgeBuilder turns links into edges and host edges. Rounds of format 3 and older use it.
type edgeBuilder struct {
	m     *merger
	edges *table.Sorter[schema.Edge]
	hosts *table.Sorter[schema.HostEdge]

	source schema.Edge     // columns of the current source
	domain string          // domain of the current source
	latest int64           // a LastMod after this time, in milliseconds, was in the future when the source was fetched
	others []foreignTarget // targets of the current source that are on other hosts
}

// foreignTarget holds a link target on another host.
type foreignTarget struct{ host, url string }

func newEdges(m *merger) (*edgeBuilder, error) {
	e, err := table.NewSorter(m.env.Scratch, schema.CompareEdges, m.sortMemory)
	if err != nil {
		return nil, err
	}
	h, err := table.NewSorter(m.env.Scratch, compareHostEdges, m.sortMemory/4)
	if err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return &edgeBuilder{m: m, edges: e, hosts: h}, nil
}

// close removes the sorters' spilled files.
func (e *edgeBuilder) close() {
	_ = e.edges.Close()
	_ = e.hosts.Close()
}

// begin prepares for the links of the next source.
func (e *edgeBuilder) begin(_, url string, of origin) error {
	if err := e.flush(); err != nil {
		return err
	}
	k, err := urlkey.KeyOf(url)
	if err != nil {
		return err
	}
	e.source = schema.Edge{Source: url, SourceHost: k.Host, SourceDepth: of.depth}
	e.domain = k.Domain
	e.latest = of.fetched + clockSkew
	return nil
}

// add adds a link of the source. If links of this kind are not followed, add keeps only the link's
// spelling: a followed link may lead to the same target, and robots.txt must allow every spelling. A
// target without a key cannot be planned, so it is only counted. (Every canonical URL has a key.)
func (e *edgeBuilder) add(l *schema.Link, followed bool) error {
	if !followed && l.Spelling == "" {
		return nil
	}
	k, err := urlkey.KeyOf(l.Target)
	if err != nil {
		e.m.count("links_without_key", 1)
		e.m.env.Log.Warn("a link's target has no key", "source", l.Source, "target", l.Target, "error", err)
		return nil
	}
	spelling := ""
	if k.Domain == e.domain { // only links within a domain give spellings
		spelling = l.Spelling
	}
	if !followed && spelling == "" {
		return nil
	}
	if followed && k.Host != e.source.SourceHost {
		e.others = append(e.others, foreignTarget{k.Host, l.Target})
	}
	row := e.source
	row.TargetBucket = int32(urlkey.Bucket(k.Domain, e.m.plan.Buckets))
	row.TargetSURT, row.Target = k.SURT, l.Target
	row.Kind, row.Nofollow, row.Anchor, row.Ordinal, row.Spelling = l.Kind, l.Nofollow, l.Anchor, l.Ordinal, spelling
	// A date counts only if the target's own host states it, and if it was not in the future when
	// the source was fetched.
	if row.LastMod = 0; k.Host == e.source.SourceHost && l.LastMod <= e.latest {
		row.LastMod = l.LastMod
	}
	return e.edges.Add(&row)
}

// flush adds a host edge for each host in others, with the number of distinct targets on that host.
func (e *edgeBuilder) flush() error {
	slices.SortFunc(e.others, func(a, b foreignTarget) int {
		return cmp.Or(strings.Compare(a.host, b.host), strings.Compare(a.url, b.url))
	})
	distinct := slices.Compact(e.others)
	for len(distinct) > 0 {
		n := 1
		for n < len(distinct) && distinct[n].host == distinct[0].host {
			n++
		}
		if err := e.hosts.Add(&schema.HostEdge{Source: e.source.SourceHost, Target: distinct[0].host, Links: int64(n)}); err != nil {
			return err
		}
		distinct = distinct[n:]
	}
	clear(e.others)
	e.others = e.others[:0]
	return nil
}

// finish writes the working files of edges and host edges.
func (e *edgeBuilder) finish(ctx context.Context) error {
	if err := e.flush(); err != nil {
		return err
	}
	if err := e.writeEdges(ctx); err != nil {
		return err
	}
	return writeHostEdges(ctx, e.m, e.hosts)
}

func (e *edgeBuilder) writeEdges(ctx context.Context) error {
	order := []string{"target_bucket", "target_surtkey", "target", "source", "kind", "ordinal"}
	return keep(ctx, e.m, stages.FileEdges, order, func(w *table.Writer[schema.Edge]) error {
		return appendBuckets(w, e.edges.Sorted(ctx), func(row *schema.Edge) int32 { return row.TargetBucket })
	})
}

// appendBuckets appends rows that are sorted by bucket, and ends a row group after each bucket, so
// that a reduce task need not read other buckets.
func appendBuckets[T any](w *table.Writer[T], rows iter.Seq2[T, error], bucketOf func(*T) int32) error {
	bucket := int32(-1)
	for row, err := range rows {
		if err != nil {
			return err
		}
		if b := bucketOf(&row); b != bucket {
			bucket = b
			if err := w.EndRowGroup(); err != nil {
				return err
			}
		}
		if err := w.Append(&row); err != nil {
			return err
		}
	}
	return nil
}
