package frontier

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/schema"
)

// month makes the fetches and pages of a round in which each URL of http://h.example/ gives one answer.
type month struct {
	t *testing.T
	w world
}

func (m *month) page(path, payload, text, title string, simhash int64) {
	url := "http://h.example/" + path
	m.w.fetches = append(m.w.fetches, fetch(m.t, url, schema.OK, func(f *schema.Fetch) { f.ContentDigest = payload }))
	var p schema.WorkingPage
	p.SURT, p.URL, p.ContentDigest, p.TextDigest, p.Title, p.SimHash = key(m.t, url).SURT, url, payload, text, title, simhash
	if title == "Not found" {
		p.PageHint = schema.HintSoft404
	}
	m.w.pages = append(m.w.pages, p)
}

func (m *month) answer(path string, o schema.Outcome, status int16) {
	m.w.fetches = append(m.w.fetches, fetch(m.t, "http://h.example/"+path, o, func(f *schema.Fetch) { f.HTTPStatus = status }))
}

// told returns the change of each URL as path, change, distance, title_changed.
func told(rows []schema.URLRecord) (out []string) {
	for _, r := range rows {
		distance, title := "null", "null"
		if r.ChangeDistance != nil {
			distance = fmt.Sprint(*r.ChangeDistance)
		}
		if r.TitleChanged != nil {
			title = fmt.Sprint(*r.TitleChanged)
		}
		out = append(out, fmt.Sprintf("%s %s %s %s %s", r.URL[len("http://h.example/"):], r.Change, distance, title, r.CapturedIn))
	}
	slices.Sort(out)
	return out
}

func TestAnswersAreComparedWithTheLastCapture(t *testing.T) {
	for _, buckets := range []int{1, 3} {
		first, second, third := month{t, world{buckets: buckets}}, month{t, world{buckets: buckets}}, month{t, world{buckets: buckets}}
		for _, path := range []string{"cosmetic", "failed", "gone", "none", "soft", "text", "title", "unmodified"} {
			first.page(path, "P1", "T1", "Title", -1)
		}
		first.page("hinted", "P1", "T0", "Not found", 3)
		first.answer("missing", schema.HTTP4xx, 404)
		second.page("cosmetic", "P2", "T1", "Title", -1)
		second.answer("failed", schema.Timeout, 0)
		second.answer("gone", schema.HTTP4xx, 410)
		second.page("hinted", "P2", "T2", "Title", 7)
		second.answer("missing", schema.HTTP4xx, 404)
		second.page("new", "P1", "T1", "Title", 0)
		second.page("none", "P1", "T1", "Title", -1)
		second.page("soft", "P0", "T0", "Not found", 3)
		second.page("text", "P2", "T2", "Title", 0)
		second.page("title", "P2", "T1", "Other", -1)
		second.answer("unmodified", schema.NotModified, 304)
		third.page("gone", "P1", "T1", "Title", -1)
		third.page("soft", "P1", "T1", "Title", -1) // its last capture is that of the first round
		third.page("text", "P2", "T2", "Title", 0)
		third.page("unmodified", "P3", "T1", "Title", -1)
		third.page("failed", "P2", "T2", "Title", -2)

		september, _, _ := run(t, bucket(t), Default(), first.w)
		if got := told(september); !slices.Contains(got, "none new null null 2026-11.1") || !slices.Contains(got, "hinted  null null ") || !slices.Contains(got, "missing  null null ") {
			t.Errorf("first round: %q", got)
		}
		b := bucket(t)
		october, _, _ := run(t, b, Default(), second.w, seal(t, b, "2026-09", 0, buckets, september...))
		want := []string{
			"cosmetic cosmetic 0 false 2026-11.1", "failed new null null 2026-11.1", "gone gone null null 2026-11.1", "hinted  null null 2026-11.1",
			"missing  null null ", "new new null null 2026-11.1", "none none 0 false 2026-11.1", "soft gone null null 2026-11.1",
			"text text 64 false 2026-11.1", "title cosmetic 0 true 2026-11.1", "unmodified none null null 2026-11.1",
		}
		if d := gocmp.Diff(want, told(october)); d != "" {
			t.Errorf("second round of %d buckets (- want, + got):\n%s", buckets, d)
		}
		b = bucket(t)
		urls, _, _ := run(t, b, Default(), third.w, seal(t, b, "2026-09", 0, buckets, september...), seal(t, b, "2026-10", 0, buckets, october...))
		want = []string{
			"failed text 1 false 2026-11.1", "gone none 0 false 2026-11.1", "soft none 0 false 2026-11.1", "text none 0 false 2026-11.1", "unmodified cosmetic 0 false 2026-11.1",
		}
		if d := gocmp.Diff(want, told(urls)); d != "" {
			t.Errorf("third round of %d buckets (- want, + got):\n%s", buckets, d)
		}
	}
}

// A URL whose earlier answers were no pages has no facts of a capture. The payload of its last fetch is known.
func TestAURLWithoutACaptureIsKnownByItsPayload(t *testing.T) {
	now := month{t, world{}}
	now.page("new", "P1", "T1", "Title", -1)
	now.page("other", "P2", "T1", "Title", -1)
	now.page("same", "P1", "T1", "Title", -1)
	var known []schema.URLRecord
	for _, path := range []string{"other", "same"} {
		known = append(known, state(t, "http://h.example/"+path, schema.StateFetched, func(r *schema.URLRecord) { r.Fetches, r.LastFetched, r.ContentDigest = 1, at-1, "P1" }))
	}
	b := bucket(t)
	urls, _, _ := run(t, b, Default(), now.w, seal(t, b, "2026-10", 0, 1, known...))
	want := []string{"new new null null 2026-11.1", "other  null null 2026-11.1", "same none null null 2026-11.1"}
	if d := gocmp.Diff(want, told(urls)); d != "" {
		t.Errorf("(- want, + got):\n%s", d)
	}
}

// Links are compared if both captures know all theirs. Equal payloads need no links.
func TestLinksAreComparedWithThoseOfTheLastCapture(t *testing.T) {
	first, second, third := month{t, world{}}, month{t, world{}}, month{t, world{}}
	links := func(m *month, names string) {
		p := &m.w.pages[len(m.w.pages)-1]
		p.LinkSketch = schema.SketchLinks(slices.Values(strings.Fields(names)))
	}
	page := func(m *month, path, payload, names string) {
		m.page(path, payload, "T", "Title", 1)
		if names != "cut" {
			links(m, names)
		}
	}
	page(&first, "cut", "P1", "a b")
	page(&first, "cutbefore", "P1", "cut")
	page(&first, "failed", "P1", "a b")
	page(&first, "gone", "P1", "a b")
	page(&first, "links", "P1", "a b c d")
	page(&first, "none", "P1", "cut")
	page(&first, "soft", "P1", "a b c")
	page(&first, "unmodified", "P1", "a")
	page(&second, "cut", "P2", "cut")
	page(&second, "cutbefore", "P2", "a b")
	second.answer("failed", schema.Timeout, 0)
	second.answer("gone", schema.HTTP4xx, 404)
	page(&second, "links", "P2", "b c d e f")
	page(&second, "new", "P1", "a")
	page(&second, "none", "P1", "cut")
	second.page("soft", "P0", "T0", "Not found", 3)
	links(&second, "x y z")
	second.answer("unmodified", schema.NotModified, 304)
	page(&third, "cut", "P3", "a b")
	page(&third, "cutbefore", "P3", "")
	page(&third, "failed", "P3", "b c")
	page(&third, "gone", "P1", "a b")
	page(&third, "links", "P3", "b c d e f")
	page(&third, "none", "P2", "a")
	page(&third, "soft", "P3", "a b c d")
	page(&third, "unmodified", "P3", "b")
	changes := func(rows []schema.URLRecord) (out []string) {
		for _, r := range rows {
			added, removed := "null", "null"
			if r.LinksAdded != nil && r.LinksRemoved != nil {
				added, removed = fmt.Sprint(*r.LinksAdded), fmt.Sprint(*r.LinksRemoved)
			}
			out = append(out, fmt.Sprintf("%s %s +%s -%s", r.URL[len("http://h.example/"):], r.Change, added, removed))
		}
		slices.Sort(out)
		return out
	}
	september, _, _ := run(t, bucket(t), Default(), first.w)
	b := bucket(t)
	october, _, _ := run(t, b, Default(), second.w, seal(t, b, "2026-09", 0, 1, september...))
	want := []string{
		"cut cosmetic +null -null", "cutbefore cosmetic +null -null", "failed new +null -null", "gone gone +null -null", "links cosmetic +2 -1",
		"new new +null -null", "none none +0 -0", "soft gone +null -null", "unmodified none +null -null",
	}
	if d := gocmp.Diff(want, changes(october)); d != "" {
		t.Errorf("second round (- want, + got):\n%s", d)
	}
	b = bucket(t)
	november, _, _ := run(t, b, Default(), third.w, seal(t, b, "2026-09", 0, 1, september...), seal(t, b, "2026-10", 0, 1, october...))
	want = []string{
		"cut cosmetic +null -null", "cutbefore cosmetic +0 -2", "failed cosmetic +1 -1", "gone none +0 -0", "links cosmetic +0 -0",
		"none cosmetic +null -null", "soft cosmetic +1 -0", "unmodified cosmetic +1 -1",
	}
	if d := gocmp.Diff(want, changes(november)); d != "" {
		t.Errorf("third round (- want, + got):\n%s", d)
	}
}
