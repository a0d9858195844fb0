package catalog

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"
)

// AppendJSON appends a row as one JSON object. The keys of the object are the names of the columns, in
// order. A timestamp becomes a string as in RFC 3339, in UTC.
func AppendJSON(dst []byte, row any) ([]byte, error) {
	v := reflect.ValueOf(row)
	for v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct {
		return dst, fmt.Errorf("catalog: %T is not a row", row)
	}
	dst = append(dst, '{')
	first := true
	for _, f := range reflect.VisibleFields(v.Type()) {
		if f.Anonymous {
			continue // an embedded struct is no column; VisibleFields lists its fields too
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		name, options, _ := strings.Cut(f.Tag.Get("parquet"), ",")
		dst = fmt.Appendf(dst, "%q:", name)
		column := v.FieldByIndex(f.Index)
		value := column.Interface()
		switch {
		case strings.Contains(options, "optional") && column.IsZero():
			value = nil
		case strings.Contains(options, "timestamp"):
			value = time.UnixMicro(column.Int()).UTC().Format("2006-01-02T15:04:05.000Z07:00")
		case column.Kind() == reflect.Slice && column.Len() == 0:
			value = []string{}
		}
		b, err := json.Marshal(value)
		if err != nil {
			return dst, fmt.Errorf("catalog: column %s: %w", name, err)
		}
		dst = append(dst, b...)
	}
	return append(dst, '}'), nil
}

// Row is a row of a table, as a json.Marshaler. Of is the struct of the row. If it is nil, the JSON is
// null.
type Row struct{ Of any }

// MarshalJSON implements json.Marshaler.
func (r Row) MarshalJSON() ([]byte, error) {
	if r.Of == nil {
		return []byte("null"), nil
	}
	return AppendJSON(nil, r.Of)
}

// Rows returns the rows of a table as json.Marshalers. The JSON of a table without rows is [].
func Rows[T any](rows []T) []Row {
	wrapped := make([]Row, len(rows))
	for i, row := range rows {
		wrapped[i] = Row{row}
	}
	return wrapped
}
