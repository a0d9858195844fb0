package planner

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/planner/entry"
	"crawlbatch.io/crawlbatch/planner/source"
)

// A domain may have millions of hosts. Their counts must not keep the records of their first URLs in memory.
func TestCountsOfHostsKeepNoRecords(t *testing.T) {
	cfg := Default()
	r, err := cfg.rules()
	if err != nil {
		t.Fatal(err)
	}
	w, err := newChosenWriter(r, t.TempDir(), "chosen")
	if err != nil {
		t.Fatal(err)
	}
	within := func(part, whole string) bool {
		p, from := uintptr(unsafe.Pointer(unsafe.StringData(part))), uintptr(unsafe.Pointer(unsafe.StringData(whole)))
		return p >= from && p < from+uintptr(len(whole))
	}
	for i := range 100 {
		k, err := urlkey.KeyOf(fmt.Sprintf("http://h%d.example.org/%s", i%50, strings.Repeat("x", 100+i)))
		if err != nil {
			t.Fatal(err)
		}
		u := entry.New(k, &source.Entry{}, schema.Form{}, 0)
		if !within(u.Host, u.URL) || !within(u.Domain, u.URL) {
			t.Fatal("the record's host and domain are no parts of its URL") // then this test would check nothing
		}
		if err := w.put(&u); err != nil {
			t.Fatal(err)
		}
		for key, h := range w.hosts {
			if within(key, u.URL) || within(h.host, u.URL) || within(h.domain, u.URL) {
				t.Fatalf("the count of host %s keeps the URL %s", h.host, u.URL)
			}
		}
	}
	if h := w.hosts["h7.example.org"]; len(w.hosts) != 50 || h.host != "h7.example.org" || h.domain != "example.org" || h.n != 2 {
		t.Errorf("%d hosts; host h7: %+v", len(w.hosts), h)
	}
	if err := errors.Join(w.close(), w.list.Close()); err != nil {
		t.Fatal(err)
	}
}
