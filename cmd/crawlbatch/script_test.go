package main

import (
	"flag"
	"net"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

var update = flag.Bool("update", false, "rewrite the golden transcripts")

func TestMain(m *testing.M) {
	if os.Getenv(benchServer) != "" {
		serveBenchPages()
		return
	}
	if os.Getenv(benchMemory) != "" {
		serveMemoryPages()
		return
	}
	testscript.Main(m, map[string]func(){"crawlbatch": main})
}

// TestTranscripts runs the scripts under testdata/script. A script has the input of a user and the
// exact answers of the program. The flag -update rewrites the answers.
func TestTranscripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:           "testdata/script",
		UpdateScripts: *update,
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("TMPDIR", os.TempDir())
			// Retention counts from today.
			for name, back := range map[string]int{"THIS_MONTH": 0, "A_YEAR_AGO": 14, "LONG_AGO": 21} {
				e.Setenv(name, time.Now().UTC().AddDate(0, 0, -30*back).Format("2006-01"))
			}
			// $PORT is a free port on loopback, for servers that a script starts.
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				return err
			}
			e.Setenv("PORT", strconv.Itoa(ln.Addr().(*net.TCPAddr).Port))
			return ln.Close()
		},
	})
}
