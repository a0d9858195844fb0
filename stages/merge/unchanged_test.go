package merge_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table/tabletest"
	"crawlbatch.io/crawlbatch/stages"
)

// unchangedWorld has five planned URLs that answered 304. The first URL answered twice. A redirect
// led to the second URL and brought a document. The content of the fourth URL is in an unknown
// round. The fifth URL had no links. Round 2026-10.3 has the links of the other URLs.
func unchangedWorld(t *testing.T, many int) *world {
	const head = "https://a.example.org/head"
	site := func(n int) string { return fmt.Sprint(a, n) }
	payload := layout.WARC("2026-10", 3, "q", 7, 1, 0)
	planned := []string{head, site(1), site(2), site(3), site(4), site(5)}
	s := segment{captures: map[string][]schema.Capture{}}
	for i, url := range planned {
		if url == head {
			f := fetch(t, url, schema.OK, 0)
			f.FinalURL = site(2)
			s.fetches = append(s.fetches, f)
			continue
		}
		f := fetch(t, url, schema.NotModified, int32(i))
		f.FetchedAt = 5_000
		s.fetches = append(s.fetches, f)
		c := schema.Capture{URLColumns: schema.URLColumns{SURT: keyOf(t, url).SURT, URL: url}}
		c.Revisit, c.PayloadFilename = schema.RevisitNotModified, payload
		if i == 4 {
			c.PayloadFilename = layout.WARC("2026-09", 3, "q", 7, 1, 0)
		}
		s.captures[schema.SubsetDiagnostics] = append(s.captures[schema.SubsetDiagnostics], c)
		if i == 1 {
			s.captures[schema.SubsetDiagnostics] = append(s.captures[schema.SubsetDiagnostics], c)
		}
	}
	s.pages = []schema.Page{page(t, site(2), head, "new", 1)}
	s.text = []schema.Text{text(t, site(2), "new")}
	s.links = []schema.Link{link(t, head, site(2), schema.KindRedirect, 0), link(t, site(2), x+"new", schema.KindA, 0)}
	w := newWorld(t, planned, s)

	nofollow, dated := link(t, site(1), x+"nofollow", schema.KindA, 1), link(t, site(1), a+"dated", schema.KindSitemap, 2)
	nofollow.Nofollow, nofollow.Anchor, dated.LastMod = true, "text", 4_000
	earlier := []schema.Link{link(t, a, x+"other", schema.KindA, 0), link(t, site(1), x+"kept", schema.KindA, 0), nofollow, dated,
		link(t, site(2), x+"old", schema.KindA, 0), link(t, site(3), x+"moved", schema.KindRedirect, 0)}
	for n := range many {
		earlier = append(earlier, link(t, site(3), fmt.Sprint(x, strings.Repeat("l", 100), n), schema.KindA, int32(n)))
	}
	earlier = append(earlier, link(t, site(4), x+"unknown", schema.KindA, 0), link(t, site(6), x+"unplanned", schema.KindA, 0))
	links := tabletest.Write(t, w.bucket, stages.FileLinks, layout.Table(stages.FileLinks, "2026-10", 3, 7), earlier)
	w.in.Earlier = []*manifest.Sealed{{Crawl: "2026-10", Round: 3, Files: []manifest.File{links}}}
	return w
}

func TestPagesThatAnswered304HaveTheLinksOfTheirContent(t *testing.T) {
	const many = 1000 // more than one set
	w := unchangedWorld(t, many)
	r := w.mustMerge()
	got := rows[schema.Link](w, r, stages.FileLinks, "")
	taken, other := map[string]int{}, ""
	for _, l := range got {
		if l.Source == a+"3" {
			taken[l.Target]++
			if l.Ordinal != int32(len(taken)-1) {
				t.Fatalf("link %d has the ordinal %d", len(taken), l.Ordinal)
			}
			continue
		}
		other += brief([]schema.Link{l})
	}
	want := "https://a.example.org/1 a https://x.example.com/kept 0\nhttps://a.example.org/1 a https://x.example.com/nofollow 1\nhttps://a.example.org/1 sitemap https://a.example.org/dated 2\n" +
		"https://a.example.org/2 a https://x.example.com/new 0\nhttps://a.example.org/head redirect https://a.example.org/2 0\n"
	if d := cmp.Diff(want, other); d != "" || len(taken) != many {
		t.Errorf("%d links of the long page; other links (-want +got):\n%s", len(taken), d)
	}
	targets := map[string]schema.TargetLinks{}
	for _, row := range tabletest.ReadRun[schema.TargetLinks](t, w.bucket, r.FilesOf(stages.FileTargets)[0]) {
		targets[row.URL] = row
	}
	if n := targets[x+"nofollow"]; n.Followed || n.SourceDepth != 1 || n.FirstSource != a+"1" || cmp.Diff([]string{"text"}, n.Anchors) != "" {
		t.Errorf("%+v", n)
	}
	if n := targets[a+"dated"]; n.LastMod != 4_000 {
		t.Errorf("the date of a sitemap: %+v", n)
	}
	for _, c := range r.Counts {
		if c.Name == "pages_unchanged" && c.N != 4 {
			t.Errorf("%d unchanged pages", c.N)
		}
	}
}

// In a reparse, an unchanged page has the links that the reparse found in content of its own month. Content of an
// earlier month has the links of that month, also if the month was parsed again.
func TestUnchangedPagesOfAReparseHaveTheLinksThatItFoundInItsMonth(t *testing.T) {
	w := unchangedWorld(t, 0) // the store has links of 2026-10
	w.in.Task.Crawl = "2026-10r1"
	w.in.Earlier = nil
	for _, crawl := range []string{"2026-09", "2026-09r1", "2026-10r1"} {
		file := tabletest.Write(t, w.bucket, stages.FileLinks, layout.Table(stages.FileLinks, crawl, 3, 7), []schema.Link{
			link(t, a+"1", x+"of-"+crawl, schema.KindA, 0), link(t, a+"4", x+"of-"+crawl, schema.KindA, 0),
		})
		if crawl != "2026-09r1" { // the reparse continues the months that 2026-10 continues
			w.in.Earlier = append(w.in.Earlier, &manifest.Sealed{Crawl: crawl, Round: 3, Files: []manifest.File{file}})
		}
	}
	want := "https://a.example.org/1 a https://x.example.com/of-2026-10r1 0\nhttps://a.example.org/2 a https://x.example.com/new 0\n" +
		"https://a.example.org/4 a https://x.example.com/of-2026-09 0\nhttps://a.example.org/head redirect https://a.example.org/2 0\n"
	if d := cmp.Diff(want, brief(rows[schema.Link](w, w.mustMerge(), stages.FileLinks, ""))); d != "" {
		t.Error(d)
	}
}

func TestLostLinksOfAnEarlierRoundEndTheTask(t *testing.T) {
	w := unchangedWorld(t, 1)
	key := w.in.Earlier[0].Files[0].Key
	if err := w.bucket.Delete(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	w.bucket = stages.Checked(w.bucket, w.in)
	_, err := w.merge()
	if !errors.Is(err, store.ErrNotFound) || !strings.Contains(err.Error(), "--month 2026-10 --rebuild") || !strings.Contains(err.Error(), key) {
		t.Error(err)
	}
}
