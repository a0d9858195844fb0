package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"crawlbatch.io/crawlbatch/cmd/crawltest"
	"crawlbatch.io/crawlbatch/jobs"
)

// answersNotFound serves DNS on loopback. Every answer says that the name does not exist.
func answersNotFound(t *testing.T) (address string) {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	go func() {
		query := make([]byte, 512)
		for {
			n, from, err := conn.ReadFrom(query)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(query[:n]) != nil {
				continue
			}
			m.Header = dnsmessage.Header{ID: m.ID, Response: true, RecursionDesired: true, RecursionAvailable: true, RCode: dnsmessage.RCodeNameError}
			m.Additionals = nil
			if answer, err := m.Pack(); err == nil {
				_, _ = conn.WriteTo(answer, from)
			}
		}
	}()
	return conn.LocalAddr().String()
}

// TestARunTellsThatMostURLsFailed runs the program against loopback. A script must be able to tell a round whose
// URLs failed from a good one.
func TestARunTellsThatMostURLsFailed(t *testing.T) {
	t.Parallel()
	program, err := exec.LookPath("crawlbatch")
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/robots.txt" || r.URL.Path == "/missing":
			http.NotFound(w, r)
		case strings.HasPrefix(r.URL.Path, "/secret"):
			http.Error(w, "no", http.StatusForbidden)
		default:
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, "<title>"+r.URL.Path+"</title><a href='/missing'>one link for all</a>")
		}
	}))
	t.Cleanup(web.Close) // not deferred, because the parallel runs go on after this function
	closed := "http://127.0.0.1:" + crawltest.FreePort(t)
	ten := func(format string) (urls []string) {
		for i := range 10 {
			urls = append(urls, fmt.Sprintf(format, i))
		}
		return urls
	}
	const private, retries = "  allow_private_networks: true\n", "  retries: {timeout: 0, robots: 0}\n"
	for name, c := range map[string]struct {
		urls   []string
		config string // of fetch
		rounds string
		code   int
		says   []string
	}{
		"private addresses": {ten(web.URL + "/%d"), "", "1", exitMostFailed, []string{
			"10 of 10 URLs failed, 10 of them with address_blocked (", "add --allow-private-networks (fetch.allow_private_networks)", "`crawlbatch report --month 2026-11 --store "}},
		"refused":      {ten(web.URL + "/secret/%d"), private, "1", exitMostFailed, []string{"10 of 10 URLs failed, 10 of them with http_4xx (HTTP 403): ", "user agent"}},
		"no names":     {ten("http://h%d.example.net/"), "  resolvers: [" + answersNotFound(t) + "]\n", "1", exitMostFailed, []string{"10 of 10 URLs failed, 10 of them with dns_error (", "fetch.resolvers"}},
		"no answers":   {ten(closed + "/%d"), private + retries, "1", exitMostFailed, []string{"10 of 10 URLs failed", "check the network, the firewall"}},
		"a tenth":      {append(ten(web.URL + "/%d")[1:], web.URL+"/secret"), private, "1", exitDone, nil},
		"one more URL": {ten(web.URL + "/%d"), private, "2", exitDone, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			crawltest.Write(t, filepath.Join(dir, "urls.txt"), strings.Join(c.urls, "\n"))
			crawltest.Write(t, filepath.Join(dir, "c.yaml"), "user_agent: examplebot/1.0 (+https://example.org/bot)\npoliteness: {delay: 1ms, per_address_delay: 0s}\nfetch:\n"+
				"  pauses: {timeout: 1ms, dns: 1ms, breaker: 1ms}\n"+c.config)
			run := func(args ...string) (string, int) {
				cmd := exec.Command(program, append(args, "--month", "2026-11", "--store", dir+"/store", "--config", dir+"/c.yaml")...)
				said, err := cmd.CombinedOutput()
				if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
					t.Fatal(err)
				}
				return string(said), cmd.ProcessState.ExitCode()
			}
			if said, code := run("plan", "--source", dir+"/urls.txt"); code != exitDone {
				t.Fatalf("plan: exit %d: %s", code, said)
			}
			for _, call := range []string{"the first call", "the same call again"} {
				said, code := run("run", "--rounds", c.rounds)
				if code != c.code {
					t.Errorf("%s: exit %d, want %d:\n%s", call, code, c.code, said)
				}
				for _, want := range c.says {
					if !strings.Contains(said, want) {
						t.Errorf("%s does not say %q:\n%s", call, want, said)
					}
				}
				if c.rounds == "2" && !strings.Contains(said, "round 1 of 2026-11: 1 URL,") {
					t.Errorf("%s: the second round is not that of one URL:\n%s", call, said)
				}
			}
		})
	}
}

func TestPlanWarnsOfWhatRequestsCannotReach(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"good": "search example.org\nnameserver 192.0.2.1\n", "none": "search example.org\n#nameserver 192.0.2.1\n"} {
		crawltest.Write(t, filepath.Join(dir, name), text)
	}
	for _, c := range []struct {
		reach jobs.Reach
		conf  string
		want  []string
	}{
		{jobs.Reach{Names: 2}, "good", nil},
		{jobs.Reach{Names: 2}, "none", []string{"none names no name server, so this machine cannot look up the names of 2 planned hosts"}},
		{jobs.Reach{Names: 1}, "missing", []string{"missing names no name server, so this machine cannot look up the names of 1 planned host,"}},
		{jobs.Reach{}, "missing", nil},
		{jobs.Reach{Refused: 3, Example: "10.0.0.1:8080"}, "missing", []string{"3 URLs at hosts with private addresses, such as 10.0.0.1:8080, will end as address_blocked"}},
	} {
		var said strings.Builder
		o := planOptions{common: &common{err: &said}}
		o.warnOfReach(&c.reach, filepath.Join(dir, c.conf))
		if n := strings.Count(said.String(), "warning: "); n != len(c.want) || n != strings.Count(said.String(), "\n") {
			t.Errorf("%+v, %s: %d warnings:\n%s", c.reach, c.conf, n, said.String())
		}
		for _, want := range c.want {
			if !strings.Contains(said.String(), want) {
				t.Errorf("%+v, %s: it does not say %q:\n%s", c.reach, c.conf, want, said.String())
			}
		}
	}
	// An unreadable file says nothing about the name servers.
	var said strings.Builder
	o := planOptions{common: &common{err: &said}}
	if o.warnOfReach(&jobs.Reach{Names: 2}, dir); said.Len() > 0 {
		t.Errorf("a folder: %s", said.String())
	}
}
