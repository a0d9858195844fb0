package config

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the generated part of jobs/README.md")

// The README contains the generated reference of all keys.
func TestReadmeDocumentsEveryKey(t *testing.T) {
	const file, begin, end = "../README.md", "<!-- generated: config -->\n", "<!-- end -->\n"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want, err := keyReference()
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	got, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no part between %q and %q", file, begin, end)
	}
	if got == want {
		return
	}
	if !*update {
		t.Fatalf("%s is not as generated: run go test ./jobs/config -run Documents -update", file)
	}
	if err := os.WriteFile(file, []byte(before+begin+want+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

// The example in the README is a valid config.
func TestReadmeShowsAValidConfig(t *testing.T) {
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), "## Config\n")
	_, rest, ok2 := strings.Cut(rest, "```yaml\n")
	example, _, ok3 := strings.Cut(rest, "```\n")
	if !ok || !ok2 || !ok3 {
		t.Fatal("jobs/README.md has no YAML under Config")
	}
	c := read(t, example)
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
	if err := c.RequireContact(); err != nil {
		t.Error(err)
	}
}

// keyReference renders the keys as Markdown, one table for each section.
func keyReference() (string, error) {
	var text strings.Builder
	section := ""
	for _, f := range Default().fields() {
		if s, _, nested := strings.Cut(f.path, "."); s != section {
			section = s
			if nested {
				fmt.Fprintf(&text, "\n### %s\n\n", section)
			}
			text.WriteString("| key | default | allowed | may change | meaning |\n|---|---|---|---|---|\n")
		}
		value := any(f.at.Interface())
		if f.at.IsZero() {
			value = empty(f.at)
		}
		initial, err := inline(value)
		if err != nil {
			return "", fmt.Errorf("render %s: %w", f.path, err)
		}
		if value == nil {
			initial = "unset"
		}
		change := "no"
		if f.change == live {
			change = "yes"
		}
		meaning := f.doc
		if f.flag != "" {
			meaning += "; flag `--" + f.flag + "`"
		}
		fmt.Fprintf(&text, "| `%s` | `%s` | %s | %s | %s |\n", f.path, initial, strings.ReplaceAll(f.allowed, "*", `\*`), change, meaning)
	}
	return text.String(), nil
}
