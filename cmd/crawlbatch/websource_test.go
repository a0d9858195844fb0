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
	store := filepath.Join(t.TempDir(), "store")
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
		code := execute(t.Context(), []string{"plan", "--store", store, "--month", "2026-11", "--source", c.source,
			"--connect-to", "::" + strings.TrimPrefix(web.URL, "http://")}, nil, &said, &said)
		if code != c.code || !strings.Contains(said.String(), c.says) {
			t.Errorf("%s: exit %d, want %d and %q:\n%s", c.source, code, c.code, c.says, said.String())
		}
	}
}

// TestAPlanFromAURLWithASecret plans from an index whose URL and files have a token: in a new store, where
// no object, message or error may have the token, and in a store that format 9 planned
// (testdata/format9-sitemap), where the repeated plan must be the same.
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
	planIn := func(dir string, want int, args ...string) string {
		t.Helper()
		var said bytes.Buffer
		args = append([]string{"plan", "--store", dir, "--month", "2026-11", "--connect-to", "::" + strings.TrimPrefix(web.URL, "http://")}, args...)
		if code := execute(t.Context(), args, nil, &said, &said); code != want || strings.Contains(said.String(), secret) {
			t.Errorf("%q: exit %d, want %d:\n%s", args[6:], code, want, said.String())
		}
		return said.String()
	}
	old, fresh := filepath.Join(t.TempDir(), "old"), filepath.Join(t.TempDir(), "new")
	if err := os.CopyFS(old, os.DirFS("testdata/format9-sitemap")); err != nil {
		t.Fatal(err)
	}
	if before := plansIn(t, old); strings.Count(before, secret) < 8 {
		t.Fatalf("the plan of format 9 has no secrets, so it tests nothing:\n%s", before)
	}
	quick := filepath.Join(t.TempDir(), "quick.yaml") // the plan of format 9 predicts another delay
	if err := os.WriteFile(quick, []byte("politeness: {delay: 1ms}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	said := planIn(fresh, exitDone, "--source", name, "--config", quick)
	for _, dir := range []string{old, fresh} {
		args := []string{"--source", name, "--config", quick}
		if dir == old {
			args = args[:2]
		}
		if said := planIn(dir, exitDone, args...); !strings.Contains(said, "had planned, the same,") {
			t.Errorf("%s:\n%s", dir, said)
		}
	}
	if said := planIn(old, exitUsage, "--source", strings.Replace(name, "index", "s", 1), "--config", quick); !strings.Contains(said, "use --replace") {
		t.Error(said)
	}
	planIn(fresh, exitUsage, "--source", strings.Replace(name, "index", "missing", 1), "--config", quick)
	said += planIn(old, exitDone, "--source", name, "--replace", "--config", quick)
	var all [2]string
	for i, dir := range []string{old, fresh} {
		if all[i] = plansIn(t, dir); strings.Contains(said, "the same") || strings.Count(all[i], "?token=***") < 8 {
			t.Errorf("%s\n%s", said, all[i])
		}
	}
	if !strings.Contains(all[0], secret) || strings.Contains(all[1], secret) { // the replaced plan stays
		t.Errorf("old:\n%s\nnew:\n%s", all[0], all[1])
	}
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
