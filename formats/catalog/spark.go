package catalog

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"crawlbatch.io/crawlbatch/formats/manifest"
)

// Spark returns the statements that open every dataset as a temporary view of a Spark session. The
// views read the folders of sealed rounds, and of compacted copies in their place. root is the store's address for Spark, such as
// s3a://bucket/prefix or file:///data.
func Spark(root string, sealed []*manifest.Sealed) (*Script, error) {
	root = strings.TrimSuffix(root, "/")
	if err := errors.Join(CheckAddress(root), checkSealed(sealed)); err != nil {
		return nil, err
	}
	s := newScript(root, sealed)
	s.Head = append(s.Head, "Temporary views of this Spark session: spark-sql -i FILE, or spark.sql(…) for each statement.",
		"Times are instants. The session's time zone is set to UTC so that dates and hours are the same as in the other readers.")
	s.add("zone", "SET TIME ZONE 'UTC'")
	for _, d := range Datasets() {
		view, columns := tableName(d), slices.Concat(d.Columns, d.Partitions)
		published, copied := folders(d.Name, sealed)
		var of []string // views of which the dataset's view has the rows
		files := func(name string, folders []string, base string) {
			if len(folders) == 0 {
				return
			}
			for i, f := range folders {
				folders[i] = strings.TrimPrefix(f, base+"/")
			}
			// The braces hold the folders of sealed rounds or of copies. Spark reads no other folder.
			path := sparkGlob.Replace(root+"/"+base) + "/{" + strings.Join(folders, ",") + "}"
			options := "path " + hiveLiteral(path)
			if base != "compacted" { // Spark takes the columns of partitions from the folders below
				options += ", basePath " + hiveLiteral(root+"/"+base)
			}
			s.add(name, "CREATE OR REPLACE TEMPORARY VIEW `%s` (\n%s\n)\nUSING parquet\nOPTIONS (%s)", name, hiveColumns(columns), options)
			of = append(of, name)
		}
		if len(copied) == 0 {
			files(view, published, "tables/"+d.Name)
		} else {
			files(view+"_parts", published, "tables/"+d.Name)
			files(view+"_copy", copied, "compacted")
			s.add(view, "CREATE OR REPLACE TEMPORARY VIEW `%s` AS\n%s", view, joined(of, "\nUNION ALL\n", func(name string) string {
				return fmt.Sprintf("SELECT %s FROM `%s`", quoted(columns, "`"), name)
			}))
		}
		if len(of) == 0 {
			s.add(view, "CREATE OR REPLACE TEMPORARY VIEW `%s` AS\nSELECT\n%s\nWHERE false", view, nulls(columns, Type.Hive, "`"))
		}
		if d.Name == "captures" {
			s.add(ccIndex().Name, "CREATE OR REPLACE TEMPORARY VIEW `%s` AS\n%s", ccIndex().Name, ccIndexQuery("`captures`"))
		}
		if d.Name == "urls" {
			s.add("urls", "CREATE OR REPLACE TEMPORARY VIEW `urls` AS\n%s", newest("`urls_history`", quoted(columns, "`"), sealed))
		}
		if d.Name == "pages" {
			s.add(pageChanges.Name, "CREATE OR REPLACE TEMPORARY VIEW `%s` AS\n%s", pageChanges.Name, pageChangesQuery("`pages`", "`fetches`", bitsSpark, sealed))
		}
		if d.Name == "domains" {
			s.add(allTime.name, "CREATE OR REPLACE TEMPORARY VIEW `%s` AS\n%s", allTime.name, allTimeQuery("`domains`", sealed))
		}
	}
	return s, nil
}

// sparkGlob escapes the glob characters in a path for Spark.
var sparkGlob = strings.NewReplacer(`\`, `\\`, `{`, `\{`, `}`, `\}`, `[`, `\[`, `]`, `\]`, `*`, `\*`, `?`, `\?`)
