package config

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestSecretsAreNeitherStoredNorPrinted writes ${PW} into anchors and merge keys, whose values YAML
// copies to other places, and into places that no YAML path can name.
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
		{"a domain in capital letters", `politeness: {domains: {A.COM: {stop: "${PW}"}}}`, false},
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

func TestLiteralSecretsAreRefusedWithWhatToWrite(t *testing.T) {
	lookup := func(string) (string, bool) { return "hunter2", true }
	for _, c := range []struct{ name, text, write string }{
		{"a password", `fetch: {proxy: "http://me:hunter2@proxy:3128"}`, `fetch.proxy holds a secret in plain text, and the store would keep it: write "http://me:${PROXY_PASSWORD}@proxy:3128", and set PROXY_PASSWORD`},
		{"a password with an @", `fetch: {proxy: "http://me:hunter2@hunter2@proxy:3128"}`, `"http://me:${PROXY_PASSWORD}@proxy:3128"`},
		{"a token as user info", `fetch: {proxy: "http://hunter2@proxy:3128"}`, `"http://${PROXY_PASSWORD}@proxy:3128"`},
		{"a key of the store", `kubernetes: {env: {A: b, AWS_SECRET_ACCESS_KEY: hunter2}}`, `kubernetes.env.AWS_SECRET_ACCESS_KEY holds a secret in plain text, and the store would keep it: write "${AWS_SECRET_ACCESS_KEY}"`},
		{"a variable no reference can name", `kubernetes: {env: {my-token: hunter2}}`, `"${SECRET}"`},
		{"a proxy of pods", `kubernetes: {env: {HTTPS_PROXY: "http://me:hunter2@proxy:3128"}}`, `kubernetes.env.HTTPS_PROXY holds a secret`},
		{"a password from the environment", `fetch: {proxy: "http://me:${PW}@proxy:3128"}`, ""},
		{"an escaped part of it", `fetch: {proxy: "http://me:${PW}%2F@proxy:3128"}`, ""},
		{"a proxy from the environment", `fetch: {proxy: "${PROXY}"}`, ""},
		{"a proxy without credentials", `fetch: {proxy: "http://proxy:3128"}`, ""},
		{"a key from the environment", `kubernetes: {env: {AWS_SECRET_ACCESS_KEY: "${AWS_SECRET_ACCESS_KEY}"}}`, ""},
		{"a file with a token", `kubernetes: {env: {AWS_WEB_IDENTITY_TOKEN_FILE: /var/run/token}}`, ""},
		{"an address of credentials", `kubernetes: {env: {AWS_CONTAINER_CREDENTIALS_FULL_URI: "http://127.0.0.1/", HTTPS_PROXY: ""}}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			read := lookup
			if strings.Contains(c.text, `"${PROXY}"`) {
				read = func(string) (string, bool) { return "http://me:hunter2@proxy:3128", true }
			}
			cfg, err := Read("c.yaml", []byte(c.text), read)
			if err != nil {
				t.Fatal(err)
			}
			err = cfg.RefuseLiteralSecrets(nil)
			warning, failed := cfg.WarnOfSecrets("crawl=2026-11/crawl.json")
			if failed != nil || (warning == "") != (c.write == "") || strings.Contains(warning, "hunter2") {
				t.Errorf("warning %q (%v)", warning, failed)
			}
			if c.write == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), c.write) || !strings.HasPrefix(err.Error(), "c.yaml:1: ") {
				t.Errorf("error %v, want c.yaml:1 and %s", err, c.write)
			}
			if err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the secret is shown: %v", err)
			}
		})
	}
}

func TestAReparseDropsALiteralPasswordOfTheProxy(t *testing.T) {
	lookup := func(string) (string, bool) { return "hunter2", true }
	for text, want := range map[string]string{"http://me:hunter2@proxy:3128": "", "http://me:${PW}@proxy:3128": "http://me:hunter2@proxy:3128", "http://proxy:3128": "http://proxy:3128"} {
		c, err := Read("c.yaml", []byte(`fetch: {proxy: "`+text+`"}`), lookup)
		if err != nil {
			t.Fatal(err)
		}
		r, err := c.Reparsed(c)
		if err != nil || r.Fetch.Proxy != want {
			t.Errorf("%s: %q, %v", text, r.Fetch.Proxy, err)
		}
	}
}
