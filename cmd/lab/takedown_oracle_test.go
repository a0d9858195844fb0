//go:build lab

package lab

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/warc"
	"crawlbatch.io/crawlbatch/jobs/jobstest/namesearch"
)

// forgotten compares the objects of a store before and after a takedown. It knows nothing of how takedown
// works: only columns that name what a row is about, and columns that may point to what is gone.
type forgotten struct {
	t             *testing.T
	names         *namesearch.Names
	before, after map[string][]byte
	gone          map[string]bool // records of the target: file and offset, and IDs
	compared      map[string]int  // number of rows, records and lines that are the same, by kind of object
	// The web is the synthetic one. Some of its bodies look like chunks, and working files about it may have
	// zeros in place of nulls (see table.Fast).
	synthetic bool
	working   bool           // the rows are of such a working file
	dropped   map[string]int // number of rows that went although they are not about the target, by kind
}

// everyObject reads a whole store.
func everyObject(t *testing.T, b store.Bucket) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	for o, err := range b.List(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		body, _, err := b.Get(t.Context(), o.Key, 1<<30)
		if err != nil {
			t.Fatal(err)
		}
		all[o.Key] = body
	}
	return all
}

// compareForgotten fails the test for everything that a takedown of the names should not have changed.
func compareForgotten(t *testing.T, names *namesearch.Names, before, after map[string][]byte) *forgotten {
	t.Helper()
	f := &forgotten{t: t, names: names, before: before, after: after, gone: map[string]bool{}, compared: map[string]int{}, dropped: map[string]int{}}
	for key, body := range before {
		if strings.HasSuffix(key, ".warc.gz") {
			for _, r := range f.records(key, body) {
				if names.Holds(r.target) {
					f.gone[place(key, r.offset)], f.gone[r.id] = true, true
				}
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(before)) {
		if strings.HasPrefix(key, "compacted/") || strings.HasPrefix(key, "quarantine/") || strings.Contains(key, "/"+layout.FileListDir+"/") || strings.Contains(key, "/compaction-") {
			continue // they may go, and seals name their manifests by digest
		}
		now, ok := after[key]
		if !ok {
			t.Errorf("%s is gone", key)
			continue
		}
		f.compare(key, before[key], now)
	}
	for key := range after {
		if _, ok := before[key]; !ok && !ofTakedown.MatchString(key) {
			t.Errorf("%s is new", key)
		}
	}
	return f
}

// compare compares the content of an object before and after.
func (f *forgotten) compare(key string, before, now []byte) {
	f.t.Helper()
	switch {
	case strings.HasSuffix(key, ".parquet"), strings.HasSuffix(key, ".run"):
		f.compareRows(key, before, now)
	case strings.HasSuffix(key, ".warc.gz"):
		f.compareRecords(key, before, now)
	case strings.HasSuffix(key, ".cdxj"):
		f.compareLines(key, before, now)
	case strings.HasSuffix(key, "-ranks.txt.gz"):
		f.compareLines(key, inflated(f.t, key, before), inflated(f.t, key, now))
	case strings.HasSuffix(key, "-edges.txt.gz"):
		f.compareEdges(key)
	}
}

// ofTakedown matches the objects that a takedown leaves besides those that it changes.
var ofTakedown = regexp.MustCompile(`^takedowns\.json$|^(crawl=[^/]+/)?takedown-[0-9a-f]+\.json$|^crawl=[^/]+/round=\d+/` + layout.FileListDir + `/`)

// kind returns a key without the numbers in it.
func kind(key string) string {
	for _, r := range []struct{ pattern, with string }{
		{`plan-[0-9a-f]{16}`, "plan-ID"}, {`[0-9a-f]{16}-`, "ID-"}, {`(crawl=)[^/]*`, "${1}M"}, {`(round=|part-|base-)\d+`, "${1}N"}, {`-e\d+-\d+`, "-eN"}, {`\d{4}-\d{2}-r\d+`, "M-rN"},
	} {
		key = regexp.MustCompile(r.pattern).ReplaceAllString(key, r.with)
	}
	return key
}

func place(file string, offset int64) string { return fmt.Sprint(file, " at ", offset) }

// row is a row of any Parquet file: the values of each column.
type row map[string][]string

const null = "\x00null"

func (f *forgotten) rows(key string, body []byte) []row { return slices.Collect(f.eachRow(key, body)) }

// eachRow yields the rows of a Parquet file or a run.
func (f *forgotten) eachRow(key string, body []byte) iter.Seq[row] {
	return func(yield func(row) bool) { f.yieldRows(key, body, yield) }
}

func (f *forgotten) yieldRows(key string, body []byte, yield func(row) bool) {
	f.t.Helper()
	boundary := []byte("PAR1PAR1")
	for from := 0; from < len(body); {
		at, end := from, 0
		var file *parquet.File
		for {
			i, err := bytes.Index(body[at:], boundary), error(nil)
			if end = len(body); i >= 0 {
				end = at + i + 4
			}
			if file, err = parquet.OpenFile(bytes.NewReader(body[from:end]), int64(end-from)); err == nil {
				break
			}
			if i < 0 {
				f.t.Fatalf("%s: %v", key, err)
			}
			at = end
		}
		columns := file.Schema().Columns()
		for _, g := range file.RowGroups() {
			in, buffer := g.Rows(), make([]parquet.Row, 64)
			for {
				n, err := in.ReadRows(buffer)
				for _, r := range buffer[:n] {
					cells := row{}
					for _, v := range r {
						text := null
						if !v.IsNull() {
							text = v.String()
						}
						name := strings.Join(columns[v.Column()], ".")
						cells[name] = append(cells[name], text)
					}
					each := yield
					if cells["first_ordinal"] != nil {
						each = func(set row) bool { return f.yieldLinks(key, set, yield) }
					}
					if !each(cells) {
						_ = in.Close()
						return
					}
				}
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					f.t.Fatalf("%s: %v", key, err)
				}
			}
			_ = in.Close()
		}
		from = end
	}
}

// yieldLinks yields a row for each link of a set.
func (f *forgotten) yieldLinks(key string, set row, yield func(row) bool) bool {
	surt, source, more := strings.Join(set["source_surtkey"], ""), strings.Join(set["source"], ""), true
	if err := schema.EachLink(surt, source, strings.Join(set["links"], ""), func(l *schema.Link) error {
		weight := null
		if l.Weight != nil {
			weight = fmt.Sprint(*l.Weight)
		}
		more = more && yield(row{"source_surtkey": {surt}, "source": {source}, "target": {l.Target}, "anchor": {l.Anchor}, "rel": {l.Rel},
			"kind": {string(l.Kind)}, "nofollow": {fmt.Sprint(l.Nofollow)}, "position": {l.Position}, "hreflang": {l.Hreflang}, "ordinal": {fmt.Sprint(l.Ordinal)},
			"lastmod": {fmt.Sprint(int64(l.LastMod))}, "changefreq": {l.ChangeFreq}, "sitemap_priority": {weight}, "sent": {l.Sent}})
		return nil
	}); err != nil {
		f.t.Errorf("%s: %v", key, err)
	}
	return more
}

// These columns say what a row is about. In files of links, the other end does too.
var (
	aboutColumns = []string{"url", "url_surtkey", "host", "domain", "url_host_name", "url_host_registered_domain", "origin", "entry"}
	linkColumns  = []string{"source", "source_surtkey", "source_host", "target", "target_surtkey"}
	ofLinks      = regexp.MustCompile(`^tables/links/|-links(ets)?\.parquet$|/work/(hostedges|edges)/`)
	ofClusters   = regexp.MustCompile(`^tables/duplicates/|/work/(verdicts|representatives)/`)
)

func (f *forgotten) holds(r row, column string) bool {
	return slices.ContainsFunc(r[column], f.names.Holds)
}

// compareRows compares the rows of a Parquet file or run in order.
func (f *forgotten) compareRows(key string, before, now []byte) {
	f.t.Helper()
	f.working = f.synthetic && strings.Contains(key, "/work/")
	was := f.eachRow(key, before)
	next, stop := iter.Pull(f.eachRow(key, now))
	defer stop()
	about := aboutColumns
	if ofLinks.MatchString(key) {
		about = slices.Concat(about, linkColumns)
	}
	broken := map[string]bool{} // clusters that lose a member
	if ofClusters.MatchString(key) {
		for r := range was {
			if f.holds(r, "url") {
				broken[strings.Join(r["representative"], "")] = true
			}
		}
	}
	if strings.Contains(key, "/work/representatives/") { // a page that a cluster has instead of one that is gone
		old := map[string]bool{}
		for r := range was {
			old[strings.Join(r["url"], "")] = true
		}
		every := next
		next = func() (row, bool) {
			for {
				if r, ok := every(); !ok || old[strings.Join(r["url"], "")] {
					return r, ok
				}
			}
		}
	}
	wrong := 0
	is, left := next()
	for r := range was {
		if slices.ContainsFunc(about, func(c string) bool { return f.holds(r, c) }) {
			continue
		}
		refers := slices.ContainsFunc(slices.Collect(maps.Keys(r)), func(c string) bool { return f.holds(r, c) && !isContent(c) })
		inBroken := broken[strings.Join(r["representative"], "")]
		if left {
			diff := f.differs(r, is, inBroken)
			if diff == "" {
				f.compared[kind(key)]++
				is, left = next()
				continue
			}
			if !refers && !inBroken || r["url"] != nil && slices.Equal(r["url"], is["url"]) {
				if wrong++; wrong <= 3 {
					f.t.Errorf("%s: the row of %q has another %s", key, cmpOr(r["url"], r["host"]), diff)
				}
				is, left = next()
				continue
			}
		} else if !refers && !inBroken {
			if wrong++; wrong <= 3 {
				f.t.Errorf("%s: the row of %q is gone", key, cmpOr(r["url"], r["host"]))
			}
			continue
		}
		f.dropped[kind(key)]++
	}
	if left {
		f.t.Errorf("%s: more rows than expected, such as %v", key, is)
	}
}

func cmpOr(a, b []string) string { return strings.Join(append(slices.Clone(a), b...), " ") }

// differs returns the columns in which a row differs from the same row before, or "".
func (f *forgotten) differs(was, is row, clusterBroken bool) string {
	cluster := clusterBroken || f.holds(was, "duplicate_of") || f.holds(was, "representative") || f.holds(was, "via")
	for column, cells := range was {
		switch {
		case strings.HasSuffix(column, "warc_filename") && f.pointsToGone(was, column) && slices.Equal(cells, is[column]):
			return column + " of a record that is gone"
		case slices.Equal(cells, is[column]), strings.Join(cells, "") == null && strings.Join(is[column], "") == "", strings.Join(cells, "") == "" && strings.Join(is[column], "") == null,
			f.working && strings.Join(cells, "") == null && strings.Join(is[column], "") == "0",
			f.working && strings.Join(cells, "") == "0" && strings.Join(is[column], "") == null,
			f.holds(was, column), column == "planned_row": // a row's number in a plan that lost rows
		case cluster && !slices.Contains([]string{"url", "url_surtkey"}, column) && (was["duplicate_of"] == nil || strings.HasPrefix(column, "duplicate_")):
		case slices.Contains([]string{"body", "until"}, column) && was["warc_filename"] != nil && f.pointsToGone(was, "warc_filename"): // the text of a robots.txt that redirected there
		case strings.Contains(column, "warc_") && f.pointsToGone(was, column) && slices.Contains([]string{null, "", "0"}, strings.Join(is[column], "")):
		default:
			return fmt.Sprintf("%s: %q, it was %q", column, is[column], cells)
		}
	}
	return ""
}

// pointsToGone reports whether the columns to which column belongs point to a record of the target.
func (f *forgotten) pointsToGone(r row, column string) bool {
	prefix := column[:strings.Index(column, "warc_")]
	offset, err := strconv.ParseInt(strings.Join(r[prefix+"warc_record_offset"], ""), 10, 64)
	return err == nil && f.gone[place(strings.Join(r[prefix+"warc_filename"], ""), offset)]
}

// record is a record of a WARC file.
type record struct {
	offset, length           int64
	id, target, refers, head string
	raw                      []byte
}

func (f *forgotten) records(key string, body []byte) (all []record) {
	f.t.Helper()
	r := warc.NewReader(bytes.NewReader(body), warc.ReaderOptions{Check: true})
	for {
		e, err := r.Next()
		if err == io.EOF {
			return all
		}
		if err != nil {
			f.t.Fatalf("%s: %v", key, err)
		}
		s, err := e.Finish()
		s.Problems = slices.DeleteFunc(s.Problems, func(p string) bool { return f.synthetic && strings.HasSuffix(p, "with its chunk framing") })
		if err != nil || len(s.Problems) > 0 || s.Block == warc.Differs || s.Payload == warc.Differs {
			f.t.Errorf("%s at %d: %v, %q", key, e.Offset, err, s.Problems)
		}
		head := ""
		for _, h := range e.Header {
			head += h.Name + ": " + h.Value + "\r\n"
		}
		all = append(all, record{s.Offset, s.Length, e.ID(), e.TargetURI(), e.Header.Get("WARC-Refers-To"), head, body[s.Offset : s.Offset+s.Length]})
	}
}

func (f *forgotten) compareRecords(key string, before, now []byte) {
	f.t.Helper()
	if len(before) != len(now) {
		f.t.Errorf("%s has %d bytes, it had %d", key, len(now), len(before))
		return
	}
	was, is := f.records(key, before), f.records(key, now)
	if len(was) != len(is) {
		f.t.Errorf("%s has %d records, it had %d", key, len(is), len(was))
		return
	}
	for i, r := range was {
		switch {
		case r.offset != is[i].offset || r.length != is[i].length:
			f.t.Errorf("%s: record %d is at %d with %d bytes, it was at %d with %d", key, i, is[i].offset, is[i].length, r.offset, r.length)
		case f.gone[place(key, r.offset)]:
			if bytes.Equal(r.raw, is[i].raw) {
				f.t.Errorf("%s at %d: the record of %s is there", key, r.offset, r.target)
			}
		case bytes.Equal(r.raw, is[i].raw):
			f.compared[kind(key)]++
		case r.target == is[i].target && (f.names.Holds(r.head) || f.gone[strings.Trim(r.refers, "<>")]): // a revisit of what is gone
			f.compared["revisits of what is gone"]++
		default:
			f.t.Errorf("%s at %d: the record of %s changed", key, r.offset, r.target)
		}
	}
}

// compareLines compares lines; those with a name must be gone. The index line of a redirect to the target
// may stay without the target.
func (f *forgotten) compareLines(key string, before, now []byte) {
	f.t.Helper()
	var want []string
	redirects := map[string]bool{} // without the target
	for line := range strings.Lines(string(before)) {
		if !f.names.Holds(line) {
			want = append(want, line)
		} else if r := redirectField.ReplaceAllString(line, ""); !f.names.Holds(r) {
			redirects[r] = true
		}
	}
	got := slices.DeleteFunc(slices.Collect(strings.Lines(string(now))), func(l string) bool { return strings.TrimSpace(l) == "" || redirects[l] })
	if diff := cmp.Diff(want, got); diff != "" {
		f.t.Errorf("%s (- want, + got):\n%s", key, diff)
	}
	f.compared[kind(key)] += len(got)
}

var redirectField = regexp.MustCompile(`,"redirect":"[^"]*"`)

func inflated(t *testing.T, key string, body []byte) []byte {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(body))
	if err == nil {
		if body, err = io.ReadAll(z); err == nil {
			return body
		}
	}
	t.Fatalf("%s: %v", key, err)
	return nil
}

// compareEdges compares the edges of a web graph by the names of their ends.
func (f *forgotten) compareEdges(key string) {
	f.t.Helper()
	vertices := strings.Replace(key, "-edges.", "-vertices.", 1)
	edges := func(of map[string][]byte) (named []string) {
		names := map[string]string{}
		for line := range strings.Lines(string(inflated(f.t, vertices, of[vertices]))) {
			fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
			names[fields[0]] = fields[1]
		}
		for line := range strings.Lines(string(inflated(f.t, key, of[key]))) {
			ends := strings.Fields(line)
			from, known := names[ends[0]]
			to, also := names[ends[1]]
			if !known || !also {
				f.t.Errorf("%s: the edge %q has an end without a vertex", key, line)
			}
			if !f.names.Holds(from) && !f.names.Holds(to) {
				named = append(named, from+" "+to)
			}
		}
		slices.Sort(named)
		return named
	}
	was, is := edges(f.before), edges(f.after)
	if diff := cmp.Diff(was, is); diff != "" {
		f.t.Errorf("%s (- before, + after):\n%s", key, diff)
	}
	f.compared[kind(key)] += len(is)
}

// contentColumns hold what others say. A takedown keeps it.
var contentColumns = []string{"title", "description", "keywords", "author", "main", "full", "anchor", "anchors", "og_title", "og_description", "og_site_name", "twitter_title",
	"twitter_description", "body", "term", "terms", "topics", "robots_rule", "generator"}

func isContent(column string) bool {
	name, _, _ := strings.Cut(column, ".")
	return slices.Contains(contentColumns, name)
}

// namesLeft returns the places that hold a name and are not content of others.
func namesLeft(t *testing.T, b store.Bucket, names *namesearch.Names) (left []string, mentions int) {
	t.Helper()
	hits, objects, err := namesearch.Search(t.Context(), b, names)
	if err != nil {
		t.Fatal(err)
	}
	if objects < 100 {
		t.Errorf("only %d objects were searched", objects)
	}
	return places(hits)
}

// places divides hits into places that a takedown should have changed, and mentions in content of others.
func places(hits []namesearch.Hit) (left []string, mentions int) {
	content := map[string]bool{} // objects with content that mentions the names
	for _, h := range hits {
		if ofContent(h) {
			content[h.Key] = true
			mentions += h.Count
		}
	}
	for _, h := range hits {
		switch {
		case ofContent(h), h.Where == "bytes" && content[h.Key]:
		case h.Where == "URL filter" && h.Count == 1: // by chance: at most one URL in a thousand
		default:
			left = append(left, h.String())
		}
	}
	return left, mentions
}

func ofContent(h namesearch.Hit) bool {
	if column, ok := strings.CutPrefix(h.Where, "column "); ok {
		return isContent(column)
	}
	for _, prefix := range []string{"dictionary of ", "statistics of ", "page index of "} {
		if column, ok := strings.CutPrefix(h.Where, prefix); ok {
			return isContent(column)
		}
	}
	return path.Ext(h.Key) == ".gz" && (h.Where == "body of a response" || h.Where == "HTTP header of a response")
}
