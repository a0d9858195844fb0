package table_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/table/tabletest"
)

// rowTypes lists the row structs of package schema.
var rowTypes = map[string]func(*testing.T){
	"Capture": keepsEveryColumn[schema.Capture], "Fetch": keepsEveryColumn[schema.Fetch], "Request": keepsEveryColumn[schema.Request],
	"Page": keepsEveryColumn[schema.Page], "WorkingPage": keepsEveryColumn[schema.WorkingPage], "Text": keepsEveryColumn[schema.Text], "WorkingText": keepsEveryColumn[schema.WorkingText],
	"Link": keepsEveryColumn[schema.Link], "LinkSet": keepsEveryColumn[schema.LinkSet], "Duplicate": keepsEveryColumn[schema.Duplicate], "Host": keepsEveryColumn[schema.Host],
	"Domain": keepsEveryColumn[schema.Domain], "Term": keepsEveryColumn[schema.Term], "TermPages": keepsEveryColumn[schema.TermPages],
	"URLRecord": keepsEveryColumn[schema.URLRecord], "Skip": keepsEveryColumn[schema.Skip], "PlannedURL": keepsEveryColumn[schema.PlannedURL],
	"Refused": keepsEveryColumn[schema.Refused], "RobotsFile": keepsEveryColumn[schema.RobotsFile],
	"HostEdge": keepsEveryColumn[schema.HostEdge], "Inlink": keepsEveryColumn[schema.Inlink], "Representative": keepsEveryColumn[schema.Representative],
	"Redirect":    keepsEveryColumn[schema.Redirect],
	"OptOut":      keepsEveryColumn[schema.OptOut],
	"Sitemap":     keepsEveryColumn[schema.Sitemap],
	"TargetLinks": keepsEveryColumn[schema.TargetLinks],
	"ClassMember": keepsEveryColumn[schema.ClassMember], "ClassPair": keepsEveryColumn[schema.ClassPair], "Verdict": keepsEveryColumn[schema.Verdict],
	"StageAttempt": keepsEveryColumn[schema.StageAttempt], "Run": keepsEveryColumn[schema.Run],
}

// TestEveryColumnOfEveryRowTypeIsKept sends full rows and empty rows through every encoding of
// rows: the codec of scratch files, a sorter that spills, and Parquet.
func TestEveryColumnOfEveryRowTypeIsKept(t *testing.T) {
	for _, name := range schemaRowTypes(t) {
		if rowTypes[name] == nil {
			t.Errorf("no test for the row type %s of package schema", name)
		}
	}
	for name, test := range rowTypes {
		t.Run(name, test)
	}
}

// schemaRowTypes lists the structs of package schema that have columns and are not embedded
// in another struct.
func schemaRowTypes(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../schema/*.go")
	if err != nil {
		t.Fatal(err)
	}
	rows, embedded := map[string]bool{}, map[string]bool{}
	for _, path := range files {
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if s, ok := spec.Type.(*ast.StructType); ok {
				for _, field := range s.Fields.List {
					if inner, ok := field.Type.(*ast.Ident); ok && len(field.Names) == 0 {
						embedded[inner.Name] = true
					}
					rows[spec.Name.Name] = rows[spec.Name.Name] || field.Tag != nil && strings.Contains(field.Tag.Value, "parquet:")
				}
			}
			return true
		})
	}
	maps.DeleteFunc(rows, func(name string, columns bool) bool { return !columns || embedded[name] })
	return slices.Sorted(maps.Keys(rows))
}

// extremes returns a row with a value in every column, a row of zeros and an empty row.
func extremes[T any]() []T {
	var full, zeros, empty T
	for i, f := range reflect.VisibleFields(reflect.TypeFor[T]()) {
		if !f.Anonymous {
			give(reflect.ValueOf(&full).Elem().FieldByIndex(f.Index), f.Name, i+1)
			if v := reflect.ValueOf(&zeros).Elem().FieldByIndex(f.Index); v.Kind() == reflect.Pointer {
				v.Set(reflect.New(v.Type().Elem())) // sets a pointer to 0 or false, which differs from null
			}
		}
	}
	return []T{full, zeros, empty}
}

func keepsEveryColumn[T any](t *testing.T) {
	want := extremes[T]()
	codec, err := table.NewCodec[T]()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range want {
		encoded := string(codec.Append(nil, &row))
		got := want[0] // starts with a full row, because Decode must overwrite every field
		if err := codec.Decode(encoded, &got); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(row, got); d != "" {
			t.Errorf("the codec (-want +got):\n%s", d)
		}
		for n := range len(encoded) {
			if err := codec.Decode(encoded[:n], &got); err == nil {
				t.Fatalf("the first %d of %d bytes decode without an error", n, len(encoded))
			}
		}
	}
	sorter, err := table.NewSorter(t.TempDir(), func(k table.Key, _ *T) table.Key { return k }, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer sorter.Close()
	for _, row := range want {
		if err := sorter.Add(&row); err != nil {
			t.Fatal(err)
		}
	}
	sorted, err := tabletest.Collect(sorter.Sorted(t.Context()))
	if d := cmp.Diff(want, sorted); err != nil || d != "" {
		t.Errorf("a sorter that spills: %v (-want +got):\n%s", err, d)
	}
	b := newStore(t)
	tabletest.Write(t, b, "", "rows.parquet", want)
	if d := cmp.Diff(want, tabletest.Read[T](t, b, "rows.parquet"), cmpopts.EquateEmpty()); d != "" {
		t.Errorf("Parquet (-want +got):\n%s", d)
	}
}

// give sets a column to a value other than zero.
func give(v reflect.Value, name string, n int) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(name)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float64:
		v.SetFloat(float64(n) / 7)
	case reflect.Uint8:
		v.SetUint(uint64(n))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		give(v.Elem(), name, n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		give(v.Index(0), name, n)
		give(v.Index(1), name+"s", n+1)
	default:
		v.SetInt(int64(n))
	}
}
