package rewrite

import (
	"bytes"
	"testing"

	"github.com/klauspost/compress/gzip"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/stages"
)

func TestObjectsOfEveryKindAreSearched(t *testing.T) {
	l := newLab(t)
	zipped := func(s string) []byte {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		if _, err := z.Write([]byte(s)); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	far := bytes.Repeat([]byte("x "), searched/2-4) // the name lies across the end of the text that is searched at a time
	for name, c := range map[string]struct {
		body            []byte
		named, readable bool
	}{
		"a text":           {[]byte("see gone.test"), true, true},
		"a long text":      {append(bytes.Repeat(far, 2), "see www.gone.test."...), true, true},
		"another text":     {[]byte("see notgone.test"), false, true},
		"nothing":          {nil, false, true},
		"gzip":             {append(zipped("nothing "), zipped("http://gone.test/")...), true, true},
		"gzip without":     {zipped("http://kept.test/"), false, true},
		"gzip, cut":        {zipped("http://kept.test/ and more")[:20], false, false},
		"another binary":   {[]byte("\x00\x01\x02"), false, false},
		"Parquet, damaged": {[]byte("PAR1 damaged PAR1"), false, false},
	} {
		key := "quarantine/" + name
		if _, err := l.b.Create(l.ctx, key, bytes.NewReader(c.body), int64(len(c.body))); err != nil {
			t.Fatal(err)
		}
		named, readable, err := Mentions(l.ctx, l.b, key, l.r.Matcher)
		if err != nil || named != c.named || readable != c.readable {
			t.Errorf("%s: named %t, readable %t, %v; want %t, %t", name, named, readable, err, c.named, c.readable)
		}
	}
	text := func(part int, main string) string {
		f := put(l, stages.FileText, layout.Table(stages.FileText, "2026-11", 0, part), schema.Text{URL: "http://kept.test/", SURT: "test,kept)/", Main: main})
		return f.Key
	}
	for key, want := range map[string]bool{text(0, "gone.test"): true, text(1, "kept"): false} {
		if named, readable, err := Mentions(l.ctx, l.b, key, l.r.Matcher); err != nil || named != want || !readable {
			t.Errorf("%s: named %t, readable %t, %v; want %t", key, named, readable, err, want)
		}
	}
}
