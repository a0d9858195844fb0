package websource

import (
	"errors"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/planner/source"
)

// TestNoSecretOfASourceIsTold reads an index and sitemaps whose URLs have a token. The server must get
// the token. Names, entries, reasons, progress and errors must not hold it.
func TestNoSecretOfASourceIsTold(t *testing.T) {
	const secret = "s3cret"
	s := newSite(t)
	s.pages["example.com/robots.txt"] = "User-agent: *\nDisallow: /denied\n"
	index := "<sitemapindex>"
	for _, at := range []string{"a.xml", "missing.xml", "denied.xml", "away.xml", "loop.xml", "page.xml", "cut.xml", "a.xml", "b.xml", "c.xml", "d.xml"} {
		index += "<sitemap><loc>http://example.com/" + at + "?token=" + secret + "&amp;n=" + at + "</loc></sitemap>"
	}
	s.pages["example.com/index.xml"] = index + "<sitemap><loc>http://other.net/s.xml?token=s3cret</loc></sitemap>" +
		"<sitemap><loc>http://exa mple.com/?token=s3cret</loc></sitemap></sitemapindex>"
	urlset := "<urlset><url><loc>http://example.com/1?page=1</loc></url><url></url></urlset>"
	for _, at := range []string{"a.xml", "b.xml", "c.xml", "d.xml"} {
		s.pages["example.com/"+at] = urlset
	}
	s.pages["example.com/away.xml"] = "location:http://other.net/s.xml?token=s3cret"
	s.pages["example.com/loop.xml"] = "location:/loop.xml?token=s3cret"
	s.pages["example.com/page.xml"] = "<html>no</html>"
	s.pages["example.com/cut.xml"] = `{"version":"https://jsonfeed.org/version/1","items":[{"url":"/1"},{"url":"/2`
	s.codes["example.com/503.xml"] = 503
	name := "sitemap:http://example.com/index.xml?token=" + secret + "&n=0"
	got, err := s.readAll(t.Context(), name)
	if err != nil || len(got) < 12 || len(s.told) == 0 {
		t.Fatalf("%d entries, told %q, %v:\n%s", len(got), s.told, err, strings.Join(got, "\n"))
	}
	if all := strings.Join(append(append(got, s.told...), s.logged.String()), "\n"); strings.Contains(all, secret) || !strings.Contains(all, "a.xml?token=***&n=a.xml:1 /1?page=1 500") {
		t.Errorf("the secret is told, or files lack their names:\n%s", all)
	}
	if n := strings.Count(strings.Join(s.queries, " "), "token="+secret); n < 9 {
		t.Errorf("%d requests had the token: %q", n, s.queries)
	}
	src, err := source.Open(t.Context(), name, source.Options{Schemes: Openers()})
	if err != nil || src.Name() != "sitemap:http://example.com/index.xml?token=***&n=0" {
		t.Errorf("%v, %v", src, err)
	}
	for _, name := range []string{
		"http://example.com/s?token=s3cret", "sitemap:ftp://example.com/s?token=s3cret", "sitemap:example.com/s?token=s3cret",
		"sitemap:http://example.com/s?token=s3cret#s3cret", "sitemap:http://exa mple.com/s?token=s3cret",
		"sitemap:http://example.com/404?token=s3cret", "sitemap:http://example.com/503.xml?token=s3cret",
		"sitemap:http://example.com/away.xml?token=s3cret", "sitemap:http://example.com/loop.xml?token=s3cret",
	} {
		_, err = s.readAll(t.Context(), name)
		if !errors.Is(err, ErrName) && !errors.Is(err, ErrRefused) && !errors.Is(err, source.ErrUnavailable) || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestTheNameOfASourceWithoutSecretsIsItsText guards plan IDs, which depend on the names of sources.
func TestTheNameOfASourceWithoutSecretsIsItsText(t *testing.T) {
	for _, name := range []string{"sitemap:http://example.com/s.xml?from=1&to=2", "Feed: http://example.com/rss?", "sitemap://example.com/s%20?a=%zz"} {
		src, err := open(t.Context(), name, source.Options{})
		if err != nil || src.Name() != name {
			t.Errorf("%q: %v, %v", name, src, err)
		}
	}
}
