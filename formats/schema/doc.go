// Package schema holds the row types of every dataset and of every working
// file, and the closed vocabularies (outcomes, skip reasons, states, kinds) that
// their columns use.
//
// A struct is the one definition of its table. The parquet tag names the column, and
// the doc tag describes it. A vol tag marks it volatile: two crawls of the same web may
// differ in it (times, offsets, addresses, attempts). All other columns are stable. A
// since tag names the FormatVersion that added the column:
// files of an older format are written without it and read as null. Package catalog
// derives the DuckDB views, the Athena DDL and the documentation from these tags.
//
// Rules: signed integers only, timestamps are milliseconds UTC, names are
// snake_case, and where Common Crawl's flat cc-index schema has a column the
// name, the type and the meaning are the same. A column marked optional stores
// its zero value as null. Adding a column is compatible; changing the meaning or
// the type of one takes a new FormatVersion.
//
// It imports only the standard library.
package schema

import (
	"reflect"
	"strconv"
)

// FormatVersion is written into every manifest. A reader refuses a newer one.
//
//	1: the first format.
//	2: tables are written in encodings that every reader supports, robots.txt must allow
//	   every spelling of a URL, and plans keep those spellings.
//	3: each crawl has a ledger, and each checkpoint carries a proof. Tables are as in 2.
//
// A decision that is made once (the start of a round, inputs.json of a stage) fixes the version for
// everything that follows from it: a round that began in format 1 keeps format 1's reading of
// robots.txt, and a stage frozen in format 1 keeps format 1's encodings.
const FormatVersion = 3

// TellsZero is the FormatVersion since which an optional column distinguishes 0 from null
// (the zero tag of a pointer field). Files of an older format have null for both.
func TellsZero(f reflect.StructField) int { return version(f, "zero") }

// Since is the FormatVersion that added the column of a struct field.
func Since(f reflect.StructField) int { return version(f, "since") }

func version(f reflect.StructField, tag string) int {
	v, err := strconv.Atoi(f.Tag.Get(tag))
	if err != nil {
		return 1
	}
	return v
}
