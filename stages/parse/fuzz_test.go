package parse

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"crawlbatch.io/crawlbatch/formats/document"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html/charset"
)

// fuzzHandler feeds documents of a type to a parser.
func fuzzHandler(f *testing.F, contentType string) {
	p := newParser(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		d := &document.Document{URL: "https://example.com/a/b?c=d", ContentType: contentType, Body: body}
		before := bytes.Clone(body)
		r := p.Parse(d)
		check(t, p, d, r)
		if !bytes.Equal(before, body) {
			t.Error("Parse changed the body")
		}
		if diff := cmp.Diff(r, p.Parse(d)); diff != "" {
			t.Errorf("parsed twice (-first +second):\n%s", diff)
		}
	})
}

// FuzzHTML has html's handler read documents.
func FuzzHTML(f *testing.F) {
	for _, s := range []string{
		"<!doctype html><title>T</title><p>A word.<a href=/x rel='nofollow me'>y</a>", "<base href=//x><img srcset='a 1x, b 2x' alt=q><svg><![CDATA[x]]><a xlink:href=y>",
		"<table><td><p><li><table></td></table><a href=1></table></li>", "<meta http-equiv=refresh content='0; url=x'><meta name=robots content=none>",
		"<script type=application/ld+json>{\"@type\":\"Article\",\"headline\":\"h\"}</script><time datetime=2026-01-01>", "<pre>a\n b</pre><ruby>x<rt>y</ruby><textarea><p></textarea>",
		"<template><a href=x></template><noscript><a href=y></noscript><select><option>a<option>b</select>", "<div hidden>x</div><span style=display:none>y</span><form action=/s method=get>",
	} {
		f.Add([]byte(s))
	}
	for _, s := range lexerCases {
		f.Add([]byte(s))
	}
	fuzzHandler(f, "text/html; charset=utf-8")
}

// FuzzPlain has plain text's handler read documents.
func FuzzPlain(f *testing.F) {
	for _, s := range []string{"", "one\ntwo\r\nthree", "https://example.com/a\nhttps://example.com/b\n", "a\x00b", "\xEF\xBB\xBFx", "\xFF\xFEx\x00", strings.Repeat("灯", 99)} {
		f.Add([]byte(s))
	}
	fuzzHandler(f, "text/plain")
}

// FuzzDecode holds what decode promises of any bytes and any declaration.
func FuzzDecode(f *testing.F) {
	for _, c := range corpus(f) {
		f.Add("text/html", mute(c.body)[:min(len(c.body)-2, 2000)])
		f.Add("text/html; charset="+c.charset, c.body[:min(len(c.body), 500)])
	}
	f.Add("text/html; charset=replacement", []byte("x"))
	f.Add("charset=;charset='utf-16", []byte("<meta charset=utf-7><meta http-equiv=content-type content='charset charset = \"koi8-r'>"))
	f.Fuzz(func(t *testing.T, contentType string, body []byte) {
		before := bytes.Clone(body)
		doc, name := decode(body, contentType)
		if !bytes.Equal(before, body) {
			t.Error("decode changed the body")
		}
		if !utf8.Valid(doc) || len(doc) > 3*len(body)+3 {
			t.Errorf("%d bytes of %s became %d, UTF-8 %t", len(body), name, len(doc), utf8.Valid(doc))
		}
		if e, _ := charset.Lookup(name); e == nil {
			t.Errorf("%q is no encoding", name)
		}
		again, same := decode(body, contentType)
		if same != name || !bytes.Equal(again, doc) {
			t.Errorf("decoded twice, as %s and %s", name, same)
		}
		if utf8.Valid(body) && name == "UTF-8" && !bytes.Equal(doc, bytes.TrimPrefix(body, utf8BOM)) {
			t.Error("UTF-8 was changed")
		}
	})
}
