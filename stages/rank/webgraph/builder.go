package webgraph

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"crawlbatch.io/crawlbatch/formats/extsort"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/urlkey"
)

// Reverse returns a host with the labels of its name in reverse order: com.example.www:8080 for
// www.example.com:8080. IP addresses stay as they are. Reverse is its own inverse.
func Reverse(host string) string {
	name, port := urlkey.SplitPort(host)
	if name == "" || name[0] == '[' {
		return host
	}
	if last := name[len(name)-1]; last >= '0' && last <= '9' {
		if _, err := netip.ParseAddr(name); err == nil {
			return host
		}
	}
	labels := strings.Split(name, ".")
	slices.Reverse(labels)
	return strings.Join(labels, ".") + port
}

// Builder collects the vertices and edges of a graph. Only one goroutine may use a Builder. The
// caller must close the Builder.
type Builder struct {
	// SourceCap is the largest number of vertices of one domain that count as sources of a vertex
	// of another domain. If more vertices of the domain link there, only the first SourceCap count, in
	// the order of reversed names. Zero means no limit.
	SourceCap int
	// DomainOf returns the domain of the vertex with the given name. The Builder calls it for
	// vertices that are only targets, because AddEdge does not tell their domains.
	DomainOf func(name string) string

	dir     string
	known   *table.Sorter[knownVertex]
	inbound *table.Sorter[inboundEdges]
	sources int32 // number of vertices with outlinks

	// Pending edges. Edge i leads from the source from[i] to the target names[targets[i]].
	ids     map[string]int32
	names   []string
	targets []int32
	from    []int32
	text    int // bytes of names
	pending int // number of pending edges at which the Builder passes them to the sorter
}

// knownVertex is a vertex and its domain, from one call of AddVertex or AddSource.
type knownVertex struct {
	Key, Domain string // Key is the reversed name
	Source      int32  // number that AddSource returned; -1 if AddVertex made the row
}

// inboundEdges holds sources that link to a target. A target may have several of these rows.
type inboundEdges struct {
	Key     string // reversed name of the target
	Sources []int32
}

// The sizes after which a Builder passes its pending edges to the sorter.
const (
	pendingEdges = 2 << 20
	pendingText  = 32 << 20
)

// NewBuilder returns a Builder that uses the scratch directory dir.
func NewBuilder(dir string) (*Builder, error) {
	known, err := table.NewSorter(dir, func(k table.Key, v *knownVertex) table.Key { return k.Text(v.Key) }, 0)
	if err != nil {
		return nil, err
	}
	inbound, err := table.NewSorter(dir, func(k table.Key, e *inboundEdges) table.Key { return k.Text(e.Key) }, 0)
	if err != nil {
		return nil, err
	}
	return &Builder{dir: dir, known: known, inbound: inbound, ids: map[string]int32{}, pending: pendingEdges}, nil
}

// Close removes the scratch files of the Builder's sorters. A Graph that Finish returned stays valid.
func (b *Builder) Close() error { return errors.Join(b.known.Close(), b.inbound.Close()) }

// AddVertex adds a vertex of a domain. A vertex may be added several times.
func (b *Builder) AddVertex(name, domain string) error {
	return b.known.Add(&knownVertex{Key: Reverse(name), Domain: strings.Clone(domain), Source: -1})
}

// AddSource adds a vertex with outlinks, and returns a number for AddEdge. A vertex may be added several
// times. It then has several numbers, which mean the same vertex.
func (b *Builder) AddSource(name, domain string) (source int32, err error) {
	if b.sources == math.MaxInt32 {
		return 0, fmt.Errorf("the graph has more than %d vertices with outlinks", math.MaxInt32)
	}
	source = b.sources
	b.sources++
	return source, b.known.Add(&knownVertex{Key: Reverse(name), Domain: strings.Clone(domain), Source: source})
}

// AddEdge adds an edge from a source to another vertex. Repeated edges count once.
func (b *Builder) AddEdge(source int32, target string) error {
	id, ok := b.ids[target]
	if !ok {
		id, target = int32(len(b.names)), strings.Clone(target)
		b.ids[target] = id
		b.names = append(b.names, target)
		b.text += len(target)
	}
	b.targets, b.from = append(b.targets, id), append(b.from, source)
	if len(b.from) < b.pending && b.text < pendingText {
		return nil
	}
	return b.flush()
}

// flush groups the pending edges by target (with a counting sort) and passes them to the sorter. The
// sorter then has one row for each target, not one for each edge.
func (b *Builder) flush() error {
	ends := make([]int32, len(b.names)+1)
	for _, t := range b.targets {
		ends[t+1]++
	}
	for i := range b.names {
		ends[i+1] += ends[i]
	}
	grouped, next := make([]int32, len(b.from)), slices.Clone(ends)
	for i, t := range b.targets {
		grouped[next[t]] = b.from[i]
		next[t]++
	}
	for i, name := range b.names {
		if err := b.inbound.Add(&inboundEdges{Key: Reverse(name), Sources: grouped[ends[i]:ends[i+1]]}); err != nil {
			return err
		}
	}
	clear(b.ids)
	b.names, b.targets, b.from, b.text = nil, b.targets[:0], b.from[:0], 0
	return nil
}

// Graph is a finished graph. Its files are in the Builder's scratch directory.
type Graph struct {
	Vertices int64
	Edges    int64 // number of distinct edges that count

	outlinks []int32 // number of distinct targets of each source
	out      []int32 // the same, without targets for which SourceCap excludes the source

	dir                        string // scratch directory
	vertices, linked, dangling string // paths of the files of vertices and of edges
	danglingRows               int    // number of vertices that have inlinks and no outlinks

	ranks
	centrality balls // its slices are nil until Harmonic has succeeded
}

// vertexRow is a row of the file of vertices.
type vertexRow struct {
	Key, Domain string
	Source      int32 // number of the vertex among the sources, in the order of names; -1 without outlinks
	In, Added   int64 // as in Vertex
}

var vertexRows = table.MustCodec[vertexRow]()

// Finish numbers the vertices by name and writes the graph to files whose names begin with name.
func (b *Builder) Finish(ctx context.Context, name string) (*Graph, error) {
	if err := b.flush(); err != nil {
		return nil, err
	}
	b.targets, b.from = nil, nil
	w := &graphWriter{b: b, number: make([]int32, b.sources), domains: make([]uint64, 0, b.sources)}
	last := ""
	for v, err := range b.known.Sorted(ctx) {
		if err != nil {
			return nil, err
		}
		if v.Source < 0 {
			continue
		}
		if len(w.domains) == 0 || v.Key != last {
			last, w.domains = v.Key, append(w.domains, urlkey.Hash(v.Domain))
		}
		w.number[v.Source] = int32(len(w.domains) - 1)
	}
	sources := len(w.domains)
	path := func(part string) string { return filepath.Join(b.dir, name+"-"+part) }
	w.Graph = &Graph{
		dir: b.dir, vertices: path("vertices"), linked: path("linked.arrow"), dangling: path("dangling.arrow"),
		outlinks: make([]int32, sources), out: make([]int32, sources),
	}
	if err := w.write(ctx); err != nil {
		return nil, err
	}
	return w.Graph, nil
}

// graphWriter writes the files of a graph.
type graphWriter struct {
	*Graph
	b       *Builder
	number  []int32  // maps a number from AddSource to the source's number in the order of names
	domains []uint64 // hash of each source's domain, by number in the order of names

	rows                 *extsort.Writer
	row                  []byte // the encoded vertex
	toLinked, toDangling *edgeWriter

	sources []int32        // sources of the current vertex
	counted map[uint64]int // counted sources of the current vertex, by domain
}

func (w *graphWriter) write(ctx context.Context) (err error) {
	f, err := os.Create(w.vertices)
	if err != nil {
		return fmt.Errorf("create scratch file: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if w.toLinked, err = newEdgeWriter(w.linked); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.toLinked.close()) }()
	if w.toDangling, err = newEdgeWriter(w.dangling); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.toDangling.close()) }()
	w.rows, w.counted = extsort.NewWriter(f), map[uint64]int{}
	known := table.Pull(w.b.known.Sorted(ctx))
	defer known.Close()
	inbound := table.Pull(w.b.inbound.Sorted(ctx))
	defer inbound.Close()
	for {
		v, err := w.next(known, inbound)
		if err == io.EOF {
			return w.rows.Flush()
		}
		if err == nil {
			err = w.add(v)
		}
		if err != nil {
			return err
		}
	}
}

// next returns the next vertex, from all its rows. It sets w.sources to the vertex's sources, in the
// order of their numbers. At the end, next returns io.EOF.
func (w *graphWriter) next(known *table.Cursor[knownVertex], inbound *table.Cursor[inboundEdges]) (*vertexRow, error) {
	k, err := known.Peek()
	if err != nil {
		return nil, err
	}
	in, err := inbound.Peek()
	if err != nil {
		return nil, err
	}
	v := &vertexRow{Source: -1}
	switch {
	case k == nil && in == nil:
		return nil, io.EOF
	case k == nil || in != nil && in.Key < k.Key:
		v.Key, v.Domain = in.Key, w.b.DomainOf(Reverse(in.Key))
	default:
		v.Key, v.Domain = k.Key, k.Domain
	}
	for ; err == nil && k != nil && k.Key == v.Key; k, err = advance(known) {
		if k.Source >= 0 {
			v.Source = w.number[k.Source]
		} else {
			v.Added++
		}
	}
	w.sources = w.sources[:0]
	for ; err == nil && in != nil && in.Key == v.Key; in, err = advance(inbound) {
		for _, s := range in.Sources {
			w.sources = append(w.sources, w.number[s])
		}
	}
	slices.Sort(w.sources)
	w.sources = slices.Compact(w.sources)
	return v, err
}

// advance skips the row that Peek returned, and returns the row after it.
func advance[T any](c *table.Cursor[T]) (*T, error) {
	_, _ = c.Next()
	return c.Peek()
}

// add writes a vertex and the edges that lead to it.
func (w *graphWriter) add(v *vertexRow) error {
	for _, s := range w.sources {
		w.outlinks[s]++
	}
	if limit := w.b.SourceCap; limit > 0 && len(w.sources) > limit {
		w.capSources(urlkey.Hash(v.Domain), limit)
	}
	for _, s := range w.sources {
		w.out[s]++
	}
	v.In = int64(len(w.sources))
	w.Vertices++
	w.Edges += v.In
	w.row = vertexRows.Append(w.row[:0], v)
	if err := w.rows.Write(nil, w.row); err != nil || v.In == 0 {
		return err
	}
	if v.Source >= 0 {
		return w.toLinked.add(v.Source, w.sources)
	}
	w.danglingRows++
	return w.toDangling.add(-1, w.sources)
}

// capSources removes the sources beyond the limit of each domain. The vertex's own domain has no
// limit.
func (w *graphWriter) capSources(own uint64, limit int) {
	clear(w.counted)
	w.sources = slices.DeleteFunc(w.sources, func(s int32) bool {
		d := w.domains[s]
		w.counted[d]++
		return d != own && w.counted[d] > limit
	})
}
