package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"crawlbatch.io/crawlbatch/formats/schema"
)

func env(pairs ...string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1], true
			}
		}
		return "", false
	}
}

func read(t *testing.T, text string, pairs ...string) *Config {
	t.Helper()
	c, err := Read("crawlbatch.yaml", []byte(text), env(pairs...))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestErrorsNameLineFieldAndWhatIsAllowed(t *testing.T) {
	cases := []struct{ name, text, want string }{
		{"typo in a section", "politness:\n  delay: 2s\n", `crawlbatch.yaml:1: unknown field "politness": did you mean "politeness" (politeness)?`},
		{"typo in a field", "fetch:\n  slots: 7\n  max_bdy: 3MiB\n", `crawlbatch.yaml:3: unknown field "max_bdy": did you mean "max_body" (fetch.max_body)?`},
		{"text for a number", "fetch:\n  slots: many\n", `crawlbatch.yaml:2: fetch.slots: found a string where a whole number is expected`},
		{"a text for a list", "plan:\n  scope: {include: a.test}\n", `crawlbatch.yaml:2: plan.scope.include: found a string where a list such as [a, b] is expected`},
		{"a list for a section", "politeness:\n  domains:\n  - a.test\n", `crawlbatch.yaml:3: politeness.domains: found a sequence where a section of keys is expected`},
		{"a text for a section", "plan: x\n", `crawlbatch.yaml:1: plan: found a string where a section of keys is expected`},
		{"number without unit", "politeness:\n  delay: 5\n", `crawlbatch.yaml:2: politeness.delay: "5" is not a duration: write a number and a unit, such as 500ms, 2s, 20h or 30d`},
		{"unknown unit", "fetch:\n\n  max_body: 3QiB\n", `crawlbatch.yaml:3: fetch.max_body: "3QiB" is not a size: write a number and a unit, such as 64KiB, 5MiB or 1GiB`},
		{"out of range", "fetch:\n  window: 1h\n  slots: 0\n", `crawlbatch.yaml:3: fetch.slots is 0: it must be 1 to 10000`},
		{"a privileged port", "kubernetes:\n  metrics_port: 80\n", `crawlbatch.yaml:2: kubernetes.metrics_port is 80: it must be 1024 to 65535, or 0 for none`},
		{"first recrawl after the last", "frontier:\n  recrawl: {max: 20d}\n", `crawlbatch.yaml:2: frontier.recrawl.first is 720h: it must be frontier.recrawl.min = 24h to frontier.recrawl.max = 480h`},
		{"first recrawl too early", "frontier:\n  recrawl:\n    first: 5m\n", `crawlbatch.yaml:3: frontier.recrawl.first is 5m: it must be frontier.recrawl.min = 24h to frontier.recrawl.max = 4320h`},
		{"lease too short", "fetch:\n  checkpoint: {lease: 10s}\n", `crawlbatch.yaml:2: fetch.checkpoint.lease must be at least 2 × timeout.total + every = 2m, so that every request ends before the lease does`},
		{"slow factor", "politeness:\n  slow_factor: -1\n", `crawlbatch.yaml:2: politeness.slow_factor is -1: it must be 0 to 10, where 0 treats slow hosts like other hosts`},
		{"a share above all", "plan:\n  budgets: {exploration: 1.5}\n", `crawlbatch.yaml:2: plan.budgets.exploration is 1.5: it must be 0 to 1`},
		{"a share of nothing", "plan:\n  budgets: {exploration: 0.1}\n", `crawlbatch.yaml:2: plan.budgets.exploration is a share of plan.budgets.per_day and plan.budgets.total: set one of them`},
		{"less of nothing", "plan:\n  budgets: {default: 0, rate_limited: 0.1}\n", `crawlbatch.yaml:2: plan.budgets.rate_limited is a share of plan.budgets.host or of a domain's budget: set plan.budgets.host or plan.budgets.default`},
		{"ranks below the default", "plan:\n  budgets: {ranked: 5000}\n", `crawlbatch.yaml:2: plan.budgets.ranked is 5000: it must be 0, or from plan.budgets.default = 10000 to 2147483647`},
		{"ranks without a default", "plan:\n  budgets: {default: 0, ranked: 5000}\n", `crawlbatch.yaml:2: plan.budgets.ranked bounds a multiple of plan.budgets.default, which is 0: set both`},
		{"a share that is no number", "plan:\n  budgets: {rate_limited: .nan}\n", `crawlbatch.yaml:2: plan.budgets.rate_limited is NaN: it must be 0 to 1`},
		{"a budget of a pattern below nothing", "plan:\n  budgets:\n    patterns: [{match: /x, urls: -1}]\n", `crawlbatch.yaml:3: plan.budgets.patterns holds a pattern "/x" whose number of urls is -1: it must be 0 to 2147483647`},
		{"a pattern of a budget that is none", "plan:\n  budgets:\n    patterns: [{match: (, urls: 1}]\n", "crawlbatch.yaml:3: plan.budgets.patterns holds a pattern that cannot be used: \"(\": bad rule for URLs: missing closing ): \"(\": write it in RE2's syntax"},
		{"a price below nothing", "prices: {puts_1000: -0.005}\n", `crawlbatch.yaml:1: prices.puts_1000 is -0.005: it must be 0 to 1000 dollars, where 0 is free`},
		{"a price that is no number", "prices:\n  cpu_hour: .nan\n", `crawlbatch.yaml:2: prices.cpu_hour is NaN: it must be 0 to 1000 dollars, where 0 is free`},
		{"a date of prices that is none", "prices: {date: 11/2026}\n", `crawlbatch.yaml:1: prices.date is "11/2026": write YYYY, YYYY-MM or YYYY-MM-DD, such as 2026-11`},
		{"in flight of a domain", "politeness:\n  domains:\n    a.com: {in_flight_per_host: 65}\n", `crawlbatch.yaml:3: politeness.domains.a.com.in_flight_per_host is 65: it must be 0 to 64`},
		{"unknown class", "politeness:\n  domains:\n    a.com: {class: shop}\n", `crawlbatch.yaml:3: politeness.domains.a.com names the class "shop", which politeness.classes does not have: it has ecommerce, news`},
		{"bad choice", "frontier:\n  follow: all\n", `crawlbatch.yaml:2: frontier.follow is "all": it must be none, host, domain, any`},
		{"a kind of link that is none", "frontier:\n  kinds: [a, links]\n", `crawlbatch.yaml:2: frontier.kinds holds "links", which is not a kind of link: it may hold a, area, iframe, frame, form, img, script, media, link, canonical, hreflang, feed, refresh, header, redirect, sitemap, sitemapindex`},
		{"a kind of link twice", "frontier:\n  kinds: [a, feed, a]\n", `crawlbatch.yaml:2: frontier.kinds holds "a" twice`},
		{"a media range that is none", "fetch:\n  types:\n    store: [image/*, pdf]\n", `crawlbatch.yaml:3: fetch.types.store holds "pdf", which is no media range: write type/subtype, type/*, type/*+suffix or */*, in lower case`},
		{"a media range both ways", "fetch:\n  types:\n    store: [image/*]\n    skip: [text/csv, image/*]\n", `crawlbatch.yaml:4: fetch.types.skip holds "image/*", which fetch.types.store also holds: remove it from one of them`},
		{"nothing like it", "fetch:\n  zzzzzzzz: 1\n", "crawlbatch.yaml:2: unknown field \"zzzzzzzz\": `crawlbatch config` prints all keys"},
		{"another section's", "fetch:\n  delay: 1s\n", `crawlbatch.yaml:2: unknown field "delay" here: it is politeness.delay`},
		{"twice", "plan:\n  max_depth: 1\n  max_depth: 2\n", `crawlbatch.yaml:3: mapping key "max_depth" already defined at [2:3]`},
		{"a name server by name", "fetch:\n  resolvers: [192.0.2.1, dns.example]\n", `crawlbatch.yaml:2: fetch.resolvers holds "dns.example", which is no name server: write ADDRESS or ADDRESS:PORT`},
		{"a NAT64 prefix of a wrong length", "fetch:\n  nat64_prefixes: [2001:db8:64::/96, 2001:db8::/33]\n", `crawlbatch.yaml:2: fetch.nat64_prefixes holds "2001:db8::/33": not a NAT64 prefix: its length must be 32, 40, 48, 56, 64 or 96 (RFC 6052, 2.2)`},
		{"a role that is none", "kubernetes: {web_identity_role: crawl}", `crawlbatch.yaml:1: kubernetes.web_identity_role is "crawl": write the ARN of a role, such as arn:aws:iam::123456789012:role/crawl`},
		{"two kinds of credentials", "kubernetes:\n  credentials_secret: aws\n  web_identity_role: arn:aws:iam::1:role/crawl\n", `crawlbatch.yaml:3: kubernetes.web_identity_role is set, but kubernetes.credentials_secret is set too: remove one of them`},
		{"unset variable", "user_agent: a\nfetch:\n  proxy: ${NOPE}\n", `crawlbatch.yaml:3: fetch.proxy: ${NOPE} is not set in the environment: set it or remove it`},
		{"no YAML", "a: [\n", `crawlbatch.yaml:1: sequence end token ']' not found`},
		{"binary", "a\x00b", `crawlbatch.yaml: NUL at byte 1: this is not a YAML file`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := Read("crawlbatch.yaml", []byte(c.text), env())
			if err == nil || err.Error() != c.want {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
			if !errors.Is(err, ErrInvalid) {
				t.Errorf("%v is not ErrInvalid", err)
			}
		})
	}
}

func TestAnEmptyFileGivesTheDefaults(t *testing.T) {
	for _, text := range []string{"", "\n", "# nothing\n", "---\n"} {
		if d := cmp.Diff(Default(), read(t, text), cmpopts.IgnoreUnexported(Config{})); d != "" {
			t.Errorf("%q: %s", text, d)
		}
	}
	if err := Default().Validate(); err != nil {
		t.Error(err)
	}
}

func TestPricesMayChangeWhileACrawlRuns(t *testing.T) {
	frozen := Default()
	for _, text := range []string{"prices: {date: 2026-11, cpu_hour: 0, stored_gb_month: 0.0125}", "prices: {date: 2026}", "prices: {date: 2026-11-25}"} {
		if err := frozen.Adopt(read(t, text)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestTheKindsOfLinksThatAreFollowedAreThoseOfTheFile(t *testing.T) {
	for _, tt := range []struct {
		text string
		want []schema.LinkKind
	}{
		{"", schema.DefaultFollowed},
		{"frontier: {follow: any}", schema.DefaultFollowed},
		{"frontier: {kinds: [a, feed]}", []schema.LinkKind{schema.KindA, schema.KindFeed}},
		{"frontier: {kinds: []}", []schema.LinkKind{}},
	} {
		c := read(t, tt.text)
		if d := cmp.Diff(tt.want, c.FollowedKinds()); d != "" {
			t.Errorf("%q (-want +got):\n%s", tt.text, d)
		}
		frozen, err := c.YAML()
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(tt.want, read(t, frozen).FollowedKinds()); d != "" {
			t.Errorf("%q, frozen (-want +got):\n%s", tt.text, d)
		}
		// Adopt refuses another list of kinds, because the crawl would then fetch other URLs.
		if err := c.Adopt(read(t, "frontier: {follow: "+c.Frontier.Follow+", kinds: [area]}")); err == nil || !strings.Contains(err.Error(), "frontier.kinds differs") {
			t.Errorf("%q: %v", tt.text, err)
		}
	}
}

func TestFrozenTextReadsBackAsTheSameConfigAndKeepsReferences(t *testing.T) {
	text := `
user_agent: "bot/1.0 (+${CONTACT})"
politeness:
  delay: ${DELAY}
  domains:
    amazon.com: {class: ecommerce}
    example.org: {delay: 500ms}
    example.net: {stop: "asked by the owner"}
fetch: {proxy: "http://user:${SECRET}@127.0.0.1:3128", connect_to: ["::127.0.0.1:80"]}
plan:
  budgets: {domains: {amazon.com: 20000}}
  scope: {exclude: ["*/private/*"]}
`
	vars := []string{"CONTACT", "https://example.org", "SECRET", "hunter2", "DELAY", "3s"}
	c := read(t, text, vars...)
	if c.Politeness.Delay.Std() != 3*time.Second || !strings.Contains(c.Fetch.Proxy, "hunter2") {
		t.Fatalf("not expanded: %+v", c)
	}
	frozen, err := c.YAML()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(frozen, "hunter2") || !strings.Contains(frozen, "${SECRET}") || !strings.Contains(frozen, "${DELAY}") {
		t.Errorf("frozen text keeps no references:\n%s", frozen)
	}
	again := read(t, frozen, vars...)
	if d := cmp.Diff(c, again, cmpopts.IgnoreUnexported(Config{})); d != "" {
		t.Error(d)
	}
}

func TestWhatReplacesAReferenceIsKeptAndOtherReferencesStay(t *testing.T) {
	lookup := env("SECRET", "hunter2", "DELAY", "3s", "AGENT", "a/1.0 (+https://example.org)")
	base, err := Read("first", []byte(`user_agent: "${AGENT}"
politeness: {delay: "${DELAY}"}
fetch: {proxy: "http://user:${SECRET}@127.0.0.1:3128"}
`), lookup)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "later.yaml")
	if err := os.WriteFile(file, []byte("politeness: {delay: 9s}\nfetch: {slots: 7}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	later, err := LoadOver(base, file, lookup)
	if err != nil {
		t.Fatal(err)
	}
	later.UserAgent = "b/1.0 (+https://example.org)" // as a flag sets it
	text, err := later.YAML()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"${SECRET}", "delay: 9s", "b/1.0", "slots: 7"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	for _, wrong := range []string{"hunter2", "${DELAY}", "${AGENT}"} {
		if strings.Contains(text, wrong) {
			t.Errorf("%q is in\n%s", wrong, text)
		}
	}
}

func TestRulesForURLsAreReadAndFrozen(t *testing.T) {
	c := read(t, `
plan:
  canonical: {sessions: true, www: true, https: [example.org, "*"]}
  rewrite: [{name: p, match: '^(.*)/print/', replace: '${1}/', last: true}, {match: 'a$', replace: '$$'}]
  filter: [{match: '/x', accept: true}, {name: y, match: '\.zip$'}]
`)
	text, err := c.YAML()
	if err != nil {
		t.Fatal(err)
	}
	again := read(t, text)
	if d := cmp.Diff(c, again, cmpopts.IgnoreUnexported(Config{})); d != "" {
		t.Error(d)
	}
	canonical, err := again.Plan.Canonicalizer()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := canonical.URL("http://www.test/print/a;jsessionid=1", ""); got != "https://www.test/%24" && got != "https://www.test/$" {
		t.Errorf("%q, %v", got, err)
	}
	if err := c.Adopt(Default()); err == nil || !strings.Contains(err.Error(), "plan.canonical.sessions differs") {
		t.Error(err)
	}
	for text, want := range map[string]string{
		"canonical: {https: ['http://a/']}":                "plan.canonical.https holds",
		"rewrite: [{match: '(', replace: ''}]":             "missing closing )",
		"rewrite: [{match: '(a)', replace: '$1x'}]":        "names no group",
		"rewrite: [{match: '(?P<n>a)', replace: '${m}'}]":  "",
		"rewrite: [{match: '(a)', replace: '$2'}]":         "names no group",
		"rewrite: [{match: '(a)', replace: '$1é'}]":        "names no group",
		"rewrite: [{match: '(a)', replace: '$01'}]":        "names no group",
		"rewrite: [{match: '(a)', replace: '${1}é'}]":      "ok",
		"filter: [{match: ''}]":                            "1 to 1000 octets",
		"filter: [{match: a, refuse: true}]":               "refuse",
		"rewrite: [{match: \"(\\n\", replace: ''}]":        "missing closing )",
		"filter: [{match: '((a{100}){100}){100}'}]":        "repeat",
		"rewrite: [{match: '(?P<n>a)', replace: '$n-$1'}]": "ok",
	} {
		_, err := Read("c.yaml", []byte("plan:\n  "+text+"\n"), env())
		switch {
		case want == "ok" && err != nil, want != "ok" && err == nil:
			t.Errorf("%s: %v", text, err)
		case err != nil && (!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n")):
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestBudgetsByHostAreFrozenOnlyIfTheyAreSet(t *testing.T) {
	keys := []string{"host:", "hosts_per_domain:", "patterns:", "ranked:", "address:", "exploration:", "rate_limited:"}
	_, none, _ := strings.Cut(mustYAML(t, Default()), "  budgets:")
	none, _, _ = strings.Cut(none, "  priority:")
	for _, key := range keys {
		if strings.Contains(none, " "+key) {
			t.Errorf("a crawl without budgets by host freezes %s\n%s", key, none)
		}
	}
	c := read(t, "plan: {budgets: {host: 5, hosts_per_domain: 3, ranked: 20000, address: 70, total: 1000, exploration: 0.1, rate_limited: 0.5, patterns: [{match: '/x', urls: 0}, {name: y, match: y, urls: 7}]}}")
	again := read(t, mustYAML(t, c))
	if d := cmp.Diff(c, again, cmpopts.IgnoreUnexported(Config{})); d != "" {
		t.Error(d)
	}
	for _, key := range keys {
		if !strings.Contains(mustYAML(t, c), " "+key) {
			t.Errorf("%s is not frozen", key)
		}
	}
	if err := c.Adopt(read(t, "plan: {budgets: {total: 1000}}")); err == nil || !strings.Contains(err.Error(), "plan.budgets.host differs") {
		t.Error(err)
	}
}

func TestALaterConfigMayChangeOnlyWhatCannotAlterResults(t *testing.T) {
	base := read(t, "plan: {max_depth: 3}\n")
	for text, want := range map[string]string{
		"plan: {max_depth: 3}\npoliteness: {delay: 9s}\nfetch: {slots: 3, window: 2h}\n": "",
		"plan: {max_depth: 4}\n":                                                      "plan.max_depth",
		"plan: {max_depth: 3, strip_params: [x]}\n":                                   "plan.strip_params",
		"plan: {max_depth: 3}\nfetch: {max_body: 1MiB}\n":                             "fetch.max_body",
		"plan: {max_depth: 3}\nfetch: {types: {store: [image/*]}}\n":                  "fetch.types.store",
		"plan: {max_depth: 3}\nfetch: {types: {skip: [text/csv]}}\n":                  "fetch.types.skip",
		"plan: {max_depth: 3}\nuser_agent: \"other/1.0 (+https://example.org)\"\n":    "user_agent",
		"plan: {max_depth: 3}\ndedup: {max_distance: 2}\nfetch: {slots: 5}\n":         "dedup.max_distance",
		"plan: {max_depth: 3}\npoliteness: {domains: {a.com: {stop: owner asked}}}\n": "",
	} {
		err := base.Adopt(read(t, text))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want+" differs")) {
			t.Errorf("%q: got %v, want a refusal of %q", text, err, want)
		}
	}
}

func TestAPublicCrawlNeedsAContact(t *testing.T) {
	for text, ok := range map[string]bool{
		"":                                       false,
		"user_agent: bot/1.0\n":                  false,
		"user_agent: bot/1.0 (+https://a.org)\n": true,
		"user_agent: bot/1.0 (me@a.org)\n":       true,
		"fetch: {connect_to: ['::127.0.0.1:8080']}\n":      true,
		"fetch: {connect_to: ['a.org:80:127.0.0.1:80']}\n": false,
	} {
		if err := read(t, text).RequireContact(); (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte("fetch:\n  slots: 7\n"))
	f.Add([]byte("user_agent: ${A}\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		c, err := Read("x", body, env("A", "b"))
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("error of more than one line: %q", err)
			}
			return
		}
		if err := c.Validate(); err != nil {
			t.Error(err)
		}
	})
}

func TestWhatALaterFileLeavesUnsetStays(t *testing.T) {
	base := Default()
	base.UserAgent, base.Fetch.ConnectTo, base.Fetch.Slots = "bot/1 (+https://example.org)", []string{"::127.0.0.1:1"}, 7
	base.Politeness.Domains = map[string]Domain{"example.org": {Stop: "asked"}}
	file := filepath.Join(t.TempDir(), "later.yaml")
	for text, want := range map[string]struct {
		slots   int
		domains int
	}{"fetch: {slots: 9}\n": {9, 1}, "politeness: {delay: 3s}\n": {7, 0}, "": {7, 1}} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		c, err := LoadOver(base, file, os.LookupEnv)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if c.UserAgent != base.UserAgent || len(c.Fetch.ConnectTo) != 1 || c.Fetch.Slots != want.slots || len(c.Politeness.Domains) != want.domains {
			t.Errorf("%q: agent %q, connect_to %q, %d slots, %d domains", text, c.UserAgent, c.Fetch.ConnectTo, c.Fetch.Slots, len(c.Politeness.Domains))
		}
		if len(base.Politeness.Domains) != 1 || base.Fetch.Slots != 7 {
			t.Fatalf("%q changed the base config", text)
		}
	}
}

func TestAReparseMayChangeWhatIsMadeOfDocumentsAndNotHowTheyWereFetched(t *testing.T) {
	frozen := Default()
	frozen.Fetch.MaxBody = 1 << 20
	later := frozen.Clone()
	later.Parse.MaxLinks, later.Dedup.MaxDistance, later.Frontier.Follow = 7, 1, "any"
	later.Fetch.Slots = 3 // a reparse ignores this key, like any crawl that is continued
	got, err := frozen.Reparsed(later)
	if err != nil || got.Parse.MaxLinks != 7 || got.Dedup.MaxDistance != 1 || got.Frontier.Follow != "any" || got.Fetch.Slots != frozen.Fetch.Slots || got.Fetch.MaxBody != 1<<20 {
		t.Errorf("%+v, %v", got, err)
	}
	later.Fetch.MaxBody = 2 << 20
	if _, err := frozen.Reparsed(later); err == nil || !strings.Contains(err.Error(), "fetch.max_body") {
		t.Errorf("another max_body: %v", err)
	}
}
