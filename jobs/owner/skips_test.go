package owner

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/schema"
)

func fetchOf(url string, outcome schema.Outcome, attempts int32) *schema.Fetch {
	return &schema.Fetch{URL: url, Host: "a.test", Outcome: outcome, Attempts: attempts}
}

func TestURLsWithoutARequestAreGroupedByReason(t *testing.T) {
	s := skips{most: 4}
	add := func(f *schema.Fetch) {
		if row := notRequested("2026-11.0", f); row != nil {
			s.add(row)
		}
	}
	for i := range 5 {
		f := fetchOf(fmt.Sprintf("http://a.test/%d", i), schema.Deferred, 0)
		add(f)
	}
	denied := fetchOf("http://a.test/private", schema.RobotsDenied, 0)
	denied.RobotsRule = "Disallow: /private"
	add(denied)
	redirect := fetchOf("http://a.test/moved", schema.RobotsDenied, 1)
	redirect.RobotsRule, redirect.Error, redirect.ErrorDetail = "Allow: /", schema.RedirectDenied, "http://a.test/private: Disallow: /private"
	add(redirect)
	add(fetchOf("http://a.test/ok", schema.OK, 1))
	down := fetchOf("http://a.test/x", schema.RobotsUnreachable, 0)
	down.Error = "robots.txt answered 503"
	add(down)

	var out strings.Builder
	s.print(&out, "crawlbatch host a.test")
	want := `
8 URLs without a request, by reason (all of them: crawlbatch host a.test -o csv):
5 deferred
    http://a.test/0
  and 4 more
1 robots_denied (robots.txt: Disallow: /private)
    http://a.test/private
1 robots_denied after a redirect (robots.txt: Disallow: /private)
    http://a.test/moved → http://a.test/private
1 robots_unreachable (robots.txt answered 503)
    http://a.test/x
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// A server decides how many rules its robots.txt has.
func TestReasonsAreBounded(t *testing.T) {
	s := skips{most: 1}
	for i := range 3 * mostReasons {
		f := fetchOf("http://a.test/", schema.RobotsDenied, 0)
		f.RobotsRule = fmt.Sprint("Disallow: /", i)
		s.add(notRequested("2026-11.0", f))
	}
	var out strings.Builder
	s.print(&out, "crawlbatch host a.test")
	if len(s.groups) != mostReasons+1 || !strings.Contains(out.String(), fmt.Sprintf("\n%d another reason\n", 2*mostReasons)) {
		t.Errorf("%d groups:\n%s", len(s.groups), out.String())
	}
}

// The log of a server has URLs as they were sent.
func TestARequestIsListedAsItWasSent(t *testing.T) {
	const url, linked = "http://a.test/?a=1&b=2", "http://a.test/?b=2&a=1"
	for sent, want := range map[string]string{"": url, linked: linked} {
		if row := requestRow("2026-11.0", &schema.Request{URL: url, Sent: sent, PlannedURL: url}); row.URL != want || row.PlannedURL != url {
			t.Errorf("sent %q: %s for %s, want %s", sent, row.URL, row.PlannedURL, want)
		}
	}
}
