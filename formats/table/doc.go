// Package table reads and writes rows as Parquet files on the store, sorts them
// outside memory and merges sorted streams.
//
// In: row structs of package schema. Out: Parquet files that DuckDB, Athena,
// Spark and pandas open, made in a local scratch file and then committed as a
// whole; and streams of rows.
//
// It promises bytes that are a function of the rows, the options and the version
// of this program alone (no time, no machine), memory bounded by a row group and
// a page a column whatever the number of rows, columns that a file lacks read as
// null, and errors that name the object. A damaged file is an error, never a
// panic.
//
//   - Writer makes a file, Commit creates the object.
//   - Reader streams the rows of an object, whole or only the row groups whose
//     statistics meet a range.
//   - Sorter sorts more rows than memory holds, Merge joins sorted streams.
//   - Scan reads a few columns of wide files as Arrow batches.
//
// It imports packages schema, store and manifest.
package table

import "errors"

var (
	// ErrCorrupt: the object is no Parquet file, or a damaged one.
	ErrCorrupt = errors.New("not a readable Parquet file: the object is damaged or was cut short; " +
		"restore it, or, where a reduce task made it, remove it and run `crawlbatch retry --rebuild`")
	// ErrDiffers: another object with other bytes has the key already. A part is
	// a function of committed inputs, so trying again cannot help.
	ErrDiffers = errors.New("an object with other content has this key already: " +
		"its inputs or the program's version changed since it was written")
)
