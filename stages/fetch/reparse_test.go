package fetch

import (
	"compress/gzip"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/document"
	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/takedown"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch/reparse"
)

// reparseLab runs a fetch task whose result the tests reparse. Two of its pages have the same
// bytes, and one URL redirects to a page.
func reparseLab(t *testing.T) (*lab, *manifest.Result) {
	t.Helper()
	l := newLab(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		switch r.URL.Path {
		case "/robots.txt":
			http.NotFound(w, r)
		case "/hop":
			http.Redirect(w, r, "/landed", http.StatusFound)
		case "/twin", "/twin2":
			fmt.Fprint(w, strings.Repeat("the same words ", 200))
		default:
			fmt.Fprintf(w, "<title>%s</title><a href=/next>", r.URL.Path)
		}
	}, "http://a.test/1", "http://a.test/2", "http://a.test/hop", "http://a.test/twin", "http://a.test/twin2")
	l.parser = countingParser{}
	r, err := l.run(t.Context(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return l, r
}

// countingParser counts the links of a page, as every real parser must.
type countingParser struct{ plainParser }

func (countingParser) Parse(d *document.Document) (*document.Parsed, error) {
	p, err := plainParser{}.Parse(d)
	p.Page.Outlinks = int32(len(p.Links))
	return p, err
}

// reparse parses the responses that a result lists, as a new crawl.
func (l *lab) reparse(from *manifest.Result, crawl string, parser document.Parser) (*manifest.Result, error) {
	l.t.Helper()
	l.runs++
	scratch := filepath.Join(l.t.TempDir(), fmt.Sprint("scratch", l.runs))
	if err := os.Mkdir(scratch, 0o755); err != nil {
		l.t.Fatal(err)
	}
	task := l.task
	task.Crawl = crawl
	return reparse.Run(l.t.Context(), l.env(l.bucket, scratch), &reparse.Input{Task: task, Plan: l.plan, From: from, Archive: l.bucket, Gone: l.gone}, l.cfg.Limits, l.cfg.StripParams, parser)
}

// laterParser is a newer version of a parser, which finds other titles and one more link.
type laterParser struct{ countingParser }

func (laterParser) Parse(d *document.Document) (*document.Parsed, error) {
	if strings.HasSuffix(d.URL, "/2") {
		panic("it cannot read this one")
	}
	p, err := countingParser{}.Parse(d)
	p.Page.Title, p.Page.ParserVersion = strings.ToUpper(string(d.Body[:20])), 7
	p.Links = append(p.Links, schema.Link{Source: d.URL, Target: "http://a.test/found-later", Kind: schema.KindA, Ordinal: int32(len(p.Links))})
	p.Page.Outlinks++
	return p, err
}

func TestAReparseGivesTheRowsOfItsParser(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l, fetched := reparseLab(t)
		same, err := l.reparse(fetched, "2026-11r1", l.parser)
		if err != nil {
			t.Fatal(err)
		}
		for name, diff := range map[string]string{
			"pages":    cmp.Diff(rowsOf[schema.Page](l, fetched, stages.FilePages), rowsOf[schema.Page](l, same, stages.FilePages)),
			"text":     cmp.Diff(rowsOf[schema.WorkingText](l, fetched, stages.FileText), rowsOf[schema.WorkingText](l, same, stages.FileText)),
			"links":    cmp.Diff(linksOf(l, fetched), linksOf(l, same)),
			"requests": cmp.Diff(fetched.FilesOf(stages.FileRequests), same.FilesOf(stages.FileRequests)),
		} {
			if diff != "" {
				t.Errorf("%s differ though the parser is the same:\n%s", name, diff)
			}
		}
		if n := len(rowsOf[schema.Capture](l, same, stages.FileCaptures)); n != len(rowsOf[schema.Capture](l, fetched, stages.FileCaptures)) {
			t.Errorf("%d captures", n)
		}

		later, err := l.reparse(fetched, "2026-11r2", laterParser{})
		if err != nil {
			t.Fatal(err)
		}
		versions := map[int32]int{}
		for _, p := range rowsOf[schema.Page](l, later, stages.FilePages) {
			versions[p.ParserVersion]++
			if p.ParserVersion == 7 && p.Title != strings.ToUpper(p.Title) {
				t.Errorf("%s has the title %q", p.URL, p.Title)
			}
		}
		if diff := cmp.Diff(map[int32]int{0: 1, 7: 4}, versions); diff != "" {
			t.Errorf("pages by version of their parser:\n%s", diff)
		}
		if parsed, kept := later.Count(reparse.CountReparsed), later.Count(reparse.CountDamaged); parsed != 4 || kept != 1 {
			t.Errorf("%d parsed again, %d kept", parsed, kept)
		}
	})
}

// The links of plainParser lead to a.com. After a takedown of a.com, pages count links that have no rows.
func TestAReparseOfPagesWithoutLinksAfterATakedown(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const secret = "0123456789abcdef0123456789abcdef"
		l := newLab(t, noRobots(page), "http://b.test/1", "http://b.test/2")
		l.parser = countingParser{}
		names, err := takedown.New(nil, []string{"a.com"})
		if err != nil {
			t.Fatal(err)
		}
		k, err := takedown.NewKey(secret)
		if err == nil {
			err = takedown.Append(t.Context(), l.bucket, k, names, manifest.Takedown{At: "2026-11-26T00:00:00Z", Reason: "asked"})
		}
		if err == nil {
			l.gone, err = takedown.Open(t.Context(), l.bucket, secret)
		}
		if err != nil {
			t.Fatal(err)
		}
		fetched, err := l.run(t.Context(), nil, &Input{Gone: l.gone})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range rowsOf[schema.Page](l, fetched, stages.FilePages) {
			if p.Outlinks != 1 || len(linksOf(l, fetched)) != 0 {
				t.Fatalf("%s has %d links, and there are %d rows of links", p.URL, p.Outlinks, len(linksOf(l, fetched)))
			}
		}
		again, err := l.reparse(fetched, "2026-11r1", laterParser{}) // fails for one of the pages, which keeps its rows
		if err != nil {
			t.Fatal(err)
		}
		if parsed, kept := again.Count(reparse.CountReparsed), again.Count(reparse.CountDamaged); parsed != 1 || kept != 1 {
			t.Errorf("%d parsed again, %d kept", parsed, kept)
		}
	})
}

// rowlessParser gives rows of links only to pages whose URL ends in /1. Parsers before version 4 counted the links of some
// pages without any row.
type rowlessParser struct{ countingParser }

func (rowlessParser) Parse(d *document.Document) (*document.Parsed, error) {
	p, err := countingParser{}.Parse(d)
	if !strings.HasSuffix(d.URL, "/1") {
		p.Links = nil
	}
	return p, err
}

func TestAReparseOfPagesWithOutlinksButNoRows(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLab(t, noRobots(page), "http://b.test/0", "http://b.test/1", "http://b.test/2")
		l.parser = rowlessParser{}
		fetched, err := l.run(t.Context(), nil, &Input{})
		if err != nil {
			t.Fatal(err)
		}
		again, err := l.reparse(fetched, "2026-11r1", laterParser{}) // fails for /2, which keeps its rows
		if err != nil {
			t.Fatal(err)
		}
		if parsed, kept := again.Count(reparse.CountReparsed), again.Count(reparse.CountDamaged); parsed != 2 || kept != 1 {
			t.Errorf("%d parsed again, %d kept", parsed, kept)
		}
		links := map[string]int{}
		for _, k := range linksOf(l, again) {
			links[k.Source]++
		}
		if diff := cmp.Diff(map[string]int{"http://b.test/0": 2, "http://b.test/1": 2}, links); diff != "" {
			t.Errorf("links (-want +got):\n%s", diff)
		}
	})
}

func TestWhatCannotBeReadAgainKeepsItsRows(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l, fetched := reparseLab(t)
		pages := rowsOf[schema.Page](l, fetched, stages.FilePages)
		at := pages[0]
		body, _, err := l.bucket.Get(t.Context(), at.WARCFilename, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		replace := func(body []byte) {
			if err := l.bucket.Delete(t.Context(), at.WARCFilename); err != nil {
				t.Fatal(err)
			}
			if body == nil {
				return
			}
			if _, err := store.CreateBytes(t.Context(), l.bucket, at.WARCFilename, body); err != nil {
				t.Fatal(err)
			}
		}
		body[int(at.WARCRecordOffset)+int(at.WARCRecordLength)/2] ^= 0x10
		replace(body)
		r, err := l.reparse(fetched, "2026-11r1", laterParser{})
		if err != nil {
			t.Fatal(err)
		}
		if got := rowsOf[schema.Page](l, r, stages.FilePages)[0]; !cmp.Equal(got, at) {
			t.Errorf("the page whose record is damaged:\n%s", cmp.Diff(at, got))
		}
		if n := r.Count(reparse.CountDamaged); n < 1 {
			t.Errorf("%d records are counted as damaged", n)
		}
		replace(nil)
		_, err = l.reparse(fetched, "2026-11r2", l.parser)
		if !errors.Is(err, stages.ErrPermanent) || !strings.Contains(err.Error(), "restore it") || !strings.Contains(err.Error(), at.WARCFilename) {
			t.Errorf("without the file: %v", err)
		}
		segment := fetched.FilesOf(stages.FileFetches)[0].Key
		if err := l.bucket.Delete(t.Context(), segment); err != nil {
			t.Fatal(err)
		}
		_, err = l.reparse(fetched, "2026-11r3", l.parser)
		if !errors.Is(err, stages.ErrPermanent) || strings.Count(err.Error(), segment) != 1 || strings.Contains(err.Error(), "cold storage") {
			t.Errorf("without a segment: %v", err)
		}
	})
}

// If the new config has a lower limit, a document above it keeps its rows. It must not be parsed in
// part.
func TestADocumentThatTheCrawlHadWholeIsNotParsedInPart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLab(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/robots.txt" {
				http.NotFound(w, r)
				return
			}
			w.Header().Set("Content-Type", "text/html")
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			fmt.Fprint(z, "<title>long</title>", strings.Repeat("the same words ", 2000))
			_ = z.Close()
		}, "http://a.test/1")
		l.parser = countingParser{}
		fetched, err := l.run(t.Context(), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		l.cfg.MaxBody, l.cfg.MaxSitemap = 10<<10, 10<<10
		r, err := l.reparse(fetched, "2026-11r1", laterParser{})
		if err != nil {
			t.Fatal(err)
		}
		was, is := rowsOf[schema.Page](l, fetched, stages.FilePages), rowsOf[schema.Page](l, r, stages.FilePages)
		if diff := cmp.Diff(was, is); diff != "" || len(is) != 1 || r.Count(reparse.CountDamaged) != 1 {
			t.Errorf("%d kept their rows: %s", r.Count(reparse.CountDamaged), diff)
		}
	})
}

// tallied is a Progress that adds up the counts of URLs.
type tallied struct{ urls, most int64 }

func (p *tallied) Add(name string, n int64) {
	if name == stages.CountURLs {
		p.urls += n
		p.most = max(p.most, p.urls)
	}
}

func TestAnAttemptThatFailsTakesBackWhatItCounted(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l, fetched := reparseLab(t)
		scratch := t.TempDir()
		env := l.env(l.bucket, scratch)
		var told tallied
		env.Progress = &told
		task := l.task
		task.Crawl = "2026-11r1"
		// A key that the task must write already has other content.
		if _, err := store.CreateBytes(t.Context(), l.bucket, layout.Segment(task.Crawl, task.Round, l.plan.ID, task.Partition, 0, 0, stages.FilePages), []byte("other")); err != nil {
			t.Fatal(err)
		}
		in := &reparse.Input{Task: task, Plan: l.plan, From: fetched, Archive: l.bucket}
		if _, err := reparse.Run(t.Context(), env, in, l.cfg.Limits, l.cfg.StripParams, l.parser); err == nil {
			t.Fatal("the task succeeded")
		}
		if told.urls != 0 || told.most == 0 {
			t.Errorf("%d URLs are counted after the failure, at most %d were counted before", told.urls, told.most)
		}
	})
}
