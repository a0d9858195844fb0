// Package catalog describes the published datasets and generates their SQL and documentation. A
// dataset has columns, partitions and an order. The SQL opens each dataset in DuckDB, Athena, Trino
// and Spark.
//
// The input is the row structs of package schema, whose tags describe the columns, and the
// manifests of sealed rounds. The output is SQL and Markdown. Equal inputs give equal bytes. Views
// read exactly the parts that sealed.json lists, so they never show unsealed rounds. A dataset
// without parts opens as an empty view with all its columns.
//
// Package catalog imports packages schema and manifest.
package catalog
