package parse

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"crawlbatch.io/crawlbatch/formats/document"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/stages/parse/charset"
	"crawlbatch.io/crawlbatch/stages/parse/fold"
	"crawlbatch.io/crawlbatch/stages/parse/parsetest"
)

// treeMeta holds values from x/net/html's tree of a page. Tests compare a treeMeta with the columns
// that depend on one attribute of one element.
type treeMeta struct {
	metas             map[string]string // content of the first meta element, by name or property
	base              string
	canonicals, feeds []string // references of the canonical links and of the links to feeds
	icons             map[string][]string
	hreflangs         map[string]string // reference of each hreflang; the language tags are in lower case
}

func readTreeMeta(t *testing.T, doc []byte) *treeMeta {
	t.Helper()
	root, err := html.ParseWithOptions(bytes.NewReader(doc), html.ParseOptionEnableScripting(false))
	if err != nil {
		t.Fatal(err)
	}
	m := &treeMeta{metas: map[string]string{}, icons: map[string][]string{}, hreflangs: map[string]string{}}
	for n := range root.Descendants() {
		switch n.DataAtom {
		case atom.Base:
			if m.base == "" {
				m.base = parsetest.Attr(n, "href")
			}
		case atom.Meta:
			content := strings.Join(strings.FieldsFunc(parsetest.Attr(n, "content"), fold.IsSpace), " ")
			for _, key := range []string{"name", "property"} {
				name := strings.ToLower(parsetest.Attr(n, key))
				if m.metas[name] == "" {
					m.metas[name] = content
				}
			}
		case atom.Link:
			href := strings.TrimSpace(parsetest.Attr(n, "href"))
			if href == "" {
				continue
			}
			rel := strings.Fields(strings.ToLower(parsetest.Attr(n, "rel")))
			has := func(w string) bool { return slices.Contains(rel, w) }
			kind, lang := parsetest.Attr(n, "type"), parsetest.Attr(n, "hreflang")
			switch {
			case has("canonical"):
				m.canonicals = append(m.canonicals, href)
			case has("alternate") && (strings.Contains(kind, "rss+xml") || strings.Contains(kind, "atom+xml")):
				m.feeds = append(m.feeds, href)
			case has("alternate") && lang != "":
				m.hreflangs[strings.ToLower(lang)] = href
			}
			for _, w := range []string{"icon", "apple-touch-icon", "apple-touch-icon-precomposed"} {
				if has(w) {
					m.icons[w] = append(m.icons[w], href)
				}
			}
		}
	}
	return m
}

func TestMetadataOfRealPagesIsWhatTheTreeSays(t *testing.T) {
	canon, err := urlkey.New([]string{"utm_*", "fbclid", "gclid"})
	if err != nil {
		t.Fatal(err)
	}
	p := newParser(t)
	compared := map[string]int{}
	pages, real := parsetest.Pages(t)
	for _, page := range pages {
		doc, _ := charset.Decode(page.Body, "text/html")
		m := readTreeMeta(t, doc)
		r := p.Parse(&document.Document{URL: page.URL, ContentType: "text/html", Body: page.Body})
		checkPromises(t, p, &document.Document{URL: page.URL}, r)
		base := page.URL
		if b, err := urlkey.WHATWG(m.base, page.URL); m.base != "" && err == nil {
			base = b
		}
		target := func(refs ...string) string {
			for _, ref := range refs {
				if k, err := canon.Canonical(ref, base); ref != "" && err == nil {
					return k.URL
				}
			}
			return ""
		}
		same := func(column, want string) {
			t.Helper()
			if got := pageColumns(r, column)[column]; got != want {
				t.Errorf("%s: %s is %q, the tree says %q", page.Name, column, got, want)
			}
			if want != "" {
				compared[column]++
			}
		}
		for _, name := range []string{"og:title", "og:description", "og:site_name", "og:locale", "twitter:title", "twitter:description", "description", "generator"} {
			same(strings.ReplaceAll(name, ":", "_"), m.metas[name])
		}
		same("og_type", strings.ToLower(m.metas["og:type"]))
		same("twitter_card", strings.ToLower(m.metas["twitter:card"]))
		same("og_image", target(m.metas["og:image"], m.metas["og:image:url"], m.metas["og:image:secure_url"]))
		same("og_url", target(m.metas["og:url"]))
		same("canonical_url", target(m.canonicals...))
		same("favicon", target(slices.Concat(m.icons["icon"], m.icons["apple-touch-icon"], m.icons["apple-touch-icon-precomposed"])...))

		var feeds, wantFeeds []string
		langs, wantLangs := map[string]string{}, map[string]string{}
		for _, l := range r.Links {
			switch l.Kind {
			case schema.KindFeed:
				feeds = append(feeds, l.Target)
			case schema.KindHreflang:
				langs[strings.ToLower(l.Hreflang)] = l.Target
			}
		}
		for _, f := range m.feeds {
			wantFeeds = append(wantFeeds, target(f))
		}
		for lang, ref := range m.hreflangs {
			wantLangs[strings.ReplaceAll(lang, "_", "-")] = target(ref)
		}
		if d := cmp.Diff(wantFeeds, feeds) + cmp.Diff(wantLangs, langs); d != "" {
			t.Errorf("%s: feeds and languages of the tree (-) and of the pass (+):\n%s", page.Name, d)
		}
		compared["feeds"] += len(feeds)
		compared["hreflang"] += len(langs)
	}
	wanted := map[string]int{"og_title": 8, "og_image": 8, "og_url": 8, "canonical_url": 8, "favicon": 8, "twitter_card": 8, "generator": 60, "feeds": 8, "hreflang": 4}
	if real {
		wanted = map[string]int{"og_title": 93, "og_image": 93, "og_url": 88, "canonical_url": 88, "favicon": 88, "twitter_card": 83, "generator": 80, "feeds": 88, "hreflang": 24}
	}
	for column, least := range wanted {
		if compared[column] < least {
			t.Errorf("%s: compared %d values only, not %d", column, compared[column], least)
		}
	}
}
