package parse

import (
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/formats/document"
)

func TestSelfClosedTagsOfXHTML(t *testing.T) {
	for _, tt := range []struct{ name, page, title, xhtml, html string }{
		{"a script", `<head><script src="a.js"/><title>T</title></head><p>Hello</p>`, "T", "Hello", ""},
		{"a title, empty", `<title/><p>Hello</p>`, "", "Hello", ""},
		{"a text field", `<p>a</p><textarea/><p>Hello</p>`, "", "a\nHello", "a"},
		{"what is hidden", `<div hidden="hidden"/><p>Hello</p>`, "", "Hello", ""},
		{"a frame", `<iframe src="x" /><p>Hello</p>`, "", "Hello", ""},
		{"an object", `a <object data="x"/>b`, "", "a b", "a"},
		{"a template", `<template/>Hello`, "", "Hello", ""},
		{"line breaks and rules", `a<br/>b<hr/>c`, "", "a\nb\nc", "a\nb\nc"},
		{"paragraphs and anchors", `<p/><p><a href="/x"/>a<span hidden="hidden"/> b</p>`, "", "a b", "a"},
		{"a value that ends so", `<p hidden=x/>a</p>b`, "", "b", "b"},
		{"deeper than elements are kept", strings.Repeat("<div>", 512+5) + `<p hidden="x"/>a`, "", "a", "a"},
		{"a picture, to HTML too", `<svg/>a<math display="block"/>b<svg><title/><style/><g/><a href="/x"/></svg>c`, "", "abc", "abc"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for contentType, want := range map[string]string{"application/xhtml+xml; charset=utf-8": tt.xhtml, "text/html; charset=utf-8": tt.html} {
				r := newParser(t).Parse(&document.Document{URL: "https://example.com/", ContentType: contentType, Body: []byte(tt.page)})
				if r.Text.Full != want || tt.title != "" && strings.Contains(contentType, "xml") && r.Page.Title != tt.title {
					t.Errorf("%s: title %q, text %q, want %q", contentType, r.Page.Title, r.Text.Full, want)
				}
			}
		})
	}
}
