//go:build lab

package lab

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"crawlbatch.io/crawlbatch/cmd/crawltest"
	"crawlbatch.io/crawlbatch/cmd/demo"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/storetest/versitygw"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/jobs/jobstest/namesearch"
)

// These environment variables configure the takedown in a large store.
const (
	scaleTakedown = "CRAWLBATCH_SCALE_TAKEDOWN" // directory that `make scale` made for one size; enables the suite
	scaleDomain   = "CRAWLBATCH_SCALE_DOMAIN"   // domain to take down; default: the first with at least 20 URLs
)

// searching is the number of objects that the suite holds in memory at a time.
const searching = 2

// TestScaleTakedown takes a domain out of copies of a large store: once undisturbed, and killed at random instants on
// both kinds of stores. It compares the copy that was not disturbed with the store, and the others with that copy.
func TestScaleTakedown(t *testing.T) {
	state := os.Getenv(scaleTakedown)
	if state == "" {
		t.Skipf("%s is not set: `make scale-takedown` runs this", scaleTakedown)
	}
	t.Setenv(goneKey, "correct horse battery staple, 0123456789")
	config, err := os.ReadFile(filepath.Join(state, "c.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	conf := filepath.Join(t.TempDir(), "c.yaml")
	crawltest.Write(t, conf, string(config)+"store: {takedown_key: \"${"+goneKey+"}\"}\n")
	dir := filepath.Join(state, "store")
	names, domain := scaleNames(t, crawltest.OpenDir(t, dir))
	args := []string{"takedown", "--domain", domain, "--reason", "asked for", "--apply", "--config", conf}
	calm, took := takeDownUndisturbed(t, dir, args)
	t.Run("undisturbed", func(t *testing.T) { compareAtScale(t, dir, calm, names) })
	t.Run("directory", func(t *testing.T) { killAtScale(t, dir, nil, calm, took, names, args) })
	// Requests to S3 take CPU too. With instants of a directory, no kill would come after the search for names.
	t.Run("S3", func(t *testing.T) { killAtScale(t, dir, versitygw.Start(t), calm, took*3/2, names, args) })
}

// scaleNames returns the domain to take down, with all its URLs and hosts that the store knows, for the filters.
func scaleNames(t *testing.T, b store.Bucket) (*namesearch.Names, string) {
	t.Helper()
	type known struct {
		URL    string `parquet:"url,delta"`
		Host   string `parquet:"host,dict"`
		Domain string `parquet:"domain,dict"`
	}
	each := func(visit func(known)) {
		for o, err := range b.List(t.Context(), "tables/urls/") {
			if err != nil {
				t.Fatal(err)
			}
			for r, err := range table.Concat[known](t.Context(), b, []string{o.Key}) {
				if err != nil {
					t.Fatal(err)
				}
				visit(r)
			}
		}
	}
	domain := os.Getenv(scaleDomain)
	counts := map[string]int{}
	each(func(r known) {
		if counts[r.Domain]++; counts[r.Domain] == 20 && domain == "" {
			domain = strings.Clone(r.Domain)
		}
	})
	var names namesearch.Names
	names.Domain(domain)
	n := 0
	each(func(r known) {
		if r.Domain == domain {
			names.Probe(strings.Clone(r.URL), strings.Clone(r.Host))
			n++
		}
	})
	if n < 20 {
		t.Fatalf("the store knows %d URLs of the domain %q: too few", n, domain)
	}
	t.Logf("%s=%s: the store knows %d URLs of it", scaleDomain, domain, n)
	return &names, domain
}

// scaleLimit bounds the time of a command.
const scaleLimit = 3 * time.Hour

// takeDownUndisturbed runs a takedown in a copy of a store. It also returns the CPU time that the takedown takes.
func takeDownUndisturbed(t *testing.T, dir string, args []string) (*killedStore, time.Duration) {
	t.Helper()
	calm := newKilledStore(t, dir, nil, 50)
	calm.byCPU = true
	_, code, out := calm.command(scaleLimit, args...)
	took := calm.used.UserTime() + calm.used.SystemTime()
	if code != exitDone {
		t.Fatalf("exit %d\n%s", code, out)
	}
	used, _ := calm.used.SysUsage().(*syscall.Rusage)
	t.Logf("undisturbed: %v of CPU, %d MiB at most\n%s", took.Round(time.Second), used.Maxrss>>10, out)
	return calm, took
}

// killAtScale kills takedowns in copies of a store, until their number is reached. Each copy must become the same as
// after a takedown that was not killed; documents, which hold times, must at least not hold a name.
func killAtScale(t *testing.T, dir string, server *versitygw.Server, calm *killedStore, took time.Duration, names *namesearch.Names, args []string) {
	whole := digests(t, calm.b)
	for kills := calm.kills; kills > 0; {
		k := newKilledStore(t, dir, server, kills)
		k.random, k.kills, k.limit, k.byCPU = calm.random, kills, scaleLimit, true
		k.killUntilDone(took, func() {}, args...)
		if k.killed == 0 { // it is faster now
			took = took * 4 / 5
		}
		kills -= k.killed
		t.Logf("done after %d kills", k.killed)
		now := digests(t, k.b)
		for key, digest := range now {
			if !ofDocument.MatchString(key) && whole[key] != digest {
				t.Errorf("%s is another than after a takedown that was not killed", key)
			}
		}
		for key := range whole {
			if _, ok := now[key]; !ok && !ofDocument.MatchString(key) {
				t.Errorf("%s is missing, unlike after a takedown that was not killed", key)
			}
		}
		if left, _ := places(searchAll(t, k.b, "", names, ofDocument.MatchString)); len(left) > 0 {
			t.Errorf("%d places still name it:\n%s", len(left), strings.Join(left, "\n"))
		}
		if t.Failed() {
			return
		}
		for key := range now { // the next copy needs the space
			if err := k.b.Delete(t.Context(), key); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// ofDocument matches objects that hold times or digests of such.
var ofDocument = regexp.MustCompile(`\.json$|/manifests/`)

// digests returns the SHA-256 of each object.
func digests(t *testing.T, b store.Bucket) map[string][32]byte {
	t.Helper()
	all, mu := map[string][32]byte{}, sync.Mutex{}
	eachObject(t, b, "", func(ctx context.Context, key string) error {
		o, err := b.Open(ctx, key)
		if err != nil {
			return err
		}
		defer o.Close()
		h := sha256.New()
		if _, err := io.CopyBuffer(h, io.NewSectionReader(o, 0, o.Size()), make([]byte, 1<<20)); err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		all[key] = [32]byte(h.Sum(nil))
		return nil
	})
	return all
}

// searchAll is namesearch.Search of the objects that wanted allows. It holds a few objects in memory.
func searchAll(t *testing.T, b store.Bucket, prefix string, names *namesearch.Names, wanted func(key string) bool) (hits []namesearch.Hit) {
	t.Helper()
	var mu sync.Mutex
	eachObject(t, b, prefix, func(ctx context.Context, key string) error {
		if !wanted(key) {
			return nil
		}
		body, _, err := b.Get(ctx, key, 1<<30)
		if err != nil {
			return err
		}
		found, err := namesearch.Object(key, body, names)
		mu.Lock()
		defer mu.Unlock()
		hits = append(hits, found...)
		return err
	})
	return hits
}

func eachObject(t *testing.T, b store.Bucket, prefix string, do func(ctx context.Context, key string) error) {
	t.Helper()
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(searching)
	for o, err := range b.List(ctx, prefix) {
		if err != nil {
			t.Fatal(err)
		}
		group.Go(func() error {
			if err := do(ctx, o.Key); err != nil {
				return fmt.Errorf("%s: %w", o.Key, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}

// compareAtScale compares the rows, records and lines of the objects that a takedown changed in the copy calm of the store
// in dir. All other objects must have stayed, and no object may still have a name.
func compareAtScale(t *testing.T, dir string, calm *killedStore, names *namesearch.Names) {
	old, b := crawltest.OpenDir(t, dir), calm.b
	before, after := digests(t, old), digests(t, b)
	f := &forgotten{t: t, names: names, synthetic: true, before: map[string][]byte{}, after: map[string][]byte{}, gone: map[string]bool{}, compared: map[string]int{}, dropped: map[string]int{}}
	read := func(b store.Bucket, key string) []byte {
		body, _, err := b.Get(t.Context(), key, 1<<30)
		if err != nil {
			t.Fatal(err)
		}
		return body
	}
	var changed []string
	for key, digest := range before {
		now, ok := after[key]
		switch {
		case ok && now == digest || strings.Contains(key, "/manifests/"):
		case !ok:
			t.Errorf("%s is gone", key)
		default:
			changed = append(changed, key)
		}
		if strings.Contains(key, "vertices.txt.gz") || strings.Contains(key, "edges.txt.gz") {
			f.before[key], f.after[key] = read(old, key), read(b, key)
		}
	}
	for _, key := range changed {
		if strings.HasSuffix(key, ".warc.gz") {
			for _, r := range f.records(key, read(old, key)) {
				if names.Holds(r.target) {
					f.gone[place(key, r.offset)], f.gone[r.id] = true, true
				}
			}
		}
	}
	for _, key := range changed {
		was, is := read(old, key), read(b, key)
		if bytes.Equal(was, is) {
			t.Errorf("%s has another digest and the same bytes", key)
		}
		f.compare(key, was, is)
	}
	if len(f.compared) < 10 {
		t.Errorf("the comparison compares little: %v", f.compared)
	}
	t.Logf("%d of %d objects changed; the same in them: %v; went with what they refer to: %v", len(changed), len(before), f.compared, f.dropped)
	all := func(string) bool { return true }
	if left, _ := places(searchAll(t, old, "tables/", names, all)); len(left) < 10 {
		t.Errorf("the tables name the domain in only %d places", len(left))
	}
	left, mentions := places(searchAll(t, b, "", names, all))
	t.Logf("%d places and %d mentions are left", len(left), mentions)
	if len(left) > 0 {
		t.Errorf("%d places still name it:\n%s", len(left), strings.Join(left, "\n"))
	}
	if _, code, out := calm.command(scaleLimit, "verify", "--month", demo.Crawl, "--sample", "0.01"); code != exitDone {
		t.Errorf("verify: exit %d\n%s", code, out)
	}
}
