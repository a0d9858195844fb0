// Package catalog describes the published datasets, and writes the SQL and the page that follow.
// A dataset has columns, partitions and an order; the SQL opens it in DuckDB, Athena,
// Trino and Spark.
//
// In: the row structs of package schema (names, types, descriptions and
// stability are in their tags) and the manifests of sealed rounds. Out: SQL and
// Markdown, the same bytes for the same input. Views read exactly the parts that
// sealed.json lists: a round that is not sealed is not seen, and a dataset
// without parts opens as an empty one with all its columns.
//
// It imports packages schema and manifest.
package catalog
