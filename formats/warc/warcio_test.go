package warc_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/warc"
	"crawlbatch.io/crawlbatch/formats/warc/warciotest"
)

// TestWarcioReadsEveryRecordWhereItIs reads a file of package warc with another program, warcio.
func TestWarcioReadsEveryRecordWhereItIs(t *testing.T) {
	warciotest.Need(t)
	var file bytes.Buffer
	w := warc.NewWriter(&file)
	records := testRecords()
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 50 { // writes incompressible bodies of all sizes, up to several gzip buffers
		body := make([]byte, random.IntN(1<<uint(i%18+1)))
		for j := range body {
			body[j] = byte(random.Uint32())
		}
		records = append(records, &warc.Record{
			Type: warc.Response, Date: testDate, TargetURI: fmt.Sprintf("http://a.example/%d", i),
			Block: [][]byte{[]byte("HTTP/1.1 404 Not Found\r\nContent-Type: application/octet-stream\r\n\r\n"), body}, PayloadDigest: warc.DigestOf(body),
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
	wholes, alones := warciotest.Read(t, warciotest.File{File: path, Extents: extents})
	whole, alone := wholes[path], alones[path]
	if len(whole) != len(records) || len(alone) != len(records) {
		t.Fatalf("warcio read %d records from the whole file and %d by their extents, want %d", len(whole), len(alone), len(records))
	}
	for i, rec := range records {
		want := warciotest.Record{
			File: path, Offset: extents[i].Offset, Length: extents[i].Length,
			Type: string(rec.Type), ID: "<" + rec.ID + ">", URI: rec.TargetURI, Digest: string(rec.PayloadDigest),
		}
		if rec.Type == warc.Response {
			want.Status = string(bytes.Fields(rec.Block[0])[1])
		}
		if diff := cmp.Diff(want, whole[i]); diff != "" {
			t.Errorf("record %d as the file is read (-ours +warcio):\n%s", i, diff)
		}
		want.Block = "ok"
		if rec.PayloadDigest != "" && rec.Type != warc.Revisit {
			want.Payload = "ok"
		}
		if diff := cmp.Diff(want, alone[i]); diff != "" {
			t.Errorf("record %d read alone (-ours +warcio):\n%s", i, diff)
		}
	}
}
