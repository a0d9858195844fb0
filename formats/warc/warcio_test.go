package warc_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/warc"
)

// warcioScript reads a file with npm's warcio, whole and then record by record
// at the offsets it is given, and prints what it made of each, a line each.
const warcioScript = `
import fs from "node:fs";
const { WARCParser } = await import(process.argv[1]);
const [file, extents] = [process.argv[2], JSON.parse(process.argv[3])];
async function tell(parser, record, base) {
  const offset = base + parser.offset;
  await record.skipFully();
  console.log(JSON.stringify({ offset, length: parser.recordLength, type: record.warcType,
    id: record.warcHeader("WARC-Record-ID"), uri: record.warcTargetURI ?? "",
    status: record.warcType === "response" ? String(record.httpHeaders.statusCode) : "" }));
}
const whole = new WARCParser(fs.createReadStream(file));
let record;
while ((record = await whole.parse()) !== null) {
  await tell(whole, record, 0);
}
for (const { offset, length } of extents) {
  const alone = new WARCParser(fs.createReadStream(file, { start: offset, end: offset + length - 1 }));
  await tell(alone, await alone.parse(), offset);
}
`

// seenByWarcio is a line of warcioScript.
type seenByWarcio struct {
	Offset, Length        int64
	Type, ID, URI, Status string
}

// TestWarcioReadsEveryRecordWhereItIs has another program read a file of ours.
func TestWarcioReadsEveryRecordWhereItIs(t *testing.T) {
	modules := os.Getenv("CRAWLBATCH_WARCIO")
	if modules == "" {
		t.Skip("CRAWLBATCH_WARCIO names no node_modules folder with warcio in it: `make test-warc` installs it and runs this test")
	}
	var file bytes.Buffer
	w, err := warc.NewWriter(&file, warc.Options{RecordIDs: warc.RecordIDs("warcio")})
	if err != nil {
		t.Fatal(err)
	}
	records := testRecords(w)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 50 { // bodies of all sizes, up to several gzip buffers, that do not compress
		body := make([]byte, random.IntN(1<<uint(i%18+1)))
		for j := range body {
			body[j] = byte(random.Uint32())
		}
		records = append(records, &warc.Record{
			Type: warc.Response, Date: testDate, TargetURI: fmt.Sprintf("http://a.example/%d", i),
			Block: [][]byte{[]byte("HTTP/1.1 404 Not Found\r\nContent-Type: application/octet-stream\r\n\r\n"), body}, Payload: [][]byte{body},
		})
	}
	var extents []warc.Extent
	for _, rec := range records {
		e, err := w.Write(rec)
		if err != nil {
			t.Fatal(err)
		}
		extents = append(extents, e)
	}
	path := filepath.Join(t.TempDir(), "test.warc.gz")
	if err := os.WriteFile(path, file.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	list, err := json.Marshal(extents)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("node", "--input-type=module", "-e", warcioScript, filepath.Join(modules, "warcio", "dist", "index.js"), path, string(list))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil || stderr.Len() > 0 {
		t.Fatalf("node: %v\n%s", err, stderr.Bytes())
	}
	var seen []seenByWarcio
	for line := range bytes.Lines(out) {
		var s seenByWarcio
		if err := json.Unmarshal(line, &s); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		seen = append(seen, s)
	}
	if len(seen) != 2*len(records) {
		t.Fatalf("warcio saw %d records, %d times two were written", len(seen), len(records))
	}
	for i, rec := range records {
		want := seenByWarcio{
			Offset: extents[i].Offset, Length: extents[i].Length,
			Type: string(rec.Type), ID: "<" + rec.ID + ">", URI: rec.TargetURI,
		}
		if rec.Type == warc.Response {
			want.Status = string(bytes.Fields(rec.Block[0])[1])
		}
		if diff := cmp.Diff(want, seen[i]); diff != "" {
			t.Errorf("record %d as the file is read (-ours +warcio):\n%s", i, diff)
		}
		if diff := cmp.Diff(want, seen[len(records)+i]); diff != "" {
			t.Errorf("record %d read alone (-ours +warcio):\n%s", i, diff)
		}
	}
}
