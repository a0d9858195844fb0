package webgraph

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/klauspost/compress/gzip"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/table"
)

// textFile is a gzipped text file with tab-separated columns, the format in which Common Crawl publishes
// its web graphs.
type textFile struct {
	file *os.File
	sum  *manifest.Sum
	gzip *gzip.Writer
	buf  *bufio.Writer
	rows int64
	line []byte
}

// writeText creates the file at path. fill adds the rows.
func writeText(path string, fill func(*textFile) error) (l table.Local, err error) {
	f, err := os.Create(path)
	if err != nil {
		return l, fmt.Errorf("create scratch file: %w", err)
	}
	t := &textFile{file: f, sum: manifest.NewSum()}
	t.gzip = gzip.NewWriter(io.MultiWriter(f, t.sum))
	t.buf = bufio.NewWriterSize(t.gzip, 64<<10)
	if err = fill(t); err == nil {
		err = t.buf.Flush()
	}
	if err == nil {
		err = t.gzip.Close()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return l, fmt.Errorf("write scratch file: %w", err)
	}
	return table.LocalOf(path, t.rows, t.sum), nil
}

func (t *textFile) text(s string) *textFile {
	if len(t.line) > 0 {
		t.line = append(t.line, '\t')
	}
	t.line = append(t.line, s...)
	return t
}

func (t *textFile) int(n int64) *textFile { return t.text(strconv.FormatInt(n, 10)) }

func (t *textFile) float(f float64) *textFile { return t.text(strconv.FormatFloat(f, 'g', -1, 64)) }

// end ends the row.
func (t *textFile) end() error {
	t.rows++
	_, err := t.buf.Write(append(t.line, '\n'))
	t.line = t.line[:0]
	return err
}

// WriteVertices writes a row for each vertex, in order: its number, counted from 0, and its
// reversed name. If added is true, a third column has the number of calls of AddVertex for the
// vertex.
func (g *Graph) WriteVertices(ctx context.Context, path string, added bool) (table.Local, error) {
	return writeText(path, func(t *textFile) error {
		for p, err := range g.places(ctx) {
			if err != nil {
				return err
			}
			t.int(t.rows).text(p.Key)
			if added {
				t.int(p.Added)
			}
			if err := t.end(); err != nil {
				return err
			}
		}
		return nil
	})
}

// numbered is an edge between two vertices, by their numbers in the file of WriteVertices.
type numbered struct{ From, To int64 }

// WriteEdges writes the numbers of both vertices of each edge, sorted. It takes 8 bytes of memory for
// each vertex with outlinks.
func (g *Graph) WriteEdges(ctx context.Context, path string) (_ table.Local, err error) {
	// The edges come in the order of To, and the sorter keeps this order.
	edges, err := table.NewSorter(g.dir, func(k table.Key, e *numbered) table.Key { return k.Int(int64(e.From)) }, 0)
	if err != nil {
		return table.Local{}, err
	}
	defer func() { err = errors.Join(err, edges.Close()) }()
	numbers, n := make([]int64, len(g.out)), int64(0)
	for p, err := range g.places(ctx) {
		if err != nil {
			return table.Local{}, err
		}
		if p.Source >= 0 {
			numbers[p.Source] = n
		}
		n++
	}
	to := int64(0)
	for p, err := range g.places(ctx) {
		for _, s := range p.sources {
			if err == nil {
				err = edges.Add(&numbered{numbers[s], to})
			}
		}
		if err != nil {
			return table.Local{}, err
		}
		to++
	}
	return writeText(path, func(t *textFile) error {
		for e, err := range edges.Sorted(ctx) {
			if err == nil {
				err = t.int(e.From).int(e.To).end()
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// ranked is a row of the file that WriteRanks writes.
type ranked struct {
	Key            string
	Rank, Harmonic float64
	Place          int64 // position by PageRank, from 1
	Added          int64
}

// WriteRanks writes a row for each vertex, the greatest harmonic centrality first. A row has the
// vertex's position and value by harmonic centrality, its position and value by PageRank, its reversed
// name, and the number of calls of AddVertex for it. Vertices with equal values are in the order of
// names. The first row names the columns.
func (g *Graph) WriteRanks(ctx context.Context, path string) (_ table.Local, err error) {
	byRank, err := table.NewSorter(g.dir, func(k table.Key, r *ranked) table.Key { return k.Float(-r.Rank) }, 0)
	if err != nil {
		return table.Local{}, err
	}
	defer func() { err = errors.Join(err, byRank.Close()) }()
	byHarmonic, err := table.NewSorter(g.dir, func(k table.Key, r *ranked) table.Key { return k.Float(-r.Harmonic).Text(r.Key) }, 0)
	if err != nil {
		return table.Local{}, err
	}
	defer func() { err = errors.Join(err, byHarmonic.Close()) }()
	for v, err := range g.All(ctx) {
		if err == nil {
			err = byRank.Add(&ranked{Key: Reverse(v.Name), Rank: v.Rank, Harmonic: v.Harmonic, Added: v.Added})
		}
		if err != nil {
			return table.Local{}, err
		}
	}
	place := int64(0)
	for r, err := range byRank.Sorted(ctx) {
		place++
		r.Place = place
		if err == nil {
			err = byHarmonic.Add(&r)
		}
		if err != nil {
			return table.Local{}, err
		}
	}
	l, err := writeText(path, func(t *textFile) error {
		if err := t.text("#harmonicc_pos").text("#harmonicc_val").text("#pr_pos").text("#pr_val").text("#host_rev").text("#n_hosts").end(); err != nil {
			return err
		}
		for r, err := range byHarmonic.Sorted(ctx) {
			if err == nil {
				err = t.int(t.rows).float(r.Harmonic).int(r.Place).float(r.Rank).text(r.Key).int(r.Added).end()
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	l.Rows = max(l.Rows-1, 0) // the line with the names of the columns does not count
	return l, err
}
