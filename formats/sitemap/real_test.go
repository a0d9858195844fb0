package sitemap

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestFiles reads valid and malformed sitemaps and feeds. They resemble files of real sites.
func TestFiles(t *testing.T) {
	readFiles(t, filepath.Join("testdata", "files"), map[string]string{
		"atom.xml":            "feed 2 dated 2 titled 2 summaries 2 /notes/7",
		"bare-ampersands.xml": "urlset 2 prioritised 1 https://shop.example.com/?cat=1&sub=2",
		"blank-first.xml":     "urlset 1 https://www.example.com/late-declaration",
		"cut.xml":             "urlset 4 dated 4 https://www.example.com/page/1",
		"cut.xml.gz":          "urlset 223 https://www.example.com/page/0",
		"feed.json":           "json 2 dated 2 titled 1 summaries 2 images 1 https://notes.example.org/1",
		"images.xml":          "urlset 2 images 3 https://photos.example.com/lighthouse",
		"index.xml":           "sitemapindex 3 sitemaps 3 dated 2 https://www.example.com/sitemaps/posts-1.xml",
		"languages.xml":       "urlset 2 alternates 6 https://www.example.com/en/",
		"latin-1.xml":         "urlset 1 https://www.example.com/phare-dété",
		"list-bom.txt":        "text 2 http://www.example.com/one",
		"list.txt":            "text 3 https://www.example.com/",
		"list.txt.gz":         "text 3 http://www.example.com/1",
		"login.html":          "0: root element \"html\"",
		"news.xml":            "urlset 2 dated 2 titled 2 https://news.example.com/2026/11/01/harbour",
		"nothing.xml":         "0: empty file",
		"pagemap.xml":         "urlset 1 images 1 https://www.example.com/lamp",
		"plain.xml":           "urlset 4 dated 2 daily 2 prioritised 3 https://www.example.com/",
		"plain.xml.gz":        "urlset 4 dated 2 daily 2 prioritised 3 https://www.example.com/",
		"prefixed.xml":        "urlset 2 daily 2 https://old.example.com/a",
		"rdf.xml":             "rss 2 dated 1 titled 2 summaries 1 https://old.example.org/1",
		"robots.txt":          "0: no root element of one",
		"rss-cut.xml":         "rss 1 titled 1 /whole",
		"rss.xml":             "rss 3 dated 2 titled 3 summaries 1 images 1 https://blog.example.com/oil",
		"upper-case.xml":      "urlset 1 dated 1 https://www.example.com/A",
		"utf-16.xml":          "urlset 2 https://www.example.com/Gruß",
		"videos.xml":          "urlset 1 dated 1 images 1 videos 2 https://films.example.com/fog",
		"warning-first.xml":   "urlset 1 https://www.example.com/after-a-warning",
	})
}

// TestRealFiles reads real files if they are present beside the project.
func TestRealFiles(t *testing.T) {
	const dir = "../../../shared/data/sitemaps"
	if _, err := os.Stat(dir); err != nil {
		t.Log("../shared/data/sitemaps is missing, so only TestFiles reads sitemaps")
		return
	}
	readFiles(t, dir, map[string]string{
		"atom.xml":             "feed 1 dated 1 titled 1 summaries 1 http://example.org/2003/12/13/atom03.html",
		"do-not-visit.txt":     "text 1 http://www.example.com/do-not-visit-here",
		"sitemap-with-bom.txt": "text 2 http://www.domain.com/page1.html",
		"sitemap.badns.xml":    "urlset 2 daily 2 http://www.example.com/1",
		"sitemap.index.xml":    "sitemapindex 15 sitemaps 15 https://example.com/sitemap.jss?portalCode=10260&lang=en",
		"sitemap.ns.xml":       "urlset 2 daily 2 http://www.example.com/1",
		"sitemap.txt":          "text 2 http://www.domain.com/page1.html",
		"sitemap.txt.gz":       "text 5 http://www.example.com/",
		"xmlSitemap.gz":        "urlset 5 dated 4 prioritised 2 http://www.example.com/",
		"extension/hebdenbridgetimes-articles-sitemap.xml": "urlset 74 dated 74 daily 74 images 100 videos 6 http://www.hebdenbridgetimes.co.uk/news/local/video-tour-de-yorkshire-in-calderdale-1-7242580",
		"extension/pagemaps-sitemap.xml":                   "urlset 2 images 1 http://www.example.com/foo",
		"extension/shinpaideshou-news-sitemap.xml":         "urlset 3 dated 3 titled 3 https://shinpaideshou.wordpress.com/2017/04/25/job-opening-reischauer-policy-research-fellow/",
		"extension/sitemap-images.xml":                     "urlset 1 images 2 http://www.example.com/images/some_image_landing_page.html",
		"extension/sitemap-links.xml":                      "urlset 3 alternates 9 http://www.example.com/english/",
		"extension/sitemap-mobile.xml":                     "urlset 3 http://www.example.com/mobile-friendly-1/",
		"extension/sitemap-news.xml":                       "urlset 2 dated 2 titled 2 http://www.example.org/business/article55.html",
		"extension/sitemap-videos-tvshow.xml":              "urlset 1 dated 1 images 1 videos 2 https://example.org/my-tv-show/23/13/",
		"extension/sitemap-videos.xml":                     "urlset 3 dated 1 images 3 videos 4 http://www.example.com/videos/some_video_landing_page.html",
		"rss/feed.rss":                                     "rss 4 dated 1 titled 4 summaries 1 https://www.example.com/blog/post/1",
		"rss/xmlRss_pubDate.xml":                           "rss 7 dated 5 titled 7 http://www.example.com/article_1",
	})
}

// readFiles compares one line per file of a folder with want. A line has the file's kind, the
// number of entries, their common fields and the first entry.
func readFiles(t *testing.T, dir string, want map[string]string) {
	t.Helper()
	got := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		entries, sum, err := entriesOf(t, body, Limits{})
		line := summaryText(entries, sum)
		if err != nil {
			line += ": " + strings.TrimSuffix(err.Error(), ": "+ErrUnknown.Error())
		}
		name, _ := filepath.Rel(dir, path)
		got[filepath.ToSlash(name)] = line
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("files (-want +got):\n%s", d)
	}
}

func summaryText(entries []Entry, sum Summary) string {
	names := []string{"sitemaps", "dated", "daily", "prioritised", "titled", "summaries", "alternates", "images", "videos"}
	n := map[string]int{}
	for i := range entries {
		e := &entries[i]
		for name, is := range map[string]bool{"sitemaps": e.Sitemap, "dated": !e.LastMod.IsZero(), "daily": e.ChangeFreq == "daily", "prioritised": e.Priority >= 0,
			"titled": e.Title != "", "summaries": e.Summary != ""} {
			if is {
				n[name]++
			}
		}
		n["alternates"] += len(e.Alternates)
		n["images"] += len(e.Images)
		n["videos"] += len(e.Videos)
	}
	s := fmt.Sprintf("%s %d", sum.Kind, sum.Entries)
	for _, name := range names {
		if n[name] > 0 {
			s += fmt.Sprintf(" %s %d", name, n[name])
		}
	}
	if len(entries) > 0 {
		s += " " + entries[0].Loc
	}
	return strings.TrimSpace(s)
}
