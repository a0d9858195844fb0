package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestEachCommandHasAManPage(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1000000000")
	dir := t.TempDir()
	root := newRoot(&common{out: &bytes.Buffer{}})
	root.SetArgs([]string{"man", dir})
	if err := root.Execute(); err != nil {
		t.Fatal(err)
	}
	for _, cmd := range allCommands(root) {
		if !cmd.IsAvailableCommand() {
			continue // the command help
		}
		page, err := os.ReadFile(filepath.Join(dir, strings.ReplaceAll(cmd.CommandPath(), " ", "-")+".1"))
		if err != nil {
			t.Fatal(err)
		}
		for _, section := range []string{".SH NAME", ".SH SYNOPSIS", "Exit codes: ", `"Sep 2001"`} {
			if !bytes.Contains(page, []byte(section)) {
				t.Errorf("the page of %s lacks %s", cmd.CommandPath(), section)
			}
		}
	}
}
