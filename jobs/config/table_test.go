package config

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
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

// golden reads a file of testdata that was written before the table of keys existed.
func golden(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestConfigsWrittenBeforeReadAndRenderAsTheyDid(t *testing.T) {
	for _, name := range []string{"default-2026-11.yaml", "format1.yaml"} {
		text := golden(t, name)
		c, err := ReadFrozen(name, []byte(text), env())
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.YAML()
		if d := cmp.Diff(text, withoutKeys(got, text)); d != "" || err != nil {
			t.Errorf("%s (-before, +now): %v\n%s", name, err, d)
		}
	}
	text := golden(t, "default-2026-11.yaml")
	if d := cmp.Diff(text, withoutKeys(mustYAML(t, Default()), text)); d != "" {
		t.Errorf("defaults (-before, +now):\n%s", d)
	}
	documented := read(t, golden(t, "readme-2026-11.yaml"))
	documented.UserAgent, documented.Politeness.Domains, documented.Plan.Budgets.Domains, documented.Plan.Scope = "", nil, nil, Scope{}
	documented.Politeness.PerAddressDelay = nil
	if d := cmp.Diff(Default(), documented, cmpopts.IgnoreUnexported(Config{}), cmpopts.EquateEmpty()); d != "" {
		t.Errorf("defaults (-), as they were documented (+):\n%s", d)
	}
}

// withoutKeys removes from a config the lines of all keys that an older config lacks.
func withoutKeys(text, older string) string {
	keys := func(text string) (lines, paths []string) {
		var sections []string
		for line := range strings.Lines(text) {
			indent := len(line) - len(strings.TrimLeft(line, " "))
			name, _, _ := strings.Cut(strings.TrimSpace(line), ":")
			sections = append(sections[:min(indent/2, len(sections))], name)
			lines, paths = append(lines, line), append(paths, strings.Join(sections, "."))
		}
		return lines, paths
	}
	_, had := keys(older)
	lines, paths := keys(text)
	kept := ""
	for i, line := range lines {
		if slices.Contains(had, paths[i]) {
			kept += line
		}
	}
	return kept
}

func mustYAML(t *testing.T, c *Config) string {
	t.Helper()
	text, err := c.YAML()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Running crawls rely on it that frozen keys stay frozen and live keys stay live. A key that was
// added later may be either, but if all other keys of its section are live, it must be live too.
func TestWhatIsFrozenIsAsBefore(t *testing.T) {
	const name = "frozen-2026-11.txt"
	was := map[string]bool{} // whether a key is frozen, by path
	for line := range strings.Lines(golden(t, name)) {
		path, change, _ := strings.Cut(strings.TrimSpace(line), " ")
		was[path] = change == "frozen"
	}
	whole := []string{"politeness.", "fetch.timeout.", "fetch.pauses.", "fetch.checkpoint.", "store.", "kubernetes."}
	for _, f := range Default().fields() {
		wasFrozen, old := was[f.path]
		delete(was, f.path)
		switch {
		case old && (f.change == frozen) != wasFrozen:
			t.Errorf("%s: frozen is %t in table.go and %t in testdata/%s, on which crawls under way rely: change it back in table.go", f.path, !wasFrozen, wasFrozen, name)
		case !old && f.change == frozen && slices.ContainsFunc(whole, func(s string) bool { return strings.HasPrefix(f.path, s) }):
			t.Errorf("%s is frozen, but all other keys of its section are live: make it live in table.go, or move it to another section", f.path)
		}
	}
	for path := range was {
		t.Errorf("%s is in testdata/%s but no key any more: configs that have it would be refused", path, name)
	}
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
	frozen, err := ReadFrozen("crawl.json", []byte(golden(t, "format1.yaml")), env())
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
