package table

// RowGroups bounds a row group by its number of rows and by its bytes in the writer's memory. Zero
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
