package verify

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/compact"
	"crawlbatch.io/crawlbatch/stages"
)

// beside calls do before the first call of Open for an object whose key has the prefix.
type beside struct {
	store.Bucket
	prefix string
	do     func()
}

func (b beside) Unwrap() store.Bucket { return b.Bucket }

func (b beside) Open(ctx context.Context, key string) (store.Object, error) {
	if strings.HasPrefix(key, b.prefix) {
		b.do()
	}
	return b.Bucket.Open(ctx, key)
}

func (b beside) Get(ctx context.Context, key string, limit int64) ([]byte, store.Version, error) {
	if strings.HasPrefix(key, b.prefix) {
		b.do()
	}
	return b.Bucket.Get(ctx, key, limit)
}

// Compact replaces the copy, and deletes its list and parts, while verify reads.
func TestACopyThatIsReplacedMeanwhileIsNoViolation(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	d := copyCrawl(t)
	do := func(b store.Bucket, do func(context.Context, compact.Request) (*compact.Found, error)) {
		t.Helper()
		if _, err := do(t.Context(), compact.Request{Bucket: b, Crawl: testCrawl, Version: "test", Clock: stages.SystemClock{}, Scratch: t.TempDir()}); err != nil {
			t.Error(err)
		}
	}
	const note = "parts of the compacted copy were not checked, because compact replaced the copy meanwhile, such as compacted/"
	for name, c := range map[string]struct {
		prefix string
		do     func(context.Context, compact.Request) (*compact.Found, error)
		noted  bool
	}{
		"replaced when the audit opens the first part": {"compacted/", compact.Run, true},
		"dropped when the audit opens the first part":  {"compacted/", compact.Drop, true},
		"replaced when the audit reads its list":       {"crawl=" + testCrawl + "/compaction-", compact.Run, false},
		"dropped when the audit reads its list":        {"crawl=" + testCrawl + "/compaction-", compact.Drop, false},
	} {
		t.Run(name, func(t *testing.T) {
			do(d.a.Bucket, compact.Run)
			under := d.a.Bucket
			o := d.a.Options
			o.Bucket = beside{under, c.prefix, sync.OnceFunc(func() { do(under, c.do) })}
			r, err := Run(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range r.Violations {
				t.Errorf("%+v", v)
			}
			if noted := slices.ContainsFunc(r.Notes, func(n string) bool { return strings.Contains(n, note) }); noted != c.noted {
				t.Errorf("notes %q", r.Notes)
			}
		})
	}
	t.Run("a part that nobody replaced", func(t *testing.T) {
		do(d.a.Bucket, compact.Run)
		lost := ""
		for o, err := range d.a.Bucket.List(t.Context(), "compacted/") {
			if err != nil {
				t.Fatal(err)
			}
			lost = o.Key
		}
		if err := d.a.Bucket.Delete(t.Context(), lost); err != nil {
			t.Fatal(err)
		}
		r := d.audit()
		if len(r.Violations) != 1 || r.Violations[0].Object != lost || r.Found() != 1 || !strings.Contains(r.Violations[0].Problem, "make the copy again with `crawlbatch compact --month "+testCrawl+"`") {
			t.Errorf("%+v", r.Violations)
		}
	})
}
