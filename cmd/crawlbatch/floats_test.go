package main

import (
	"bytes"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// ownBits are packages whose floating-point numbers need not have the same bits on each machine: the pauses of
// fetch depend on the time anyway, and the test web is for tests.
var ownBits = []string{"stages/fetch/polite", "stages/simweb"}

// powers are the functions in which math.Pow is right: they only compare its result with 1/2.
var powers = []string{"planner.(*rules).tail", "planner/pace.Raised"}

// TestStoredFloatsHaveTheSameBitsOnEachMachine looks for instructions and calls that give other bits on arm64
// than on amd64. Tasks of one round may run on both, and verify compares what they store. Package recrawl
// says how to avoid fused products, and package logarithm has the logarithms.
func TestStoredFloatsHaveTheSameBitsOnEachMachine(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles for another machine: make test-crawl")
	}
	t.Parallel() // it mostly compiles
	out, err := exec.Command("go", "list", module+"formats/...", module+"planner/...", module+"stages/...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	packages := slices.DeleteFunc(strings.Fields(string(out)), func(p string) bool {
		return slices.ContainsFunc(ownBits, func(tree string) bool { return within(strings.TrimPrefix(p, module), tree) })
	})
	c := exec.Command("go", append([]string{"build", "-gcflags=-S"}, packages...)...)
	c.Env = append(os.Environ(), "GOOS=linux", "GOARCH=arm64", "CGO_ENABLED=0")
	assembly, err := c.CombinedOutput()
	if err != nil || !bytes.Contains(assembly, []byte("FMULD")) {
		t.Fatalf("go build: %v: %.2000s", err, assembly)
	}
	function := regexp.MustCompile(`^` + regexp.QuoteMeta(module) + `(\S+) STEXT`)
	fused := regexp.MustCompile(`\bFN?M(ADD|SUB)`)
	inexact := regexp.MustCompile(`\bCALL\s+math\.(?:arch)?(?i:log|exp|pow|cbrt|hypot|sin|cos|tan|asin|acos|atan|gamma|lgamma|erf)\w*\(`)
	in := ""
	for line := range bytes.Lines(assembly) {
		if f := function.FindSubmatch(line); f != nil {
			in = string(f[1])
		}
		if fused.Match(line) || inexact.Match(line) && !slices.Contains(powers, in) {
			t.Errorf("%s: %s", in, line)
		}
	}
}
