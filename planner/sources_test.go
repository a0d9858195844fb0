package planner

import (
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/planner/source"
)

// listRow is a row of a list with a second column.
type listRow struct {
	Title string `parquet:"title"`
	URL   string `parquet:"address"`
}

// TestEveryFormatGivesTheSamePlan plans one list in every format. Only the names of the sources and
// the places of entries may differ.
func TestEveryFormatGivesTheSamePlan(t *testing.T) {
	var rows []listRow
	for i := range 3000 {
		url := fmt.Sprintf("https://host%d.example/päge?b=%d,2&a=\"x\"", i%97, i)
		switch i % 50 {
		case 3:
			url = rows[i/2].URL
		case 4:
			url = "no URL"
		}
		rows = append(rows, listRow{"a \"title\",\n of two lines\t", url})
	}
	dir := t.TempDir()
	write := func(name string, fill func(w io.Writer) error) string {
		t.Helper()
		var plain, packed bytes.Buffer
		if err := fill(&plain); err != nil {
			t.Fatal(err)
		}
		var z io.WriteCloser
		switch filepath.Ext(name) {
		case ".gz":
			z = gzip.NewWriter(&packed)
		case ".zst":
			z, _ = zstd.NewWriter(&packed)
		default:
			packed = plain
		}
		if z != nil {
			if _, err := z.Write(plain.Bytes()); err != nil {
				t.Fatal(err)
			}
			if err := z.Close(); err != nil {
				t.Fatal(err)
			}
		}
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, packed.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	separated := func(comma rune) func(w io.Writer) error {
		return func(w io.Writer) error {
			out := csv.NewWriter(w)
			out.Comma = comma
			all := [][]string{{"title", "address"}}
			for _, r := range rows {
				all = append(all, []string{r.Title, r.URL})
			}
			return out.WriteAll(all)
		}
	}
	text := func(w io.Writer) error {
		for _, r := range rows {
			fmt.Fprintln(w, r.URL)
		}
		return nil
	}
	names := []string{
		write("urls.txt", text),
		write("urls.txt.gz", text),
		write("urls.zst", text),
		write("urls.csv", separated(',')) + "#column=address",
		write("urls.tsv.gz", separated('\t')) + "#column=address",
		write("urls.jsonl.zst", func(w io.Writer) error {
			for _, r := range rows {
				line, err := json.Marshal(map[string]any{"title": r.Title, "address": r.URL})
				if err != nil {
					return err
				}
				fmt.Fprintf(w, "%s\n", line)
			}
			return nil
		}) + "#column=address",
		write("urls.parquet", func(w io.Writer) error { return parquet.Write(w, rows) }) + "#column=address,where=title LIKE 'a%'",
	}
	var want manifest.Plan
	var wantRows [][]schema.PlannedURL
	for i, name := range names {
		s, err := source.Files(name, nil)
		if err != nil {
			t.Fatal(err)
		}
		got, rows, _ := commitAndRead(t, bucket(t), plan(t, Default(), s))
		if got.URLs == 0 || len(got.Refused) != 2 || len(got.Sources) != 1 || !strings.HasPrefix(got.Sources[0], dir) {
			t.Fatalf("%s: %d URLs, refused %v, sources %q", name, got.URLs, got.Refused, got.Sources)
		}
		got.ID, got.Sources, got.RefusedFile = "", nil, nil
		for j := range got.Partitions {
			got.Partitions[j].File = manifest.File{} // it names the source
		}
		if i == 0 {
			want, wantRows = *got, rows
		}
		if d := cmp.Diff(want, *got) + cmp.Diff(wantRows, rows); d != "" {
			t.Errorf("%s:\n%s", name, d)
		}
	}
}
