package main

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The bounds keep the code so small that a newcomer can remember it.
const (
	mostComplexity = 25  // largest cyclomatic complexity of a function
	mostFunction   = 100 // largest number of lines in a function
	mostPurpose    = 200 // largest number of bytes in a package's sentence of purpose
)

// sharedRoot is the root of the repository.
const sharedRoot = "../.."

// TestEveryPackageFitsInAHead checks the rules of CONTRIBUTING.md for every package. A package has
// one sentence of purpose, documented exported names, and functions of bounded
// complexity.
func TestEveryPackageFitsInAHead(t *testing.T) {
	purpose := map[string]string{}
	err := filepath.WalkDir(sharedRoot, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() && path != sharedRoot && (strings.HasPrefix(name, ".") || name == "testdata" || name == "bin") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, source, parser.ParseComments)
		if err != nil {
			return err
		}
		dir, _ := filepath.Rel(sharedRoot, filepath.Dir(path))
		if text := file.Doc.Text(); text != "" {
			if purpose[dir] != "" {
				t.Errorf("%s: the package has another package comment already", path)
			}
			purpose[dir] = text
		}
		inspectDeclarations(t, files, file)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(purpose) < 20 {
		t.Fatalf("only %d packages were found", len(purpose))
	}
	for dir := range purpose {
		first := new(doc.Package).Synopsis(purpose[dir])
		if name := filepath.Base(dir); !strings.HasPrefix(first, "Package "+name+" ") && !strings.HasPrefix(first, "Command "+name+" ") || !strings.HasSuffix(first, ".") || len(first) > mostPurpose {
			t.Errorf("%s: no sentence of at most %d bytes says what the package is for: %q", dir, mostPurpose, first)
		}
	}
}

func inspectDeclarations(t *testing.T, files *token.FileSet, file *ast.File) {
	undocumented := func(name *ast.Ident, docs ...*ast.CommentGroup) {
		for _, d := range docs {
			if d.Text() != "" {
				return
			}
		}
		if name.IsExported() {
			t.Errorf("%s: %s has no comment", files.Position(name.Pos()), name.Name)
		}
	}
	for _, declaration := range file.Decls {
		switch d := declaration.(type) {
		case *ast.FuncDecl:
			if n := complexity(d); n > mostComplexity {
				t.Errorf("%s: %s has complexity %d, more than %d", files.Position(d.Pos()), d.Name.Name, n, mostComplexity)
			}
			if n := files.Position(d.End()).Line - files.Position(d.Pos()).Line + 1; n > mostFunction {
				t.Errorf("%s: %s has %d lines, more than %d", files.Position(d.Pos()), d.Name.Name, n, mostFunction)
			}
			if d.Recv == nil {
				undocumented(d.Name, d.Doc)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					undocumented(s.Name, d.Doc, s.Doc, s.Comment)
				case *ast.ValueSpec:
					for _, name := range s.Names {
						undocumented(name, d.Doc, s.Doc, s.Comment)
					}
				}
			}
		}
	}
}

// complexity is McCabe's cyclomatic complexity of a function, including its function
// literals.
func complexity(f *ast.FuncDecl) int {
	n := 1
	ast.Inspect(f, func(node ast.Node) bool {
		switch x := node.(type) {
		case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt:
			n++
		case *ast.CaseClause:
			n += min(len(x.List), 1)
		case *ast.CommClause:
			if x.Comm != nil {
				n++
			}
		case *ast.BinaryExpr:
			if x.Op == token.LAND || x.Op == token.LOR {
				n++
			}
		}
		return true
	})
	return n
}

func TestComplexityCountsBranches(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "", `package p
func f(a, b bool) int {
	if a && b { return 1 }
	for range 3 { switch { case a: return 2; default: } }
	return 0
}`, 0)
	if err != nil {
		t.Fatal(err)
	}
	if n := complexity(file.Decls[0].(*ast.FuncDecl)); n != 5 {
		t.Errorf("complexity %d, want 5", n)
	}
}
