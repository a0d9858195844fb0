package frontier

import (
	"testing"

	"crawlbatch.io/crawlbatch/formats/focus"
	"crawlbatch.io/crawlbatch/formats/schema"
)

func TestAFocusPrefersAndKeepsRelevantURLs(t *testing.T) {
	model, err := focus.Parse("1 solar\n-1 horoscope\n0.5 größe")
	if err != nil {
		t.Fatal(err)
	}
	cfg, least := Default(), 0.5
	cfg.Focus, cfg.Priority.Focus, cfg.Threshold = model, 200, &least
	w := world{
		fetches: []schema.Fetch{
			fetch(t, "http://a.example/", schema.OK, nil), fetch(t, "http://a.example/old", schema.Redirected, redirectTo("http://a.example/moved")),
		},
		inlinks: []schema.Inlink{
			link(t, "http://a.example/solar", nil),
			link(t, "http://a.example/gr%C3%B6%C3%9Fe", nil),
			link(t, "http://a.example/text", func(l *schema.Inlink) { l.Anchors = []string{"Solar power"} }),
			link(t, "http://a.example/parent", func(l *schema.Inlink) { l.SourceFocus = 1 }),
			link(t, "http://a.example/other", nil),
			link(t, "http://a.example/solar-horoscope", nil),
		},
	}
	urls, skips, _ := run(t, bucket(t), cfg, w)
	priorities := map[string]int32{}
	for _, u := range urls {
		if u.State == schema.StateFound {
			priorities[u.URL] = u.Priority
		}
	}
	check(t, "skips", []string{"a.example/other focus 3", "a.example/solar-horoscope focus 3"}, reasons(skips))
	if skips[0].Detail != "score 0, frontier.focus.threshold 0.5" {
		t.Errorf("detail %q", skips[0].Detail)
	}
	plain := priorities["http://a.example/moved"] // the target of a redirect is kept
	for url, want := range map[string]int32{
		"http://a.example/solar": 200, "http://a.example/gr%C3%B6%C3%9Fe": 100, "http://a.example/text": 300, "http://a.example/parent": 100,
	} {
		if got := priorities[url] - plain; plain == 0 || got != want {
			t.Errorf("%s has %d points more than a URL with score 0, want %d", url, got, want)
		}
	}
}
