package parse

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/document"
	"crawlbatch.io/crawlbatch/stages/parse/parsetest"
)

// fuzzHandler parses any bytes as a document of the given type.
func fuzzHandler(f *testing.F, contentType string) {
	p := newParser(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		d := &document.Document{URL: "https://example.com/a/b?c=d", ContentType: contentType, Body: body}
		before := bytes.Clone(body)
		r := p.Parse(d)
		checkPromises(t, p, d, r)
		if !bytes.Equal(before, body) {
			t.Error("Parse changed the body")
		}
		if diff := cmp.Diff(r, p.Parse(d)); diff != "" {
			t.Errorf("parsed twice (-first +second):\n%s", diff)
		}
	})
}

// FuzzHTML passes documents to the handler of HTML.
func FuzzHTML(f *testing.F) {
	for _, s := range []string{
		"<!doctype html><title>T</title><p>A word.<a href=/x rel='nofollow me'>y</a>", "<base href=//x><img srcset='a 1x, b 2x' alt=q><svg><![CDATA[x]]><a xlink:href=y>",
		"<table><td><p><li><table></td></table><a href=1></table></li>", "<meta http-equiv=refresh content='0; url=x'><meta name=robots content=none>",
		"<script type=application/ld+json>{\"@type\":\"Article\",\"headline\":\"h\"}</script><time datetime=2026-01-01>", "<pre>a\n b</pre><ruby>x<rt>y</ruby><textarea><p></textarea>",
		"<template><a href=x></template><noscript><a href=y></noscript><select><option>a<option>b</select>", "<div hidden>x</div><span style=display:none>y</span><form action=/s method=get>",
	} {
		f.Add([]byte(s))
	}
	for _, s := range parsetest.Markup {
		f.Add([]byte(s))
	}
	fuzzHandler(f, "text/html; charset=utf-8")
}

// FuzzPlain passes documents to the handler of plain text.
func FuzzPlain(f *testing.F) {
	for _, s := range []string{"", "one\ntwo\r\nthree", "https://example.com/a\nhttps://example.com/b\n", "a\x00b", "\xEF\xBB\xBFx", "\xFF\xFEx\x00", strings.Repeat("灯", 99)} {
		f.Add([]byte(s))
	}
	fuzzHandler(f, "text/plain")
}
