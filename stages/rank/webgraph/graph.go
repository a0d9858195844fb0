package webgraph

import (
	"context"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"

	"crawlbatch.io/crawlbatch/formats/extsort"
)

// Vertex is a vertex of a finished graph.
type Vertex struct {
	Name     string
	Domain   string
	Added    int64 // number of calls of AddVertex with this name
	In       int64 // number of distinct vertices that link to the vertex and count as its sources
	Out      int64 // number of distinct vertices to which the vertex links
	Rank     float64
	Harmonic float64 // 0 if Harmonic was not called
}

// All yields the vertices in the order of their reversed names. PageRank must have succeeded.
func (g *Graph) All(ctx context.Context) iter.Seq2[Vertex, error] {
	return func(yield func(Vertex, error) bool) {
		row := 0 // number of dangling vertices with inlinks so far
		for p, err := range g.places(ctx) {
			v := Vertex{Name: Reverse(p.Key), Domain: p.Domain, Added: p.Added, In: p.In}
			switch s := p.Source; {
			case err != nil:
			case s >= 0:
				v.Out, v.Rank = int64(g.outlinks[s]), g.share[s]*g.divisor(s)
				if g.centrality.linked != nil {
					v.Harmonic = g.centrality.linked[s].harmonic
				}
			default:
				v.Rank = g.received(p.sources)
				if p.In > 0 && g.centrality.dangling != nil {
					v.Harmonic = g.centrality.dangling[row].harmonic
				}
				if p.In > 0 {
					row++
				}
			}
			if !yield(v, err) || err != nil {
				return
			}
		}
	}
}

// Domains returns a Builder with the domains as vertices. A domain links to another domain if one of
// its hosts counts as a source of a host there. Domains calls AddVertex once for each host, so
// Vertex.Added is the number of a domain's hosts. While Domains runs, it takes about 100 bytes for each
// domain with outlinks. The caller must close the Builder.
func (g *Graph) Domains(ctx context.Context) (*Builder, error) {
	b, err := NewBuilder(g.dir)
	if err != nil {
		return nil, err
	}
	b.DomainOf = func(name string) string { return name }
	if err := g.addDomains(ctx, b); err != nil {
		_ = b.Close()
		return nil, err
	}
	return b, nil
}

func (g *Graph) addDomains(ctx context.Context, b *Builder) error {
	ids, of := map[string]int32{}, make([]int32, len(g.out)) // the number of each domain, and of each source's domain
	for p, err := range g.places(ctx) {
		if err == nil {
			err = b.AddVertex(p.Domain, p.Domain)
		}
		if err != nil {
			return err
		}
		if p.Source < 0 {
			continue
		}
		id, ok := ids[p.Domain]
		if !ok {
			if id, err = b.AddSource(p.Domain, p.Domain); err != nil {
				return err
			}
			ids[p.Domain] = id
		}
		of[p.Source] = id
	}
	var from []int32
	for p, err := range g.places(ctx) {
		if err != nil {
			return err
		}
		from = from[:0]
		for _, s := range p.sources {
			from = append(from, of[s])
		}
		slices.Sort(from)
		own, linking := ids[p.Domain]
		for _, id := range slices.Compact(from) {
			if linking && id == own {
				continue
			}
			if err := b.AddEdge(id, p.Domain); err != nil {
				return err
			}
		}
	}
	return nil
}

// place is a row of the file of vertices with the vertex's sources.
type place struct {
	vertexRow
	sources []int32
}

// places yields the vertices in the order of names. Their sources are valid until the next iteration.
func (g *Graph) places(ctx context.Context) iter.Seq2[place, error] {
	return func(yield func(place, error) bool) {
		f, err := os.Open(g.vertices)
		if err != nil {
			yield(place{}, fmt.Errorf("open scratch file: %w", err))
			return
		}
		defer f.Close()
		rows := extsort.NewReader(f)
		linked, dangling := newRowCursor(ctx, g.linked), newRowCursor(ctx, g.dangling)
		defer linked.stop()
		defer dangling.stop()
		for {
			var p place
			err := rows.Next()
			if err == io.EOF {
				return
			}
			if err == nil {
				err = vertexRows.Decode(string(rows.Rest), &p.vertexRow)
			}
			switch {
			case err != nil || p.In == 0:
			case p.Source >= 0:
				p.sources, err = linked.next()
			default:
				p.sources, err = dangling.next()
			}
			if !yield(p, err) || err != nil {
				return
			}
		}
	}
}

// rowCursor reads the rows of a file of edges one by one.
type rowCursor struct {
	batches func() (edgeBatch, error, bool)
	stop    func()
	batch   edgeBatch
	row     int
}

func newRowCursor(ctx context.Context, path string) *rowCursor {
	next, stop := iter.Pull2(readEdges(ctx, path))
	return &rowCursor{batches: next, stop: stop}
}

// next returns the sources of the next row.
func (c *rowCursor) next() ([]int32, error) {
	for c.row == len(c.batch.targets) {
		b, err, ok := c.batches()
		if err == nil && !ok {
			err = fmt.Errorf("read scratch file: %w", io.ErrUnexpectedEOF)
		}
		if err != nil {
			return nil, err
		}
		c.batch, c.row = b, 0
	}
	c.row++
	return c.batch.sourcesOf(c.row - 1), nil
}
