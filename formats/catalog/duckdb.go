package catalog

import (
	"bufio"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
)

// S3 tells DuckDB how to reach a store at s3://. The SQL holds no credentials. DuckDB takes them from
// the environment, the profile or the instance of its user.
type S3 struct {
	Endpoint string // URL of an S3-compatible service; empty means AWS
	Region   string // region of the bucket; empty means the credential chain's region
}

// DuckDB writes a script that opens every dataset as a view over the parts that the sealed rounds
// list. root is the store's address: s3://bucket/prefix or a directory. A relative directory is
// relative to DuckDB's working directory.
//
// The view urls has the newest state of each URL. The view urls_history has every state. The view
// urls leaves out states of reparses, unless all crawls are reparses.
//
// The view page_changes compares each page with its last capture. A query of it reads a few columns of pages and
// fetches in all rounds that the views open.
//
// The view ccindex has the columns of Common Crawl's cc-index.
//
// Time columns are TIMESTAMP in UTC, regardless of the session's time zone. If note is not empty,
// the script has it as a comment at the beginning.
func DuckDB(w io.Writer, root string, s3 S3, note string, sealed []*manifest.Sealed) error {
	if err := checkSealed(sealed); err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "-- The datasets of %s: %s.\n", comment(root), rounds(sealed))
	fmt.Fprint(out, "-- These views lack rounds that are sealed later: generate them again then.\n")
	if note != "" {
		fmt.Fprintf(out, "-- %s.\n", comment(note))
	}
	root = strings.TrimSuffix(root, "/")
	if strings.HasPrefix(root, "s3://") {
		if err := duckSecret(out, root, s3); err != nil {
			return err
		}
	}
	for _, d := range Datasets() {
		duckView(out, tableName(d), d, root, sealed)
		if d.Name == "captures" {
			fmt.Fprintf(out, "\nCREATE OR REPLACE VIEW %s AS\n%s;\n", ccIndex().Name, ccIndexQuery("captures"))
			duckComments(out, ccIndex().Name, ccIndex())
		}
		if d.Name == "urls" {
			newest := d
			newest.Row = "a known URL, in its newest state"
			fmt.Fprint(out, "\nCREATE OR REPLACE VIEW urls AS\nSELECT * FROM urls_history\n"+
				withoutReparses(sealed)+"QUALIFY row_number() OVER (PARTITION BY url_surtkey, url ORDER BY crawl DESC, round DESC) = 1;\n")
			duckComments(out, "urls", newest)
		}
		if d.Name == "pages" {
			fmt.Fprintf(out, "\nCREATE OR REPLACE VIEW %s AS\n%s;\n", pageChanges.Name, pageChangesQuery("pages", "fetches", bitsDuckDB, sealed))
			duckComments(out, pageChanges.Name, pageChanges)
		}
		if d.Name == "domains" {
			fmt.Fprintf(out, "\nCREATE OR REPLACE VIEW %s AS\n%s;\n", allTime.name, allTimeQuery("domains", sealed))
			duckComments(out, allTime.name, allTimeDataset())
		}
	}
	return out.Flush()
}

// withoutReparses returns the SQL condition that leaves out rows of reparses, or "" if all crawls are
// reparses. The newest state of a URL does not come from a reparse, because a reparse parses the
// responses of an earlier crawl.
func withoutReparses(sealed []*manifest.Sealed) string {
	fetched := func(s *manifest.Sealed) bool { return !layout.IsReparse(s.Crawl) }
	if len(sealed) > 0 && !slices.ContainsFunc(sealed, fetched) {
		return ""
	}
	return "WHERE crawl NOT LIKE '%r%'\n" // of all crawls' names, only those of reparses contain an r: 2026-11r1
}

// rounds returns the names of the sealed rounds as one text, such as "2026-11.0, 2026-11.1".
func rounds(sealed []*manifest.Sealed) string {
	if len(sealed) == 0 {
		return "no round is sealed yet"
	}
	return "rounds " + joined(sealed, ", ", func(s *manifest.Sealed) string { return fmt.Sprintf("%s.%d", s.Crawl, s.Round) })
}

func duckSecret(out io.Writer, root string, s3 S3) error {
	options := []string{"TYPE s3", "PROVIDER credential_chain", "SCOPE " + literal(root)}
	if s3.Region != "" {
		options = append(options, "REGION "+literal(s3.Region))
	}
	if s3.Endpoint != "" {
		u, err := url.Parse(s3.Endpoint)
		if err != nil || u.Host == "" || u.User != nil {
			return fmt.Errorf("S3 endpoint %q is not the URL of a service: write it as https://host:port", s3.Endpoint)
		}
		options = append(options, "ENDPOINT "+literal(u.Host), "URL_STYLE 'path'",
			fmt.Sprintf("USE_SSL %t", u.Scheme == "https"))
	}
	fmt.Fprintf(out, "\nINSTALL httpfs;\nLOAD httpfs;\nINSTALL aws;\nLOAD aws;\nCREATE OR REPLACE SECRET crawlbatch (\n  %s\n);\n",
		strings.Join(options, ",\n  "))
	return nil
}

// duckView writes the SQL for the view of one dataset.
func duckView(out io.Writer, name string, d Dataset, root string, sealed []*manifest.Sealed) {
	keys, copied := parts(d.Name, sealed)
	empty := len(keys)+len(copied) == 0
	fmt.Fprintf(out, "\nCREATE OR REPLACE VIEW %s AS\nSELECT\n", name)
	fmt.Fprintf(out, "%s\n", joined(slices.Concat(d.Columns, d.Partitions), ",\n", func(c Column) string {
		return fmt.Sprintf("  %s AS %s", duckExpression(c, empty), identifier(c.Name))
	}))
	if empty {
		// A dataset without parts becomes an empty view with all columns.
		fmt.Fprint(out, "WHERE false;\n")
		duckComments(out, name, d)
		return
	}
	published, copies := duckPublished(root, keys, d.Partitions), duckParts(root, copied, "false")
	switch {
	case len(copied) == 0:
		fmt.Fprintf(out, "FROM %s;\n", published)
	case len(keys) == 0:
		fmt.Fprintf(out, "FROM %s;\n", copies)
	default:
		fmt.Fprintf(out, "FROM (FROM %s\nUNION ALL BY NAME\nFROM %s);\n", published, copies)
	}
	duckComments(out, name, d)
}

// duckPublished returns the table of the rows of published parts, with the partition columns from the parts' keys. DuckDB
// takes partitions from the whole path of a file. If a folder above the store is named like one, such as round=7 or
// host=web1, this would replace columns, so the table then reads the end of the file's name. DuckDB still opens only the
// files of the partitions that a query asks for, but takes some microseconds more for each name.
func duckPublished(root string, keys []string, partitions []Column) string {
	if !strings.Contains(root, "=") {
		types := joined(partitions, ", ", func(p Column) string { return fmt.Sprintf("'%s': %s", p.Name, p.Type.DuckDB()) })
		return duckParts(root, keys, "true, hive_types = {"+types+"}")
	}
	columns := joined(partitions, ", ", func(p Column) string {
		return fmt.Sprintf("CAST(regexp_extract(filename, '/%s=([^/]*)(/[^/=]*=[^/]*)*/[^/]*$', 1) AS %s) AS %s", p.Name, p.Type.DuckDB(), identifier(p.Name))
	})
	return fmt.Sprintf("(SELECT *, %s\nFROM %s)", columns, duckParts(root, keys, "false, filename = true"))
}

// duckParts returns the table of the rows of parts.
func duckParts(root string, keys []string, partitioning string) string {
	files := joined(keys, ",\n", func(key string) string { return "  " + literal(escapeGlob(root)+"/"+key) })
	return fmt.Sprintf("read_parquet([\n%s\n], hive_partitioning = %s)", files, partitioning)
}

// duckExpression returns the SQL expression that selects a column for a view.
func duckExpression(c Column, empty bool) string {
	switch {
	case empty:
		return fmt.Sprintf("CAST(NULL AS %s)", c.Type.DuckDB())
	case c.Type == Timestamp:
		// DuckDB shows the times in files in the session's time zone. make_timestamp gives a
		// TIMESTAMP in UTC, as in Common Crawl's tables.
		return fmt.Sprintf("make_timestamp(epoch_us(%s))", identifier(c.Name))
	}
	return identifier(c.Name)
}

func duckComments(out io.Writer, name string, d Dataset) {
	fmt.Fprintf(out, "COMMENT ON VIEW %s IS %s;\n", name, literal(plain("One row for "+d.Row+".")))
	for _, c := range slices.Concat(d.Columns, d.Partitions) {
		fmt.Fprintf(out, "COMMENT ON COLUMN %s.%s IS %s;\n", name, identifier(c.Name), literal(plain(c.Description)))
	}
}

// parts returns the keys of the parts of a dataset in sealed rounds: of published parts, whose keys have
// the values of the partition columns, and of parts of compacted copies, which have these columns.
func parts(dataset string, sealed []*manifest.Sealed) (published, copied []string) {
	for _, s := range sealed {
		for _, f := range s.FilesOf(dataset) {
			switch {
			case strings.HasPrefix(f.Key, "compacted/"):
				copied = append(copied, f.Key)
			case isTable(f.Key):
				published = append(published, f.Key)
			}
		}
	}
	return published, copied
}

// literal quotes s as a SQL string.
func literal(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// identifier quotes s as a SQL identifier, because some columns' names are SQL keywords.
func identifier(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }

// escapeGlob escapes the glob characters in a path for DuckDB.
func escapeGlob(s string) string {
	return strings.NewReplacer("[", "[[]", "*", "[*]", "?", "[?]").Replace(s)
}
