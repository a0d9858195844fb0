package catalog_test

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/formats/catalog"
	"crawlbatch.io/crawlbatch/formats/catalog/duckdbtest"
	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
)

// hostileNames are names that some SQL dialect does not read as a plain name.
var hostileNames = []string{
	"a`; DROP TABLE x; --", `a"; DROP TABLE x; --`, `a'; DROP TABLE x; --`, "a\nDROP TABLE x", "a\rb", `a\`, "a;b", "a--b", "${env:HOME}", "a\x00b", "a\u2028b", "",
}

func TestNamesThatAClientWouldReadAsSQLAreRefused(t *testing.T) {
	sealed := []*manifest.Sealed{sealedRound("2026-11", 0)}
	for _, name := range hostileNames {
		_, athena := catalog.Athena("s3://bucket", catalog.AthenaOptions{Database: name}, sealed)
		_, trino := catalog.Trino("s3://bucket", name, sealed)
		_, schema := catalog.Trino("s3://bucket", "hive."+name, sealed)
		for dialect, err := range map[string]error{"athena": athena, "trino": trino} {
			if !errors.Is(err, catalog.ErrUnsafe) {
				t.Errorf("database %q, %s: %v", name, dialect, err)
			}
		}
		if name != "" && !errors.Is(schema, catalog.ErrUnsafe) {
			t.Errorf("schema %q: %v", name, schema)
		}
	}
	for _, name := range []string{"crawlbatch", "crawl_2", "my-crawl", "Ünïcode names"} {
		if _, err := catalog.Athena("s3://bucket", catalog.AthenaOptions{Database: name}, sealed); err != nil {
			t.Error(err)
		}
	}
}

func TestAddressesAreQuotedOrRefused(t *testing.T) {
	for root, quoted := range map[string]map[string]string{
		"s3://bucket/it's":   {"athena": `'s3://bucket/it\'s/tables/pages/'`, "trino": `'s3://bucket/it''s/tables/pages'`, "spark": `'s3://bucket/it\'s/tables/pages'`},
		`s3://bucket/a\`:     {"athena": `'s3://bucket/a\\/tables/pages/'`, "trino": `'s3://bucket/a\/tables/pages'`, "spark": `'s3://bucket/a\\/tables/pages'`},
		"s3://bucket/a`b\"c": {"athena": "'s3://bucket/a`b\"c/tables/pages/'", "trino": "'s3://bucket/a`b\"c/tables/pages'", "spark": "'s3://bucket/a`b\"c/tables/pages'"},
		"s3://bucket/--":     {"athena": `'s3://bucket/--/tables/pages/'`, "trino": `'s3://bucket/--/tables/pages'`, "spark": `'s3://bucket/--/tables/pages'`},
		"s3://bucket/a;b":    nil, "s3://bucket/a\nb": nil, "s3://bucket/a\rb": nil, "s3://bucket/${env:HOME}": nil, "s3://bucket/a\x00": nil, "s3://bucket/a\u2028b": nil,
	} {
		sealed := []*manifest.Sealed{sealedRound("2026-11", 0)}
		athena, err1 := catalog.Athena(root, catalog.AthenaOptions{Database: "crawl"}, sealed)
		projected, err2 := catalog.Athena(root, catalog.AthenaOptions{Database: "crawl", Projection: true}, sealed)
		trino, err3 := catalog.Trino(root, "crawl", sealed)
		spark, err4 := catalog.Spark(root, sealed)
		for i, err := range []error{err1, err2, err3, err4} {
			if (err == nil) != (quoted != nil) || err != nil && !errors.Is(err, catalog.ErrUnsafe) {
				t.Errorf("%q, %d: %v", root, i, err)
			}
		}
		if quoted == nil {
			continue
		}
		for dialect, s := range map[string]*catalog.Script{"athena": athena, "athena, projected": projected, "trino": trino, "spark": spark} {
			name, _, _ := strings.Cut(dialect, ",")
			if sql := script(t, func(b *bytes.Buffer) error { return s.Write(b) }); !strings.Contains(sql, quoted[name]) {
				t.Errorf("%q, %s: no %s in the SQL", root, dialect, quoted[name])
			}
		}
	}
}

// forgedSeals returns seals that only an attacker would write. Each key of the map names the forgery.
func forgedSeals() map[string]*manifest.Sealed {
	forged := map[string]*manifest.Sealed{
		"a crawl with a quote":   {Crawl: "2026-11' OR 1=1 --"},
		"a crawl with a newline": {Crawl: "2026-11\nDROP TABLE x"},
		"a negative round":       {Crawl: "2026-11", Round: -1},
	}
	good := layout.Table("pages", "2026-11", 0, 0)
	for name, key := range map[string]string{
		"a quote":           strings.Replace(good, "part", "part-'), (SELECT 1", 1),
		"a backtick":        strings.Replace(good, "part", "part`", 1),
		"a newline":         strings.Replace(good, "part", "part\n", 1),
		"a semicolon":       strings.Replace(good, "part", "part;", 1),
		"a glob":            strings.Replace(good, "part-00000", "*", 1),
		"a way up":          "tables/pages/../../../etc/passwd",
		"another crawl":     layout.Table("pages", "2026-10", 0, 0),
		"another round":     layout.Table("pages", "2026-11", 1, 0),
		"another dataset":   layout.Table("links", "2026-11", 0, 0),
		"a long number":     strings.Replace(good, "00000", "000000", 1),
		"an unknown subset": layout.Captures("2026-11", "x' OR ''='", 0, 0),
	} {
		dataset := "pages"
		if strings.Contains(key, "captures") {
			dataset = "captures"
		}
		forged["a key with "+name] = &manifest.Sealed{Crawl: "2026-11", Files: []manifest.File{{Dataset: dataset, Key: key}}}
	}
	return forged
}

func TestForgedSealsAreRefusedInEveryDialect(t *testing.T) {
	for name, seal := range forgedSeals() {
		sealed := []*manifest.Sealed{sealedRound("2026-10", 0), seal}
		var b bytes.Buffer
		_, athena := catalog.Athena("s3://bucket", catalog.AthenaOptions{Database: "crawl"}, sealed)
		_, projected := catalog.Athena("s3://bucket", catalog.AthenaOptions{Database: "crawl", Projection: true}, sealed)
		_, trino := catalog.Trino("s3://bucket", "crawl", sealed)
		_, spark := catalog.Spark("s3://bucket", sealed)
		for dialect, err := range map[string]error{
			"duckdb": catalog.DuckDB(&b, "./crawl-data", catalog.S3{}, "", sealed), "athena": athena, "athena, projected": projected, "trino": trino, "spark": spark,
		} {
			if !errors.Is(err, manifest.ErrCorrupt) {
				t.Errorf("%s, %s: %v", name, dialect, err)
			}
			if err != nil && strings.ContainsAny(err.Error(), "\n") {
				t.Errorf("%s, %s: the error is more than one line: %v", name, dialect, err)
			}
		}
		if b.Len() > 0 {
			t.Errorf("%s: DuckDB gets %s", name, b.String())
		}
	}
}

func TestDuckDBOpensStoresWhoseNamesLookLikeSQL(t *testing.T) {
	for _, name := range hostileNames {
		if name == "" || strings.ContainsRune(name, 0) {
			continue // the operating system refuses a file with this name
		}
		root := filepath.Join(t.TempDir(), strings.ReplaceAll(name, "/", "_"))
		b, err := dirstore.Open(root, dirstore.Options{})
		if err != nil {
			t.Fatal(err)
		}
		f := &fixture{root, b}
		sealed := &manifest.Sealed{Crawl: "2026-11", Files: []manifest.File{
			put(t, f, "skips", layout.Table("skips", "2026-11", 0, 0), []schema.Skip{{URL: "https://example.org/", Reason: "trap"}}),
		}}
		files := []string{f.views(t, sealed), duckdbtest.SQLFile(t, "SELECT url, reason, crawl FROM skips")}
		if got := duckdbtest.Ask(t, files...)[files[1]].String(); got != "https://example.org/|trap|2026-11" {
			t.Errorf("%q: %s", name, got)
		}
	}
}
