package table

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/formats/schema"
)

// TestLongTextsDoNotStandInHeaders checks the headers of Parquet pages. By default, the library
// repeats a page's lowest and highest values uncompressed in the page's header, even long texts.
func TestLongTextsDoNotStandInHeaders(t *testing.T) {
	var out bytes.Buffer
	w, err := NewWriterTo[schema.Text](&out)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("words that compress well ", 8000)
	for i := range 20 {
		if err := w.Append(&schema.Text{URL: fmt.Sprint("http://h/", i), Main: fmt.Sprint(i, text), Full: text}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if out.Len() > len(text)/4 {
		t.Errorf("20 rows of a text of %d bytes take %d bytes", len(text), out.Len())
	}
}
