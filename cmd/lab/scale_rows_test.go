//go:build lab

package lab

import (
	"bufio"
	"context"
	"crypto/sha1"
	"encoding/base32"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"crawlbatch.io/crawlbatch/cmd/crawltest"
	"crawlbatch.io/crawlbatch/cmd/demo"
	"crawlbatch.io/crawlbatch/formats/document"
	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch/segments"
)

// rowsPerHost is the number of planned pages of a generated host. Each host also has half as many pages
// that occur only in links. Two hosts share a domain.
const rowsPerHost = 500

// segmentRows is the number of URLs in a generated segment.
const segmentRows = 50_000

// linksPerPage is the number of links of a generated page. The first link leads to a popular host,
// the second link to the home page of a random host. All other links stay within the host.
const linksPerPage = 10

func rowsHost(n int) string { return fmt.Sprintf("h%07d.d%07d.test", n, n/2) }

// writeURLs writes the URLs to plan.
func (s *scaled) writeURLs(name string) {
	f, err := os.Create(name)
	if err != nil {
		s.t.Fatal(err)
	}
	w := bufio.NewWriter(f)
	for i := range s.size {
		fmt.Fprintf(w, "http://%s/section/page-%06d\n", rowsHost(i/rowsPerHost), i%rowsPerHost)
	}
	if err := w.Flush(); err != nil {
		s.t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		s.t.Fatal(err)
	}
}

// generate stores a result for each fetch task of a plan. The WARC files that the rows name do not exist,
// because the reduce stages do not read them.
func (s *scaled) generate(p *manifest.Plan) {
	ctx, b := s.t.Context(), crawltest.OpenDir(s.t, s.store)
	p, err := roundstate.Begin(ctx, b, demo.Crawl, p.Round, ledgers())
	if err != nil {
		s.t.Fatal(err)
	}
	var tasks errgroup.Group
	tasks.SetLimit(runtime.NumCPU())
	for n := range p.Partitions {
		t := stages.Task{Stage: stages.Fetch, Crawl: demo.Crawl, Round: p.Round, Partition: n}
		if s.has(t.String()) {
			continue
		}
		tasks.Go(func() error {
			err := s.generateTask(ctx, b, p, t)
			if err == nil {
				s.note(measured{Step: t.String()})
			}
			return err
		})
	}
	if err := tasks.Wait(); err != nil {
		s.t.Fatal(err)
	}
	s.weigh("fetch", p.Round, 0)
}

// generateTask stores the segments and the result of one fetch task.
func (s *scaled) generateTask(ctx context.Context, b store.Bucket, p *manifest.Plan, t stages.Task) (err error) {
	r := &manifest.Result{Task: t.String(), Stage: string(t.Stage), Partition: t.Partition, Plan: p.ID}
	counts := map[string]int64{}
	var g *segments.Segment
	segment, dir := 0, filepath.Join(s.dir, fmt.Sprint("segment-", t.Partition))
	finish := func() error {
		err := g.Close(t, p.ID, 1, segment)
		if err == nil {
			err = g.Upload(ctx, b)
		}
		r.Files = append(r.Files, g.Files()...)
		for name, n := range g.Counts() {
			counts[name] += n
		}
		g = nil
		segment++
		return errors.Join(err, os.RemoveAll(dir))
	}
	web := &rowsWeb{random: rand.New(rand.NewPCG(1, uint64(t.Partition))), hosts: (s.size + rowsPerHost - 1) / rowsPerHost, warc: layout.WARC(t.Crawl, t.Round, p.ID, t.Partition, 1, 0)}
	row := 0
	for u, err := range table.Concat[schema.PlannedURL](ctx, b, []string{p.Partitions[t.Partition].File.Key}) {
		if err != nil {
			return err
		}
		if g == nil {
			if err := errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o755)); err != nil { // an earlier call may have left files
				return err
			}
			g = segments.New(dir)
		}
		rec, err := web.record(&u, row)
		if err == nil {
			err = g.Add(rec)
		}
		if err != nil {
			return err
		}
		if row++; row%segmentRows == 0 {
			if err := finish(); err != nil {
				return err
			}
		}
	}
	if g != nil {
		if err := finish(); err != nil {
			return err
		}
	}
	slices.SortFunc(r.Files, func(a, b manifest.File) int { return strings.Compare(a.Key, b.Key) })
	r.Counts = manifest.SortedCounts(counts)
	_, err = manifest.Create(ctx, b, roundstate.ResultKey(t), r)
	return err
}

// removeRead removes what no stage after merge reads: the segments of a partition, and parts of a few datasets. So 100
// million rows take a third of the disk.
func (s *scaled) removeRead(p *manifest.Plan, n int) error {
	var unread []manifest.File
	for _, stage := range []stages.Stage{stages.Fetch, stages.Merge} {
		var r manifest.Result
		key := roundstate.ResultKey(stages.Task{Stage: stage, Crawl: demo.Crawl, Round: p.Round, Partition: n})
		if _, _, err := manifest.Load(s.t.Context(), crawltest.OpenDir(s.t, s.store), key, &r); err != nil {
			return err
		}
		for _, f := range r.Files {
			if stage == stages.Fetch || slices.Contains([]string{stages.FileLinks, stages.FileText}, f.Dataset) || f.Subset == schema.SubsetWARC {
				unread = append(unread, f)
			}
		}
	}
	for _, f := range unread {
		if err := os.Remove(filepath.Join(s.store, filepath.FromSlash(f.Key))); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	s.guard.Lock()
	defer s.guard.Unlock()
	s.removed = append(s.removed, unread...)
	return nil
}

// rowsWeb makes the records of generated pages.
type rowsWeb struct {
	random *rand.Rand
	hosts  int
	warc   string
	recent [1 << 12]uint64 // fingerprints of recent pages, for duplicates
}

// fingerprint draws a page's fingerprint. A tenth of the pages are copies of recent pages, and one
// in a hundred resembles a recent page.
func (w *rowsWeb) fingerprint(row int) uint64 {
	at := w.random.IntN(len(w.recent))
	fp := w.random.Uint64()
	switch old := w.recent[at]; {
	case old != 0 && row%10 == 1:
		fp = old
	case old != 0 && row%100 == 2:
		fp = old ^ 1<<w.random.IntN(64) ^ 1<<w.random.IntN(64)
	}
	w.recent[at] = fp
	return fp
}

// record makes the record of a planned URL that was fetched without trouble.
func (w *rowsWeb) record(u *schema.PlannedURL, row int) (*segments.Record, error) {
	columns, err := document.URLColumns(urlkey.Key{URL: u.URL, SURT: u.SURT, Host: u.Host, Domain: u.Domain})
	if err != nil {
		return nil, err
	}
	fp := w.fingerprint(row)
	var sum [8]byte
	binary.BigEndian.PutUint64(sum[:], fp)
	text := sha1.Sum(sum[:])
	payload := sha1.Sum([]byte(u.URL))
	at, allowed := 1_790_000_000_000_000+schema.Time(row)*1000, true
	took := int64(40 + w.random.IntN(900))
	cp := schema.Capture{URLColumns: columns, CaptureColumns: schema.CaptureColumns{
		FetchTime: at, FetchStatus: 200, ContentDigest: base32.StdEncoding.EncodeToString(payload[:]), MimeType: "text/html", MimeDetected: "text/html",
		Charset: "UTF-8", Languages: "eng", WARCFilename: w.warc, WARCRecordOffset: int32(row * 4000), WARCRecordLength: 3900, WARCSegment: "part-00000",
	}}
	rec := &segments.Record{
		Row: int64(row),
		Fetch: &schema.Fetch{
			SURT: u.SURT, URL: u.URL, Host: u.Host, Domain: u.Domain, Outcome: schema.OK, Attempts: 1, HTTPStatus: 200, RobotsAllowed: &allowed,
			Priority: u.Priority, Depth: u.Depth, FetchedAt: at, RecordedAt: at.Add(time.Duration(took) * time.Millisecond), TotalMS: &took, WireBytes: 12_000, ContentBytes: 11_000,
			ContentDigest: cp.ContentDigest, MimeType: cp.MimeType, MimeDetected: cp.MimeDetected, FinalURL: u.URL,
			WARCFilename: cp.WARCFilename, WARCRecordOff: cp.WARCRecordOffset, WARCRecordLen: cp.WARCRecordLength, PlannedRow: int32(row),
		},
		Requests: []schema.Request{{Purpose: schema.ForPage, URL: u.URL, Host: u.Host, Start: at}},
		Captures: []segments.Capture{{Subset: schema.SubsetWARC, Capture: cp}},
		Text:     &schema.Text{SURT: u.SURT, URL: u.URL, Main: fmt.Sprintf("The text %x of a small page, which says little.", fp), Language: "eng"},
		Terms:    schema.WorkingColumns{Terms: []string{"text", "small page", "little"}, Counts: []int32{9, 5, 2}},
		Page: &schema.Page{PageColumns: schema.PageColumns{
			URLColumns: columns, CaptureColumns: cp.CaptureColumns, DocumentKind: "html", Title: "Page " + u.URL, Description: "One of many small pages",
			Language: "eng", Indexable: true, WordCount: 300, Scripts: []string{"Latn"}, ScriptWords: []int32{300}, Topics: []string{"text", "small page", "little"},
			TextDigest: base32.StdEncoding.EncodeToString(text[:]), SimHash: int64(fp), Outlinks: linksPerPage, Depth: u.Depth, PlannedURL: u.URL, ContentBytes: 11_000,
		}},
	}
	rec.Text.Full = rec.Text.Main
	for i := range linksPerPage {
		host, page := u.Host, w.random.IntN(rowsPerHost*3/2)
		if i < 2 {
			f := w.random.Float64()
			if page = 0; i == 0 {
				f *= f * f // a few hosts are much more popular than others
			}
			host = rowsHost(int(f * float64(w.hosts)))
		}
		rec.Links = append(rec.Links, schema.Link{
			SourceSURT: u.SURT, Source: u.URL, Target: fmt.Sprintf("http://%s/section/page-%06d", host, page),
			Anchor: "page " + fmt.Sprint(page%50), Kind: schema.KindA, Position: "main", Ordinal: int32(i),
		})
	}
	return rec, nil
}
