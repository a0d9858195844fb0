package table

// RowGroups ends a row group after that many rows or bytes, whichever comes
// first; zero keeps the default. Bytes are what the writer holds in memory.
func RowGroups(rows, bytes int64) WriterOption {
	return func(o *writerOptions) {
		if rows > 0 {
			o.rowGroupRows = rows
		}
		if bytes > 0 {
			o.rowGroupBytes = bytes
		}
	}
}
