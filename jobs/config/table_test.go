package config

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestEachKeyOfTheFileIsARowOfTheTable(t *testing.T) {
	c := Default()
	rows := map[string]field{}
	for _, f := range c.fields() {
		if f.path == "" || f.doc == "" || rows[f.path].path != "" {
			t.Errorf("row %+v: it needs a path that no other row has, and a meaning", f)
		}
		rows[f.path] = f
	}
	walk(reflect.ValueOf(c).Elem(), "", func(path, _ string, v reflect.Value) {
		if v.Kind() != reflect.Struct && rows[path].path == "" {
			t.Errorf("%s has no row", path)
		}
		// The documentation of a map or list must name every key of an entry.
		entry := v.Type()
		for entry.Kind() == reflect.Map || entry.Kind() == reflect.Slice {
			entry = entry.Elem()
		}
		if entry != v.Type() {
			walk(reflect.New(entry).Elem(), "", func(_, name string, _ reflect.Value) {
				if !strings.Contains(rows[path].doc, "`"+name+"`") {
					t.Errorf("the meaning of %s does not have `%s`", path, name)
				}
			})
		}
	})
}

func mustYAML(t *testing.T, c *Config) string {
	t.Helper()
	text, err := c.YAML()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestSettingsSayWhereValuesComeFromAndHideSecrets(t *testing.T) {
	file := filepath.Join(t.TempDir(), "crawlbatch.yaml")
	text := `user_agent: "bot/1.0 (+https://example.org)"
politeness:
  delay: 3s
  domains: {a.com: {delay: "${SLOW}"}}
fetch:
  slots: 7
  proxy: http://user:hunter2@127.0.0.1:3128
kubernetes: {env: {TOKEN: hunter2, OTHER: "${SLOW}"}, namespace: there}
`
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	frozen, err := ReadFrozen("crawl.json", []byte("fetch: {timeout: {total: 4s}}\nplan: {partition_urls: 3}\n"), env())
	if err != nil {
		t.Fatal(err)
	}
	flags := &Config{Fetch: Fetch{ConnectTo: []string{"::127.0.0.1:1"}}}
	for name, tc := range map[string]struct {
		base *Config
		want map[string]Setting
	}{
		"a file over the defaults": {Default(), map[string]Setting{
			"user_agent":           {Value: "bot/1.0 (+https://example.org)", From: file + ":1"},
			"politeness.delay":     {Value: "3s", From: file + ":3"},
			"politeness.domains":   {Value: map[string]any{"a.com": map[string]any{"delay": "${SLOW}"}}, From: file + ":4, environment"},
			"fetch.slots":          {Value: uint64(7), From: file + ":6"},
			"fetch.proxy":          {Value: "http://user:***@127.0.0.1:3128", From: file + ":7"},
			"fetch.connect_to":     {Value: []any{"::127.0.0.1:1"}, From: "--connect-to"},
			"fetch.resolvers":      {Value: []any{}, From: "default"},
			"kubernetes.env":       {Value: map[string]any{"TOKEN": "***", "OTHER": "${SLOW}"}, From: file + ":8, environment"},
			"kubernetes.namespace": {Value: "there", From: file + ":8"},
			"plan.max_depth":       {Value: uint64(15), From: "default"},
		}},
		"a file over what a crawl froze": {frozen, map[string]Setting{
			"politeness.delay":              {Value: "3s", From: file + ":3"},
			"politeness.in_flight_per_host": {Value: uint64(1), From: "default"}, // because a file replaces the whole section
			"fetch.timeout.total":           {Value: "4s", From: "crawl.json"},
			"plan.partition_urls":           {Value: uint64(3), From: "frozen in crawl.json"},
		}},
	} {
		c, err := LoadOver(tc.base, file, env("SLOW", "9s"))
		if err != nil {
			t.Fatal(err)
		}
		c.Overlay(flags)
		settings, err := c.Settings()
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]Setting{}
		for _, s := range settings {
			if _, ok := tc.want[s.Key]; ok {
				got[s.Key] = Setting{Value: s.Value, From: s.From}
			}
		}
		if d := cmp.Diff(tc.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
		var asYAML bytes.Buffer
		if err := WriteYAML(&asYAML, settings); err != nil {
			t.Fatal(err)
		}
		asJSON, err := json.Marshal(settings)
		if err != nil {
			t.Fatal(err)
		}
		if both := asYAML.String() + string(asJSON); strings.Contains(both, "hunter2") || strings.Contains(both, "9s") {
			t.Errorf("%s: a secret is printed:\n%s", name, both)
		}
		again, err := Read("printed", asYAML.Bytes(), env("SLOW", "9s"))
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, &asYAML)
		}
		again.Fetch.Proxy, again.Kubernetes.Env = c.Fetch.Proxy, c.Kubernetes.Env
		if d := cmp.Diff(c, again, cmpopts.IgnoreUnexported(Config{}), cmpopts.EquateEmpty()); d != "" {
			t.Errorf("%s: the printed config differs when it is read (-config +printed):\n%s\n%s", name, d, &asYAML)
		}
	}
}
