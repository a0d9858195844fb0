package worker

import (
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/formats/document"
	"crawlbatch.io/crawlbatch/jobs/config"
)

func TestParserKeepsTerms(t *testing.T) {
	page := "<html><body><div><h2>The lamp</h2>" + strings.Repeat("<p>The lighthouse stands at the end of the cape, and its light can be seen far out at sea.</p>", 5) + "</div></body></html>"
	p, err := NewParser(config.Default())
	if err != nil {
		t.Fatal(err)
	}
	r, err := p.Parse(&document.Document{URL: "https://example.com/", ContentType: "text/html", Header: func(string) []string { return nil }, Body: []byte(page)})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Terms.Terms) == 0 || len(r.Terms.Terms) != len(r.Terms.Counts) || r.Terms.Terms[0] != r.Page.Topics[0] {
		t.Errorf("terms %v %v, topics %v", r.Terms.Terms, r.Terms.Counts, r.Page.Topics)
	}
}

func TestParserObeysNoArchive(t *testing.T) {
	for value, want := range map[string]string{config.NoArchiveCounts: "", config.NoArchiveText: "words"} {
		c := config.Default()
		if value != c.Parse.NoArchive {
			c.Parse.NoArchive = value
		}
		p, err := NewParser(c)
		if err != nil {
			t.Fatal(err)
		}
		r, err := p.Parse(&document.Document{URL: "https://example.com/", ContentType: "text/html", Body: []byte("<meta name=robots content=noarchive>words")})
		if err != nil || r.Text.Full != want {
			t.Errorf("parse.noarchive %s: text %q, want %q; %v", value, r.Text.Full, want, err)
		}
	}
}
