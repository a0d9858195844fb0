package main

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

const tree = "../.." // the repository's root, as seen from this package

// documents lists the Markdown files of the tree, as slash-separated paths from its root.
func documents(t *testing.T) (paths []string) {
	t.Helper()
	err := filepath.WalkDir(tree, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if slices.Contains([]string{".git", ".cache", "bin", "crawl-data", "node_modules"}, d.Name()) {
				return filepath.SkipDir
			}
			return nil
		}
		if filepath.Ext(path) == ".md" {
			rel, err := filepath.Rel(tree, path)
			paths = append(paths, filepath.ToSlash(rel))
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(paths) < 8 {
		t.Fatalf("only %v were found", paths)
	}
	return paths
}

// fileOfTree reads a file of the tree.
func fileOfTree(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(tree, filepath.FromSlash(path)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var (
	fenced   = regexp.MustCompile("(?ms)^```.*?^```$")
	shell    = regexp.MustCompile("(?ms)^```sh\n.*?^```$")
	codeSpan = regexp.MustCompile("`[^`\n]+`")
	link     = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading  = regexp.MustCompile(`(?m)^#+ +(.+)$`)
	notSlug  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	makeWord = regexp.MustCompile(`(?m)(?:^|` + "`" + `)make ([a-z][a-z0-9-]*)`)
	flagWord = regexp.MustCompile(`(?:^|\s)--([a-z][a-z-]*)`)
)

// anchors returns the anchors that GitHub gives to a document's headings.
func anchors(text string) map[string]bool {
	names := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
		names[strings.ReplaceAll(notSlug.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-")] = true
	}
	return names
}

func TestEveryLinkBetweenDocumentsLeadsSomewhere(t *testing.T) {
	for _, doc := range documents(t) {
		prose := codeSpan.ReplaceAllString(fenced.ReplaceAllString(fileOfTree(t, doc), ""), "")
		for _, m := range link.FindAllStringSubmatch(prose, -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			path := doc
			if target != "" {
				path = filepath.ToSlash(filepath.Join(filepath.Dir(doc), target))
			}
			if _, err := os.Stat(filepath.Join(tree, path)); err != nil {
				t.Errorf("%s links to %s, which does not exist", doc, m[1])
				continue
			}
			if anchor != "" && !anchors(fileOfTree(t, path))[anchor] {
				t.Errorf("%s links to %s: %s has no heading of that name", doc, m[1], path)
			}
		}
	}
}

// Every make target, crawlbatch command and flag that a document names must exist.
func TestDocumentsNameOnlyWhatExists(t *testing.T) {
	targets := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^([a-z0-9-]+):`).FindAllStringSubmatch(fileOfTree(t, "Makefile"), -1) {
		targets[m[1]] = true
	}
	root := newRoot(&common{})
	hasFlag := func(name string) bool {
		return name == "help" || name == "version" || slices.ContainsFunc(allCommands(root), func(c *cobra.Command) bool {
			return c.Flags().Lookup(name) != nil || c.PersistentFlags().Lookup(name) != nil
		})
	}
	for _, doc := range documents(t) {
		text := fileOfTree(t, doc)
		code := slices.Concat(shell.FindAllString(text, -1), codeSpan.FindAllString(fenced.ReplaceAllString(text, ""), -1))
		for _, c := range code {
			for _, m := range makeWord.FindAllStringSubmatch(c, -1) {
				if !targets[m[1]] {
					t.Errorf("%s names `make %s`, which the Makefile lacks: %s", doc, m[1], c)
				}
			}
		}
		if strings.Contains(doc, "testdata/") {
			continue // documents in testdata name flags of other programs
		}
		for _, c := range codeSpan.FindAllString(fenced.ReplaceAllString(text, ""), -1) {
			c = strings.Trim(c, "`")
			if own := strings.HasPrefix(c, "crawlbatch ") || strings.HasPrefix(c, "--"); !own && !namesCommand(root, c) {
				continue
			}
			for _, m := range flagWord.FindAllStringSubmatch(c, -1) {
				if !hasFlag(m[1]) {
					t.Errorf("%s names --%s, which no command has: %s", doc, m[1], c)
				}
			}
			if args, ok := strings.CutPrefix(c, "crawlbatch "); ok {
				if name, _, _ := strings.Cut(args, " "); name != "COMMAND" && !strings.HasPrefix(name, "-") && !namesCommand(root, name) {
					t.Errorf("%s names `crawlbatch %s`, which is not a command", doc, name)
				}
			}
		}
	}
}

// namesCommand reports whether text begins with the name of a command.
func namesCommand(root *cobra.Command, text string) bool {
	name, _, _ := strings.Cut(text, " ")
	return slices.ContainsFunc(root.Commands(), func(c *cobra.Command) bool { return c.Name() == name })
}

func TestTheREADMEIsShort(t *testing.T) {
	if n := strings.Count(fileOfTree(t, "README.md"), "\n"); n > 150 {
		t.Errorf("README.md has %d lines: at most 150; details belong into the README of a folder", n)
	}
}

// Each README with a part "generated: packages" lists the packages below its folder with the first
// sentence of each package comment. The list of packages must be complete and current. The flag
// -update rewrites the list.
func TestThePackageMapsAreComplete(t *testing.T) {
	const end = "<!-- end -->\n"
	out, err := exec.Command("go", "list", "-f", "{{.ImportPath}}\t{{.Doc}}", module+"...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	listed := strings.Split(strings.TrimSpace(string(out)), "\n")
	maps := 0
	for _, folder := range layers {
		doc := folder + "/README.md"
		before, rest, ok := strings.Cut(fileOfTree(t, doc), "<!-- generated: packages -->\n")
		got, after, ok2 := strings.Cut(rest, end)
		if !ok || !ok2 {
			continue
		}
		maps++
		want := "| package | |\n|---|---|\n"
		for _, l := range listed {
			path, sentence, _ := strings.Cut(strings.TrimPrefix(l, module), "\t")
			if within(path, folder) {
				_, purpose, _ := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(sentence, "Package "), "."), " ")
				want += "| `" + path + "` | " + purpose + " |\n"
			}
		}
		if got != want && !*update {
			t.Errorf("the packages in %s are not as generated: run go test ./cmd/crawlbatch -run PackageMaps -update", doc)
		}
		if *update {
			text := before + "<!-- generated: packages -->\n" + want + end + after
			if err := os.WriteFile(filepath.Join(tree, doc), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	if maps < 4 {
		t.Errorf("only %d documents list packages", maps)
	}
}
