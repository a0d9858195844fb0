package http1

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestHeaderLookUp(t *testing.T) {
	h := Header{{"Set-Cookie", "a=1"}, {"ETag", ""}, {"set-cookie", "b=2"}}
	var all []string
	for v := range h.Values("SET-COOKIE") {
		all = append(all, v)
	}
	if d := cmp.Diff([]string{"a=1", "b=2"}, all); d != "" {
		t.Error(d)
	}
	if v, ok := h.Lookup("etag"); v != "" || !ok {
		t.Error("an empty value counts as absent")
	}
	if _, ok := h.Lookup("Age"); ok {
		t.Error("an absent field was found")
	}
	if got := Text("caf\xe9"); got != "café" {
		t.Errorf("Text of Latin-1 is %q", got)
	}
	if got := Text("café"); got != "café" {
		t.Errorf("Text of UTF-8 is %q", got)
	}
}
