package config

import (
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var update = flag.Bool("update", false, "rewrite the generated part of jobs/README.md")

// The README has the reference of all keys, as it is generated.
func TestReadmeDocumentsEveryKey(t *testing.T) {
	const file, begin, end = "../README.md", "<!-- generated: config -->\n", "<!-- end -->\n"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want, err := Reference()
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

// readmeConfig is the config that jobs/README.md documents.
func readmeConfig(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text2, ok := strings.Cut(string(text), "## Config\n")
	_, text2, ok2 := strings.Cut(text2, "```yaml\n")
	block, _, ok3 := strings.Cut(text2, "```\n")
	if !ok || !ok2 || !ok3 {
		t.Fatal("jobs/README.md has no YAML under Config")
	}
	return block
}

func TestReadmeShowsEveryDefault(t *testing.T) {
	got := read(t, readmeConfig(t))
	got.UserAgent, got.Politeness.Domains, got.Plan.Budgets.Domains, got.Plan.Scope = "", nil, nil, Scope{}
	want := Default()
	every := got.Politeness.PerAddressDelay
	got.Politeness.PerAddressDelay = nil // the default is unset, the README shows what that means
	if d := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Config{}), cmpopts.EquateEmpty()); d != "" {
		t.Errorf("Default (-), jobs/README.md (+):\n%s", d)
	}
	if every == nil || time.Duration(*every) != 200*time.Millisecond {
		t.Errorf("jobs/README.md says per_address_delay: %v", every)
	}
}
