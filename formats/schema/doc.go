// Package schema holds the row types of every dataset and of every working file. It also holds the
// closed vocabularies of their columns: outcomes, skip reasons, states, kinds.
//
// Each struct defines one table. A field's parquet tag names the column, and the doc tag describes
// the column. A vol tag marks a volatile column, such as a time or an address: its values may differ
// between two crawls of the same web. Columns without a vol tag are stable. Package catalog derives
// the DuckDB views, the Athena DDL and the documentation from the tags of the structs.
//
// All integers are signed, timestamps are microseconds UTC (type Time), and names are snake_case. A column of
// Common Crawl's flat cc-index schema keeps its name, type and meaning. A column marked optional
// stores the zero value of a field that is no pointer as null.
//
// Package schema imports only packages logarithm and pack.
package schema

import "reflect"

// FormatVersion is the number of the store's format, which every document holds. A program opens only
// stores of its own format, so each change of what is stored gets the next number.
const FormatVersion = 21

// HasDictionary reports whether a text column has a dictionary in published files, but not in working files. (A column with
// dict in its parquet tag has a dictionary in both. HasDictionary is false for it.)
func HasDictionary(f reflect.StructField) bool { return f.Tag.Get("published") == "dict" }
