package worker

import (
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/formats/document"
	"crawlbatch.io/crawlbatch/jobs/config"
)

func TestParseMainTextChoosesTheExtractor(t *testing.T) {
	// The two extractors choose different parts of this page.
	page := "<html><body><div><h2>The lamp</h2>" + strings.Repeat("<p>The lighthouse stands at the end of the cape, and its light can be seen far out at sea.</p>", 5) +
		"<table><tr><td>Height</td><td>12 m</td></tr></table></div></body></html>"
	texts := map[string]string{}
	for _, way := range []string{"fast", "trafilatura"} {
		c := config.Default()
		c.Parse.MainText = way
		p, err := NewParser(c)
		if err != nil {
			t.Fatal(err)
		}
		r, err := p.Parse(&document.Document{URL: "https://example.com/", ContentType: "text/html", Header: func(string) []string { return nil }, Body: []byte(page)})
		if err != nil {
			t.Fatal(err)
		}
		texts[way] = r.Text.Main
		if len(r.Terms.Terms) == 0 || len(r.Terms.Terms) != len(r.Terms.Counts) || r.Terms.Terms[0] != r.Page.Topics[0] {
			t.Errorf("%s: terms %v %v, topics %v", way, r.Terms.Terms, r.Terms.Counts, r.Page.Topics)
		}
	}
	if texts["fast"] == "" || texts["trafilatura"] == "" || texts["fast"] == texts["trafilatura"] {
		t.Errorf("%q", texts)
	}
}

func TestMainTextIsFrozenByPlan(t *testing.T) {
	c, later := config.Default(), config.Default()
	later.Parse.MainText = "trafilatura"
	if err := c.Adopt(later); err == nil || !strings.Contains(err.Error(), "parse.main_text") {
		t.Errorf("%v", err)
	}
}
