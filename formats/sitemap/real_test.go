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

// TestRealFiles reads real and malformed files; what each has is what its name promises.
// A line is the kind, the number of entries, what the entries have together, the first.
func TestRealFiles(t *testing.T) {
	const dir = "../../../shared/data/sitemaps"
	if _, err := os.Stat(dir); err != nil {
		t.Skip("needs ../shared/data/sitemaps beside the repository")
	}
	want := map[string]string{
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
	}
	got := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		entries, sum, err := all(t, body, Limits{})
		if err != nil {
			t.Errorf("%s: %v", path, err)
		}
		name, _ := filepath.Rel(dir, path)
		got[filepath.ToSlash(name)] = told(entries, sum)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("files (-want +got):\n%s", d)
	}
}

func told(entries []Entry, sum Summary) string {
	names := []string{"sitemaps", "dated", "daily", "prioritised", "titled", "summaries", "alternates", "images", "videos"}
	n := map[string]int{}
	for i := range entries {
		e := &entries[i]
		for name, is := range map[string]bool{"sitemaps": e.Sitemap, "dated": e.LastMod != 0, "daily": e.ChangeFreq == "daily", "prioritised": e.Priority >= 0,
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
