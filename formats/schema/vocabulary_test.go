package schema

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"testing"
)

func TestLinkKindsListsEveryKindOnce(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "vocabulary.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var declared []LinkKind
	ast.Inspect(file, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok && v.Type != nil {
			if id, ok := v.Type.(*ast.Ident); ok && id.Name == "LinkKind" {
				text, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				declared = append(declared, LinkKind(text))
			}
		}
		return true
	})
	if len(declared) < 16 {
		t.Fatalf("the test found only the kinds %v in vocabulary.go", declared)
	}
	for _, k := range declared {
		if !slices.Contains(LinkKinds, k) {
			t.Errorf("LinkKinds lacks %q", k)
		}
	}
	if len(LinkKinds) != len(declared) {
		t.Errorf("LinkKinds has %d kinds of %d", len(LinkKinds), len(declared))
	}
	for _, k := range DefaultFollowed {
		if !slices.Contains(LinkKinds, k) {
			t.Errorf("%q is in DefaultFollowed but is not a kind", k)
		}
	}
}
