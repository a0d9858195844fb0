package crawltest

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/stages/simweb"
	"crawlbatch.io/crawlbatch/stages/simweb/faults"
)

// Listen listens on a free port of loopback.
func Listen(t *testing.T) net.Listener {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return ln
}

// FreePort returns a port of loopback on which nobody listens.
func FreePort(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	_, port, _ := net.SplitHostPort(ln.Addr().String())
	return port
}

// WebConfig describes a web of 20 hosts and about 2,000 pages. It has every fault except those that last until the
// crawler's time-outs.
func WebConfig() simweb.Config {
	c := simweb.Default()
	c.Hosts, c.PagesPerHost = 20, 100
	c.Faults = faults.Quick | faults.Retried
	c.CrawlDelay = 90 * time.Millisecond
	c.RetryAfter = 0
	return c
}

// RequestLog reads a log of simweb. It drops the last line if a crash left the line incomplete.
func RequestLog(t *testing.T, name string) (entries []simweb.Entry) {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for dec := json.NewDecoder(bufio.NewReader(f)); ; {
		var e simweb.Entry
		switch err := dec.Decode(&e); {
		case err == nil:
			entries = append(entries, e)
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return entries
		default:
			t.Fatalf("request log, entry %d: %v", len(entries)+1, err)
		}
	}
}
