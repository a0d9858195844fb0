// Package catalog describes the published datasets and generates their SQL and documentation. The SQL
// opens each dataset in DuckDB, Athena, Trino and Spark.
//
// The input is the row structs of package schema, whose tags describe the columns, and the seals of
// rounds. The output is SQL and Markdown. Equal inputs give equal bytes. Unless Athena computes the
// partitions, the SQL reads sealed rounds only. A dataset without parts opens as an empty table or
// view with all its columns.
//
// Package catalog imports packages schema and manifest.
package catalog
