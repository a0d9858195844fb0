package catalog_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/formats/catalog"
	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
)

// made returns a function that returns its script, and ends the test if there is an error.
func made(t *testing.T) func(*catalog.Script, error) *catalog.Script {
	return func(s *catalog.Script, err error) *catalog.Script {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
}

func athena(t *testing.T, o catalog.AthenaOptions, sealed ...*manifest.Sealed) *catalog.Script {
	t.Helper()
	s, err := catalog.Athena("s3://bucket/prefix/", o, sealed)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// everyDialect returns the SQL for sealed rounds in each dialect.
func everyDialect(t *testing.T, sealed []*manifest.Sealed) map[string]string {
	t.Helper()
	text := func(s *catalog.Script) string { return script(t, func(b *bytes.Buffer) error { return s.Write(b) }) }
	return map[string]string{
		"duckdb": script(t, func(b *bytes.Buffer) error {
			return catalog.DuckDB(b, "./crawl;data", catalog.S3{Endpoint: "http://127.0.0.1"}, "a note; and more", sealed)
		}),
		"athena":            text(athena(t, catalog.AthenaOptions{Database: "crawl"}, sealed...)),
		"athena, projected": text(athena(t, catalog.AthenaOptions{Database: "crawl", Projection: true}, sealed...)),
		"trino":             text(made(t)(catalog.Trino("s3://bucket", "hive.crawl", sealed))),
		"trino, a dir":      text(made(t)(catalog.Trino("local:///data", "crawl", sealed))),
		"spark":             text(made(t)(catalog.Spark("s3a://bucket", sealed))),
	}
}

// Each dialect has a view with the columns of cc-index in their order, and with what was sent as url.
func TestEachDialectHasCommonCrawlsIndex(t *testing.T) {
	var list []string
	for _, c := range append(columnNames(ccIndex), "crawl", "subset", "round") {
		switch c {
		case "url", "url_path", "url_query":
			c = `[^\n]+ AS ` + c
		}
		list = append(list, "  "+c)
	}
	for dialect, sql := range everyDialect(t, []*manifest.Sealed{sealedRound("2026-11", 0)}) {
		view := regexp.MustCompile("VIEW [`\"a-z.]*\\bccindex\\b[^;]* AS\nSELECT\n" + strings.Join(list, ",\n") + "\nFROM [`\"a-z.]*\\bcaptures\\b[`\"]?;\n")
		if at := view.FindStringIndex(sql); at == nil || at[0] < strings.Index(sql, "captures") || !strings.Contains(sql[at[0]:at[1]], "coalesce(sent, url) AS url,") {
			t.Errorf("%s has no such view", dialect)
		}
	}
}

func TestAthenaGetsAPartitionForEachSealedRound(t *testing.T) {
	s := athena(t, catalog.AthenaOptions{Database: "crawl"}, sealedRound("2026-11", 0), sealedRound("2026-11", 1))
	ddl := script(t, func(b *bytes.Buffer) error { return s.Write(b) })
	for _, want := range []string{
		"DROP TABLE IF EXISTS `crawl`.`captures`;\n\nCREATE EXTERNAL TABLE `crawl`.`captures` (\n  `url_surtkey` string COMMENT",
		"PARTITION (`crawl` = '2026-11', `subset` = 'warc', `round` = 1) LOCATION 's3://bucket/prefix/tables/captures/crawl=2026-11/subset=warc/round=1/'",
		"LOCATION 's3://bucket/prefix/tables/urls/'", "`topics` array<string>", "`fetch_status` smallint",
	} {
		if !strings.Contains(ddl, want) {
			t.Errorf("no %q in the DDL", want)
		}
	}
	if strings.Contains(ddl, "projection") {
		t.Error("the DDL projects partitions without the option Projection")
	}
	if _, err := catalog.Athena("./crawl-data", catalog.AthenaOptions{}, nil); err == nil || !strings.Contains(err.Error(), "s3://") {
		t.Errorf("Athena over a directory: %v", err)
	}
}

func TestAthenasPartitionsOfManyRoundsFitIntoItsStatements(t *testing.T) {
	var sealed []*manifest.Sealed
	for round := range 1300 {
		sealed = append(sealed, sealedRound("2026-11", round))
	}
	partitions := 0
	for _, st := range athena(t, catalog.AthenaOptions{Database: "crawl"}, sealed...).Statements {
		if len(st.SQL) > 256<<10 {
			t.Errorf("%s has %d bytes", st.Name, len(st.SQL))
		}
		if strings.HasPrefix(st.Name, "pages-partitions") {
			partitions += strings.Count(st.SQL, "PARTITION (")
		}
	}
	if partitions != 1300 {
		t.Errorf("%d partitions of pages, want 1300", partitions)
	}
}

func TestAthenaProjectsPartitionsOnlyWithAWarning(t *testing.T) {
	for name, tc := range map[string]struct {
		sealed []*manifest.Sealed
		want   []string
	}{
		"a month":             {[]*manifest.Sealed{sealedRound("2026-11", 0)}, []string{"'projection.crawl.type'='enum'", "'projection.crawl.values'='2026-11'", "It covers 2026-11, rounds 0 to 99."}},
		"months":              {[]*manifest.Sealed{sealedRound("2026-10", 0), sealedRound("2026-11", 0)}, []string{"'projection.crawl.type'='date'", "'projection.crawl.range'='2026-10,NOW'", "'projection.crawl.format'='yyyy-MM'"}},
		"a month, a reparse":  {[]*manifest.Sealed{sealedRound("2026-11", 0), sealedRound("2026-11r1", 0)}, []string{"'projection.crawl.range'='2026-11,NOW'", "no reparse"}},
		"a reparse":           {[]*manifest.Sealed{sealedRound("2026-11r1", 0)}, []string{"'projection.crawl.values'='2026-11r1'"}},
		"nothing is finished": {nil, []string{"'projection.crawl.range'='2020-01,NOW'"}},
	} {
		s := athena(t, catalog.AthenaOptions{Database: "crawl", Projection: true}, tc.sealed...)
		ddl := script(t, func(b *bytes.Buffer) error { return s.Write(b) })
		for _, want := range append(tc.want, "-- WARNING: Athena reads whatever the folders hold.", "'projection.round.range'='0,99'",
			"'storage.location.template'='s3://bucket/prefix/tables/captures/crawl=${crawl}/subset=${subset}/round=${round}/'") {
			if !strings.Contains(ddl, want) {
				t.Errorf("%s: no %q in the DDL", name, want)
			}
		}
		if strings.Contains(ddl, "ADD IF NOT EXISTS") {
			t.Errorf("%s: the DDL with projection also adds partitions", name)
		}
	}
}

func TestTrinosViewsHaveSealedRoundsAlone(t *testing.T) {
	sql := everyDialect(t, []*manifest.Sealed{sealedRound("2026-10", 0), sealedRound("2026-11", 0), sealedRound("2026-11", 1)})
	for _, want := range []string{
		"CREATE SCHEMA IF NOT EXISTS \"hive\".\"crawl\";",
		"CREATE TABLE \"hive\".\"crawl\".\"captures_parts\" (\n  \"url_surtkey\" varchar COMMENT",
		"external_location = 's3://bucket/tables/captures',\n  partitioned_by = ARRAY['crawl', 'subset', 'round']",
		"CALL \"hive\".system.sync_partition_metadata(schema_name => 'crawl', table_name => 'captures_parts', mode => 'ADD');",
		"FROM \"hive\".\"crawl\".\"captures_parts\"\nWHERE (\"crawl\" = '2026-10' AND \"round\" IN (0))\n   OR (\"crawl\" = '2026-11' AND \"round\" IN (0, 1));",
		"\"topics\" array(varchar)", "\"script_words\" array(integer)", "\"fetch_time\" timestamp(3)", "VIEW \"hive\".\"crawl\".\"urls\" ",
	} {
		if !strings.Contains(sql["trino"], want) {
			t.Errorf("no %q in\n%s", want, sql["trino"])
		}
	}
	if want := "CALL system.sync_partition_metadata(schema_name => 'crawl'"; !strings.Contains(sql["trino, a dir"], want) {
		t.Errorf("no %q where the schema names no catalog", want)
	}
	// Trino refuses a table over a folder that does not exist.
	empty := everyDialect(t, nil)["trino"]
	if strings.Contains(empty, "external_location") || !strings.Contains(empty, "CAST(NULL AS timestamp(3)) AS \"fetch_time\"") {
		t.Errorf("SQL for a store without a finished round:\n%s", empty)
	}
}

func TestSparksViewsReadTheFoldersOfSealedRounds(t *testing.T) {
	sealed := []*manifest.Sealed{sealedRound("2026-10", 0), sealedRound("2026-11", 1)}
	sql := script(t, func(b *bytes.Buffer) error {
		return made(t)(catalog.Spark("file:///it's [a] {b}", sealed)).Write(b)
	})
	for _, want := range []string{
		`OPTIONS (path 'file:///it\'s \\[a\\] \\{b\\}/tables/pages/{crawl=2026-10/round=0,crawl=2026-11/round=1}', basePath 'file:///it\'s [a] {b}/tables/pages')`,
		"TEMPORARY VIEW `urls` AS", "TEMPORARY VIEW `urls_history` (", "`topics` array<string> COMMENT", "SET TIME ZONE 'UTC';",
	} {
		if !strings.Contains(sql, want) {
			t.Errorf("no %q in\n%s", want, sql)
		}
	}
}

// Many SQL clients split a script at each semicolon, even within a string.
func TestSemicolonsEndStatementsAndStandNowhereElse(t *testing.T) {
	ends := regexp.MustCompile(`;(\n|$)`)
	for _, sealed := range [][]*manifest.Sealed{nil, {sealedRound("2026-11", 0)}} {
		for dialect, sql := range everyDialect(t, sealed) {
			for i, line := range strings.Split(sql, "\n") {
				if dialect == "duckdb" && strings.Contains(line, "crawl;data/") {
					continue // the store's directory has a semicolon in its name
				}
				if strings.Contains(ends.ReplaceAllString(line, ""), ";") || strings.HasPrefix(line, "--") && strings.Contains(line, ";") {
					t.Errorf("%s, line %d: %s", dialect, i+1, line)
				}
			}
		}
	}
}

// The queries for Common Crawl's index must also run in Trino and Spark, so they may use only
// standard SQL.
func TestCommonCrawlsQuestionsAskForNothingThatOnlyDuckDBHas(t *testing.T) {
	only := regexp.MustCompile(`(?i)\b(qualify|exclude|struct_pack|list_value|strptime|epoch_ms|regexp_matches|string_agg|group by all|order by all)\b|::|\[[0-9]`)
	questions, err := filepath.Glob("../../testdata/duckdb/cc-index/*.sql")
	if err != nil || len(questions) < 15 {
		t.Fatalf("%d questions (%v)", len(questions), err)
	}
	for _, q := range questions {
		sql, err := os.ReadFile(q)
		if err != nil {
			t.Fatal(err)
		}
		if found := only.Find(sql); found != nil {
			t.Errorf("%s: %s", fmt.Sprint(filepath.Base(q)), found)
		}
	}
}

// A round with a compacted copy of pages is read from the copy, and the next round from its published part.
func TestScriptsReadACompactedCopyInPlaceOfPublishedParts(t *testing.T) {
	copied := sealedRound("2026-11", 0)
	for i, f := range copied.Files {
		if f.Dataset == "pages" && strings.HasPrefix(f.Key, "tables/") {
			copied.Files[i].Key = layout.Compacted("2026-11", "20261101T000000Z-00000000", "pages", 0)
		}
	}
	sealed := []*manifest.Sealed{copied, sealedRound("2026-11", 1)}
	const folder = "compacted/crawl=2026-11/20261101T000000Z-00000000/pages"
	sql := everyDialect(t, sealed)
	for dialect, want := range map[string][]string{
		"duckdb": {folder + "/part-00000.parquet'\n], hive_partitioning = false", "tables/pages/crawl=2026-11/round=1/part-00000.parquet'\n], hive_partitioning = true"},
		"trino":  {`"pages_copy_2026_11" (`, "external_location = 's3://bucket/" + folder + "'\n)", `("crawl" = '2026-11' AND "round" IN (1))` + "\nUNION ALL\nSELECT"},
		"spark": {"OPTIONS (path 's3a://bucket/compacted/{crawl=2026-11/20261101T000000Z-00000000/pages}')",
			"path 's3a://bucket/tables/pages/{crawl=2026-11/round=1}', basePath", "`round` FROM `pages_parts`\nUNION ALL\nSELECT"},
	} {
		for _, w := range want {
			if !strings.Contains(sql[dialect], w) {
				t.Errorf("%s has no %q", dialect, w)
			}
		}
		if strings.Contains(sql[dialect], "tables/pages/crawl=2026-11/round=0") {
			t.Errorf("%s opens the part that was copied", dialect)
		}
	}
	s := athena(t, catalog.AthenaOptions{Database: "crawl", Compacted: sealed}, sealedRound("2026-11", 0))
	ddl := script(t, func(b *bytes.Buffer) error { return s.Write(b) })
	for _, w := range []string{"CREATE EXTERNAL TABLE `crawl`.`pages_copy_2026_11` (", "LOCATION 's3://bucket/prefix/" + folder + "/'", "tables/pages/crawl=2026-11/round=0/'"} {
		if !strings.Contains(ddl, w) {
			t.Errorf("Athena has no %q", w)
		}
	}
}
