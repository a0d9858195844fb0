package parse

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/document"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/stages/simweb"
	"crawlbatch.io/crawlbatch/stages/simweb/truth"
)

// TestRowsEqualTheTruthOfASyntheticWeb parses every document of a synthetic web in the form in
// which the server sends it. The test compares the rows with the web's own description.
func TestRowsEqualTheTruthOfASyntheticWeb(t *testing.T) {
	cfg := simweb.Default()
	cfg.Seed, cfg.Hosts, cfg.PagesPerHost = 7, 5, 40
	web, err := simweb.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	tc := truth.Default()
	correct, err := truth.Compute(web, tc)
	if err != nil {
		t.Fatal(err)
	}
	canon, err := urlkey.New(tc.StripParams)
	if err != nil {
		t.Fatal(err)
	}
	p, err := New(Config{Canonicalizer: canon})
	if err != nil {
		t.Fatal(err)
	}
	client := clientOf(t, web)
	links := map[string][]truth.Link{}
	for _, round := range correct.Rounds {
		for _, l := range round.Links {
			links[l.Source] = append(links[l.Source], l)
		}
	}
	compared := 0
	for _, round := range correct.Rounds {
		for _, want := range round.Pages {
			if !want.TextKnown {
				continue
			}
			resp, err := client.Get(want.URL)
			if err != nil {
				continue // the tests of stage fetch cover faults on the wire
			}
			body, err := io.ReadAll(io.LimitReader(resp.Body, truth.MaxBody))
			resp.Body.Close()
			if err != nil || resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Encoding") != "" { // the tests of stage fetch cover content codings
				continue
			}
			r := p.Parse(&document.Document{URL: want.URL, ContentType: resp.Header.Get("Content-Type"), Header: resp.Header.Values, Body: body, Depth: want.Depth})
			got := want
			got.Title, got.Description, got.Keywords, got.Author = r.Page.Title, r.Page.Description, r.Page.Keywords, r.Page.Author
			got.Language, got.CanonicalURL, got.Robots, got.Indexable = r.Page.Language, r.Page.CanonicalURL, r.Page.Robots, r.Page.Indexable
			got.Outlinks, got.WordCount, got.Main = r.Page.Outlinks, r.Page.WordCount, r.Text.Main
			got.TextDigest, got.SimHash = r.Page.TextDigest, uint64(r.Page.SimHash)
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("%s (-truth +parsed):\n%s", want.URL, d)
			}
			var gotLinks []truth.Link
			for _, l := range r.Links {
				gotLinks = append(gotLinks, truth.Link{Source: l.Source, Target: l.Target, Anchor: l.Anchor, Rel: l.Rel, Kind: l.Kind, Nofollow: l.Nofollow,
					Position: l.Position, Hreflang: l.Hreflang, Ordinal: l.Ordinal})
			}
			if d := cmp.Diff(links[want.URL], gotLinks); d != "" {
				t.Errorf("%s: links (-truth +parsed):\n%s", want.URL, d)
			}
			compared++
		}
	}
	if compared < 100 {
		t.Errorf("compared %d pages only", compared)
	}
}

// clientOf serves a web on loopback and returns a client that sends all requests to that web.
func clientOf(t *testing.T, web *simweb.Web) *http.Client {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- simweb.NewServer(web, simweb.NewLog(nil)).Serve(ctx, ln) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	addr := ln.Addr().String()
	return &http.Client{
		Transport: &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, addr)
		}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
