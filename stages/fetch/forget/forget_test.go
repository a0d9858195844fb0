package forget_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/formats/takedown"
	"crawlbatch.io/crawlbatch/formats/warc"
	"crawlbatch.io/crawlbatch/stages/fetch/forget"
	"crawlbatch.io/crawlbatch/stages/fetch/segments"
)

// guard returns the guard of a list with the domain gone.example and the URL http://kept.example/gone.
func guard(t *testing.T) *takedown.Guard {
	t.Helper()
	const secret = "0123456789abcdef0123456789abcdef"
	b, err := dirstore.Open(t.TempDir(), dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := takedown.New([]string{"http://kept.example/gone"}, []string{"gone.example"})
	if err != nil {
		t.Fatal(err)
	}
	k, err := takedown.NewKey(secret)
	if err == nil {
		err = takedown.Append(t.Context(), b, k, m, manifest.Takedown{At: "2026-11-26T00:00:00Z", Reason: "asked"})
	}
	if err != nil {
		t.Fatal(err)
	}
	g, err := takedown.Open(t.Context(), b, secret)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// fill sets every string in a row to a text.
func fill(v reflect.Value, text string) {
	for i := range v.NumField() {
		switch f := v.Field(i); {
		case f.Kind() == reflect.Struct:
			fill(f, text)
		case f.Kind() == reflect.String:
			f.SetString(text)
		}
	}
}

// left returns the columns of a row that hold the text.
func left(v reflect.Value, text string) (columns []string) {
	for i := range v.NumField() {
		switch f := v.Field(i); {
		case f.Kind() == reflect.Struct:
			columns = append(columns, left(f, text)...)
		case f.Kind() == reflect.String && f.String() == text:
			name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("parquet"), ",")
			columns = append(columns, name)
		}
	}
	return columns
}

// kept lists the columns of text that may keep any text, except url and url_*: they never refer to another
// URL, or they are content.
var kept = map[string]string{
	"fetches": "blocked_by content_digest content_mime_detected content_mime_type content_truncated domain error etag host last_modified listed_first_at listed_first_round " +
		"listed_first_source listed_last_at listed_last_round listed_last_source outcome planned_for price revisit robots_rule sent sent_from warc_filename",
	"requests": "address certificate error error_class host planned_url purpose robots_digest robots_for robots_rule robots_warc_filename sent",
	"captures": "content_charset content_digest content_languages content_mime_detected content_mime_type content_truncated payload_warc_filename revisit sent warc_filename warc_segment",
	"pages": "author certificate change content_charset content_digest content_languages content_mime_detected content_mime_type content_signal content_truncated description " +
		"document_kind duplicate_kind duplicate_of etag fetch_redirect generator keywords language language_source last_modified modified_source og_description " +
		"og_locale og_site_name og_title og_type page_hint planned_url published_source robots sent text_digest title twitter_card twitter_creator " +
		"twitter_description twitter_site twitter_title warc_filename warc_segment",
	"robots": "digest failure host origin outcome warc_filename",
}

// Every text column of every row that a fetch task records names a URL that was taken down. A column that
// is not listed below must become null: a new column that refers to a URL fails this test. The listed
// columns describe the row's own URL, which is never one that was taken down, or are content; dedup and
// publish fill duplicate_of and change.
func TestOnlyColumnsOfTheRowItselfAndOfContentKeepAName(t *testing.T) {
	g := guard(t)
	for _, text := range []string{"http://www.gone.example/x", "http://kept.example/gone"} {
		r := &segments.Record{
			Fetch: &schema.Fetch{}, Requests: make([]schema.Request, 1), Captures: make([]segments.Capture, 1), Page: &schema.Page{},
			Text: &schema.Text{}, Robots: &schema.RobotsFile{}, Links: make([]schema.Link, 1), Sitemaps: make([]schema.Sitemap, 1),
		}
		rows := map[string]reflect.Value{
			"fetches": reflect.ValueOf(r.Fetch).Elem(), "requests": reflect.ValueOf(&r.Requests[0]).Elem(), "captures": reflect.ValueOf(&r.Captures[0].Capture).Elem(),
			"pages": reflect.ValueOf(r.Page).Elem(), "robots": reflect.ValueOf(r.Robots).Elem(),
		}
		for _, row := range rows {
			fill(row, text)
		}
		r.Links[0].Target, r.Sitemaps[0].URL = text, text
		forget.Clean(r, g)
		for name, row := range rows {
			columns := slices.DeleteFunc(left(row, text), func(c string) bool { return c == "url" || strings.HasPrefix(c, "url_") })
			slices.Sort(columns)
			if diff := cmp.Diff(strings.Fields(kept[name]), columns); diff != "" {
				t.Errorf("columns of %s that keep %s (-want +got):\n%s", name, text, diff)
			}
		}
		if len(r.Links)+len(r.Sitemaps) > 0 {
			t.Errorf("links %v, sitemaps %v", r.Links, r.Sitemaps)
		}
	}
}

// emitted is a sink that keeps what it receives.
type emitted struct {
	redirects []string
	links     []string
	recorded  int
}

func (e *emitted) Archive(_ []byte, _ int, cp *warc.Capture) error {
	e.redirects = append(e.redirects, cp.Redirect)
	return nil
}

func (e *emitted) Emit(r *segments.Record) error {
	for _, l := range r.Links {
		e.links = append(e.links, l.Target)
	}
	r.OnRecorded()
	return nil
}

func TestASinkPassesOnWhatIsLeft(t *testing.T) {
	e := &emitted{}
	if s := forget.Sink(e, nil); s != segments.Sink(e) {
		t.Error("without a list, the sink is another")
	}
	s := forget.Sink(e, guard(t))
	for _, to := range []string{"http://gone.example/", "http://kept.example/", ""} {
		if err := s.Archive(nil, 2, &warc.Capture{Redirect: to}); err != nil {
			t.Fatal(err)
		}
		links := []schema.Link{{Source: "http://kept.example/", Target: "http://kept.example/a"}, {Source: "http://kept.example/", Target: "http://kept.example/gone"}}
		if err := s.Emit(&segments.Record{Links: links, OnRecorded: func() { e.recorded++ }}); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"", "http://kept.example/", ""}, e.redirects); diff != "" {
		t.Errorf("redirects (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"http://kept.example/a", "http://kept.example/a", "http://kept.example/a"}, e.links); diff != "" || e.recorded != 3 {
		t.Errorf("links of %d records (-want +got):\n%s", e.recorded, diff)
	}
}

// A redirect is known by its target's identity, in whatever form the server wrote it.
func TestTheFormOfARedirectGoesWithItsTarget(t *testing.T) {
	g := guard(t)
	for _, c := range []struct {
		target, sent string
		stays        bool
	}{
		{"http://gone.example/?a=1&b=2", "http://gone.example/?b=2&a=1", false},
		{"http://kept.example/gone", "http://kept.example/%67one?utm_source=x", false},
		{"http://kept.example/gone", "http://kept.example/gone?", false},
		{"http://kept.example/gone", "", false},
		{"http://kept.example/other", "http://kept.example/%6fther", true},
		{"http://kept.example/other", "", true},
	} {
		f := &schema.Fetch{URL: "http://kept.example/", RedirectTarget: c.target, RedirectSent: c.sent, Form: schema.Form{Sent: "http://kept.example/?", SentFrom: schema.SentByDomain}}
		want := *f
		if !c.stays {
			want.RedirectTarget, want.RedirectSent = "", ""
		}
		forget.Clean(&segments.Record{Fetch: f}, g)
		if diff := cmp.Diff(&want, f); diff != "" {
			t.Errorf("%s as %q (-want +got):\n%s", c.target, c.sent, diff)
		}
	}
}
