package table_test

import (
	"io"
	"path/filepath"
	"testing"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table"
)

func bySURT(k table.Key, c *schema.Capture) table.Key { return k.Text(c.SURT) }

// BenchmarkWrite measures the time and the bytes on disk per row of captures.
func BenchmarkWrite(b *testing.B) {
	rows := captures(50_000)
	for _, c := range []struct {
		name string
		opts []table.WriterOption
	}{{"zstd", nil}, {"snappy", []table.WriterOption{table.Fast()}}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				w, err := table.NewWriterTo[schema.Capture](io.Discard, c.opts...)
				if err != nil {
					b.Fatal(err)
				}
				if err := w.Write(rows); err != nil {
					b.Fatal(err)
				}
				l, err := w.Close()
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(l.Bytes)/float64(l.Rows), "disk-bytes/row")
			}
		})
	}
}

func BenchmarkRead(b *testing.B) {
	rows := captures(50_000)
	s := newStore(b)
	w, err := table.NewWriter[schema.Capture](filepath.Join(b.TempDir(), "c"))
	if err != nil {
		b.Fatal(err)
	}
	if err := w.Write(rows); err != nil {
		b.Fatal(err)
	}
	f, err := table.Finish(b.Context(), w, s, "captures", "k.parquet")
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		r, err := table.Open[schema.Capture](b.Context(), s, f.Key)
		if err != nil {
			b.Fatal(err)
		}
		n := 0
		for _, err := range r.All(b.Context()) {
			if err != nil {
				b.Fatal(err)
			}
			n++
		}
		if n != len(rows) {
			b.Fatalf("%d rows", n)
		}
		r.Close()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(rows)), "ns/row")
}

// BenchmarkSort sorts with a memory bound that makes the sorter spill about ten times.
func BenchmarkSort(b *testing.B) {
	rows := captures(50_000)
	b.ReportAllocs()
	for b.Loop() {
		s, err := table.NewSorter(b.TempDir(), bySURT, 8<<20)
		if err != nil {
			b.Fatal(err)
		}
		for i := range rows {
			if err := s.Add(&rows[(i*7919)%len(rows)]); err != nil {
				b.Fatal(err)
			}
		}
		n := 0
		for _, err := range s.Sorted(b.Context()) {
			if err != nil {
				b.Fatal(err)
			}
			n++
		}
		if n != len(rows) {
			b.Fatalf("%d rows", n)
		}
		s.Close()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(rows)), "ns/row")
}
