package fetch

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/stages/fetch/retries"
	"crawlbatch.io/crawlbatch/stages/fetch/wire"
)

func TestAProxyThatRefusesPlainHTTPIsLoggedOnceWithTheKeyThatHelps(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLab(t, nil, "http://a.com/1", "http://a.com/2", "http://b.com/")
		l.cfg.Proxy = "http://me:hunter2@192.0.2.1:3128"
		l.cfg.Retries, l.cfg.Pauses = retries.Limits{}, retries.Pauses{Grace: l.cfg.Pauses.Grace}
		l.hooks.tune = func(c *wire.Config) {
			l.web.tune(c)
			c.Dial = func(_ context.Context, to netip.AddrPort) (net.Conn, error) {
				if to.String() != "192.0.2.1:3128" {
					t.Errorf("%s was dialled", to)
				}
				here, there := net.Pipe()
				go func() {
					defer there.Close()
					if r, err := http.ReadRequest(bufio.NewReader(there)); err != nil || r.Method != http.MethodConnect {
						t.Errorf("the proxy got %v (%v)", r, err)
					}
					io.WriteString(there, "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
				}()
				return here, nil
			}
		}
		var log bytes.Buffer
		env := l.env(l.bucket, t.TempDir())
		env.Log = slog.New(slog.NewTextHandler(&log, nil))
		r, err := runWith(t.Context(), env, &Input{Task: l.task, Plan: l.plan}, l.cfg, l.parser, l.hooks)
		if err != nil {
			t.Fatal(err)
		}
		for url, f := range l.outcomes(r) {
			if f.Outcome != schema.ConnectError && f.Outcome != schema.RobotsUnreachable {
				t.Errorf("%s ended as %s", url, f.Outcome)
			}
		}
		if said := log.String(); strings.Count(said, "fetch.proxy_filters: true") != 1 || strings.Contains(said, "hunter2") {
			t.Errorf("logged:\n%s", said)
		}
	})
}
