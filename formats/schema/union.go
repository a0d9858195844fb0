package schema

import (
	"reflect"
	"slices"
)

// Union returns the row type of tables with the columns of row, and then those of added.
func Union(row, added reflect.Type) reflect.Type {
	var all []reflect.StructField
	for _, f := range slices.Concat(reflect.VisibleFields(row), reflect.VisibleFields(added)) {
		if f.Anonymous {
			continue // VisibleFields lists its fields too
		}
		f.Index, f.Offset = nil, 0
		all = append(all, f)
	}
	return reflect.StructOf(all)
}
