package source

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/catalog/duckdbtest"
)

// TestDuckDBWritesSourcesOfAllKinds reads files that DuckDB wrote. Each condition must select the
// rows that DuckDB selects.
func TestDuckDBWritesSourcesOfAllKinds(t *testing.T) {
	duckdbtest.Need(t)
	dir := t.TempDir()
	const table = `CREATE TABLE list AS SELECT
		'http://host' || (i % 100) || '.example/' || i || CASE WHEN i % 7 = 0 THEN '?q="a,b"' || chr(9) ELSE '' END AS address,
		CASE WHEN i % 5 = 0 THEN NULL ELSE 'title, "' || i || '"' || chr(10) || 'é' END AS title,
		(i * 7919 % 1000)::SMALLINT AS status, i::BIGINT AS n, (i / 3.0)::DOUBLE AS score, i % 2 = 0 AS ok,
		TIMESTAMP '2026-11-01' + to_minutes(i::INT) AS fetched, DATE '2026-11-01' + (i // 1440)::INT AS day
		FROM range(20000) t(i);`
	files := []struct{ name, options string }{
		{"u.csv", "HEADER"},
		{"u.csv.gz", "HEADER, COMPRESSION gzip"},
		{"u.csv.zst", "HEADER, COMPRESSION zstd"},
		{"u.tsv", "FORMAT csv, HEADER, DELIMITER '\t'"},
		{"u.json", "FORMAT json"},
		{"u.jsonl.zst", "FORMAT json, COMPRESSION zstd"},
		{"u.parquet", "FORMAT parquet, ROW_GROUP_SIZE 4096"},
		{"v2.parquet", "FORMAT parquet, PARQUET_VERSION v2, COMPRESSION zstd, ROW_GROUP_SIZE 4096"},
	}
	var sql strings.Builder
	sql.WriteString(table)
	for _, f := range files {
		fmt.Fprintf(&sql, "COPY list TO '%s' (%s);\n", filepath.Join(dir, f.name), f.options)
	}
	conditions := []string{
		"", "status = 200", "status IN (200, 404) AND n < 5000", "title LIKE '%9%' AND score >= 100.5", "ok = true AND n >= 19990", "address LIKE 'http://host7_.%'",
	}
	typed := []string{"fetched >= '2026-11-10 12:00:00' AND fetched < '2026-11-10 13:00:00'", "day = '2026-11-03' AND status != 5", "title != 'x' AND n <= 10"}
	written := duckdbtest.SQLFile(t, sql.String())
	questions := []string{written}
	for _, where := range append(conditions, typed...) {
		questions = append(questions, duckdbtest.SQLFile(t, "SELECT address FROM list WHERE "+orTrue(where)+" ORDER BY n"))
	}
	answers := duckdbtest.Ask(t, questions...)
	for _, f := range files {
		parquet := strings.HasSuffix(f.name, ".parquet")
		for i, where := range append(conditions, typed...) {
			if i >= len(conditions) && !parquet {
				continue // in CSV and JSON, times are texts, and null is an empty text in CSV
			}
			name := filepath.Join(dir, f.name) + "#column=address"
			if where != "" {
				name += ",where=" + where
			}
			got, err := collect(t.Context(), open(t, name))
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			var want, have []string
			for _, row := range answers[questions[1+i]].Rows {
				want = append(want, strings.TrimSuffix(row["address"].(string), "\t")) // a source trims its fields
			}
			for _, e := range got {
				have = append(have, e.URL)
			}
			if d := cmp.Diff(want, have); d != "" || len(want) == 0 {
				t.Errorf("%s: %d of %d rows\n%.2000s", name, len(have), len(want), d)
			}
		}
	}
}

func orTrue(where string) string {
	if where == "" {
		return "true"
	}
	return where
}
