// Package catalog describes the published datasets and generates their SQL and
// documentation. A dataset has columns, partitions and an order. The SQL opens it in
// DuckDB, Athena, Trino and Spark.
//
// In: the row structs of package schema (their tags hold names, types, descriptions and
// stability) and the manifests of sealed rounds. Out: SQL and Markdown. The same input
// gives the same bytes. Views read exactly the parts that sealed.json lists, so they never
// show unsealed rounds. A dataset without parts opens as an empty view with all its
// columns.
//
// It imports packages schema and manifest.
package catalog
