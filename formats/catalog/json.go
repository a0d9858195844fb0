package catalog

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"
)

// AppendJSON appends a row as one JSON object. Its keys are the columns, in order. A null
// column is null; a timestamp is an RFC 3339 text in UTC.
func AppendJSON(dst []byte, row any) ([]byte, error) {
	v := reflect.ValueOf(row)
	for v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct {
		return dst, fmt.Errorf("catalog: %T is not a row", row)
	}
	dst = append(dst, '{')
	dst, err := appendFields(dst, v)
	return append(dst, '}'), err
}

// Row marshals as AppendJSON writes it. A nil row marshals as null.
type Row struct{ Of any }

// MarshalJSON implements json.Marshaler.
func (r Row) MarshalJSON() ([]byte, error) {
	if r.Of == nil {
		return []byte("null"), nil
	}
	return AppendJSON(nil, r.Of)
}

// Rows wraps each row of a table. If there are no rows, the result marshals as [].
func Rows[T any](rows []T) []Row {
	wrapped := make([]Row, len(rows))
	for i, row := range rows {
		wrapped[i] = Row{row}
	}
	return wrapped
}

func appendFields(dst []byte, v reflect.Value) ([]byte, error) {
	var err error
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.Anonymous {
			if dst, err = appendFields(dst, v.Field(i)); err != nil {
				return dst, err
			}
			continue
		}
		name, options, _ := strings.Cut(f.Tag.Get("parquet"), ",")
		if dst[len(dst)-1] != '{' {
			dst = append(dst, ',')
		}
		dst = fmt.Appendf(dst, "%q:", name)
		var value any = v.Field(i).Interface()
		switch {
		case strings.Contains(options, "optional") && v.Field(i).IsZero():
			value = nil
		case strings.Contains(options, "timestamp"):
			value = time.UnixMilli(v.Field(i).Int()).UTC().Format("2006-01-02T15:04:05.000Z07:00")
		case v.Field(i).Kind() == reflect.Slice && v.Field(i).Len() == 0:
			value = []string{}
		}
		b, err := json.Marshal(value)
		if err != nil {
			return dst, fmt.Errorf("catalog: column %s: %w", name, err)
		}
		dst = append(dst, b...)
	}
	return dst, nil
}
