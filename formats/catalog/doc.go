// Package catalog describes the published datasets and generates their SQL and documentation.
// A dataset has columns, partitions and an order; the SQL opens it in DuckDB, Athena,
// Trino and Spark.
//
// In: the row structs of package schema (names, types, descriptions and
// stability are in their tags) and the manifests of sealed rounds. Out: SQL and
// Markdown, the same bytes for the same input. Views read exactly the parts that sealed.json lists,
// so they never show unsealed rounds. A dataset without parts opens as an empty view with all its
// columns.
//
// It imports packages schema and manifest.
package catalog
