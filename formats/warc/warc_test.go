package warc_test

import (
	"bytes"
	"errors"
	"io"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/gzip"

	"crawlbatch.io/crawlbatch/formats/warc"
)

var testDate = time.Date(2026, 11, 3, 4, 5, 6, 789_654_321, time.UTC)

const (
	requestHead  = "GET /a?b=1 HTTP/1.1\r\nHost: example.org\r\n\r\n"
	responseHead = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n"
	chunkedBody  = "5\r\nhello\r\n7;x=y\r\n, world\r\n0\r\n\r\n"
	plainBody    = "hello, world"
)

// testRecords returns one record of each kind that a crawl writes. The records refer to each other.
func testRecords() []*warc.Record {
	request, response := warc.NewID(), warc.NewID()
	return []*warc.Record{
		{
			Type: warc.Warcinfo, Date: testDate, Filename: "part-00000-e1-00000.warc.gz",
			Block: [][]byte{warc.Fields(
				warc.Field{Name: "software", Value: "crawlbatch"},
				warc.Field{Name: "format", Value: "WARC File Format 1.1"},
			)},
		},
		{
			Type: warc.Request, ID: request, Date: testDate, TargetURI: "https://example.org/a?b=1",
			ConcurrentTo: []string{response},
			Block:        [][]byte{[]byte(requestHead)}, PayloadDigest: warc.DigestOf(),
		},
		{
			Type: warc.Response, ID: response, Date: testDate, TargetURI: "https://example.org/a?b=1",
			ConcurrentTo: []string{request},
			IPAddress:    netip.MustParseAddr("::ffff:192.0.2.7"),
			Protocols:    []string{"http/1.1", "tls/1.3"}, CipherSuite: "TLS_AES_128_GCM_SHA256",
			IdentifiedType: "text/html",
			Block:          [][]byte{[]byte(responseHead), []byte(chunkedBody)},
			PayloadDigest:  warc.DigestOf([]byte(plainBody)),
		},
		{
			Type: warc.Response, Date: testDate, TargetURI: "https://example.org/cut", Truncated: warc.TruncatedLength,
			Block:         [][]byte{[]byte("HTTP/1.0 200 OK\n\n"), []byte("half of i")},
			PayloadDigest: warc.DigestOf([]byte("half of i")),
		},
		{
			Type: warc.Revisit, Date: testDate, TargetURI: "https://example.org/a?b=2",
			Profile: warc.ProfileIdenticalPayload, RefersTo: response, RefersToURI: "https://example.org/a?b=1",
			RefersToDate: testDate, PayloadDigest: warc.DigestOf([]byte(plainBody)),
			Block: [][]byte{[]byte("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n")},
		},
		{
			Type: warc.Resource, Date: testDate, TargetURI: "dns:example.org",
			Block: [][]byte{[]byte("20261103040506\nexample.org.\t300\tIN\tA\t192.0.2.7\n")},
		},
		{
			Type: warc.Metadata, Date: testDate, TargetURI: "https://example.org/a?b=1", ConcurrentTo: []string{response},
			Block: [][]byte{warc.Fields(warc.Field{Name: "fetchTimeMs", Value: "12\r\nno: field"})},
		},
	}
}

// writeTestFile writes the records of testRecords, and returns the file, the records and their
// extents.
func writeTestFile(t testing.TB) ([]byte, []*warc.Record, []warc.Extent) {
	t.Helper()
	var file bytes.Buffer
	w := warc.NewWriter(&file)
	records := testRecords()
	var extents []warc.Extent
	for _, rec := range records {
		e, err := w.Write(rec)
		if err != nil {
			t.Fatal(err)
		}
		extents = append(extents, e)
	}
	if last := extents[len(extents)-1]; last.Offset+last.Length != int64(file.Len()) {
		t.Errorf("the last record is at %+v, the file has %d bytes", last, file.Len())
	}
	return file.Bytes(), records, extents
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	file, records, extents := writeTestFile(t)
	r := warc.NewReader(bytes.NewReader(file), warc.ReaderOptions{Check: true})
	for i, rec := range records {
		e, err := r.Next()
		if err != nil {
			t.Fatalf("record %d: %v", i, err)
		}
		got, err := io.ReadAll(e)
		if err != nil {
			t.Fatalf("record %d: %v", i, err)
		}
		if diff := cmp.Diff(string(bytes.Join(rec.Block, nil)), string(got)); diff != "" {
			t.Errorf("record %d, block (-want +got):\n%s", i, diff)
		}
		s, err := e.Finish()
		if err != nil {
			t.Fatalf("record %d: %v", i, err)
		}
		want := warc.Summary{Extent: extents[i], Block: warc.Matches, Payload: warc.Matches, StartLine: s.StartLine}
		if rec.Type == warc.Revisit || rec.PayloadDigest == "" {
			want.Payload = warc.Unchecked
		}
		if diff := cmp.Diff(want, s); diff != "" {
			t.Errorf("record %d (-want +got):\n%s", i, diff)
		}
		date, err := e.Date()
		if err != nil || !date.Equal(testDate.Truncate(time.Millisecond)) {
			t.Errorf("record %d: date %v, %v", i, date, err)
		}
		if e.ID() != rec.ID || e.TargetURI() != rec.TargetURI || e.Type != rec.Type {
			t.Errorf("record %d is %s %s %q, want %s %s %q", i, e.Type, e.ID(), e.TargetURI(), rec.Type, rec.ID, rec.TargetURI)
		}
	}
	if _, err := r.Next(); err != io.EOF {
		t.Errorf("after the last record: %v, want io.EOF", err)
	}
}

func TestEveryRecordIsReadAtItsExtent(t *testing.T) {
	file, records, extents := writeTestFile(t)
	for i, rec := range records {
		e, err := warc.ReadAt(bytes.NewReader(file), extents[i], warc.ReaderOptions{Check: true})
		if err != nil {
			t.Fatalf("record %d: %v", i, err)
		}
		s, err := e.Finish()
		if err != nil || len(s.Problems) > 0 || s.Extent != extents[i] || e.ID() != rec.ID {
			t.Errorf("record %d: %s at %+v, %q, %v", i, e.ID(), s.Extent, s.Problems, err)
		}
	}
	// Finish must report an extent that is one byte too long.
	long := extents[1]
	long.Length++
	e, err := warc.ReadAt(bytes.NewReader(file), long, warc.ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if s, err := e.Finish(); err != nil || len(s.Problems) != 1 {
		t.Errorf("an extent that is a byte too long: %q, %v", s.Problems, err)
	}
	short := extents[1]
	short.Length--
	e, err = warc.ReadAt(bytes.NewReader(file), short, warc.ReaderOptions{})
	if err == nil {
		_, err = e.Finish()
	}
	if _, ok := errors.AsType[*warc.DamageError](err); !ok {
		t.Errorf("an extent that is a byte too short: %v", err)
	}
	behind := warc.Extent{Offset: int64(len(file)), Length: 10}
	if _, err := warc.ReadAt(bytes.NewReader(file), behind, warc.ReaderOptions{}); err == nil {
		t.Error("an extent beyond the end of the file was read")
	}
}

func TestSameRecordsAreTheSameBytes(t *testing.T) {
	first, records, _ := writeTestFile(t)
	var again bytes.Buffer
	w := warc.NewWriter(&again)
	for _, rec := range records { // writes the records, which now have IDs, a second time
		if _, err := w.Write(rec); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(first, again.Bytes()) {
		t.Error("two files of the same records differ")
	}
}

func TestHeaderOfAResponse(t *testing.T) {
	file, _, extents := writeTestFile(t)
	at := extents[2]
	z, err := gzip.NewReader(bytes.NewReader(file[at.Offset : at.Offset+at.Length]))
	if err != nil {
		t.Fatal(err)
	}
	member, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Join([]string{
		"WARC/1.1",
		"WARC-Type: response",
		"WARC-Record-ID: <urn:uuid:ID>",
		"WARC-Date: 2026-11-03T04:05:06.789Z",
		"WARC-Target-URI: https://example.org/a?b=1",
		"WARC-Warcinfo-ID: <urn:uuid:ID>",
		"WARC-Concurrent-To: <urn:uuid:ID>",
		"WARC-IP-Address: 192.0.2.7",
		"WARC-Protocol: http/1.1",
		"WARC-Protocol: tls/1.3",
		"WARC-Cipher-Suite: TLS_AES_128_GCM_SHA256",
		"WARC-Identified-Payload-Type: text/html",
		// The expected payload digest is the output of: printf "hello, world" | sha1sum | xxd -r -p
		// | base32
		"WARC-Block-Digest: sha1:" + warc.DigestOf([]byte(responseHead+chunkedBody)).Value(),
		"WARC-Payload-Digest: sha1:W7RD5QU26IVQWTSB3IY6Q2GVOITBEHEE",
		"Content-Type: application/http; msgtype=response",
		"Content-Length: 103",
		"", responseHead + chunkedBody,
	}, "\r\n") + "\r\n\r\n"
	got := string(member)
	for _, line := range strings.Split(got, "\r\n") {
		if _, id, ok := strings.Cut(line, "<urn:uuid:"); ok {
			got = strings.Replace(got, id, "ID>", 1)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRefusedRecordsLeaveNoTrace(t *testing.T) {
	good := func() warc.Record {
		return warc.Record{Type: warc.Response, Date: testDate, TargetURI: "http://a.example/"}
	}
	for name, spoil := range map[string]func(*warc.Record){
		"no type":                   func(r *warc.Record) { r.Type = "" },
		"no date":                   func(r *warc.Record) { r.Date = time.Time{} },
		"year 10000":                func(r *warc.Record) { r.Date = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) },
		"no target":                 func(r *warc.Record) { r.TargetURI = "" },
		"a field smuggled in a URL": func(r *warc.Record) { r.TargetURI = "http://a.example/\r\nX: y" },
		"a NUL in a URL":            func(r *warc.Record) { r.TargetURI = "http://a.example/\x00" },
		"a revisit without profile": func(r *warc.Record) { r.Type = warc.Revisit },
	} {
		t.Run(name, func(t *testing.T) {
			var file bytes.Buffer
			w := warc.NewWriter(&file)
			bad := good()
			spoil(&bad)
			if _, err := w.Write(&bad); !errors.Is(err, warc.ErrInvalid) {
				t.Errorf("Write: %v, want ErrInvalid", err)
			}
			if file.Len() != 0 {
				t.Errorf("%d bytes were written", file.Len())
			}
			next := good()
			if e, err := w.Write(&next); err != nil || e.Offset != 0 {
				t.Errorf("the next record: %+v, %v", e, err)
			}
		})
	}
}

// fullDisk is a writer that accepts n bytes and then fails.
type fullDisk struct{ n int }

var errFull = errors.New("no space left on device")

func (d *fullDisk) Write(p []byte) (int, error) {
	if len(p) > d.n {
		n := d.n
		d.n = 0
		return n, errFull
	}
	d.n -= len(p)
	return len(p), nil
}

func TestAFailedWriteEndsTheWriterAtTheLastWholeRecord(t *testing.T) {
	disk := &fullDisk{n: 500}
	w := warc.NewWriter(disk)
	var last warc.Extent
	for end := int64(0); ; end = last.Offset + last.Length {
		e, err := w.Write(&warc.Record{Type: warc.Response, Date: testDate, TargetURI: "http://a.example/", Block: [][]byte{[]byte(responseHead)}})
		if err != nil {
			if !errors.Is(err, errFull) {
				t.Fatal(err)
			}
			break
		}
		if last = e; e.Offset != end {
			t.Errorf("a record at %+v, the one before ended at %d", e, end)
		}
	}
	if last.Length == 0 || last.Offset+last.Length > 500 {
		t.Errorf("the last whole record is at %+v of 500 bytes", last)
	}
	disk.n = 1 << 20
	if _, err := w.Write(&warc.Record{Type: warc.Warcinfo, Date: testDate}); !errors.Is(err, errFull) {
		t.Errorf("a Writer went on behind part of a record: %v", err)
	}
}

func TestDigest(t *testing.T) {
	// The digest of an empty payload is the output of: printf '' | sha1sum | xxd -r -p | base32
	const empty = warc.Digest("sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ")
	if got := warc.DigestOf(); got != empty {
		t.Errorf("DigestOf() = %s, want %s", got, empty)
	}
	if empty.Algorithm() != "sha1" || empty.Value() != "3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ" {
		t.Errorf("%s is %q of %q", empty, empty.Value(), empty.Algorithm())
	}
}

func BenchmarkWrite(b *testing.B) {
	w := warc.NewWriter(io.Discard)
	body := bytes.Repeat([]byte("<p>A paragraph of a page, which is much like the next.</p>\n"), 1700)
	rec := &warc.Record{Type: warc.Response, ID: warc.NewID(), Date: testDate, TargetURI: "http://a.example/"}
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		rec.Block, rec.PayloadDigest = [][]byte{[]byte(responseHead), body}, warc.DigestOf(body)
		if _, err := w.Write(rec); err != nil {
			b.Fatal(err)
		}
	}
}

// FuzzWriter checks that the Writer either refuses a record or writes it so that the Reader returns
// it unchanged. URL, type and body are arbitrary.
func FuzzWriter(f *testing.F) {
	f.Add("http://a.example/", "text/html", []byte("HTTP/1.1 200 OK\r\n\r\nbody"), false)
	f.Add("http://a.example/\r\nWARC-Type: warcinfo", "a\x00b", []byte("WARC/1.1\r\n\r\n"), true)
	f.Add("http://a.example/\xff", "", []byte{0x1f, 0x8b, 8, 0}, true)
	f.Fuzz(func(t *testing.T, uri, identified string, block []byte, revisit bool) {
		rec := &warc.Record{
			Type: warc.Response, Date: testDate, TargetURI: uri, IdentifiedType: identified, Block: [][]byte{block}, PayloadDigest: warc.DigestOf(block),
		}
		if revisit {
			rec.Type, rec.Profile, rec.RefersToURI, rec.RefersToDate = warc.Revisit, warc.ProfileIdenticalPayload, uri, testDate
		}
		var file bytes.Buffer
		w := warc.NewWriter(&file)
		at, err := w.Write(rec)
		if err != nil {
			if !errors.Is(err, warc.ErrInvalid) || file.Len() > 0 {
				t.Fatalf("%v with %d bytes written", err, file.Len())
			}
			return
		}
		findings := 0
		for got, err := range warc.Inspect(&file) {
			if findings++; err != nil || got.Damage != "" || got.Extent != at || got.Type != rec.Type || got.Block != warc.Matches || got.ContentLength != int64(len(block)) {
				t.Fatalf("%+v, %v", got, err)
			}
			if got.TargetURI != strings.TrimSpace(uri) {
				t.Errorf("URI %q is read as %q", uri, got.TargetURI)
			}
		}
		if findings != 1 {
			t.Errorf("%d records", findings)
		}
	})
}

// The payload digest decides which bytes of a block are the payload.
func TestThePayloadDigestTellsHowTheBlockIsRead(t *testing.T) {
	for _, tt := range []struct {
		name, fields, body, of string // of: the bytes of the digest
		want                   warc.Reading
		verdict                warc.Verdict
	}{
		{"whole body", "Content-Length: 3", "abcdef", "abcdef", "", warc.Matches},
		{"as many bytes as the length says", "Content-Length: 3", "abcdef", "abc", warc.ReadLength, warc.Matches},
		{"the largest length", "Content-Length: 3, 4", "abcdef", "abcd", warc.ReadLength, warc.Matches},
		{"a right length", "Content-Length: 6", "abcdef", "abcdef", "", warc.Matches},
		{"a length of zero", "Content-Length: 0", "abcdef", "", warc.ReadLength, warc.Matches},
		{"a length beyond the body", "Content-Length: 9", "abcdef", "abcdef", "", warc.Matches},
		{"chunks", "Transfer-Encoding: chunked", "3\r\nabc\r\n0\r\n\r\n", "abc", "", warc.Matches},
		{"chunks with their framing", "Transfer-Encoding: chunked", "3\r\nabc\r\n0\r\n\r\n", "3\r\nabc\r\n0\r\n\r\n", warc.ReadFramed, warc.Matches},
		{"other bytes", "Content-Length: 3", "abcdef", "ab", "", warc.Differs},
	} {
		var out bytes.Buffer
		rec := &warc.Record{Type: warc.Response, Date: time.Unix(1, 0), TargetURI: "http://a.test/", PayloadDigest: warc.DigestOf([]byte(tt.of)),
			Block: [][]byte{[]byte("HTTP/1.1 200 OK\r\n" + tt.fields + "\r\n\r\n"), []byte(tt.body)}}
		if _, err := warc.NewWriter(&out).Write(rec); err != nil {
			t.Fatal(err)
		}
		e, err := warc.NewReader(&out, warc.ReaderOptions{Check: true}).Next()
		if err != nil {
			t.Fatal(err)
		}
		if s, err := e.Finish(); err != nil || s.Reading != tt.want || s.Payload != tt.verdict {
			t.Errorf("%s: %+v, %v", tt.name, s, err)
		}
	}
}
