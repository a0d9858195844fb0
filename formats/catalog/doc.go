// Package catalog is the catalogue of the published datasets: their columns,
// partitions and order, and what follows from them: SQL that opens them in DuckDB,
// Athena, Trino and Spark, and the page that documents them.
//
// In: the row structs of package schema (names, types, descriptions and
// stability are in their tags) and the manifests of sealed rounds. Out: SQL and
// Markdown, the same bytes for the same input. Views read exactly the parts that
// sealed.json lists: a round that is not sealed is not seen, and a dataset
// without parts opens as an empty one with all its columns.
//
// It imports packages schema and manifest.
package catalog
