package catalog_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/formats/catalog"
)

var update = flag.Bool("update", false, "rewrite the generated part of formats/README.md")

// TestReadmeDocumentsEveryColumn compares formats/README.md with the catalogue.
func TestReadmeDocumentsEveryColumn(t *testing.T) {
	const file, begin, end = "../README.md", "<!-- generated: datasets -->\n", "<!-- end -->\n"
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(page), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s lacks the marks %q and %q", file, begin, end)
	}
	var want strings.Builder
	catalog.Reference(&want, "###")
	generated := before + begin + want.String() + "\n" + end + after
	if generated == string(page) {
		return
	}
	if !*update {
		t.Fatalf("%s is not as generated: run go test ./formats/catalog -run Documents -update", file)
	}
	if err := os.WriteFile(file, []byte(generated), 0o644); err != nil {
		t.Fatal(err)
	}
}
