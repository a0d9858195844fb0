package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const foreignSpellings = `
politeness:
  domains:
    A.TEST: {stop: "${WHY}"}
    bücher.test: {delay: 3s}
    c.test.: {delay: 4s}
plan:
  budgets: {domains: {A.test: 1, bücher.test: 2}}
  scope:
    include: [A.test, "Bücher.test:8080", "http://C.test/Docs/*", "*.PDF"]
    exclude: ["A.test/Private/*", "*/D.test/*", "[::1]", "x.test./"]
`

// Names are compared with those of canonical URLs, so a name in another spelling would have no effect.
func TestHostNamesHaveTheFormOfCanonicalURLs(t *testing.T) {
	c, err := Read("c.yaml", []byte(foreignSpellings), env("WHY", "asked"))
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(sortedKeys(c.Politeness.Domains), " "); got != "a.test c.test xn--bcher-kva.test" {
		t.Errorf("politeness.domains has %s", got)
	}
	if diff := cmp.Diff(map[string]int{"a.test": 1, "xn--bcher-kva.test": 2}, c.Plan.Budgets.Domains); diff != "" {
		t.Error(diff)
	}
	want := Scope{
		Include: []string{"a.test", "xn--bcher-kva.test:8080", "http://c.test/Docs/*", "*.PDF"},
		Exclude: []string{"a.test/Private/*", "*/D.test/*", "[::1]", "x.test/"},
	}
	if diff := cmp.Diff(want, c.Plan.Scope); diff != "" {
		t.Error(diff)
	}

	text, err := c.YAML()
	if err != nil || !strings.Contains(text, `"${WHY}"`) || strings.Contains(text, "asked") {
		t.Errorf("%v: the value of ${WHY} is stored:\n%s", err, text)
	}
	frozen, err := ReadFrozen("crawl.json", []byte(foreignSpellings), env("WHY", "asked"))
	if err != nil {
		t.Fatal(err)
	}
	if err := frozen.Adopt(c); err != nil {
		t.Error(err)
	}
}

func TestNamesThatMatchNoHostAreErrors(t *testing.T) {
	for text, want := range map[string]string{
		"politeness:\n  domains:\n    b.test: {delay: 1s}\n    'http://a.test/': {delay: 1s}": `c.yaml:4: politeness.domains holds "http://a.test/", which is no domain: write a name such as example.org, without scheme, port, path or star`,
		"politeness: {domains: {'a.test:80': {delay: 1s}}}":                                   `c.yaml:1: politeness.domains holds "a.test:80", which is no domain: write a name such as example.org, without scheme, port, path or star`,
		"politeness: {domains: {'*.a.test': {delay: 1s}}}":                                    `c.yaml:1: politeness.domains holds "*.a.test", which is no domain: write a name such as example.org, without scheme, port, path or star`,
		"politeness: {domains: {A.test: {delay: 1s}, a.test: {delay: 2s}}}":                   `c.yaml:1: politeness.domains holds "A.test", which is the same name as "a.test": remove one of them`,
		"plan: {budgets: {domains: {'a.test/': 1}}}":                                          `c.yaml:1: plan.budgets.domains holds "a.test/", which is no domain: write a name such as example.org, without scheme, port, path or star`,
		"plan: {budgets: {domains: {Sub.victim.test: 1}}}":                                    `c.yaml:1: plan.budgets.domains holds "Sub.victim.test", which is a host of the domain victim.test: write victim.test, or bound the URLs of one host with plan.budgets.patterns`,
		"plan:\n  scope: {exclude: ['a.test?x']}":                                             `c.yaml:2: plan.scope.exclude holds "a.test?x", which is no host: write a host such as example.org, or a URL with * for any characters such as example.org/docs/*`,
	} {
		if _, err := Read("c.yaml", []byte(text), env()); err == nil || err.Error() != want {
			t.Errorf("%s:\n got %v\nwant %s", text, err, want)
		}
	}
}
