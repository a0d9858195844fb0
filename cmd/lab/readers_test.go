//go:build lab

package lab

import (
	"bytes"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

	"crawlbatch.io/crawlbatch/cmd/demo"
	"crawlbatch.io/crawlbatch/formats/catalog"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table"
)

// readersVariable lists the readers of testdata/readers/aggregate.py to test, each with its Python
// interpreter, such as pyarrow=/venv/bin/python,duckdb=/venv/bin/python.
const readersVariable = "CRAWLBATCH_READERS"

// misread lists, by reader, columns that the reader reads wrong because of a bug of its own. fastparquet
// 2026.9.0 misreads columns with pages that use a dictionary and then plain pages: if pandas keeps text in
// Arrow, it puts the plain pages first. Such columns are valid, and other writers make them too. The
// reader fastparquet-objects reads them correctly.
var misread = map[string][]string{"fastparquet": {"hard.overflow"}}

// readTable is a table for the readers: the programs pyarrow, polars, fastparquet, DuckDB, Spark and
// Trino, as far as they are installed. A folder of files holds the table.
type readTable struct {
	Name    string       `json:"name"`
	Folder  string       `json:"folder"`
	Columns []readColumn `json:"columns"`
}

type readColumn struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

// TestReadersAgree compares the values that other programs read with the stored values. The
// comparison covers every column of every dataset of a crawl, of the crawl's plans and of a table
// of hard cases.
func TestReadersAgree(t *testing.T) {
	readers := os.Getenv(readersVariable)
	if readers == "" {
		t.Skipf("set %s; `make test-readers` does", readersVariable)
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	tables := demoTables(t, dir)
	tables = append(tables, hardTable(t, dir))
	truth := map[string]map[string][]any{}
	for _, rt := range tables {
		truth[rt.Name] = aggregates(t, rt)
	}
	job, err := json.Marshal(map[string]any{"tables": tables})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "job.json"), job, 0o644); err != nil {
		t.Fatal(err)
	}
	for reader := range strings.SplitSeq(readers, ",") {
		name, python, _ := strings.Cut(reader, "=")
		t.Run(filepath.Base(filepath.Dir(filepath.Dir(python)))+"/"+name, func(t *testing.T) {
			t.Parallel()
			out := askPython(t, python, "aggregate.py", name, filepath.Join(dir, "job.json"))
			var got map[string]map[string][]any
			dec := json.NewDecoder(bytes.NewReader(out))
			dec.UseNumber()
			if err := dec.Decode(&got); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			want, read := spell(truth), spell(got)
			for _, column := range misread[name] {
				delete(want, column)
				delete(read, column)
			}
			if diff := cmp.Diff(want, read); diff != "" {
				t.Errorf("stored (-), read by %s (+):\n%s", name, diff)
			}
		})
	}
}

// TestReadersOpenTheViews runs the SQL that `crawlbatch views` prints for Spark and Trino, over the
// published parts and over a compacted copy. It counts the rows of every dataset, and runs queries that
// were written for Common Crawl's index.
func TestReadersOpenTheViews(t *testing.T) {
	var d *demoStore
	for reader := range strings.SplitSeq(os.Getenv(readersVariable), ",") {
		name, python, _ := strings.Cut(reader, "=")
		if name != "spark" && name != "trino" {
			continue
		}
		if d == nil {
			d = crawlDemo(t)
			mustRun(t, "compact", "--month", "2000-01", "--store", d.dir)
		}
		test := func(t *testing.T, flags ...string) {
			statements, questions := filepath.Join(t.TempDir(), "views"), filepath.Join(t.TempDir(), "questions.json")
			mustRun(t, append([]string{"views", "--dialect", name, "--store", d.dir, "--split", statements}, flags...)...)
			asked, want := viewQuestions(t, d)
			body, err := json.Marshal(asked)
			if err == nil {
				err = os.WriteFile(questions, body, 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
			var got map[string][]string
			if err := json.Unmarshal(askPython(t, python, "views.py", name, statements, questions), &got); err != nil {
				t.Fatal(err)
			}
			for name, rows := range got {
				slices.Sort(rows)
				if strings.HasPrefix(name, cookbookPrefix) {
					got[name] = []string{abridged(columnsOf(want[name][0]), rows)}
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("answers (- from the rows, + %s):\n%s", name, diff)
			}
		}
		version := filepath.Base(filepath.Dir(filepath.Dir(python)))
		t.Run(version, func(t *testing.T) { test(t, "--published") })
		t.Run(version+", a copy", func(t *testing.T) { test(t) })
	}
	if d == nil {
		t.Skipf("%s names neither Spark nor Trino; `make test-readers SPARK=1 TRINO=1` does", readersVariable)
	}
}

// cookbookPrefix begins the names of the cookbook's questions among the queries of viewQuestions.
const cookbookPrefix = "cookbook "

// viewQuestions lists queries of the views, with answers that are computed without SQL.
func viewQuestions(t *testing.T, d *demoStore) (asked map[string]string, want map[string][]string) {
	asked, want = map[string]string{}, ccIndexAnswers(capturesBySubset(t, d))
	for _, rows := range want {
		slices.Sort(rows)
	}
	for name := range want {
		asked[name] = readQuestion(t, "../../testdata/duckdb/cc-index/"+name+".sql")
		if want[name] == nil {
			want[name] = []string{}
		}
	}
	for _, dataset := range catalog.Datasets() {
		view := dataset.Name
		if view == "urls" {
			view = "urls_history"
		}
		asked["rows of "+view] = "SELECT crawl, round, count(*) FROM " + view + " GROUP BY crawl, round ORDER BY round"
		for _, s := range d.sealed {
			rows := int64(0)
			for _, f := range s.FilesOf(dataset.Name) {
				rows += f.Rows
			}
			want["rows of "+view] = append(want["rows of "+view], fmt.Sprintf("%s|%d|%d", s.Crawl, s.Round, rows))
		}
	}
	answers := expectedAnswers(t)
	for name, text := range filledCookbook(t, d) {
		asked[cookbookPrefix+name] = stableSQL(text, columnsOf(answers[name]))
		want[cookbookPrefix+name] = []string{answers[name]}
	}
	asked["urls"] = "SELECT count(*) - count(DISTINCT url), count(*) - (SELECT count(DISTINCT url) FROM urls_history) FROM urls"
	want["urls"] = []string{"0|0"}
	return asked, want
}

// askPython runs a script of testdata/readers and returns its output.
func askPython(t *testing.T, python, script string, args ...string) []byte {
	t.Helper()
	cmd := exec.Command(python, append([]string{"../../testdata/readers/" + script}, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", script, args, err, stderr.String())
	}
	return out
}

// spell writes the values of each column in one line, under the column's name, so that a difference names
// the column.
func spell(of map[string]map[string][]any) map[string]string {
	out := map[string]string{}
	for name, columns := range of {
		for column, values := range columns {
			words := make([]string, len(values))
			for i, v := range values {
				words[i] = fmt.Sprint(v)
			}
			out[name+"."+column] = strings.Join(words, " | ")
		}
	}
	return out
}

// demoTables crawls the demo and copies the files of each dataset, and of its plans, to
// their own folders.
func demoTables(t *testing.T, dir string) []readTable {
	d := crawlDemo(t)
	var tables []readTable
	add := func(name string, columns []catalog.Column, keys []string) {
		rt := readTable{Name: name, Folder: filepath.Join(dir, name)}
		for _, c := range columns {
			rt.Columns = append(rt.Columns, readColumn{c.Name, c.Type.String()})
		}
		for i, key := range keys {
			body, err := os.ReadFile(filepath.Join(d.dir, key))
			if err == nil {
				err = os.MkdirAll(rt.Folder, 0o755)
			}
			if err == nil {
				err = os.WriteFile(filepath.Join(rt.Folder, fmt.Sprintf("part-%05d.parquet", i)), body, 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if len(keys) == 0 {
			t.Fatalf("the demo has no file of %s", name)
		}
		tables = append(tables, rt)
	}
	for _, ds := range catalog.Datasets() {
		var keys []string
		for _, s := range d.sealed {
			for _, f := range s.FilesOf(ds.Name) {
				keys = append(keys, f.Key)
			}
		}
		add(ds.Name, ds.Columns, keys)
	}
	var parts, refused []string
	for round := range d.sealed {
		plans, err := filepath.Glob(filepath.Join(d.dir, "crawl="+demo.Crawl, fmt.Sprintf("round=%d", round), "plan-*", "*.parquet"))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range plans {
			key := strings.TrimPrefix(p, d.dir+"/")
			if filepath.Base(p) == "refused.parquet" {
				refused = append(refused, key)
			} else {
				parts = append(parts, key)
			}
		}
	}
	add("plan", catalog.Columns(reflect.TypeFor[schema.PlannedURL]()), parts)
	add("refused", catalog.Columns(reflect.TypeFor[schema.Refused]()), refused)
	return tables
}

// hardRow has columns of kinds that some readers have read wrong, such as runs of nulls and empty texts,
// dictionaries that became too large so that plain pages follow, lists, and numbers that are null in
// whole pages.
type hardRow struct {
	Key      string      `parquet:"key,delta"`
	Sparse   string      `parquet:"sparse,optional"`
	Late     string      `parquet:"late,optional"`
	Never    string      `parquet:"never,optional"`
	Overflow string      `parquet:"overflow,optional,dict"`
	Few      string      `parquet:"few,optional,dict"`
	Plain    string      `parquet:"plain"`
	Number   int64       `parquet:"number,optional"`
	LateInt  int32       `parquet:"late_int,optional"`
	Small    int16       `parquet:"small"`
	At       schema.Time `parquet:"at,optional,timestamp(microsecond)"`
	Maybe    *bool       `parquet:"maybe,optional"`
	Yes      bool        `parquet:"yes"`
	Share    *float64    `parquet:"share,optional"`
	Words    []string    `parquet:"words,list"`
	Counts   []int32     `parquet:"counts,list"`
}

func hardTable(t *testing.T, dir string) readTable {
	rt := readTable{Name: "hard", Folder: filepath.Join(dir, "hard")}
	for _, c := range catalog.Columns(reflect.TypeFor[hardRow]()) {
		rt.Columns = append(rt.Columns, readColumn{c.Name, c.Type.String()})
	}
	if err := os.MkdirAll(rt.Folder, 0o755); err != nil {
		t.Fatal(err)
	}
	w, err := table.NewWriter[hardRow](filepath.Join(rt.Folder, "part-00000.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(8, 12))
	for i := range 50_000 {
		row := hardRow{Key: fmt.Sprintf("com,example,%05d)/ä", i), Plain: strings.Repeat("p", r.IntN(30)), Small: int16(r.IntN(1<<16) - 1<<15), Yes: r.IntN(3) == 0}
		row.Overflow = fmt.Sprintf("%064x", r.Uint64())
		if r.IntN(4) == 0 {
			row.Sparse = fmt.Sprintf("s%d %s", i, strings.Repeat("ü€𝄞", r.IntN(4)))
			row.Few = fmt.Sprint("few ", r.IntN(7))
			row.Number = r.Int64() - math.MaxInt64/2
			row.At = (1_700_000_000_000 + schema.Time(r.Int64N(1e11))) * 1000
			row.Words = []string{fmt.Sprint("w", r.IntN(100)), "", "ß"}[:1+r.IntN(3)]
			row.Counts = []int32{int32(r.IntN(1000)) - 500, 0, math.MaxInt32, math.MinInt32}[:r.IntN(5)]
			maybe, share := r.IntN(2) == 0, r.Float64()*1e6
			row.Maybe, row.Share = &maybe, &share
		}
		if i > 25_000 {
			row.Late, row.LateInt = fmt.Sprint("late ", i), int32(i)
		}
		if err := w.Append(&row); err != nil {
			t.Fatal(err)
		}
		if i+1 == 30_000 {
			if err := w.EndRowGroup(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return rt
}

// aggregates computes the aggregates of aggregate.py from the stored values.
func aggregates(t *testing.T, rt readTable) map[string][]any {
	files, err := filepath.Glob(filepath.Join(rt.Folder, "*.parquet"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %d files, %v", rt.Name, len(files), err)
	}
	stored := map[string]*storedColumn{}
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		f, err := parquet.OpenFile(bytes.NewReader(body), int64(len(body)))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range f.Schema().Columns() {
			if stored[path[0]] == nil {
				stored[path[0]] = &storedColumn{}
			}
		}
		for _, g := range f.RowGroups() {
			for i, chunk := range g.ColumnChunks() {
				name := f.Schema().Columns()[i][0]
				if err := stored[name].add(chunk); err != nil {
					t.Fatalf("%s: %s: %v", file, name, err)
				}
			}
		}
	}
	out := map[string][]any{}
	for _, c := range rt.Columns {
		if stored[c.Name] == nil {
			t.Fatalf("%s has no column %s", rt.Name, c.Name)
		}
		out[c.Name] = stored[c.Name].aggregate(c.Type)
	}
	return out
}

// storedColumn is one column in the files of a table.
type storedColumn struct {
	rows, nulls int
	values      []parquet.Value // values that are not null; for a column of lists, the elements
}

func (s *storedColumn) add(chunk parquet.ColumnChunk) error {
	pages := chunk.Pages()
	defer pages.Close()
	for {
		page, err := pages.ReadPage()
		if err != nil {
			if err.Error() == "EOF" {
				return nil
			}
			return err
		}
		values := make([]parquet.Value, page.NumValues())
		if n, _ := page.Values().ReadValues(values); n != len(values) {
			return fmt.Errorf("%d of %d values", n, len(values))
		}
		for _, v := range values {
			if v.RepetitionLevel() == 0 {
				s.rows++
			}
			if v.IsNull() {
				s.nulls++
			} else {
				s.values = append(s.values, v.Clone())
			}
		}
	}
}

func (s *storedColumn) aggregate(kind string) []any {
	head := []any{s.rows, s.nulls}
	if strings.HasPrefix(kind, "list of ") {
		head = []any{s.rows, len(s.values)}
	}
	switch kind {
	case "string", "list of string":
		size, sum := 0, uint64(0)
		texts := make([]string, len(s.values))
		for i, v := range s.values {
			texts[i] = string(v.ByteArray())
			digest := md5.Sum([]byte(texts[i]))
			n, _ := strconv.ParseUint(hex.EncodeToString(digest[:4]), 16, 64)
			size, sum = size+len(texts[i]), sum+n
		}
		if kind == "string" {
			head = append(head, leastText(texts, slices.Min[[]string]), leastText(texts, slices.Max[[]string]))
		}
		return append(head, size, sum)
	case "boolean":
		yes := 0
		for _, v := range s.values {
			if v.Boolean() {
				yes++
			}
		}
		return append(head, yes)
	case "float64":
		if len(s.values) == 0 {
			return append(head, nil, nil, nil)
		}
		sum, numbers := 0.0, make([]float64, len(s.values))
		for i, v := range s.values {
			numbers[i] = v.Double()
			sum += numbers[i]
		}
		return append(head, fmt.Sprintf("%.9g", slices.Min(numbers)), fmt.Sprintf("%.9g", slices.Max(numbers)), fmt.Sprintf("%.9g", sum))
	}
	return append(head, integers(s.values, kind)...)
}

// leastText returns choose(texts), which is the least or the greatest text, or a digest of this text if it
// is long.
func leastText(texts []string, choose func([]string) string) any {
	if len(texts) == 0 {
		return nil
	}
	text := choose(texts)
	if len([]rune(text)) > 64 {
		sum := md5.Sum([]byte(text))
		return "md5 " + hex.EncodeToString(sum[:])
	}
	return text
}

// integers returns the smallest value, the greatest value and the sum. For a column of lists,
// integers returns only the sum. The sum is a big integer, because the sum of many fingerprints
// exceeds 64 bits.
func integers(values []parquet.Value, kind string) []any {
	sum, numbers := new(big.Int), make([]int64, len(values))
	for i, v := range values {
		numbers[i] = v.Int64()
		if v.Kind() == parquet.Int32 {
			numbers[i] = int64(v.Int32())
		}
		sum.Add(sum, big.NewInt(numbers[i]))
	}
	switch {
	case kind == "list of int32":
		return []any{sum.String()}
	case len(values) == 0:
		return []any{nil, nil, nil}
	}
	return []any{fmt.Sprint(slices.Min(numbers)), fmt.Sprint(slices.Max(numbers)), sum.String()}
}
