package schema

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Union returns the row type of tables that have rows of files of different formats since 2. It has the
// columns of row, and then those of added. A column that files of format 2 lack can be null in it.
func Union(row, added reflect.Type) (reflect.Type, error) {
	var all []reflect.StructField
	for _, f := range slices.Concat(reflect.VisibleFields(row), reflect.VisibleFields(added)) {
		if f.Anonymous {
			continue // VisibleFields lists its fields too
		}
		f.Index, f.Offset = nil, 0
		if tag := f.Tag.Get("parquet"); Since(f) > 2 && f.Type.Kind() != reflect.Pointer && !strings.Contains(tag, ",optional") {
			if k := f.Type.Kind(); k == reflect.Slice || k == reflect.String {
				return nil, fmt.Errorf("column %s of %v cannot be null, and files before format %d lack it", f.Name, row, Since(f))
			}
			f.Type = reflect.PointerTo(f.Type)
			f.Tag = reflect.StructTag(fmt.Sprintf(`parquet:"%s,optional" since:"%d"`, tag, Since(f)))
		}
		all = append(all, f)
	}
	return reflect.StructOf(all), nil
}
