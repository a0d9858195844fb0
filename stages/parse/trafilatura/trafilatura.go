// Package trafilatura chooses the main content of a page with
// github.com/markusmobius/go-trafilatura. That library builds a tree, copies it several times and
// takes about twenty times as long as package text.
//
// The input is an HTML document in UTF-8. The output is the blocks of its main content as lines, or
// an error. After an error the caller uses package text. The time is bounded for any document. The
// package refuses a document with a large or deep tree, or with formatting elements that the tree
// builder would clone often. Panics become errors. The bounds depend only on the document, not on
// time, so equal documents give equal texts. Package trafilatura imports only package text.
package trafilatura

import (
	"bytes"
	"errors"
	"fmt"

	traf "github.com/markusmobius/go-trafilatura"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"crawlbatch.io/crawlbatch/stages/parse/text"
)

// The bounds of a document.
const (
	maxBytes  = 2 << 20
	maxTokens = 60_000
	maxDepth  = 100     // number of open elements, without elements that need no end tag
	maxWeight = 8 << 20 // sum over all texts of (length in bytes × number of open elements), which is the work of reading the text of each element
	maxClones = 60_000  // number of formatting elements that the tree builder may open again
	maxText   = 1 << 20 // number of bytes of the result
)

// These errors say why Main refuses a document.
var (
	ErrTooLarge = errors.New("document is too large")
	ErrTooDeep  = errors.New("document is nested too deep")
	ErrNoText   = errors.New("no main content was found")
)

// Main returns the main content of a document.
func Main(doc []byte) (lines string, err error) {
	if err := checkDepth(doc); err != nil {
		return "", fmt.Errorf("trafilatura: %w", err)
	}
	defer func() {
		if p := recover(); p != nil {
			lines, err = "", fmt.Errorf("trafilatura: panic: %v", p)
		}
	}()
	root, err := html.Parse(bytes.NewReader(doc))
	if err != nil {
		return "", fmt.Errorf("trafilatura: %w", err)
	}
	r, err := traf.ExtractDocument(root, traf.Options{
		EnableFallback: true, ExcludeComments: true, HtmlDateMode: traf.Disabled, // package parse reads dates itself
	})
	if err != nil {
		return "", fmt.Errorf("trafilatura: %w", err)
	}
	if lines = linesOf(r.ContentNode); lines == "" {
		return "", fmt.Errorf("trafilatura: %w", ErrNoText)
	}
	return lines, nil
}

// checkDepth reads the tokens of a document and returns an error if a tree of the document would
// take long to read. If end tags are missing, checkDepth overestimates the depth.
func checkDepth(doc []byte) error {
	if len(doc) > maxBytes {
		return ErrTooLarge
	}
	var tokens, depth, weight, formatting, clones int
	z := html.NewTokenizer(bytes.NewReader(doc))
	for {
		kind := z.Next()
		if kind == html.ErrorToken {
			return nil
		}
		tokens++
		clones += max(0, formatting-3)
		switch kind {
		case html.TextToken:
			weight += len(z.Raw()) * depth
		case html.StartTagToken, html.EndTagToken:
			name, _ := z.TagName()
			a := atom.Lookup(name)
			if leftOpen(a) {
				break
			}
			step := 1
			if kind == html.EndTagToken {
				step = -1
			}
			depth = max(0, depth+step)
			if isFormatting(a) {
				formatting = max(0, formatting+step)
			}
		}
		switch {
		case tokens > maxTokens || weight > maxWeight || clones > maxClones:
			return ErrTooLarge
		case depth > maxDepth:
			return ErrTooDeep
		}
	}
}

// leftOpen reports whether an element needs no end tag.
func leftOpen(a atom.Atom) bool {
	switch a {
	case atom.Area, atom.Base, atom.Br, atom.Col, atom.Embed, atom.Hr, atom.Img, atom.Input, atom.Link, atom.Meta, atom.Source,
		atom.Track, atom.Wbr, atom.P, atom.Li, atom.Dt, atom.Dd, atom.Option, atom.Optgroup, atom.Tr, atom.Td, atom.Th,
		atom.Tbody, atom.Thead, atom.Tfoot, atom.Colgroup, atom.Param:
		return true
	}
	return false
}

// isFormatting reports whether the tree builder opens an element of this kind again in each
// following block (HTML, 13.2.4.3).
func isFormatting(a atom.Atom) bool {
	switch a {
	case atom.A, atom.B, atom.Big, atom.Code, atom.Em, atom.Font, atom.I, atom.Nobr, atom.S, atom.Small, atom.Strike,
		atom.Strong, atom.Tt, atom.U:
		return true
	}
	return false
}

// linesOf returns the text of a tree, with one block per line.
func linesOf(root *html.Node) string {
	if root == nil {
		return ""
	}
	var out text.Outline
	out.Reset(maxText)
	for n := root; n != nil; {
		switch {
		case n.Type == html.TextNode:
			out.Text([]byte(n.Data))
		case n.Type == html.ElementNode && !isInline(n.DataAtom):
			out.Break(text.TagNone)
		}
		if n.FirstChild != nil {
			n = n.FirstChild
			continue
		}
		for n != root && n.NextSibling == nil {
			n = n.Parent
			if n.Type == html.ElementNode && !isInline(n.DataAtom) {
				out.Break(text.TagNone)
			}
		}
		if n == root {
			break
		}
		n = n.NextSibling
	}
	out.Break(text.TagNone)
	return out.Full(out.All())
}

// isInline reports whether the text before and after an element is on the same line.
func isInline(a atom.Atom) bool {
	switch a {
	case atom.A, atom.Abbr, atom.B, atom.Cite, atom.Code, atom.Del, atom.Em, atom.Font, atom.I, atom.Ins, atom.Kbd, atom.Mark, atom.Q,
		atom.S, atom.Small, atom.Span, atom.Strike, atom.Strong, atom.Sub, atom.Sup, atom.Time, atom.Tt, atom.U, atom.Var:
		return true
	}
	return false
}
