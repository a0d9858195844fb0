// Package table reads and writes rows as Parquet files in the store, sorts more rows than fit into
// memory, and merges sorted streams.
//
// The input is row structs of package schema. The output is streams of rows, and Parquet files that
// DuckDB, Athena, Spark and pandas open. A file is first written to local scratch space and then
// committed as a whole.
//
// The bytes of a file depend only on the rows, the options and the program's version. For any number
// of rows, a writer or reader holds at most a row group, and a page of each column. A column that a
// file lacks is read as null. Errors name the object. Reading a damaged file returns an error and
// never panics.
//
//   - Writer writes a file, Commit creates the object.
//   - Reader streams the rows of an object, or only the row groups, pages or rows that options select.
//   - WriteRun writes a run, with a section for each bucket. OpenSection reads one section.
//   - Sorter sorts rows, Merge merges sorted streams, Cursor reads rows one at a time.
//   - Codec encodes rows for scratch files.
//
// Package table imports packages extsort, runfiles, pack, schema, store, manifest, column, pageindex and window.
package table

import (
	"errors"

	"crawlbatch.io/crawlbatch/formats/table/window"
)

var (
	// ErrCorrupt means that the object is not a Parquet file or is damaged.
	ErrCorrupt = window.ErrCorrupt
	// ErrDiffers means that the key already has an object with other bytes. Retrying does not help:
	// the same inputs give the same bytes again.
	ErrDiffers = errors.New("an object with other content has this key already: " +
		"its inputs or the program's version changed since it was written")
)
