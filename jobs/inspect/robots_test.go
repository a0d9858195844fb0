package inspect

import (
	"encoding/base64"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/jobs/config"
)

// The verdict is about the URL that a crawl sends. The verdict on the canonical URL only explains.
func TestTheVerdictIsAboutWhatIsSent(t *testing.T) {
	const file = "User-agent: *\nDisallow: /q?z=1&a=2\nDisallow: /r?a=2&z=1\nAllow: /\nContent-Signal: /q?z search=no\n"
	cfg := config.Default()
	cfg.Plan.Canonical.TrailingSlash = true
	r, err := NewRobots(cfg)
	if err != nil {
		t.Fatal(err)
	}
	const base = "http://a.test"
	for _, c := range []struct {
		name, url string
		want      []string // lines about the URL
		answer    RobotsAnswer
	}{
		{"canonical and allowed", base + "/a", []string{"allowed\t" + base + "/a\tline 4: Allow: /"}, RobotsAnswer{Allowed: true, Rule: "Allow: /"}},
		{"canonical and denied", base + "/r?a=2&z=1", []string{"denied\t" + base + "/r?a=2&z=1\tline 3: Disallow: /r?a=2&z=1"}, RobotsAnswer{Rule: "Disallow: /r?a=2&z=1"}},
		{"denied as it is sent", base + "/q?z=1&a=2", []string{
			"denied\t" + base + "/q?z=1&a=2\tline 2: Disallow: /q?z=1&a=2", "  canonical\t" + base + "/q?a=2&z=1\tallowed: line 4: Allow: /",
			"content-signal\t" + base + "/q?z=1&a=2\tsearch=no",
		}, RobotsAnswer{Rule: "Disallow: /q?z=1&a=2", Canonical: base + "/q?a=2&z=1", Sent: base + "/q?z=1&a=2"}},
		{"allowed as it is sent", base + "/r?z=1&a=2", []string{
			"allowed\t" + base + "/r?z=1&a=2\tline 4: Allow: /", "  canonical\t" + base + "/r?a=2&z=1\tdenied: line 3: Disallow: /r?a=2&z=1",
		}, RobotsAnswer{Allowed: true, Rule: "Allow: /", Canonical: base + "/r?a=2&z=1", Sent: base + "/r?z=1&a=2"}},
		{"another host and a fragment do not change what is sent", "http://A.test:80/a#f", []string{"allowed\t" + base + "/a\tline 4: Allow: /"},
			RobotsAnswer{Allowed: true, Rule: "Allow: /", Canonical: base + "/a"}},
		{"rules change what is sent", base + "/q/?z=1&a=2", []string{"allowed\t" + base + "/q?a=2&z=1\tline 4: Allow: /"},
			RobotsAnswer{Allowed: true, Rule: "Allow: /", Canonical: base + "/q?a=2&z=1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out, errw strings.Builder
			r.Print(&out, &errw, []byte(file), "bot", []string{c.url})
			if got, want := out.String(), strings.Join(c.want, "\n")+"\n"; got != want || errw.Len() > 0 {
				t.Errorf("got\n%swant\n%s%s", got, want, errw.String())
			}
			a, err := r.Answer(RobotsQuestion{Robots: base64.StdEncoding.EncodeToString([]byte(file)), Agent: "bot", URL: c.url})
			if err != nil {
				t.Fatal(err)
			}
			got := a.(RobotsAnswer)
			got.Sitemaps = nil
			if got.Allowed != c.answer.Allowed || got.Rule != c.answer.Rule || got.Canonical != c.answer.Canonical || got.Sent != c.answer.Sent || got.Warning != "" {
				t.Errorf("got %+v, want %+v", got, c.answer)
			}
		})
	}
}
