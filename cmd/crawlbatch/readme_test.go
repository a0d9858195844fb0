package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/cmd/crawltest"
	"crawlbatch.io/crawlbatch/stages/simweb"
	"crawlbatch.io/crawlbatch/stages/simweb/faults"
)

// block is a block of shell commands of a README.
type block struct {
	file, section string
	lines         []string
}

func (b block) String() string { return fmt.Sprintf("%s, %q: %s", b.file, b.section, b.lines[0]) }

// blocks returns the blocks of shell commands of a README, in order.
func blocks(t *testing.T, file string) (out []block) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", file))
	if err != nil {
		t.Fatal(err)
	}
	section, inside := "", false
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case inside && line == "```":
			inside = false
		case inside:
			last := &out[len(out)-1]
			last.lines = append(last.lines, line)
		case line == "```sh":
			out, inside = append(out, block{file: file, section: section}), true
		case strings.HasPrefix(line, "#"):
			section = strings.TrimLeft(line, "# ")
		}
	}
	return out
}

// words splits the first command of a shell line at white space outside of quotes. A pipe,
// a redirection or a comment ends the command.
func words(line string) (out []string) {
	word, quote, begun := "", rune(0), false
	for _, r := range line + " " {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word += string(r)
		case r == '"' || r == '\'':
			quote, begun = r, true
		case strings.ContainsRune("|<>&;", r), r == '#' && !begun:
			if begun {
				out = append(out, word)
			}
			return out
		case r == ' ':
			if begun {
				out = append(out, word)
			}
			word, begun = "", false
		default:
			word, begun = word+string(r), true
		}
	}
	return out
}

func TestWordsOfACommandLine(t *testing.T) {
	for line, want := range map[string]string{
		`crawlbatch plan --user-agent "a b/1 (+x)" 'c'   # why`: `crawlbatch|plan|--user-agent|a b/1 (+x)|c`,
		`crawlbatch simweb --seeds s.txt &`:                     `crawlbatch|simweb|--seeds|s.txt`,
		`crawlbatch views > views.sql`:                          `crawlbatch|views`,
	} {
		if got := strings.Join(words(line), "|"); got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
}

// Each crawlbatch command in a README exists, and has the flags that the README shows.
func TestTheREADMEsCommandsAreKnown(t *testing.T) {
	commands := 0
	for _, file := range documents(t) {
		for _, b := range blocks(t, file) {
			for line := range strings.Lines(strings.ReplaceAll(strings.Join(b.lines, "\n"), "\\\n", " ")) {
				args := words(strings.TrimSpace(line))
				if len(args) == 0 || args[0] != "crawlbatch" {
					continue
				}
				commands++
				root := newRoot(&common{})
				cmd, rest, err := root.Find(args[1:])
				if err == nil && cmd == root {
					err = fmt.Errorf("no such command")
				}
				if err == nil {
					err = cmd.ParseFlags(rest)
				}
				if err == nil {
					err = cmd.ValidateArgs(cmd.Flags().Args())
				}
				if err != nil {
					t.Errorf("%s: %s: %v", b, strings.TrimSpace(line), err)
				}
			}
		}
	}
	if commands < 25 {
		t.Errorf("only %d commands were found", commands)
	}
}

// pasted lists the documents whose commands the test pastes, in order.
var pasted = []string{"README.md", "jobs/README.md", "planner/README.md", "formats/README.md"}

// unpasted lists the first lines of blocks that the test does not paste, with the reason.
var unpasted = map[string]string{
	"make demo ":                       "it builds; CI runs both targets",
	"make image":                       "it needs a registry and a cluster: make test-k8s has both",
	"crawlbatch views --dialect trino": "one of its lines needs a bucket: make test-s3 and formats/catalog open stores in S3",
	`crawlbatch plan --month 2026-11 --source "mysql`:     "it needs a database: make test-sql",
	"crawlbatch plan --month 2026-11 --source 'sites.csv": "it needs files of three kinds and Common Crawl's bucket: sources.txtar has such commands",
	"crawlbatch plan --month 2026-11 --source sitemap:":   "it needs a site with https: TestPlanReadsASitemapFromTheWeb plans from one",
	"crawlbatch host example.org --month 2026-11 --stop":  "the synthetic web has no example.org: control.txtar stops and resumes hosts",
	"crawlbatch prune --lifecycle":                        "it needs a bucket: the tests of s3store and of prune set such rules",
	"crawlbatch takedown --domain":                        "it needs the key in a config and a list: takedown.txtar and TestWhatIsTakenDownIsNowhere take names down",
	"curl -sO":                                            "it needs the web and Common Crawl's bucket",
}

// The test pastes the commands of the README and of other documents into a shell on a terminal, block
// after block, as a new user does. Four things differ from a user's machine: a synthetic web answers
// instead of the real web, delays are short, partitions are small, and a script stands in for duckdb
// (`make test-duckdb` runs the real duckdb).
func TestTheREADMEsCommandsPastedIntoAShell(t *testing.T) {
	if testing.Short() {
		t.Skip("it crawls for a minute: make test-crawl")
	}
	t.Parallel() // it mostly waits
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is missing")
	}
	dir := t.TempDir()
	address := servesReadersWeb(t, dir)
	port := crawltest.FreePort(t)
	real, err := exec.LookPath("crawlbatch")
	if err != nil {
		t.Fatal(err)
	}
	const quick = "politeness: {delay: 5ms}\nplan: {partition_urls: 12}\nfetch:\n" +
		"  timeout: {first_byte: 2s, total: 4s}\n" +
		"  pauses: {timeout: 20ms, server_error: 20ms, rate_limited: 20ms, dns: 20ms, breaker: 50ms}\n"
	for name, text := range map[string]string{
		// bin is the folder where `make build` puts the binary. The month 2026-12 crawls the web of the README's own simweb.
		"bin/crawlbatch": "#!/bin/sh\nconfig=quick\ncase \" $* \" in\n*\" --config \"*) exec " + real + " \"$@\" ;;\n*\" simweb \"*) exec " + real + " \"$@\" --crawl-delay 0s ;;\n" +
			"*\" --month 2026-12 \"*) config=own ;;\nesac\nexec " + real + " \"$@\" --config \"" + dir + "/$config.yaml\"\n",
		"bin/duckdb":    "#!/bin/sh\n[ \"$1 $2 $3 $4\" = '-no-init -batch -bail -f' ] && [ -s \"$5\" ]\n",
		"quick.yaml":    quick + "  connect_to: [\"::" + address + "\"]\n",
		"own.yaml":      quick,
		"stricter.yaml": "dedup: {max_distance: 1}\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	shell := onTerminalRun(t, dir, 120, []string{"PS1=[$?]ready> ", "HOME=" + dir, "HISTFILE="}, exec.Command(bash, "--norc", "--noprofile", "-i"))
	prompts := shell.prompts(1)
	skipped := map[string]bool{}
	var all []block
	for _, file := range pasted {
		all = append(all, blocks(t, file)...)
	}
	for _, b := range all {
		if first := notPasted(b); first != "" {
			skipped[first] = true
			continue
		}
		text := strings.ReplaceAll(strings.Join(b.lines, "\n")+"\n", "127.0.0.1:8080", "127.0.0.1:"+port)
		shell.press(text)
		before := len(prompts)
		prompts = shell.prompts(before + len(b.lines))
		for i, status := range prompts[before:] {
			if status != "0" {
				t.Fatalf("%s: %s\nexit %s:\n%s", b, b.lines[i], status, shell.before(before+i))
			}
		}
	}
	for first := range unpasted {
		if !skipped[first] {
			t.Errorf("no block begins with %q: remove it from the list", first)
		}
	}
	shell.press("kill %1; wait\nexit\n") // the first job of the shell is simweb
	select {
	case <-shell.gone:
	case <-time.After(patience):
		t.Errorf("the shell does not end:\n%s", shell.tail())
	}
}

func notPasted(b block) string {
	for first := range unpasted {
		if strings.HasPrefix(b.lines[0], first) {
			return first
		}
	}
	return ""
}

// servesReadersWeb serves a synthetic web and writes its seeds to urls.txt.
func servesReadersWeb(t *testing.T, dir string) string {
	t.Helper()
	w := simweb.Default()
	w.Hosts, w.PagesPerHost, w.CrawlDelay, w.RetryAfter, w.Faults = 30, 8, 0, 0, faults.Quick
	web, err := simweb.New(w)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- simweb.NewServer(web, nil).Serve(ctx, ln) }()
	t.Cleanup(func() { stop(); <-served })
	if err := web.WriteSeeds(t.Context(), filepath.Join(dir, "urls.txt"), false); err != nil {
		t.Fatal(err)
	}
	return ln.Addr().String()
}

var prompt = regexp.MustCompile(`\[(\d+)\]ready> `)

// prompts waits until a shell has shown n prompts and returns their exit codes.
func (s *session) prompts(n int) (codes []string) {
	s.t.Helper()
	for end := time.Now().Add(10 * patience); time.Now().Before(end); {
		s.mu.Lock()
		found := prompt.FindAllSubmatch(s.raw.Bytes(), -1)
		s.mu.Unlock()
		if len(found) >= n {
			for _, m := range found {
				codes = append(codes, string(m[1]))
			}
			return codes
		}
		select {
		case <-s.gone:
			s.t.Fatalf("the shell ended:\n%s", s.tail())
		case <-time.After(20 * time.Millisecond):
		}
	}
	s.t.Fatalf("%d prompts were expected:\n%s", n, s.tail())
	return nil
}

// before returns what a shell showed between the prompts n-1 and n, counted from 0.
func (s *session) before(n int) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	raw := s.raw.Bytes()
	at := prompt.FindAllIndex(raw, -1)
	return string(bytes.ToValidUTF8(raw[at[n-1][1]:at[n][0]], nil))
}

// tail returns the end of the text that a shell showed.
func (s *session) tail() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	raw := s.raw.Bytes()
	return string(bytes.ToValidUTF8(raw[max(0, len(raw)-4000):], nil))
}
