package catalog

import (
	"bufio"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"crawlbatch.io/crawlbatch/formats/manifest"
)

// Athena writes the DDL that makes every dataset a table of the database, with a
// partition for each sealed round and no other. Root is s3://bucket/prefix.
// A table that is there is made again, as an older one lacks the columns that have come
// since; being external, it takes no data with it. Athena finds the columns of Parquet
// by name and gives null for what a part lacks.
//
// Statements end with a semicolon and an empty line; Athena takes them one by one.
func Athena(w io.Writer, root, database string, sealed []*manifest.Sealed) error {
	if !strings.HasPrefix(root, "s3://") {
		return fmt.Errorf("Athena reads S3 alone, and the store is %q: give --store s3://bucket/prefix", root)
	}
	root = strings.TrimSuffix(root, "/")
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "-- The datasets of %s: %s.\n\n", comment(root), rounds(sealed))
	fmt.Fprintf(out, "CREATE DATABASE IF NOT EXISTS `%s`;\n\n", database)
	for _, d := range Datasets() {
		name := d.Name
		if name == "urls" {
			name = "urls_history"
		}
		athenaTable(out, database, name, root, d)
		athenaPartitions(out, database, name, root, d, sealed)
		if d.Name == "urls" {
			athenaNewest(out, database, d, sealed)
		}
	}
	return out.Flush()
}

func athenaTable(out io.Writer, database, name, root string, d Dataset) {
	fmt.Fprintf(out, "DROP TABLE IF EXISTS `%s`.`%s`;\n\nCREATE EXTERNAL TABLE `%s`.`%s` (\n", database, name, database, name)
	athenaColumns(out, d.Columns)
	fmt.Fprintf(out, ")\nCOMMENT %s\nPARTITIONED BY (\n", athenaLiteral("One row for "+d.Row+"."))
	athenaColumns(out, d.Partitions)
	fmt.Fprintf(out, ")\nSTORED AS PARQUET\nLOCATION %s\nTBLPROPERTIES ('classification'='parquet');\n\n",
		athenaLiteral(root+"/tables/"+d.Name+"/"))
}

func athenaColumns(out io.Writer, columns []Column) {
	for i, c := range columns {
		comma := ","
		if i == len(columns)-1 {
			comma = ""
		}
		fmt.Fprintf(out, "  `%s` %s COMMENT %s%s\n", c.Name, c.Type.Athena(), athenaLiteral(c.Description), comma)
	}
}

// athenaPartitions adds the folders that hold parts of sealed rounds.
func athenaPartitions(out io.Writer, database, name, root string, d Dataset, sealed []*manifest.Sealed) {
	keys := parts(d.Name, sealed)
	var folders []string
	for _, key := range keys {
		folders = append(folders, path.Dir(key))
	}
	slices.Sort(folders)
	folders = slices.Compact(folders)
	if len(folders) == 0 {
		return
	}
	fmt.Fprintf(out, "ALTER TABLE `%s`.`%s` ADD IF NOT EXISTS", database, name)
	for _, folder := range folders {
		fmt.Fprintf(out, "\n  PARTITION (%s) LOCATION %s", partitionSpec(folder, d), athenaLiteral(root+"/"+folder+"/"))
	}
	fmt.Fprint(out, ";\n\n")
}

// partitionSpec is the folder's keys and values: crawl = '2026-11', round = 0.
func partitionSpec(folder string, d Dataset) string {
	var spec []string
	for _, element := range strings.Split(folder, "/") {
		key, value, ok := strings.Cut(element, "=")
		if !ok {
			continue
		}
		if c, _ := d.Column(key); c.Type == String {
			value = athenaLiteral(value)
		}
		spec = append(spec, fmt.Sprintf("`%s` = %s", key, value))
	}
	return strings.Join(spec, ", ")
}

// athenaNewest writes the view urls, which has the newest state of each URL.
func athenaNewest(out io.Writer, database string, d Dataset, sealed []*manifest.Sealed) {
	var names []string
	for _, c := range slices.Concat(d.Columns, d.Partitions) {
		names = append(names, `"`+c.Name+`"`)
	}
	list := strings.Join(names, ", ")
	fmt.Fprintf(out, "CREATE OR REPLACE VIEW \"%s\".\"urls\" AS\nSELECT %s\nFROM (\n  SELECT %s,\n"+
		"    row_number() OVER (PARTITION BY url_surtkey, url ORDER BY crawl DESC, round DESC) AS newest\n"+
		"  FROM \"%s\".\"urls_history\"\n  %s)\nWHERE newest = 1;\n\n", database, list, list, database, withoutReparses(sealed))
}

// athenaLiteral is a string of Hive's DDL, which escapes by backslash.
func athenaLiteral(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s) + "'"
}
