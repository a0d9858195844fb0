package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// cmd/README.md must list the flags that the commands define.
func TestDocumentsHaveTheReferenceOfCommands(t *testing.T) {
	const begin, end = "<!-- generated: commands -->\n", "<!-- end -->\n"
	text, want := fileOfTree(t, "cmd/README.md"), commandReference(newRoot(&common{out: &bytes.Buffer{}}))
	for _, e := range exitCodes {
		if !strings.Contains(text, fmt.Sprintf("\n| %d | ", e.code)) {
			t.Errorf("cmd/README.md does not explain exit code %d", e.code)
		}
	}
	before, rest, ok := strings.Cut(text, begin)
	got, after, ok2 := strings.Cut(rest, end)
	switch {
	case !ok || !ok2:
		t.Fatalf("cmd/README.md has no part between %q and %q", begin, end)
	case got == want:
	case !*update:
		t.Error("the flags in cmd/README.md are not as generated: run go test ./cmd/crawlbatch -run Documents -update")
	default:
		if err := os.WriteFile(filepath.Join(tree, "cmd/README.md"), []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// commandReference renders every command and its flags as Markdown.
func commandReference(root *cobra.Command) string {
	var text strings.Builder
	text.WriteString("### Flags of every command\n\n")
	flagTable(&text, root.PersistentFlags())
	for _, cmd := range allCommands(root)[1:] {
		fmt.Fprintf(&text, "\n### %s\n\n%s: `%s`\n", strings.TrimPrefix(cmd.CommandPath(), "crawlbatch "), cmd.Short, strings.TrimSuffix(cmd.UseLine(), " [flags]"))
		if cmd.LocalNonPersistentFlags().HasAvailableFlags() {
			text.WriteString("\n")
			flagTable(&text, cmd.LocalNonPersistentFlags())
		}
	}
	return text.String()
}

// flagTable renders flags as a Markdown table.
func flagTable(text *strings.Builder, flags *pflag.FlagSet) {
	text.WriteString("| flag | default | meaning |\n|---|---|---|\n")
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		name, initial := "`--"+f.Name+"`", f.DefValue
		if f.Shorthand != "" {
			name = "`-" + f.Shorthand + "`, " + name
		}
		if initial == "[]" || f.Value.Type() == "bool" && initial == "false" {
			initial = ""
		}
		if initial = strings.Trim(initial, "[]"); initial != "" {
			initial = "`" + initial + "`"
		}
		fmt.Fprintf(text, "| %s | %s | %s |\n", name, initial, strings.ReplaceAll(f.Usage, "|", `\|`))
	})
}

func TestEachCommandHasASentenceHelpAndAnExample(t *testing.T) {
	for _, cmd := range allCommands(newRoot(&common{out: &bytes.Buffer{}})) {
		if cmd.Short == "" || !unicode.IsUpper([]rune(cmd.Short)[0]) || strings.HasSuffix(cmd.Short, ".") {
			t.Errorf("%s: its short help is not a sentence: %q", cmd.CommandPath(), cmd.Short)
		}
		if !cmd.HasSubCommands() && (cmd.Example == "" || !strings.Contains(cmd.Long, "Exit codes: ")) {
			t.Errorf("%s has no example or no exit codes in its help", cmd.CommandPath())
		}
	}
}

// allCommands lists a command and its subcommands, without hidden commands and shell completions.
func allCommands(cmd *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{cmd}
	for _, child := range cmd.Commands() {
		if !child.Hidden && cmd.Name() != "completion" {
			all = append(all, allCommands(child)...)
		}
	}
	return all
}
