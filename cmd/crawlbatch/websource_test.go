package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/cmd/crawltest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/formats/table"
)

// TestPlanReadsASitemapFromTheWeb plans from a sitemap twice, and from sitemaps that cannot be read.
func TestPlanReadsASitemapFromTheWeb(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/robots.txt":
			_, _ = w.Write([]byte("User-agent: *\nDisallow: /denied\n"))
		case "/s.xml":
			_, _ = w.Write([]byte("<urlset><url><loc>/1</loc></url><url><loc>/2</loc></url><url><loc>http://other.net/</loc></url></urlset>"))
		default:
			http.NotFound(w, r)
		}
	}))
	defer web.Close()
	store, conf := filepath.Join(t.TempDir(), "store"), undelayed(t)
	for _, c := range []struct {
		source string
		code   int
		says   string
	}{
		{"sitemap:http://example.com/s.xml", exitDone, "2 URLs, 1 host"},
		{"sitemap:http://example.com/s.xml", exitDone, "had planned, the same,"},
		{"sitemap:http://example.com/s.xml", exitDone, "bad_record 1"},
		{"sitemap:http://example.com/404.xml", exitUsage, "it answered 404"},
		{"sitemap:http://example.com/denied.xml", exitUsage, "robots.txt denies it"},
		{"http://example.com/s.xml", exitUsage, "write sitemap:http://example.com/s.xml"},
	} {
		var said bytes.Buffer
		code := execute(t.Context(), []string{"plan", "--store", store, "--config", conf, "--month", "2026-11", "--source", c.source,
			"--connect-to", "::" + strings.TrimPrefix(web.URL, "http://")}, nil, &said, &said)
		if code != c.code || !strings.Contains(said.String(), c.says) {
			t.Errorf("%s: exit %d, want %d and %q:\n%s", c.source, code, c.code, c.says, said.String())
		}
	}
}

// TestAPlanFromAURLWithASecret plans from an index whose URL and files have a token. No object, message or error may
// have the token, and a repeated plan must be the same.
func TestAPlanFromAURLWithASecret(t *testing.T) {
	const name, secret = "sitemap:http://example.com/index.xml?token=s3cret", "s3cret"
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		const file = "<sitemap><loc>http://example.com/%s.xml?token=s3cret</loc></sitemap>"
		switch r.URL.Path {
		case "/robots.txt":
			_, _ = w.Write([]byte("User-agent: *\nDisallow: /denied\n"))
		case "/index.xml":
			fmt.Fprintf(w, "<sitemapindex>"+file+file+file+"</sitemapindex>", "s", "missing", "away")
		case "/s.xml":
			_, _ = w.Write([]byte("<urlset><url><loc>/1</loc></url><url><loc>/2</loc></url><url><loc>http://other.net/</loc></url></urlset>"))
		case "/away.xml":
			http.Redirect(w, r, "http://other.net/s.xml?token=s3cret", http.StatusFound)
		default:
			http.NotFound(w, r)
		}
	}))
	defer web.Close()
	dir, conf := filepath.Join(t.TempDir(), "store"), undelayed(t)
	planFrom := func(source string, want int, args ...string) string {
		t.Helper()
		var said bytes.Buffer
		args = append([]string{"plan", "--store", dir, "--config", conf, "--month", "2026-11", "--source", source, "--connect-to", "::" + strings.TrimPrefix(web.URL, "http://")}, args...)
		if code := execute(t.Context(), args, nil, &said, &said); code != want || strings.Contains(said.String(), secret) {
			t.Errorf("%q: exit %d, want %d:\n%s", args[7:], code, want, said.String())
		}
		return said.String()
	}
	first := planFrom(name, exitDone)
	if said := planFrom(name, exitDone); !strings.Contains(said, "had planned, the same,") {
		t.Error(said)
	}
	if said := planFrom(strings.Replace(name, "index", "s", 1), exitUsage); !strings.Contains(said, "use --replace") {
		t.Error(said)
	}
	planFrom(strings.Replace(name, "index", "missing", 1), exitUsage)
	if all := plansIn(t, dir); strings.Count(all, "?token=***") < 8 || strings.Contains(all, secret) {
		t.Errorf("%s\n%s", first, all)
	}
}

// undelayed writes a config whose requests wait for nothing.
func undelayed(t *testing.T) (conf string) {
	conf = filepath.Join(t.TempDir(), "c.yaml")
	crawltest.Write(t, conf, "politeness: {delay: 0s}\n")
	return conf
}

// plansIn returns the documents and the rows of all plans of round 0 in a directory.
func plansIn(t *testing.T, dir string) string {
	t.Helper()
	b, err := dirstore.Open(dir, dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	err = fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := os.ReadFile(filepath.Join(dir, path))
		all.Write(body)
		switch name := d.Name(); {
		case strings.HasPrefix(name, "part-"):
			for row, rerr := range table.Concat[schema.PlannedRow](t.Context(), b, []string{path}) {
				fmt.Fprintf(&all, "%+v\n", row)
				err = rerr
			}
		case name == "refused.parquet":
			for row, rerr := range table.Concat[schema.Refused](t.Context(), b, []string{path}) {
				fmt.Fprintf(&all, "%+v\n", row)
				err = rerr
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}
