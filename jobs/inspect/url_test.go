package inspect

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/lookup"
	"crawlbatch.io/crawlbatch/jobs/optout"
)

// printed returns what `inspect url` prints about a URL.
func printed(t *testing.T, cfg *config.Config, url string) string {
	t.Helper()
	optOut, err := optout.Read(t.Context(), cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	u, err := NewURL(cfg, optOut, nil)
	if err != nil {
		t.Fatal(err)
	}
	a, err := u.Answer(t.Context(), URLQuestion{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	a.Print(&text, url)
	return text.String()
}

func TestEveryStepIsShown(t *testing.T) {
	cfg := config.Default()
	cfg.Plan.Canonical.WWW = true
	cfg.Plan.Rewrite = []config.Rewrite{{Name: "print", Match: "/print/", Replace: "/"}}
	cfg.Plan.Filter = []config.Filter{{Name: "archives", Match: `\.zip$`}}
	want := `url        http://WWW.example.org/print/a.zip
whatwg     http://www.example.org/print/a.zip
step       standard: http://WWW.example.org/print/a.zip → http://www.example.org/print/a.zip
step       www: http://www.example.org/print/a.zip → http://example.org/print/a.zip
step       print: http://example.org/print/a.zip → http://example.org/a.zip
canonical  http://example.org/a.zip
surt       org,example)/a.zip
domain     example.org
host       example.org
skip       filtered: archives
`
	if got := printed(t, cfg, "http://WWW.example.org/print/a.zip"); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	cfg.Plan.OptOut = filepath.Join(t.TempDir(), "opt-out.txt")
	if err := os.WriteFile(cfg.Plan.OptOut, []byte("Example.org\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := printed(t, cfg, "http://www.example.org/"); !strings.Contains(got, "skip       opt_out: Example.org\n") {
		t.Errorf("a URL of the opt-out list:\n%s", got)
	}
	cfg.Plan.OptOut = ""
	cfg.Plan.Rewrite[0].Replace = "/print/print/"
	if got := printed(t, cfg, "http://example.org/print/a"); !strings.Contains(got, "skip       filtered: the rules") || !strings.Contains(got, "step       print: ") || !strings.Contains(got, "canonical  -\n") {
		t.Errorf("a rewrite without end:\n%s", got)
	}
}

// The form that a crawl sends has the path and the query of the given URL, unless rules changed them.
func TestTheFormThatIsSentIsShown(t *testing.T) {
	cfg := config.Default()
	cfg.Plan.Canonical.WWW = true
	cfg.Plan.Rewrite = []config.Rewrite{{Name: "print", Match: "/print/", Replace: "/"}}
	for _, c := range []struct{ url, canonical, sent string }{ // sent: "" if it is canonical
		{"http://example.org/", "http://example.org/", ""},
		{"HTTP://Example.org:80/a/../b#f", "http://example.org/b", ""},
		{"http://me@example.org/?b=2&a=1", "http://example.org/?a=1&b=2", "http://example.org/?b=2&a=1"},
		{"http://example.org/?utm_source=x&a=1", "http://example.org/?a=1", "http://example.org/?utm_source=x&a=1"},
		{"http://example.org/?", "http://example.org/", "http://example.org/?"},
		{"http://example.org/?a=1&&b=2", "http://example.org/?a=1&b=2", "http://example.org/?a=1&&b=2"},
		{"http://example.org/%7ea", "http://example.org/~a", "http://example.org/%7ea"},
		{"http://www.example.org/?b=2&a=1", "http://example.org/?a=1&b=2", "http://example.org/?b=2&a=1"},
		{"http://example.org/print/?b=2&a=1", "http://example.org/?a=1&b=2", ""},
	} {
		text := printed(t, cfg, c.url)
		if _, sent, _ := strings.Cut(text, "\nsent       "); !strings.Contains(text, "\ncanonical  "+c.canonical+"\n") || strings.TrimSuffix(sent, "\n") != c.sent {
			t.Errorf("%s:\n%swant %s, sent as %q", c.url, text, c.canonical, c.sent)
		}
	}
}

// The form in which a crawl asks for a URL is that of its state, whoever asks now.
func TestTheFormInWhichACrawlAsksIsShown(t *testing.T) {
	for _, c := range []struct {
		sent string
		from schema.SentFrom
		want string // "" if no line
	}{
		{"", schema.SentAnswered, ""},
		{"http://a.test/?b&a", schema.SentBySource, "asked as   http://a.test/?b&a, as a source has it\n"},
		{"http://a.test/?b&a", schema.SentAnswered, "asked as   http://a.test/?b&a, as it last answered\n"},
		{"http://a.test/?b&a", schema.SentByDomain, "asked as   http://a.test/?b&a, as its own domain links it\n"},
		{"http://a.test/?b&a", schema.SentByStranger, "asked as   http://a.test/?b&a, as another domain links it\n"},
		{"http://a.test/?b&a", schema.SentByNobody, "asked as   http://a.test/?b&a\n"},
	} {
		var text strings.Builder
		printKnown(&text, &lookup.Found{State: &lookup.State{State: schema.StateFetched, Sent: c.sent, SentFrom: c.from}})
		if c.want == "" && strings.Contains(text.String(), "asked as") || !strings.Contains(text.String(), c.want) {
			t.Errorf("%+v:\n%s", c, text.String())
		}
	}
}
