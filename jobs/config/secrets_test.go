package config

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestSecretsAreNeitherStoredNorPrinted expands ${PW} to a secret where YAML copies values,
// and where YAML paths have no notation.
func TestSecretsAreNeitherStoredNorPrinted(t *testing.T) {
	const secret = "hunter2"
	lookup := func(string) (string, bool) { return secret, true }
	for _, c := range []struct {
		name, text string
		refused    bool
	}{
		{"a proxy", `fetch: {proxy: "http://me:${PW}@proxy:3128"}`, false},
		{"a proxy whose user has an @", `fetch: {proxy: "http://me@corp.example:hunter2@proxy:3128"}`, false},
		{"a token as user info", `fetch: {proxy: "http://hunter2@proxy:3128"}`, false},
		{"a password with a slash", `fetch: {proxy: "http://me:${PW}%2F@proxy:3128"}`, false},
		{"a variable of pods", `kubernetes: {env: {A: "${PW}"}}`, false},
		{"a key with a quote", `kubernetes: {annotations: {"team's.example/token": "${PW}"}}`, true},
		{"an empty key", `kubernetes: {env: {"": "${PW}"}}`, true},
		{"a domain with a quote", `politeness: {domains: {"a'b.com": {stop: "${PW}"}}}`, true},
		{"a merge key", `fetch: {<<: {proxy: "http://${PW}@p:1"}}`, true},
		{"an alias", `kubernetes: {env: {A: &s "${PW}"}, annotations: {c: *s}}`, true},
		{"an alias of a section", "kubernetes:\n  env: &s {A: \"${PW}\"}\n  annotations: *s\n", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg, err := Read("c.yaml", []byte(c.text), lookup)
			if c.refused {
				if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "${VAR}") {
					t.Errorf("error %v, want one that names ${VAR}", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			stored, err := cfg.YAML()
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(c.text, "${PW}") && strings.Contains(stored, secret) {
				t.Errorf("stored:\n%s", stored)
			}
			settings, err := cfg.Settings()
			if err != nil {
				t.Fatal(err)
			}
			if printed := fmt.Sprint(settings); strings.Contains(printed, secret) {
				t.Errorf("printed: %s", printed)
			}
		})
	}
}

func TestWhatConfigPrintsReadsBack(t *testing.T) {
	for _, text := range []string{
		"user_agent: |\n  bot (+https://example.org/bot)\n  second line\n",
		"politeness: {domains: {a.com: {stop: \"one\\ntwo: three # four\"}}}",
		"kubernetes: {annotations: {b: \"# no comment\"}}",
		"plan: {strip_params: ['a*', 'b # c']}",
	} {
		cfg, err := Read("c.yaml", []byte(text), nil)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		settings, err := cfg.Settings()
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		if err := WriteYAML(&out, settings); err != nil {
			t.Fatal(err)
		}
		again, err := Read("printed.yaml", []byte(out.String()), nil)
		if err != nil {
			t.Errorf("%s\nprinted as\n%s\nis refused: %v", text, out.String(), err)
			continue
		}
		before, _ := cfg.YAML()
		if after, _ := again.YAML(); after != before {
			t.Errorf("%s reads back as\n%s, want\n%s", text, after, before)
		}
	}
}
