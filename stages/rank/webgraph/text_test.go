package webgraph

import (
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/table"
)

// lines reads a text file with the standard library's gzip reader.
func lines(t *testing.T, l table.Local, err error) []string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(l.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.Size() != l.Bytes {
		t.Errorf("%d bytes are recorded, not %d: %v", l.Bytes, info.Size(), err)
	}
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(body), "\n"), "\n")
}

func TestTextFilesHaveCommonCrawlsLayout(t *testing.T) {
	g := build(t, edgesOf("www.a.test>x.b.test a-z.test>x.b.test x.b.test>c.test c.test>www.a.test c.test>lone.a.test"), []string{"www.a.test", "lone.a.test", "c.test"}, nil)
	if err := g.Harmonic(t.Context()); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	l, err := g.WriteVertices(t.Context(), path("vertices"), false)
	if d := cmp.Diff([]string{"0\ttest.a-z", "1\ttest.a.lone", "2\ttest.a.www", "3\ttest.b.x", "4\ttest.c"}, lines(t, l, err)); d != "" || l.Rows != 5 {
		t.Errorf("%d rows: %s", l.Rows, d)
	}
	l, err = g.WriteVertices(t.Context(), path("counted"), true)
	if d := cmp.Diff([]string{"0\ttest.a-z\t0", "1\ttest.a.lone\t1", "2\ttest.a.www\t1", "3\ttest.b.x\t0", "4\ttest.c\t1"}, lines(t, l, err)); d != "" {
		t.Error(d)
	}
	l, err = g.WriteEdges(t.Context(), path("edges"))
	if d := cmp.Diff([]string{"0\t3", "2\t3", "3\t4", "4\t1", "4\t2"}, lines(t, l, err)); d != "" || l.Rows != 5 {
		t.Errorf("%d rows: %s", l.Rows, d)
	}
	l, err = g.WriteRanks(t.Context(), path("ranks"))
	ranks := lines(t, l, err)
	if ranks[0] != "#harmonicc_pos\t#harmonicc_val\t#pr_pos\t#pr_val\t#host_rev\t#n_hosts" || l.Rows != 5 || len(ranks) != 6 {
		t.Fatalf("%d rows: %q", l.Rows, ranks)
	}
	var got []string
	for _, line := range ranks[1:5] {
		c := strings.Split(line, "\t")
		got = append(got, strings.Join([]string{c[0], c[1][:3], c[4], c[5]}, " "))
	}
	want := []string{"1 2.5 test.b.x 0", "2 2.1 test.a.lone 1", "3 2.0 test.c 1", "4 1.8 test.a.www 1"}
	if d := cmp.Diff(want, got); d != "" || !strings.Contains(ranks[1], "\t2\t0.27") || !strings.Contains(ranks[3], "\t1\t0.29") || !strings.HasPrefix(ranks[5], "5\t0\t5\t0.06") {
		t.Errorf("%q: %s", ranks, d)
	}
}
