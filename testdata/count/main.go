// Program count prints how much of this project somebody has to carry on: lines, packages, exported names, words. Lines
// without a token (blank lines and comments) do not count. It reads the files that git lists, from the directory in
// which it runs.
package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// olderFormat matches words about one of several formats of the store.
var olderFormat = regexp.MustCompile(`(?i)\bformats? ?[0-9]+\b|\w+Format[0-9]+|\bFormat\s*[<>]=?|\bolder (format|version)|EncodeAs|table\.Format\(`)

type counts struct {
	code, tests, packages, exported, mentions, words int
}

func main() {
	c, err := count()
	if err != nil {
		fmt.Fprintln(os.Stderr, "count:", err)
		os.Exit(1)
	}
	for _, row := range []struct {
		n    int
		what string
	}{
		{c.code, "lines of code"},
		{c.tests, "lines of tests"},
		{c.packages, "packages"},
		{c.exported, "exported names"},
		{c.mentions, "files that mention one of several formats"},
		{c.words, "words of documents"},
	} {
		fmt.Printf("%8d %s\n", row.n, row.what)
	}
}

func count() (c counts, err error) {
	listed, err := exec.Command("git", "ls-files").Output()
	if err != nil {
		return c, fmt.Errorf("git ls-files: %w", err)
	}
	packages := map[string]bool{}
	for name := range strings.Lines(string(listed)) {
		name = strings.TrimSuffix(name, "\n")
		switch filepath.Ext(name) {
		case ".go", ".md":
		default:
			continue
		}
		body, err := os.ReadFile(name)
		if os.IsNotExist(err) {
			continue // removed, but not yet committed
		}
		if err != nil {
			return c, err
		}
		if filepath.Ext(name) == ".md" {
			c.words += len(bytes.Fields(body))
			continue
		}
		if olderFormat.Match(body) {
			c.mentions++
		}
		packages[filepath.Dir(name)] = true
		if strings.HasSuffix(name, "_test.go") {
			c.tests += lines(body)
			continue
		}
		c.code += lines(body)
		exported, err := exported(name, body)
		if err != nil {
			return c, err
		}
		c.exported += exported
	}
	c.packages = len(packages)
	return c, nil
}

// lines returns the number of lines that hold a token.
func lines(body []byte) (n int) {
	files := token.NewFileSet()
	file := files.AddFile("", files.Base(), len(body))
	var s scanner.Scanner
	s.Init(file, body, nil, 0)
	last := 0
	for {
		pos, tok, text := s.Scan()
		if tok == token.EOF {
			return n
		}
		if tok == token.SEMICOLON && text != ";" {
			continue // the scanner inserts it at the end of a line
		}
		first := file.Line(pos)
		end := first + strings.Count(text, "\n") // a raw string
		n += end - max(first, last+1) + 1
		last = end
	}
}

// exported returns the number of exported names that a file declares, methods and fields included.
func exported(name string, body []byte) (n int, err error) {
	f, err := parser.ParseFile(token.NewFileSet(), name, body, parser.SkipObjectResolution)
	if err != nil {
		return 0, err
	}
	count := func(names ...*ast.Ident) {
		for _, id := range names {
			if id.IsExported() {
				n++
			}
		}
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			count(d.Name)
		case *ast.GenDecl:
			ast.Inspect(d, func(node ast.Node) bool {
				switch node := node.(type) {
				case *ast.TypeSpec:
					count(node.Name)
				case *ast.ValueSpec:
					count(node.Names...)
				case *ast.Field:
					count(node.Names...)
				case *ast.FuncLit:
					return false
				}
				return true
			})
		}
	}
	return n, nil
}
