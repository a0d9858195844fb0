package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A crawl keeps the terms of the file, so that tasks on machines without the file have them.
func TestAConfigKeepsTheTermsOfAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "focus.txt")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	yaml := "frontier:\n  focus:\n    file: " + path + "\n    points: 200\n    threshold: -0.5\n"
	fails := func(name, text, want string) {
		t.Helper()
		if _, err := Read("c.yaml", []byte(text), env()); err == nil || !strings.HasPrefix(err.Error(), "c.yaml:3: frontier.focus.") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
	fails("a missing file", yaml, "no such file")
	fails("a directory", "frontier:\n  focus:\n    file: "+t.TempDir(), "is a directory")
	write("# no term\n")
	fails("an empty model", yaml, "has no term")
	write("1 solar\nwind\n")
	fails("a line without a weight", yaml, `line 2: "wind" is not a weight and a term`)
	write("1 ${SECRET} Größe\n# comment\n-2.5 太陽光\n")
	fails("a file and terms", "frontier:\n  focus:\n    file: "+path+"\n    model: 1 wind\n", "give one of them")
	fails("a threshold without terms", "frontier:\n  focus:\n    threshold: 1\n", "has no effect without")
	c := read(t, yaml)
	want := "1 secret größe\n-2.5 太 陽 光\n"
	if f := c.Frontier.Focus; f.File != "" || f.Model != want || f.Points != 200 || *f.Threshold != -0.5 {
		t.Errorf("%+v", f)
	}
	text, err := c.YAML()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	stored, err := ReadFrozen("crawl.json", []byte(text), env())
	if err != nil || stored.Frontier.Focus.Model != want || stored.Adopt(c) != nil {
		t.Errorf("%v: %+v", err, stored)
	}
	write("2 other\n")
	if err := stored.Adopt(read(t, yaml)); err == nil || !strings.Contains(err.Error(), "frontier.focus.model differs") {
		t.Errorf("with other terms: %v", err)
	}
	plain, err := Default().YAML()
	if err != nil || strings.Contains(plain, "focus") {
		t.Errorf("a config without focus is stored with it: %v", err)
	}
}
