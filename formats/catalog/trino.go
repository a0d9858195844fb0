package catalog

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"crawlbatch.io/crawlbatch/formats/manifest"
)

// Trino returns the DDL that opens every dataset as a view of a schema in Trino's Hive connector.
// root is the store's address for Trino: s3://bucket/prefix, or a URL such as local:///data. schema
// may include its catalog, as in hive.crawlbatch.
//
// A dataset NAME becomes a table NAME_parts and a view NAME. The partitions of the table are all
// existing folders, because some clusters cannot register single partitions. The view shows only the
// rows of sealed rounds. A compacted copy is a table NAME_copy_CRAWL, whose rows the view shows in place of
// the published ones. The DDL recreates existing tables and views. The tables are external, so
// this deletes no data. Trino's Hive connector finds the columns of Parquet files by name, and
// returns null for columns that a file lacks.
func Trino(root, schema string, sealed []*manifest.Sealed) (*Script, error) {
	root = strings.TrimSuffix(root, "/")
	if err := errors.Join(CheckDatabase(schema), CheckAddress(root), checkSealed(sealed)); err != nil {
		return nil, err
	}
	s := newScript(root, sealed)
	s.Head = append(s.Head, "For Trino's Hive connector. Read the views. The tables NAME_parts also hold unsealed rounds.")
	if strings.HasPrefix(root, "local://") {
		s.Head = append(s.Head, "local:// needs fs.native-local.enabled=true and local.location=/ in the catalog's properties, on every node. "+
			"If Trino reaches the files at another address, give --location.")
	}
	catalog, name, ok := strings.Cut(schema, ".")
	procedure := identifier(catalog) + ".system.sync_partition_metadata"
	if !ok {
		catalog, name, procedure = "", schema, "system.sync_partition_metadata"
	}
	in := func(table string) string {
		if catalog == "" {
			return identifier(name) + "." + identifier(table)
		}
		return identifier(catalog) + "." + identifier(name) + "." + identifier(table)
	}
	s.add("schema", "CREATE SCHEMA IF NOT EXISTS %s", strings.TrimSuffix(in(""), `.""`))
	for _, d := range Datasets() {
		view, table := tableName(d), tableName(d)+"_parts"
		columns := slices.Concat(d.Columns, d.Partitions)
		row := literal(plain("One row for " + d.Row + "."))
		s.add(view+"-drop", "DROP TABLE IF EXISTS %s", in(table))
		published, copied := folders(d.Name, sealed)
		var selects []string
		newTable := func(name, folder, partitions string) {
			s.add(name+"-table", "CREATE TABLE %s (\n%s\n)\nCOMMENT %s\nWITH (\n  format = 'PARQUET',\n  external_location = %s%s\n)",
				in(name), trinoColumns(columns), row, literal(root+"/"+folder), partitions)
			selects = append(selects, fmt.Sprintf("SELECT %s\nFROM %s", quoted(columns, `"`), in(name)))
		}
		if len(published) > 0 { // Trino refuses a location that does not exist
			newTable(table, "tables/"+d.Name, ",\n  partitioned_by = ARRAY["+quoted(d.Partitions, `'`)+"]")
			s.add(view+"-partitions", "CALL %s(schema_name => %s, table_name => %s, mode => 'ADD')", procedure, literal(name), literal(table))
			selects[0] += "\nWHERE " + publishedRows(d.Name, sealed)
		}
		for _, folder := range copied {
			s.add(copyName(d, folder)+"-drop", "DROP TABLE IF EXISTS %s", in(copyName(d, folder)))
			newTable(copyName(d, folder), folder, "")
		}
		if len(selects) == 0 {
			selects = append(selects, fmt.Sprintf("SELECT\n%s\nWHERE false", nulls(columns, Type.Trino, `"`)))
		}
		s.add(view+"-view", "CREATE OR REPLACE VIEW %s COMMENT %s SECURITY INVOKER AS\n%s", in(view), row, strings.Join(selects, "\nUNION ALL\n"))
		if d.Name == "captures" {
			s.add(ccIndex().Name+"-view", "CREATE OR REPLACE VIEW %s COMMENT %s SECURITY INVOKER AS\n%s", in(ccIndex().Name), literal(plain("One row for "+ccIndex().Row+".")), ccIndexQuery(in(view)))
		}
		if d.Name == "urls" {
			s.add("urls-view", "CREATE OR REPLACE VIEW %s COMMENT 'One row for a known URL, in its newest state.' SECURITY INVOKER AS\n%s",
				in("urls"), newest(in(view), quoted(columns, `"`), sealed))
		}
		if d.Name == "pages" {
			s.add(pageChanges.Name+"-view", "CREATE OR REPLACE VIEW %s COMMENT %s SECURITY INVOKER AS\n%s", in(pageChanges.Name),
				literal(plain("One row for "+pageChanges.Row+".")), pageChangesQuery(in(view), in("fetches"), bitsTrino, sealed))
		}
		if d.Name == "domains" {
			s.add(allTime.name+"-view", "CREATE OR REPLACE VIEW %s COMMENT %s SECURITY INVOKER AS\n%s", in(allTime.name), literal(plain("One row for "+allTime.row+".")), allTimeQuery(in(view), sealed))
		}
	}
	return s, nil
}

func trinoColumns(columns []Column) string {
	return joined(columns, ",\n", func(c Column) string {
		return fmt.Sprintf("  %s %s COMMENT %s", identifier(c.Name), c.Type.Trino(), literal(plain(c.Description)))
	})
}
