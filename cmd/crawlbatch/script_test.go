package main

import (
	"flag"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

var update = flag.Bool("update", false, "rewrite the golden transcripts")

func TestMain(m *testing.M) {
	if os.Getenv(benchServer) != "" {
		serveBenchPages()
		return
	}
	testscript.Main(m, map[string]func(){"crawlbatch": main})
}

// TestTranscripts runs the scripts under testdata/script: what a user types, and
// what the program must answer, to the letter. -update rewrites the answers.
func TestTranscripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:           "testdata/script",
		UpdateScripts: *update,
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("TMPDIR", os.TempDir())
			return nil
		},
	})
}
