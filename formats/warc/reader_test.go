package warc_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/gzip"

	"crawlbatch.io/crawlbatch/formats/warc"
)

// transcript returns one line for each finding of Inspect.
func transcript(t testing.TB, in io.Reader) []string {
	t.Helper()
	var lines []string
	for f, err := range warc.Inspect(in) {
		switch {
		case err != nil:
			lines = append(lines, "error: "+err.Error())
		case f.Damage != "":
			lines = append(lines, fmt.Sprintf("%d+%d damage: %s", f.Offset, f.Length, f.Damage))
		default:
			line := fmt.Sprintf("%d+%d %s %s %s", f.Offset, f.Length, f.Type, f.Block, f.Payload)
			for _, p := range f.Problems {
				line += "; " + p
			}
			lines = append(lines, line)
		}
	}
	return lines
}

// stream returns a reader that cannot seek and reads in small pieces.
func stream(b []byte) io.Reader { return iotest.HalfReader(bytes.NewBuffer(b)) }

func gz(t testing.TB, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := io.WriteString(z, text); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// record returns a small record as plain text.
func record(kind, block string) string {
	return fmt.Sprintf("WARC/1.1\r\nWARC-Type: %s\r\nWARC-Date: 2026-11-03T04:05:06Z\r\nWARC-Block-Digest: %s\r\nContent-Length: %d\r\n\r\n%s\r\n\r\n",
		kind, warc.DigestOf([]byte(block)), len(block), block)
}

func TestDamageIsReportedAndPassedOver(t *testing.T) {
	a, b, c := gz(t, record("response", "first")), gz(t, record("resource", "second")), gz(t, record("metadata", "third"))
	first := fmt.Sprintf("0+%d response matches unchecked", len(a))
	third := func(offset int) string {
		return fmt.Sprintf("%d+%d metadata matches unchecked", offset, len(c))
	}
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	spoil := func(member []byte, at int) []byte {
		m := bytes.Clone(member)
		m[at] ^= 0xff
		return m
	}
	tests := []struct {
		name string
		file []byte
		want []string
	}{
		{"checksum", join(a, spoil(b, len(b)-6), c), []string{
			first, fmt.Sprintf("%d+%d damage: gzip: invalid checksum", len(a), len(b)), third(len(a) + len(b))}},
		{"magic", join(a, spoil(b, 0), c), []string{
			first, fmt.Sprintf("%d+%d damage: no gzip member begins here: gzip: invalid header", len(a), len(b)), third(len(a) + len(b))}},
		{"zero bytes between members", join(a, make([]byte, 100_000), c), []string{
			first, fmt.Sprintf("%d+100000 damage: no gzip member begins here: gzip: invalid header", len(a)), third(len(a) + 100_000)}},
		{"a member that is no record", join(a, gz(t, "<html>\n"), c), []string{
			first, fmt.Sprintf(`%d+%d damage: no line "WARC/…" where a record should begin`, len(a), len(gz(t, "<html>\n"))), third(len(a) + len(gz(t, "<html>\n")))}},
		{"an empty member", join(a, gz(t, ""), c), []string{
			first, fmt.Sprintf("%d+%d damage: the gzip member ends within the record", len(a), len(gz(t, ""))), third(len(a) + len(gz(t, "")))}},
		{"cut in the last member", join(a, b[:len(b)-20]), []string{
			first, fmt.Sprintf("%d+%d damage: unexpected EOF", len(a), len(b)-20)}},
		{"no length", join(a, gz(t, "WARC/1.1\r\nWARC-Type: response\r\n\r\nx\r\n\r\n"), c), []string{
			first, fmt.Sprintf("%d+%d damage: the header has no usable Content-Length", len(a), len(gz(t, "WARC/1.1\r\nWARC-Type: response\r\n\r\nx\r\n\r\n"))),
			third(len(a) + len(gz(t, "WARC/1.1\r\nWARC-Type: response\r\n\r\nx\r\n\r\n")))}},
		{"a length beyond the member", join(gz(t, "WARC/1.1\r\nContent-Length: 9223372036854775807\r\n\r\nx"), c), []string{
			fmt.Sprintf("0+%d damage: the gzip member ends within the record", len(gz(t, "WARC/1.1\r\nContent-Length: 9223372036854775807\r\n\r\nx"))),
			third(len(gz(t, "WARC/1.1\r\nContent-Length: 9223372036854775807\r\n\r\nx")))}},
		{"a header cut in its member", join(gz(t, "WARC/1.1\r\nWARC-Type: resp"), c), []string{
			fmt.Sprintf("0+%d damage: the data end within the header", len(gz(t, "WARC/1.1\r\nWARC-Type: resp"))),
			third(len(gz(t, "WARC/1.1\r\nWARC-Type: resp")))}},
		{"a digest that differs", gz(t, strings.Replace(record("response", "first"), "first\r", "fight\r", 1)), []string{
			fmt.Sprintf("0+%d response differs unchecked", len(gz(t, strings.Replace(record("response", "first"), "first\r", "fight\r", 1))))}},
		{"no WARC at all", []byte("filedesc://a.arc 0.0.0.0 20261103040506 text/plain 10\n1 0 x\n"), []string{
			`0+60 damage: no line "WARC/…" where a record should begin`}},
		{"nothing", nil, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, transcript(t, bytes.NewReader(tt.file))); diff != "" {
				t.Errorf("a file that can seek (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.want, transcript(t, stream(tt.file))); diff != "" {
				t.Errorf("a stream (-want +got):\n%s", diff)
			}
		})
	}
}

// A damaged deflate stream may swallow the gzip members that follow. If the file can seek, the
// Reader still finds the swallowed records.
func TestRecordsThatDamageSwallowedAreFoundAgain(t *testing.T) {
	b := gz(t, record("resource", strings.Repeat("second ", 50)))
	for at := range len(b) {
		spoilt := bytes.Clone(b)
		spoilt[at] ^= 0x55
		c := gz(t, record("metadata", "third"))
		file := bytes.Join([][]byte{spoilt, c}, nil)
		got := transcript(t, bytes.NewReader(file))
		want := fmt.Sprintf("%d+%d metadata matches unchecked", len(b), len(c))
		if len(got) == 0 || got[len(got)-1] != want {
			t.Errorf("byte %d changed: findings %q, want %q as the last one", at, got, want)
		}
	}
}

func TestUnusualFilesAreRead(t *testing.T) {
	a, b := record("response", "first"), record("metadata", "second")
	bare := func(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }
	tests := []struct {
		name, file string
		want       []string
	}{
		{"plain", a + b, []string{
			fmt.Sprintf("0+%d response matches unchecked", len(a)),
			fmt.Sprintf("%d+%d metadata matches unchecked", len(a), len(b))}},
		{"bare line feeds", bare(a) + bare(b), []string{
			fmt.Sprintf("0+%d response matches unchecked", len(bare(a))),
			fmt.Sprintf("%d+%d metadata matches unchecked", len(bare(a)), len(bare(b)))}},
		{"several records in one member", string(gz(t, a+b)), []string{
			"0+0 response matches unchecked; the gzip member holds several records",
			"0+0 metadata matches unchecked"}},
		{"a plain record that is longer than it says", strings.Replace(a, "first", "first and more", 1) + b, []string{
			fmt.Sprintf("0+%d response matches unchecked; 0 line ends after the block, not 2; bytes after the block: Content-Length may be too small", len(a)+9),
			fmt.Sprintf("%d+%d metadata matches unchecked", len(a)+9, len(b))}},
		{"a member that is longer than it says", string(gz(t, strings.Replace(a, "first", "first and more", 1))) + string(gz(t, b)), []string{
			fmt.Sprintf("0+%d response matches unchecked; 0 line ends after the block, not 2; bytes after the block: Content-Length may be too small",
				len(gz(t, strings.Replace(a, "first", "first and more", 1)))),
			fmt.Sprintf("%d+%d metadata matches unchecked", len(gz(t, strings.Replace(a, "first", "first and more", 1))), len(gz(t, b)))}},
		{"no type, odd date", "WARC/0.18\r\nWARC-Date: yesterday\r\nContent-Length: 0\r\n\r\n\r\n\r\n", []string{
			`0+58 ` + ` unchecked unchecked; no WARC-Type; WARC-Date "yesterday" is not a date`}},
		{"a plain file that begins with a blank line", "\r\n" + a, []string{
			fmt.Sprintf("2+%d response matches unchecked", len(a))}},
		{"a plain file that is cut", a + b[:len(b)-6], []string{
			fmt.Sprintf("0+%d response matches unchecked", len(a)),
			fmt.Sprintf("%d+%d damage: unexpected EOF", len(a), len(b)-6)}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, transcript(t, strings.NewReader(tt.file))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.want, transcript(t, stream([]byte(tt.file)))); diff != "" {
				t.Errorf("a stream (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHeaderFields(t *testing.T) {
	const text = "\r\nWARC/1.0 \r\nwarc-type: resource\r\nno colon here\r\nWARC-Target-URI:<http://a.example/>\r\n" +
		"WARC-Concurrent-To: <urn:a>\r\nX-Folded: one\r\n\ttwo\r\n  three\r\nwarc-concurrent-to: <urn:b>\r\nContent-Length: 0\r\n\r\n\r\n\r\n"
	e, err := warc.NewReader(bytes.NewReader(gz(t, text)), warc.ReaderOptions{}).Next()
	if err != nil {
		t.Fatal(err)
	}
	if e.Version != "WARC/1.0" || e.Type != warc.Resource || e.TargetURI() != "http://a.example/" || e.Header.Get("x-folded") != "one two three" {
		t.Errorf("%+v", e)
	}
	var concurrent []string
	for _, f := range e.Header {
		if strings.EqualFold(f.Name, warc.FieldConcurrentTo) {
			concurrent = append(concurrent, f.Value)
		}
	}
	if diff := cmp.Diff([]string{"<urn:a>", "<urn:b>"}, concurrent); diff != "" {
		t.Error(diff)
	}
}

func TestHeadersAreBounded(t *testing.T) {
	for name, fill := range map[string]string{
		"one line":   strings.Repeat("x", 300<<10) + "\r\n",
		"many lines": strings.Repeat("x: y\r\n", 60<<10),
		"folds":      "x: y\r\n" + strings.Repeat(" \r\n", 100<<10),
		"blanks":     "",
	} {
		text := "WARC/1.1\r\n" + fill + "Content-Length: 0\r\n\r\n\r\n\r\n"
		if name == "blanks" {
			text = strings.Repeat("\r\n", 200<<10) + record("response", "")
		}
		good := gz(t, record("metadata", "good"))
		file := append(gz(t, text), good...)
		r := warc.NewReader(bytes.NewReader(file), warc.ReaderOptions{})
		if _, err := r.Next(); err == nil || !strings.Contains(err.Error(), "larger than allowed") {
			t.Errorf("%s: %v", name, err)
		}
		if e, err := r.Next(); err != nil || e.Type != warc.Metadata {
			t.Errorf("%s: the next record: %v", name, err)
		}
	}
}

func TestNextReportsWhatFinishWouldHave(t *testing.T) {
	a, b := gz(t, record("response", "first")), gz(t, record("metadata", "second"))
	a[len(a)-6] ^= 1
	r := warc.NewReader(bytes.NewReader(append(a, b...)), warc.ReaderOptions{})
	if _, err := r.Next(); err != nil {
		t.Fatal(err)
	}
	_, err := r.Next()
	if damage, ok := errors.AsType[*warc.DamageError](err); !ok || damage.Extent != (warc.Extent{Offset: 0, Length: int64(len(a))}) {
		t.Errorf("Next after a damaged record: %v", err)
	}
	if e, err := r.Next(); err != nil || e.Type != warc.Metadata {
		t.Errorf("Next after the damage: %v", err)
	}
}

func TestErrorsOfTheFileAreFinal(t *testing.T) {
	a := gz(t, record("response", "first"))
	broken := errors.New("connection reset")
	for _, cut := range []int{0, 1, 12, len(a) - 3, len(a)} {
		r := warc.NewReader(io.MultiReader(bytes.NewReader(a[:cut]), iotest.ErrReader(broken)), warc.ReaderOptions{})
		var err error
		for range 3 {
			var e *warc.Entry
			if e, err = r.Next(); err != nil {
				break
			}
			if _, err = e.Finish(); err != nil {
				break
			}
		}
		if !errors.Is(err, broken) {
			t.Errorf("cut at %d: %v", cut, err)
		}
		if _, err := r.Next(); !errors.Is(err, broken) {
			t.Errorf("cut at %d, again: %v", cut, err)
		}
	}
}

func TestPayloadDigests(t *testing.T) {
	const head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
	const chunked = head + "transfer-encoding: gzip, Chunked\r\n\r\n"
	framing := "; the payload digest is of the body with its chunk framing"
	tests := []struct {
		name, block, payload, want string
	}{
		{"body", head + "\r\nhello", "hello", "matches"},
		{"another body", head + "\r\nhello", "world", "differs"},
		{"no body", head + "\r\n", "", "matches"},
		{"head without an end", head, "", "matches"},
		{"chunks", chunked + "5\r\nhello\r\n0\r\n\r\n", "hello", "matches"},
		{"chunks with bare line feeds", chunked + "3;q=1\nhel\n2 \nlo\n0\n\n", "hello", "matches"},
		{"cut in a chunk", chunked + "ff\r\nhello", "hello", "matches"},
		{"not chunks at all", chunked + "hello", "hello", "matches"},
		{"garbage behind chunks", chunked + "5\r\nhello\r\nzz\r\nxx", "hello", "matches"},
		{"a chunk of 2^64", chunked + "ffffffffffffffffff\r\nhello", "ffffffffffffffffff\r\nhello", "matches"},
		{"a size of 16 digits", chunked + "0000000000000005\r\nhello\r\n0\r\n\r\n", "hello", "matches"},
		{"a size of 40 digits", chunked + strings.Repeat("0", 39) + "5\r\nhello\r\n0\r\n\r\n", "hello", "matches"},
		{"spaces around a size", chunked + " 5 \r\nhello\r\n\t0\r\n\r\n", "hello", "matches"},
		{"no line break after a chunk", chunked + "5\r\nhello1\r\n!0\r\n\r\n", "hello!", "matches"},
		{"CR after a chunk", chunked + "5\r\nhello\r0\r\n\r\n", "hello", "matches"},
		{"no trailer section", chunked + "5\r\nhello\r\n0\r\n", "hello", "matches"},
		{"chunked first", head + "Transfer-Encoding: chunked, gzip\r\n\r\n5\r\nhello\r\n0\r\n\r\n", "hello", "matches"},
		{"chunked in a folded line", head + "Transfer-Encoding: gzip,\r\n chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", "hello", "matches"},
		{"chunked in the second field", head + "Transfer-Encoding: identity\r\nTransfer-Encoding : CHUNKED\r\n\r\n5\r\nhello\r\n0\r\n\r\n", "hello", "matches"},
		{"identity", head + "Transfer-Encoding: identity\r\n\r\nhello", "hello", "matches"},
		{"a document ends the head", head + "<!DOCTYPE html>\n\nhello", "<!DOCTYPE html>\n\nhello", "matches"},
		{"fields without a status line", "Content-Type: text/html\r\n\r\nhello", "hello", "matches"},
		{"line breaks first", "\r\n\n" + head + "\r\nhello", "hello", "matches"},
		{"20 interim responses", strings.Repeat("HTTP/1.1 102 Processing\r\n\r\n", 20) + head + "\r\nhello", "hello", "matches"},
		{"carriage returns alone", "HTTP/1.1 200 OK\rA: b\r\rhello", "", "matches"},
		{"framing in the digest", chunked + "5\r\nhello\r\n0\r\n\r\n", "5\r\nhello\r\n0\r\n\r\n", "matches" + framing},
		{"an early hint first", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + head + "\r\nhello", "hello", "matches"},
		{"no head", "hello\n\n", "hello\n\n", "matches"},
		{"another protocol", "SSH-2.0-OpenSSH\r\n\r\nhello", "hello", "differs"},
		{"bare line feeds", "HTTP/1.1 200 OK\nA: b\n\nhello", "hello", "matches"},
		{"a head of 2 MiB", head + strings.Repeat("X: yyyyyyyyy\r\n", 150_000) + "\r\nhello", "hello", "unchecked"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			text := fmt.Sprintf("WARC/1.1\r\nWARC-Type: response\r\nWARC-Date: 2026\r\nContent-Type: application/http;msgtype=response\r\n"+
				"WARC-Payload-Digest: %s\r\nContent-Length: %d\r\n\r\n%s\r\n\r\n", warc.DigestOf([]byte(tt.payload)), len(tt.block), tt.block)
			want := []string{fmt.Sprintf("0+%d response unchecked %s", len(text), tt.want)}
			if diff := cmp.Diff(want, transcript(t, strings.NewReader(text))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(want, transcript(t, iotest.OneByteReader(bytes.NewBufferString(text)))); diff != "" {
				t.Errorf("byte by byte (-want +got):\n%s", diff)
			}
		})
	}
}

// counts holds the numbers of findings in a file.
type counts struct{ records, damaged, differ, problems int }

// TestFilesOfOtherWriters reads files of other programs and damaged files (see
// testdata/writers/README.md).
func TestFilesOfOtherWriters(t *testing.T) {
	inspectAll(t, filepath.Join("testdata", "writers"), map[string]counts{
		"bare-line-feeds.warc":    {records: 2},
		"chunks.warc.gz":          {records: 3, problems: 1},
		"common-crawl.warc.gz":    {records: 4},
		"cut.warc":                {records: 2, damaged: 1},
		"cut.warc.gz":             {records: 2, damaged: 1},
		"digests-differ.warc":     {records: 3, differ: 2},
		"empty.warc.gz":           {},
		"field-forms.warc":        {records: 4},
		"garbage-between.warc":    {records: 3, problems: 2},
		"garbage-between.warc.gz": {records: 3, damaged: 1},
		"heritrix.warc.gz":        {records: 5},
		"length-too-long.warc":    {records: 2, problems: 1},
		"length-too-short.warc":   {records: 3, problems: 1},
		"member-damaged.warc.gz":  {records: 2, damaged: 1},
		"no-record.warc":          {damaged: 1},
		"old.arc":                 {damaged: 1},
		"one-member.warc.gz":      {records: 3, problems: 2},
		"space-in-uri.warc.gz":    {records: 2},
		"warcio.warc.gz":          {records: 8, problems: 1},
		"wget-post.warc.gz":       {records: 6},
		"wget-revisits.warc.gz":   {records: 10, differ: 2},
		"wget.warc":               {records: 18, problems: 1},
		"withheld.warc.gz":        {records: 1},
	})
}

// TestForeignFiles reads external WARC files if they are present beside the project.
func TestForeignFiles(t *testing.T) {
	dir := filepath.Join("..", "..", "..", "shared", "data", "warc")
	if _, err := os.Stat(dir); err != nil {
		t.Log("../shared/data/warc is missing, so only TestFilesOfOtherWriters reads files of other writers")
		return
	}
	inspectAll(t, dir, map[string]counts{
		"example.warc":                        {records: 6},
		"example.warc.gz":                     {records: 6},
		"example-bad-non-chunked.warc.gz":     {records: 6, problems: 5, differ: 1},
		"example-bad.warc.gz.bad":             {records: 6, problems: 5},
		"example-digest.warc":                 {records: 4, differ: 1},
		"example-iana.org-chunked.warc":       {records: 3, problems: 1},
		"example-resource.warc.gz":            {records: 3},
		"example-space-in-target-uri.warc.gz": {records: 2},
		"example-trunc.warc":                  {records: 4, differ: 1, problems: 1},
		"example-wget-bad-target-uri.warc.gz": {records: 6},
		"example-wrong-chunks.warc.gz":        {records: 1, damaged: 2},
		"post-test.warc.gz":                   {records: 6},
		"bad.arc":                             {damaged: 1},
		"example.arc.gz":                      {damaged: 1},
	})
}

// inspectAll compares the findings in each file of a folder with counts, both with and
// without seeking.
func inspectAll(t *testing.T, dir string, tests map[string]counts) {
	t.Helper()
	for name, want := range tests {
		t.Run(name, func(t *testing.T) {
			file, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			for _, in := range []io.Reader{bytes.NewReader(file), stream(file)} {
				var got counts
				for f, err := range warc.Inspect(in) {
					if err != nil {
						t.Fatal(err)
					}
					t.Logf("%+v", f)
					if f.Damage != "" {
						got.damaged++
						continue
					}
					got.records++
					if !f.Sound() {
						got.differ++
					}
					if len(f.Problems) > 0 {
						got.problems++
					}
				}
				if got != want {
					t.Errorf("got %+v, want %+v", got, want)
				}
			}
		})
	}
}

func FuzzReader(f *testing.F) {
	file, _, _ := writeTestFile(f)
	f.Add(file)
	f.Add(file[:len(file)-9])
	f.Add([]byte(record("response", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n") + record("metadata", "")))
	f.Add(append(gz(f, record("response", "first")), gz(f, record("metadata", "second")+record("request", "third"))...))
	f.Fuzz(func(t *testing.T, file []byte) {
		var last int64
		whole := 0
		for finding, err := range warc.Inspect(bytes.NewReader(file)) {
			if err != nil {
				t.Fatalf("an error of the file, which has none: %v", err)
			}
			if finding.Offset < last || finding.Length < 0 || finding.Offset+finding.Length > int64(len(file)) {
				t.Fatalf("%+v is before %d or after the file's %d bytes", finding, last, len(file))
			}
			last = finding.Offset + finding.Length
			if finding.Damage != "" && finding.Length == 0 {
				t.Fatalf("damage that has no length: %+v", finding)
			}
			if whole++; whole > len(file) {
				t.Fatal("more findings than bytes")
			}
			if finding.Damage == "" && finding.Length > 0 && len(finding.Problems) == 0 {
				e, err := warc.ReadAt(bytes.NewReader(file), finding.Extent, warc.ReaderOptions{Check: true})
				if err != nil {
					t.Fatalf("%+v is not read at its extent: %v", finding, err)
				}
				if s, err := e.Finish(); err != nil || s.Block != finding.Block || s.Payload != finding.Payload {
					t.Fatalf("%+v read at its extent is %+v, %v", finding, s, err)
				}
			}
		}
		for range warc.Inspect(stream(file)) { // Inspect must end, whatever the file holds
		}
	})
}
