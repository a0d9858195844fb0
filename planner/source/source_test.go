package source

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/priority"
	"crawlbatch.io/crawlbatch/formats/recrawl"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/formats/table/tabletest"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/planner/source/listed"
)

// collect reads all entries of a source.
func collect(ctx context.Context, s Source) ([]Entry, error) {
	var out []Entry
	for e, err := range s.Entries(ctx) {
		if err != nil {
			return out, err
		}
		out = append(out, e)
	}
	return out, nil
}

// urls returns "line url" for each entry.
func urls(entries []Entry) []string {
	var out []string
	for _, e := range entries {
		out = append(out, fmt.Sprintf("%d %s", e.Line, e.URL))
	}
	return out
}

func gzipped(t *testing.T, s string) []byte {
	t.Helper()
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

func parquetFile(t *testing.T, rows any) []byte {
	t.Helper()
	var b bytes.Buffer
	var err error
	switch rows := rows.(type) {
	case []urlRow:
		err = parquet.Write(&b, rows)
	case []otherRow:
		err = parquet.Write(&b, rows)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

type urlRow struct {
	Rank int64   `parquet:"rank"`
	URL  *string `parquet:"url,optional"`
}

type otherRow struct {
	Link string `parquet:"link"`
}

// damaged returns a Parquet file whose pages, but not the footer, are overwritten.
func damaged(file []byte) []byte {
	out := bytes.Clone(file)
	footer := len(out) - 8 - int(binary.LittleEndian.Uint32(out[len(out)-8:]))
	copy(out[4:], bytes.Repeat([]byte{0xff}, footer-4))
	return out
}

func write(t *testing.T, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestContract checks that every source yields ordered entries, yields the same entries on a second
// read, and stops early for the caller or the context.
func TestContract(t *testing.T) {
	two := "http://a.example/1"
	three := "http://a.example/2"
	for name, make := range map[string]func(t *testing.T) Source{
		"text": func(t *testing.T) Source { return open(t, write(t, "u.txt", []byte(two+"\n"+three+"\n"))) },
		"gzip": func(t *testing.T) Source { return open(t, write(t, "u.bin", gzipped(t, two+"\n"+three))) },
		"parquet": func(t *testing.T) Source {
			return open(t, write(t, "u", parquetFile(t, []urlRow{{1, &two}, {2, &three}})))
		},
		"frontier": func(t *testing.T) Source {
			b, sealed := sealRounds(t, []schema.URLRecord{foundRow(two), foundRow(three)})
			return Frontier(b, "2026-11", sealed, time.UnixMilli(1000), priority.Weights{}, recrawl.Rule{}, t.TempDir())
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			s := make(t)
			first, err := collect(ctx, s)
			if err != nil {
				t.Fatal(err)
			}
			if len(first) != 2 || first[0].URL != two || first[1].URL != three || !first[0].Due || first[0].File == "" || s.Name() == "" {
				t.Errorf("entries of %q: %+v", s.Name(), first)
			}
			again, err := collect(ctx, s)
			if d := cmp.Diff(first, again); d != "" || err != nil {
				t.Errorf("read again: %v\n%s", err, d)
			}
			for range s.Entries(ctx) {
				break // a caller may stop the sequence early
			}
			ended, cancel := context.WithCancel(ctx)
			cancel()
			if name == "frontier" {
				if _, err := collect(ended, s); !errors.Is(err, context.Canceled) {
					t.Errorf("with a context that has ended: %v", err)
				}
			}
		})
	}
}

func open(t *testing.T, name string) Source {
	t.Helper()
	s, err := Files(name, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestTextIsReadAsItComes(t *testing.T) {
	long := strings.Repeat("x", 2<<20)
	for _, tc := range []struct {
		name, text string
		want       []string
	}{
		{"no newline at the end", "a\nb", []string{"1 a", "2 b"}},
		{"CRLF", "a\r\nb\r\n", []string{"1 a", "2 b"}},
		{"byte order mark", "\xef\xbb\xbfa\n", []string{"1 a"}},
		{"blank lines keep their numbers", "\n  \na\n\t\r\nb\n", []string{"3 a", "5 b"}},
		{"a comment is an entry like any other", "# a\n", []string{"1 # a"}},
		{"NULs", "a\x00b\n\x00\n", []string{"1 a\x00b", "2 \x00"}},
		{"a line of 2 MiB is cut", long + "\nb\n", []string{"1 " + long[:MaxURL], "2 b"}},
		{"a line of 2 MiB and CRLF", "a\r\n" + long + "\r\n", []string{"1 a", "2 " + long[:MaxURL]}},
	} {
		for _, form := range []string{"plain", "gzip"} {
			t.Run(tc.name+"/"+form, func(t *testing.T) {
				content := []byte(tc.text)
				if form == "gzip" {
					content = gzipped(t, tc.text)
				}
				got, err := collect(context.Background(), open(t, write(t, "u", content)))
				if err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(tc.want, urls(got)); d != "" {
					t.Error(d)
				}
			})
		}
	}
}

// Lines are URLs, cut at what is surely a note, or refused: never another URL.
func TestLinesAreNotRepaired(t *testing.T) {
	const text = "http://h.example/a\n" +
		"http://h.example/b\t2024\n" +
		"http://h.example/c d\n" +
		"http://h.example/d # note\n" +
		"http://h.example/caf\xe9\n" +
		"\"http://h.example/q\"\n" +
		"\xef\xbb\xbfhttp://h.example/second-file\r\n" +
		"http://h.example/f\rhttp://h.example/g\n" +
		"http://h.exam\u200bple/h\n" +
		"http:\\\\h.example\\i\n" +
		"http://h.example/j\x00\x00\n"
	for name, content := range map[string][]byte{"u.txt": []byte(text), "u.txt.gz": gzipped(t, text)} {
		got, err := collect(t.Context(), open(t, write(t, name, content)))
		var lines []string
		for _, e := range got {
			if e.Broken != "" {
				lines = append(lines, fmt.Sprintf("%d refused", e.Line))
			} else {
				lines = append(lines, fmt.Sprintf("%d %s", e.Line, e.URL))
			}
		}
		want := []string{"1 http://h.example/a", "2 http://h.example/b", "3 refused", "4 http://h.example/d", "5 http://h.example/caf%E9", `6 "http://h.example/q"`,
			"7 http://h.example/second-file", "8 refused", "9 refused", "10 refused", "11 http://h.example/j"}
		if d := cmp.Diff(want, lines); d != "" || err != nil {
			t.Errorf("%s: %v\n%s", name, err, d)
		}
	}
}

// Fields of records may have spaces, but nothing that a parser of URLs would remove.
func TestFieldsAreNotRepaired(t *testing.T) {
	values := []string{"http://h.example/a b", "http://h.example/\nc", "http://h.example/d\te", " http://h.example/f\n", "http://h.exam\u00adple/g", `http://h.example\h`, "http://h.example/caf\xe9"}
	want := []string{"http://h.example/a b", "refused", "refused", "http://h.example/f", "refused", "refused", "http://h.example/caf%E9"}
	csv, rows := "url,n\n", []urlRow{}
	jsonl := ""
	for i, v := range values {
		csv += fmt.Sprintf("\"%s\",%d\n", v, i)
		rows = append(rows, urlRow{int64(i), &v})
		jsonl += `{"url": "` + strings.NewReplacer("\n", `\n`, "\t", `\t`, `\`, `\\`).Replace(v) + "\"}\n"
	}
	for name, content := range map[string][]byte{"u.csv": []byte(csv), "u.jsonl": []byte(jsonl), "u.parquet": parquetFile(t, rows)} {
		got, err := collect(t.Context(), open(t, write(t, name, content)))
		var urls []string
		for _, e := range got {
			if e.Broken == "" {
				urls = append(urls, e.URL)
			} else {
				urls = append(urls, "refused")
			}
			if e.Broken != "" && !strings.Contains(e.Broken, "column") {
				t.Errorf("%s: %q", name, e.Broken)
			}
		}
		want := slices.Clone(want)
		if name == "u.jsonl" {
			want[6] = "refused" // JSON is UTF-8, so the octet is already U+FFFD
		}
		if d := cmp.Diff(want, urls); d != "" || err != nil {
			t.Errorf("%s: %v\n%s", name, err, d)
		}
	}
}

func TestStandardInput(t *testing.T) {
	s, err := Files("-", strings.NewReader("a\nb\n"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := collect(context.Background(), s)
	if d := cmp.Diff([]string{"1 a", "2 b"}, urls(got)); d != "" || err != nil {
		t.Errorf("%v\n%s", err, d)
	}
}

func TestDirectoriesAndPatterns(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"b.txt": "b", "a/x.txt": "a", "a/_SUCCESS": "", ".hidden/y": "z", "c.txt.gz": string(gzipped(t, "c"))} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"l.txt": "b.txt", "dir": "a", "_l.txt": "b.txt", ".gone": "nowhere"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string][]string{
		dir:                            {"1 a", "1 b", "1 c", "1 b"},
		filepath.Join(dir, "[bc].*"):   {"1 b", "1 c"},
		filepath.Join(dir, "?", "x.*"): {"1 a"},
	} {
		got, err := collect(context.Background(), open(t, name))
		if d := cmp.Diff(want, urls(got)); d != "" || err != nil {
			t.Errorf("%s: %v\n%s", name, err, d)
		}
	}
	if err := os.Rename(filepath.Join(dir, ".gone"), filepath.Join(dir, "gone")); err != nil {
		t.Fatal(err)
	}
	if _, err := Files(dir, nil); !errors.Is(err, ErrUnreadable) || !strings.Contains(err.Error(), "gone") {
		t.Errorf("a link to nothing: %v", err)
	}
}

func TestParquetRowsWithoutURLAreSkipped(t *testing.T) {
	a, blank := "a", " "
	got, err := collect(context.Background(), open(t, write(t, "u", parquetFile(t, []urlRow{{1, nil}, {2, &a}, {3, &blank}, {4, &a}}))))
	if d := cmp.Diff([]string{"2 a", "4 a"}, urls(got)); d != "" || err != nil {
		t.Errorf("%v\n%s", err, d)
	}
}

func TestBadSourcesAreNamed(t *testing.T) {
	whole := parquetFile(t, []otherRow{{"a"}})
	a := "http://a.example/"
	good := parquetFile(t, []urlRow{{1, &a}})
	z := gzipped(t, strings.Repeat("http://a.example/\n", 1000))
	for _, tc := range []struct {
		name string
		path string
		want error
	}{
		{"absent", filepath.Join(t.TempDir(), "absent.txt"), ErrMissing},
		{"pattern without files", filepath.Join(t.TempDir(), "*.txt"), ErrMissing},
		{"empty directory", t.TempDir(), ErrMissing},
		{"empty file", write(t, "e", nil), ErrEmpty},
		{"blank file", write(t, "e", []byte("\n\n \n")), ErrEmpty},
		{"UTF-16", write(t, "u", []byte("\xff\xfeh\x00")), ErrUnreadable},
		{"cut gzip", write(t, "u", z[:len(z)-9]), ErrUnreadable},
		{"no gzip", write(t, "u", []byte("\x1f\x8bnonsense")), ErrUnreadable},
		{"parquet without the column", write(t, "u", whole), ErrColumn},
		{"cut parquet", write(t, "u", good[:len(good)-5]), ErrUnreadable},
		{"damaged parquet", write(t, "u", damaged(good)), ErrUnreadable},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, err := Files(tc.path, nil)
			if err == nil {
				_, err = collect(context.Background(), s)
			}
			if !errors.Is(err, tc.want) || !strings.Contains(err.Error(), tc.path) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v; want %v, in one line, with the path", err, tc.want)
			}
		})
	}
}

// foundRow returns a row of the urls dataset whose state is StateFound.
func foundRow(url string) schema.URLRecord {
	return schema.URLRecord{SURT: url, URL: url, State: schema.StateFound, FirstSeen: "2026-11.0"}
}

// sealRounds stores and seals one round for each part, in the given order.
func sealRounds(t *testing.T, parts ...[]schema.URLRecord) (store.Bucket, []*manifest.Sealed) {
	t.Helper()
	b, err := dirstore.Open(t.TempDir(), dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var sealed []*manifest.Sealed
	for i, rows := range parts {
		f := tabletest.Write(t, b, "urls", layout.Table("urls", "2026-11", i, 0), rows)
		sealed = append(sealed, &manifest.Sealed{Crawl: "2026-11", Round: i, Buckets: 1, Files: []manifest.File{f}})
	}
	return b, sealed
}

func TestFrontierGivesTheNewestState(t *testing.T) {
	state := func(url string, s schema.URLState, planned string, due schema.Time) schema.URLRecord {
		r := foundRow(url)
		r.State, r.LastPlanned, r.NextDue = s, planned, due
		return r
	}
	b, sealed := sealRounds(t,
		[]schema.URLRecord{
			state("a", schema.StateFound, "", 0), state("b", schema.StateFound, "", 0), state("c", schema.StateFetched, "2026-10.1", 900),
			state("d", schema.StateFetched, "2026-11.0", 2000), state("e", schema.StateDenied, "2026-10.0", 0),
		},
		[]schema.URLRecord{
			state("b", schema.StateFetched, "2026-11.0", 5000), state("bb", schema.StateDeferred, "2026-11.0", 0),
			state("f", schema.StateGone, "2026-10.0", 0), state("g", schema.StateFound, "", 1001), state("h", schema.StateFailed, "2026-11.0", 1000),
		})
	got, err := collect(context.Background(), Frontier(b, "2026-11", sealed, time.UnixMicro(1000), priority.Weights{}, recrawl.Rule{}, t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, e := range got {
		lines = append(lines, fmt.Sprintf("%s due=%t spent=%t", e.URL, e.Due, e.Spent))
	}
	want := []string{
		"a due=true spent=false", "b due=false spent=true", "bb due=true spent=true", "c due=true spent=false",
		"d due=false spent=true", "h due=true spent=true",
	}
	if d := cmp.Diff(want, lines); d != "" {
		t.Error(d)
	}
}

// A plan prefers the known URL whose fetch has the higher value, and says why each is due. A row of an older
// round has no history, so its share is that of the rule of succession.
func TestFrontierEstimatesTheValueOfAFetch(t *testing.T) {
	const day = 86_400_000
	state := func(url string, h schema.ChangeHistory, reason schema.DueReason) schema.URLRecord {
		r := foundRow(url)
		r.State, r.LastPlanned, r.LastFetched, r.NextDue, r.RevisitMS = schema.StateFetched, "2026-10.0", 1, 30*day*1000, 30*day
		r.Fetches, r.Changes, r.Priority, r.ChangeHistory, r.DueReason = 11, 5, 500, h, reason
		return r
	}
	rule := recrawl.Rule{First: 30 * 24 * time.Hour, Min: 24 * time.Hour, Max: 180 * 24 * time.Hour}
	b, sealed := sealRounds(t, []schema.URLRecord{
		state("a", schema.ChangeHistory{UnchangedMS: 900 * day}, schema.DueMax),
		state("b", schema.ChangeHistory{ChangeWeight: 5000, ChangedMS: 150 * day, UnchangedMS: 150 * day}, schema.DueRate),
		state("c", schema.ChangeHistory{UnchangedMS: 900 * day}, schema.DueAnnounced),
		state("d", schema.ChangeHistory{}, ""),
	})
	got, err := collect(t.Context(), Frontier(b, "2026-11", sealed, time.UnixMilli(30*day), priority.Weights{Change: 300}, rule, t.TempDir()))
	if err != nil || len(got) != 4 {
		t.Fatal(err, got)
	}
	for n, want := range []schema.DueReason{schema.DueMax, schema.DueRate, schema.DueAnnounced, ""} {
		if got[n].DueReason != want {
			t.Errorf("%s is due because of %q, want %q", got[n].URL, got[n].DueReason, want)
		}
	}
	quiet, busy, announced, older := got[0].Priority, got[1].Priority, got[2].Priority, got[3].Priority
	if older != 500+300*6/13 || quiet >= busy || quiet >= announced || quiet <= 500 || busy > 650 {
		t.Errorf("the priorities are %d of a quiet page, %d of a busy one, %d of an announced one, %d of an older row", quiet, busy, announced, older)
	}

	// The part freshness has its zero at the threshold. The intervals of an older row count with their learned length.
	got, err = collect(t.Context(), Frontier(b, "2026-11", sealed, time.UnixMilli(30*day), priority.Weights{Freshness: 300}, rule, t.TempDir()))
	if err != nil || len(got) != 4 {
		t.Fatal(err, got)
	}
	quiet, busy, announced, older = got[0].Priority, got[1].Priority, got[2].Priority, got[3].Priority
	if quiet < 200 || quiet > 350 || busy < 470 || busy > 510 || announced <= quiet+100 || older < busy-20 || older > busy+20 {
		t.Errorf("with freshness, the priorities are %d of a quiet page, %d of a busy one, %d of an announced one, %d of an older row", quiet, busy, announced, older)
	}
	r := state("b", schema.ChangeHistory{ChangeWeight: 5000, ChangedMS: 150 * day, UnchangedMS: 150 * day}, schema.DueRate)
	weights := priority.Weights{Freshness: 300}
	if p := priority.Sum(weights.AtPlan(r.Priority, TimingOf(&r, 30*day*1000, weights, rule))); p != busy {
		t.Errorf("explained as %d, planned with %d", p, busy)
	}
}

// The frontier and the history tell the form in which a URL is asked for.
func TestKnownURLsHaveForms(t *testing.T) {
	state := func(path string, from schema.SentFrom) schema.URLRecord {
		k, err := urlkey.KeyOf("http://a.example/" + path)
		if err != nil {
			t.Fatal(err)
		}
		r := foundRow(k.URL)
		r.SURT, r.Host, r.Domain, r.Form = k.SURT, k.Host, k.Domain, schema.Form{Sent: k.URL + "?", SentFrom: from}
		return r
	}
	b, sealed := sealRounds(t, []schema.URLRecord{
		state("a", schema.SentByDomain), state("b", schema.SentAnswered), state("c", schema.SentByDomain), state("d", schema.SentByStranger), state("e", schema.SentByNobody),
	})
	want := []string{"a? domain", "b? answered", "c? domain", "d? stranger", "e? "}
	about, all := listed.New(1000, 1<<20), []urlkey.Key{}
	for _, path := range []string{"a", "b", "c", "d", "e"} {
		k, _ := urlkey.KeyOf("http://a.example/" + path)
		all = append(all, k)
	}
	about.Add(all...)
	history := History(b, sealed, new(FilterAnswers))
	history.Tell(about)
	for _, s := range []Source{history, Frontier(b, "2026-11", sealed, time.UnixMicro(1000), priority.Weights{}, recrawl.Rule{}, t.TempDir())} {
		entries, err := collect(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range entries {
			got = append(got, strings.TrimPrefix(e.Form.Sent, "http://a.example/")+" "+string(e.Form.SentFrom))
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", s.Name(), d)
		}
	}
}

func FuzzText(f *testing.F) {
	f.Add([]byte("http://a.example/\r\n\xef\xbb\xbf\n\x00"))
	f.Add([]byte("\x1f\x8b\x08\x00\x00"))
	f.Add([]byte("\x28\xb5\x2f\xfd\x00\x50\x29\x00\x00a\nb\nc"))
	f.Fuzz(func(t *testing.T, data []byte) {
		last := int64(0)
		plain, stop, err := decompress(bytes.NewReader(data))
		if err == nil {
			defer stop()
			_, err = readText(t.Context(), plain, "fuzz", func(e Entry) bool {
				if e.Line <= last || e.URL == "" || len(e.URL) > MaxURL || strings.Contains(e.URL, "\n") {
					t.Errorf("line %d after %d: %q", e.Line, last, e.URL)
				}
				last = e.Line
				return true
			})
		}
		if err != nil && !errors.Is(err, ErrUnreadable) {
			t.Error(err)
		}
	})
}
