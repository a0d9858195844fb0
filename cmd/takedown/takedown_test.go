package takedown

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAListIsReadAsPlanReadsOne(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write([]byte("a.test\nhttp://b.test/x\n")); err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"a.test\nhttp://b.test/x\n":                             "",
		"\xef\xbb\xbf# names\r\n\r\na.test \r\nhttp://b.test/x": "",
		packed.String():             "",
		"# none\n\n":                "nothing to remove",
		"a.test\n\nco.uk\n":         `names.txt:3: domain "co.uk" cannot be taken down: it is a public suffix`,
		"a.test\nhttp:///\nco.uk\n": `names.txt:2: URL "http:///" cannot be taken down`,
		"a.test\rb.test\nc.test\n":  "names.txt:1: the line holds a carriage return",
		"\x1f\x8bno gzip":           "names.txt",
	} {
		o := options{output: "table", list: filepath.Join(t.TempDir(), "names.txt")}
		if err := os.WriteFile(o.list, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		err := o.check(t.Context())
		switch {
		case want == "" && (err != nil || strings.Join(append(o.domains, o.urls...), " ") != "a.test http://b.test/x"):
			t.Errorf("%q: %q, %q, %v", text, o.domains, o.urls, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
