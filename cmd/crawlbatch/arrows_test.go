package main

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "crawlbatch.io/crawlbatch/"

// layers lists the layers from top to bottom. A package must not import a package of a
// higher layer.
var layers = []string{"cmd", "k8s", "jobs", "stages", "planner", "formats"}

// mayImport reports whether package from is allowed to import package to, and if not, the reason. Both
// are package paths relative to the module's root.
func mayImport(from, to string) (bool, string) {
	for _, tree := range []struct{ root, why string }{
		{"formats/store/dirstore", "only cmd picks a store"},
		{"formats/store/s3store", "only cmd picks a store"},
		{"jobs/local", "only cmd picks an executor"},
		{"jobs/metrics", "only cmd serves metrics"},
		{"jobs/show", "only cmd has a terminal"},
		{"stages/simweb", "the test web is for cmd and for tests"},
	} {
		if within(to, tree.root) && !within(from, tree.root) {
			return within(from, "cmd"), tree.why
		}
	}
	switch {
	case layer(to) < layer(from):
		return false, "points up"
	case within(from, "jobs/config"):
		return within(to, "jobs/config") || within(to, "formats"), "config imports formats only"
	case within(from, "jobs/ledger"):
		return !within(to, "jobs") || within(to, "jobs/ledger"), "what every job reads knows none of them"
	case within(from, "jobs/roundstate"):
		return !within(to, "jobs") || within(to, from) || within(to, "jobs/config") || within(to, "jobs/ledger"), "what every job reads knows none of them"
	case within(from, "stages/fetch/wire"):
		return within(to, "stages/fetch/wire") || to == "stages/fetch/guard" || within(to, "formats/http1"), "the HTTP client knows the reader of responses, the address guard and nothing else of crawlbatch"
	case within(from, "formats/http1"):
		return within(to, "formats/http1"), "the reader of responses knows nothing else of crawlbatch"
	case within(from, "stages/simweb"):
		return within(to, "stages/simweb") || within(to, "formats"), "simweb imports formats only"
	case from == "stages":
		return within(to, "formats"), "what all stages share knows none of them"
	case within(from, "stages"):
		return to == "stages" || within(to, stageOf(from)) || within(to, "formats"), "stages never import one another, and nothing but formats"
	}
	return true, ""
}

// stageOf returns the folder of a package's stage, such as stages/fetch for stages/fetch/wire.
func stageOf(pkg string) string {
	parts := strings.Split(pkg, "/")
	return strings.Join(parts[:min(2, len(parts))], "/")
}

func within(pkg, tree string) bool { return pkg == tree || strings.HasPrefix(pkg, tree+"/") }

func layer(pkg string) int {
	first, _, _ := strings.Cut(pkg, "/")
	return slices.Index(layers, first)
}

func TestArrowsPointDown(t *testing.T) {
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports", module+"...")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	dec := json.NewDecoder(strings.NewReader(string(out)))
	packages := 0
	for {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		packages++
		from := strings.TrimPrefix(p.ImportPath, module)
		if layer(from) < 0 {
			t.Errorf("%s is not in a layer of %v", from, layers)
		}
		for _, i := range p.Imports {
			to, own := strings.CutPrefix(i, module)
			if !own {
				continue
			}
			if ok, why := mayImport(from, to); !ok {
				t.Errorf("%s imports %s: %s", from, to, why)
			}
		}
	}
	if packages < 20 {
		t.Errorf("go list found %d packages only", packages)
	}
}

func TestMayImportKnowsTheArrows(t *testing.T) {
	for _, c := range []struct {
		from, to string
		want     bool
	}{
		{"stages/fetch", "stages/parse", false},
		{"stages/fetch", "stages", true},
		{"stages/fetch", "stages/fetch/wire", true},
		{"stages/merge", "jobs/config", false},
		{"stages/merge", "formats/table", true},
		{"stages/merge", "formats/store/dirstore", false},
		{"formats/table", "stages", false},
		{"formats/table", "formats/store", true},
		{"planner", "stages", false},
		{"jobs/worker", "stages/merge", true},
		{"jobs/worker", "stages/simweb", false},
		{"jobs/worker", "stages/simweb/truth", false},
		{"stages/fetch/wire/dial", "stages/fetch/guard", true},
		{"stages/fetch/wire/dial", "stages/fetch", false},
		{"stages/simweb/truth", "stages/simweb", true},
		{"jobs", "jobs/worker", true},
		{"jobs/worker", "jobs/roundstate", true},
		{"jobs/roundstate", "jobs/worker", false},
		{"jobs", "jobs/local", false},
		{"stages", "stages/fetch", false},
		{"jobs/worker", "jobs/local", false},
		{"jobs/worker", "jobs/metrics", false},
		{"jobs/worker", "jobs/show", false},
		{"cmd/crawlbatch", "stages/simweb", true},
		{"cmd/crawlbatch", "formats/store/s3store", true},
		{"jobs/config", "stages", false},
		{"stages", "formats/manifest", true},
	} {
		if got, _ := mayImport(c.from, c.to); got != c.want {
			t.Errorf("%s -> %s: %v, want %v", c.from, c.to, got, c.want)
		}
	}
}
