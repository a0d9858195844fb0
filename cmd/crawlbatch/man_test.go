package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra/doc"
)

// manDir is where `make release` wants the man pages. The generator is in a test, because it would make
// the binary much larger: it uses text/template.
var manDir = flag.String("man", "", "directory for the man pages")

func TestEachCommandHasAManPage(t *testing.T) {
	dir := *manDir
	if dir == "" {
		dir = t.TempDir()
	}
	root := newRoot(&common{out: &bytes.Buffer{}})
	root.DisableAutoGenTag = true
	if err := doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "crawlbatch", Manual: "crawlbatch"}, dir); err != nil {
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
		for _, section := range []string{".SH NAME", ".SH SYNOPSIS", "Exit codes: "} {
			if !bytes.Contains(page, []byte(section)) {
				t.Errorf("the page of %s lacks %s", cmd.CommandPath(), section)
			}
		}
	}
}
