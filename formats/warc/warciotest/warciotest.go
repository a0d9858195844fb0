// Package warciotest reads WARC files in tests with npm's warcio, an independent reader.
//
// The input is files, the extents of their records, and an environment variable that names the
// node_modules directory with warcio. The output is the content of each record as warcio read it.
// Package warciotest imports only the standard library and formats/warc.
package warciotest

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"crawlbatch.io/crawlbatch/formats/warc"
)

// Modules is the environment variable that names the node_modules directory with warcio.
const Modules = "CRAWLBATCH_WARCIO"

//go:embed read.mjs
var script []byte

// File is a WARC file and the expected extents of its records.
type File struct {
	File    string        `json:"file"`
	Extents []warc.Extent `json:"extents"`
}

// Record is the content of a record as warcio read it.
type Record struct {
	File           string
	Offset, Length int64
	Type, ID, URI  string
	Status         string // HTTP status of a response
	Block, Payload string // verdict on each digest: ok or differs; "" without a digest, and in whole
	Digest         string // WARC-Payload-Digest of the record
}

// Need skips the test if warcio is not installed.
func Need(t testing.TB) {
	t.Helper()
	if os.Getenv(Modules) == "" {
		t.Skipf("%s names no node_modules folder with warcio in it: `make test-warc` installs it and runs this test", Modules)
	}
}

// Read returns the records of each file, by file name, as warcio reads them in two ways. For the
// first result, warcio reads the file from its start. For the second result, it reads each record at
// its extent. An error of warcio fails the test. Without warcio, Read skips the test.
func Read(t testing.TB, files ...File) (whole, alone map[string][]Record) {
	t.Helper()
	Need(t)
	modules, err := filepath.Abs(os.Getenv(Modules))
	if err != nil {
		t.Fatal(err)
	}
	read := filepath.Join(t.TempDir(), "read.mjs")
	if err := os.WriteFile(read, script, 0o600); err != nil {
		t.Fatal(err)
	}
	var in, stderr bytes.Buffer
	extents := map[string]int{}
	for _, f := range files {
		if err := json.NewEncoder(&in).Encode(f); err != nil {
			t.Fatal(err)
		}
		extents[f.File] = len(f.Extents)
	}
	cmd := exec.Command("node", read)
	cmd.Env = append(os.Environ(), Modules+"="+modules)
	cmd.Stdin, cmd.Stderr = &in, &stderr
	out, err := cmd.Output()
	if err != nil || stderr.Len() > 0 {
		t.Fatalf("read.mjs: %v\n%s", err, stderr.Bytes())
	}
	seen := map[string][]Record{}
	for line := range bytes.Lines(out) {
		var r Record
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		seen[r.File] = append(seen[r.File], r)
	}
	whole, alone = map[string][]Record{}, map[string][]Record{}
	for name, records := range seen {
		first := len(records) - extents[name]
		if first < 0 {
			t.Fatalf("%s: warcio gave %d records for %d extents", name, len(records), extents[name])
		}
		whole[name], alone[name] = records[:first], records[first:]
	}
	return whole, alone
}
