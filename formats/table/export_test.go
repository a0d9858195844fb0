package table

// RowGroups ends a row group at the given number of rows or of bytes in the writer's memory. Zero
// means the default.
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
