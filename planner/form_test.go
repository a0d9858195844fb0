package planner

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/planner/scope"
	"crawlbatch.io/crawlbatch/planner/source"
)

const formURL = "http://a.example/q?a&b"

// at returns a URL of a.example.
func at(rest string) string { return "http://a.example/" + rest }

// sentFrom returns a form of a URL of a.example. An empty rest stands for the canonical URL.
func sentFrom(rest string, from schema.SentFrom) schema.Form {
	if rest == "" {
		return schema.Form{SentFrom: from}
	}
	return schema.Form{Sent: at(rest), SentFrom: from}
}

// knownAs is a known URL with a last content, which is due.
func knownAs(url, sent string, from schema.SentFrom) source.Entry {
	return source.Entry{URL: url, Due: true, Fetches: 2, FetchedAt: 5, ETag: "e", LastModified: "m", ContentDigest: "D", Form: sentFrom(sent, from),
		Content: source.Content{At: 1, Filename: "w", Offset: 2, Length: 3}}
}

// formPlan plans sources and returns "sent from [validators]" for the planned URL, or the reason for which it is refused.
func formPlan(t *testing.T, cfg Config, url string, sources ...source.Source) string {
	t.Helper()
	_, parts, refused := commitAndRead(t, bucket(t), plan(t, cfg, append(sources, lines("http://other.example/"))...))
	for _, u := range slices.Concat(parts...) {
		if u.URL != url {
			continue
		}
		got := cmp.Or(strings.TrimPrefix(u.Sent, "http://a.example/"), "-") + " " + string(u.SentFrom)
		if u.ETag != "" || u.LastModified != "" || u.WARCFilename != "" || u.WARCRecordLen != 0 {
			got += " conditional"
			if u.ETag != "e" || u.LastModified != "m" || u.WARCFilename != "w" || u.WARCRecordOff != 2 || u.WARCRecordLen != 3 {
				t.Errorf("planned %+v", u)
			}
		}
		if (u.Fetches > 0) != (u.ContentDigest == "D") {
			t.Errorf("planned %+v", u)
		}
		return got
	}
	for _, r := range refused {
		if r.URL == url {
			return string(r.Reason) + " " + r.Detail
		}
	}
	return ""
}

// A list names the same URL in several forms, and earlier rounds know it in others.
func TestAURLIsPlannedInOneForm(t *testing.T) {
	answered := knownAs(formURL, "q?b&a", schema.SentAnswered)
	for _, tc := range []struct {
		name  string
		known []source.Entry
		lines string // rests of the lines of a list
		want  string
	}{
		{"canonical", nil, "q?a&b", "- source"},
		{"as it is listed", nil, "q?b&a", "q?b&a source"},
		{"with a tracking parameter", nil, "q?b&utm_x=1&a", "q?b&utm_x=1&a source"},
		{"an escape, an empty parameter", nil, "%71?a&&b", "%71?a&&b source"},
		{"what is never sent", nil, "x/../q?a&b#top", "- source"},
		{"canonical, of several", nil, "q?b&a q?a&b %71?a&b", "- source"},
		{"the shortest of several", nil, "q?a&b&&& q?a&b& %71?a&b", "q?a&b& source"},
		{"the least of the shortest", nil, "q?b&a& q?a&b& q?a&&b", "q?a&&b source"},

		{"a source comes before what answered", []source.Entry{answered}, "%71?a&b", "%71?a&b source"},
		{"a source in the canonical form too", []source.Entry{answered}, "q?a&b", "- source"},
		{"a source in the same form keeps the content", []source.Entry{answered}, "q?b&a", "q?b&a source conditional"},
		{"one of the sources' forms gave the content", []source.Entry{answered}, "%71?a&b q?b&a", "q?b&a source conditional"},
		{"history alone", []source.Entry{answered}, "", "q?b&a answered conditional"},
		{"history alone, canonical", []source.Entry{knownAs(formURL, "", schema.SentAnswered)}, "", "- answered conditional"},
		{"a link's", []source.Entry{knownAs(formURL, "q?b&a", schema.SentByDomain)}, "", "q?b&a domain conditional"},
		{"a stranger's", []source.Entry{knownAs(formURL, "q?b&a", schema.SentByStranger)}, "", "q?b&a stranger conditional"},
		{"one that failed for good", []source.Entry{knownAs(formURL, "q?b&a", schema.SentByNobody)}, "", "q?b&a  conditional"},
		{"one that failed for good, and a source", []source.Entry{knownAs(formURL, "", schema.SentByNobody)}, "q?b&a", "q?b&a source"},
		{"known, not due, and listed", []source.Entry{notDue(answered)}, "%71?a&b", "%71?a&b source"},
		{"history of a listed URL", []source.Entry{history(notDue(answered))}, "q?b&a", "q?b&a source conditional"},
		{"history of a URL that is listed in another form", []source.Entry{history(notDue(answered))}, "q?a&b", "- source"},
		{"history of a URL that nothing lists", []source.Entry{history(notDue(answered))}, "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cfg := Default()
			cfg.StripParams = []string{"utm_*"}
			var texts []string
			for _, s := range strings.Fields(tc.lines) {
				texts = append(texts, at(s))
			}
			for seed := range uint64(6) { // the order of entries and sources does not matter
				random := rand.New(rand.NewPCG(seed, 1))
				random.Shuffle(len(texts), func(i, j int) { texts[i], texts[j] = texts[j], texts[i] })
				sources := []source.Source{known(slices.Clone(tc.known)...), lines(texts...)}
				random.Shuffle(len(sources), func(i, j int) { sources[i], sources[j] = sources[j], sources[i] })
				if got := formPlan(t, cfg, formURL, sources...); got != tc.want {
					t.Fatalf("planned %q, want %q", got, tc.want)
				}
			}
		})
	}
}

// Answered forms come before links, and those of the URL's domain before others, also if two earlier rounds know the URL.
func TestAnsweredFormsComeBeforeLinks(t *testing.T) {
	classes := []schema.SentFrom{schema.SentAnswered, schema.SentByDomain, schema.SentByStranger, schema.SentByNobody}
	for i, better := range classes {
		for _, worse := range classes[i+1:] {
			for _, entries := range [][]source.Entry{
				{knownAs(formURL, "q?b&a", better), knownAs(formURL, "", worse)}, {knownAs(formURL, "", worse), knownAs(formURL, "q?b&a", better)},
			} {
				want := "q?b&a " + string(better)
				if entries[0].Form.SentFrom == better {
					want += " conditional" // the first entry has the newest content
				}
				if got := formPlan(t, Default(), formURL, known(entries...)); got != want {
					t.Errorf("%s and %s: planned %q, want %q", better, worse, got, want)
				}
			}
		}
	}
}

// By default, a parameter that names a part of the site stays. Only those that all sites use for tracking are stripped.
func TestParametersMakeURLs(t *testing.T) {
	var texts, want []string
	for n := range 5 {
		texts = append(texts, at(fmt.Sprint("item?ref=", n+1)))
	}
	want = slices.Clone(texts)
	texts = append(texts, at("item?ref=1&utm_source=x"), at("view?OpenView&Count=5"))
	want = append(want, at("view?Count=5&OpenView"))
	cfg := Default()
	cfg.StripParams = []string{"utm_*", "fbclid", "gclid"} // as package config has it
	_, parts, _ := commitAndRead(t, bucket(t), plan(t, cfg, lines(texts...)))
	if d := gocmp.Diff(want, planned(parts)); d != "" {
		t.Error(d)
	}
	for _, u := range slices.Concat(parts...) {
		if want := map[string]string{at("view?Count=5&OpenView"): at("view?OpenView&Count=5")}[u.URL]; u.Sent != want || u.SentFrom != schema.SentBySource {
			t.Errorf("%s is asked for as %+v", u.URL, u.Form)
		}
	}
	cfg.StripParams = append(cfg.StripParams, "ref")
	_, parts, _ = commitAndRead(t, bucket(t), plan(t, cfg, lines(texts...)))
	if got := planned(parts); !slices.Equal(got, []string{at("item"), at("view?Count=5&OpenView")}) || parts[0][0].Sent != at("item?ref=1") {
		t.Errorf("with ref, planned %q: %+v", got, parts)
	}
}

// What matches the form in which a URL is asked for matches the URL. A refused form of a list leaves the others as they are.
func TestTheScopeJudgesTheForm(t *testing.T) {
	exclude := func(c *Config) { c.Exclude = []string{"*print=*"} }
	filter := func(c *Config) { c.Filters = []scope.Filter{{Name: "print", Match: "print="}} }
	optOut := func(c *Config) {
		var err error
		if c.OptOut, err = readOptOut(t, "a.example/*print=*\n", urlkey.Rules{}); err != nil {
			t.Fatal(err)
		}
	}
	include := func(c *Config) { c.Include = []string{"other.example", "*print=*"} }
	const url = "http://a.example/x"
	for _, tc := range []struct {
		name   string
		change func(*Config)
		from   []source.Source
		want   string
	}{
		{"an exclude pattern, listed", exclude, []source.Source{lines(at("x?print=1"))}, "out_of_scope *print=*"},
		{"an exclude pattern, known", exclude, []source.Source{known(knownAs(url, "x?print=1", schema.SentAnswered))}, "out_of_scope *print=*"},
		{"a filter, listed", filter, []source.Source{lines(at("x?print=1"))}, "filtered print"},
		{"a filter, known", filter, []source.Source{known(knownAs(url, "x?print=1", schema.SentByDomain))}, "filtered print"},
		{"the opt-out list, listed", optOut, []source.Source{lines(at("x?print=1"))}, "opt_out a.example/*print=*"},
		{"the opt-out list, known", optOut, []source.Source{known(knownAs(url, "x?print=1", schema.SentAnswered))}, "opt_out a.example/*print=*"},
		{"listed, and known in a form that is not due", optOut, []source.Source{lines(at("x")), known(notDue(knownAs(url, "x?print=1", schema.SentAnswered)))}, "- source"},
		{"listed in two forms", exclude, []source.Source{lines(at("x?print=1"), at("x?print=2"), at("x?&"))}, "x?& source"},
		{"listed, and known in a better one", exclude, []source.Source{lines(at("x?print=1")), known(knownAs(url, "", schema.SentAnswered))}, "- answered conditional"},
		{"the form is included", include, []source.Source{lines(at("x?print=1"))}, "x?print=1 source"},
		{"only another form is included", include, []source.Source{lines(at("x"))}, "out_of_scope include"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cfg := Default()
			cfg.StripParams = []string{"print"}
			tc.change(&cfg)
			if got := formPlan(t, cfg, url, tc.from...); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
	cfg := Default()
	cfg.StripParams = []string{"print"}
	exclude(&cfg)
	if _, reason, detail, err := Judge(cfg, at("x?print=1"), ""); err != nil || reason != schema.SkipOutOfScope || detail != "*print=*" {
		t.Errorf("judged %q %q, %v", reason, detail, err)
	}
}

// Rules that change path or query make another resource, which is asked for in the canonical form. Rules for scheme and host
// keep the path as it is linked.
func TestRulesAndForms(t *testing.T) {
	for _, tc := range []struct {
		name, text, url, sent string
		rules                 urlkey.Rules
	}{
		{"https", "http://a.example/%7Ex?b&utm_x&a", "https://a.example/~x?a&b", "https://a.example/%7Ex?b&utm_x&a", urlkey.Rules{HTTPS: []string{"a.example"}}},
		{"www", "http://www.a.example/%7Ex?b&a", "http://a.example/~x?a&b", "http://a.example/%7Ex?b&a", urlkey.Rules{WWW: true}},
		{"index files", "http://a.example/%7Ex/index.html?b&a", "http://a.example/~x/?a&b", "", urlkey.Rules{IndexFiles: true}},
		{"a trailing slash", "http://a.example/%7Ex/", "http://a.example/~x", "", urlkey.Rules{TrailingSlash: true}},
		{"a rule that changes nothing", "http://a.example/%7Ex", "http://a.example/~x", "http://a.example/%7Ex", urlkey.Rules{TrailingSlash: true}},
		{"a rewrite", "http://a.example/print/%7Ex", "http://a.example/~x", "", urlkey.Rules{Rewrite: []urlkey.Rewrite{{Match: "/print/", Replace: "/"}}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cfg := Default()
			cfg.StripParams, cfg.Rules = []string{"utm_*"}, tc.rules
			_, parts, _ := commitAndRead(t, bucket(t), plan(t, cfg, lines(tc.text)))
			if u := parts[0][0]; u.URL != tc.url || u.Sent != tc.sent || u.SentFrom != schema.SentBySource {
				t.Errorf("planned %+v", u)
			}
		})
	}
}

// A rule for the scheme is switched on in a later month: the URL is another, and is asked for with the path as it was linked.
func TestRulesOfALaterMonthKeepThePathAsItWasLinked(t *testing.T) {
	cfg := Default()
	cfg.Rules = urlkey.Rules{HTTPS: []string{"a.example"}}
	for from, want := range map[schema.SentFrom]schema.SentFrom{
		schema.SentAnswered: schema.SentByDomain, schema.SentByDomain: schema.SentByDomain, schema.SentByStranger: schema.SentByStranger,
	} {
		_, parts, _ := commitAndRead(t, bucket(t), plan(t, cfg, known(knownAs(formURL, "q?b&a", from))))
		if u := parts[0][0]; u.URL != "https://a.example/q?a&b" || u.Form != (schema.Form{Sent: "https://a.example/q?b&a", SentFrom: want}) || u.ETag != "" {
			t.Errorf("planned %+v", u)
		}
	}
}

// A later month strips other parameters. Then a form from an earlier month may be of another URL, and it is dropped with the
// validators that it gave.
func TestAMonthWithOtherParametersDropsForms(t *testing.T) {
	for _, tc := range []struct {
		name, strip string
		known       source.Entry
		url, want   string
	}{
		{"fewer: the form is of another URL now", "utm_*", knownAs(at("x"), "x?ref=1", schema.SentAnswered), at("x"), "- "},
		{"fewer: the form stays", "utm_*", knownAs(at("x"), "x?utm_a=1", schema.SentAnswered), at("x"), "x?utm_a=1 answered conditional"},
		{"fewer: the canonical form stays", "utm_*", knownAs(at("x"), "", schema.SentAnswered), at("x"), "- answered conditional"},
		{"more: the URL is another", "ref", knownAs(at("x?ref=1"), "", schema.SentAnswered), at("x"), "x?ref=1 answered conditional"},
		{"more: the URL and its form are another", "ref", knownAs(at("x?a&ref=1"), "x?ref=1&a", schema.SentAnswered), at("x?a"), "x?ref=1&a answered conditional"},
		{"more: another parameter", "ref", knownAs(at("x?a&b"), "x?b&a", schema.SentByDomain), at("x?a&b"), "x?b&a domain conditional"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cfg := Default()
			cfg.StripParams = []string{tc.strip}
			if got := formPlan(t, cfg, tc.url, known(tc.known)); got != tc.want {
				t.Errorf("planned %q, want %q", got, tc.want)
			}
			if got := formPlan(t, cfg, tc.url, lines(tc.url), known(history(notDue(tc.known)))); !strings.HasPrefix(got, "- source") {
				t.Errorf("planned from a list as %q", got)
			}
		})
	}
}

// A reparse sends no request. The form is that in which the archive's record was sent.
func TestStoredResponsesKeepTheFormOfTheirRecord(t *testing.T) {
	l := lines("http://a.example/%7Ea", "http://a.example/~a")
	l.entries[0].Content = source.Content{At: 1, Filename: "x.warc", Offset: 2, Length: 3}
	for range 2 {
		_, urls, _ := commitAndRead(t, bucket(t), plan(t, Default(), l))
		if got := urls[0][0]; got.URL != "http://a.example/~a" || got.Sent != "http://a.example/%7Ea" || got.WARCFilename != "x.warc" {
			t.Errorf("planned %+v", got)
		}
		slices.Reverse(l.entries)
	}
}

// A URL over a budget keeps the form in which it is listed, because a later plan may include it.
func TestRefusedURLsKeepTheirForm(t *testing.T) {
	cfg := Default()
	cfg.Budget = 1
	cfg.Stopped = map[string]string{"stopped.example": "asked"}
	_, _, refused := commitAndRead(t, bucket(t), plan(t, cfg, lines("http://a.example/", "http://a.example/%7Ea", "http://stopped.example/%7Ea")))
	for _, r := range refused {
		if want := strings.Replace(r.URL, "~", "%7E", 1); r.Sent != want || r.SentFrom != schema.SentBySource {
			t.Errorf("%s %s has the form %+v", r.Reason, r.URL, r.Form)
		}
	}
	if len(refused) != 2 {
		t.Errorf("refused %+v", refused)
	}
}

// A form may have three times the length of the longest canonical URL.
func TestLongFormsArePlanned(t *testing.T) {
	rest := urlkey.MaxLength - len("http://a.example/")
	long := at(strings.Repeat("%41", rest))
	_, parts, refused := commitAndRead(t, bucket(t), plan(t, Default(), lines(long)))
	if u := parts[0][0]; u.URL != at(strings.Repeat("A", rest)) || u.Sent != long || len(refused) > 0 {
		t.Errorf("%d octets planned, to send %d, %d refused", len(u.URL), len(u.Sent), len(refused))
	}
}
