package ledger

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
)

// LoadHead reads the head, or returns nil if the store has no head.
func LoadHead(ctx context.Context, b store.Bucket) (*manifest.Crawls, store.Version, error) {
	var head manifest.Crawls
	version, _, err := manifest.Load(ctx, b, layout.Crawls(), &head)
	if errors.Is(err, store.ErrNotFound) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	return &head, version, nil
}

// CheckActive returns a Lost if the head exists but active.json is gone. A new store gets
// active.json before the head.
func CheckActive(ctx context.Context, b store.Bucket, head *manifest.Crawls) error {
	if head == nil {
		return nil
	}
	there, err := manifest.Exists(ctx, b, layout.Active())
	if err == nil && !there {
		return lostActive(head)
	}
	return err
}

func lostActive(head *manifest.Crawls) error {
	crawl := ""
	if n := len(head.Crawls); n > 0 {
		crawl = head.Crawls[n-1].Crawl
	}
	return &Lost{Object: layout.Active(), Was: "the round that may be fetched", Remedy: remake(crawl)}
}

// CheckHead returns a Lost if the head is gone, or if an older head was put back. An older head
// does not name the crawl, although the crawl's ledger has entries that follow the naming.
func CheckHead(ctx context.Context, b store.Bucket, l *Ledger) error {
	if !l.Stored || l.fresh() {
		return nil
	}
	head, _, err := LoadHead(ctx, b)
	if err != nil || head != nil && head.Names(l.Crawl) {
		return err
	}
	return &Lost{Object: layout.Crawls(), Changed: head != nil, Was: "the list of the store's crawls, with " + l.Crawl, Remedy: remake(l.Crawl)}
}

// Found creates the documents that a crawl needs before its first round. The order is the crawl's
// ledger, active.json, the crawl's name in the head. crawl.json must exist. Found continues an
// interrupted creation.
func (w Writer) Found(ctx context.Context, b store.Bucket, crawl string) error {
	l, err := w.foundLedger(ctx, b, crawl)
	if err != nil {
		return err
	}
	if err := CheckHead(ctx, b, l); err != nil {
		return err
	}
	return w.name(ctx, b, crawl, false, false)
}

// foundLedger makes the ledger of a new crawl.
func (w Writer) foundLedger(ctx context.Context, b store.Bucket, crawl string) (*Ledger, error) {
	for {
		l, err := Load(ctx, b, crawl)
		if err != nil || l.Stored {
			return l, err
		}
		m, digest, err := LoadCrawl(ctx, b, crawl)
		if err != nil {
			return nil, err
		}
		if m.Format < Since || m.AdoptedFrom > 0 {
			return nil, fmt.Errorf("crawl %s of %s: %w", crawl, b, ErrNotAdopted)
		}
		l, err = w.swap(ctx, b, l, []manifest.Entry{{What: manifest.EntryCrawl, Object: layout.CrawlManifest(crawl), SHA256: digest, Format: m.Format}})
		if !errors.Is(err, store.ErrConflict) {
			return l, err
		}
	}
}

// name writes a crawl's name into the head. name first creates active.json, unless the head shows
// that active.json existed. If anew is true, name may recreate a lost head.
func (w Writer) name(ctx context.Context, b store.Bucket, crawl string, adopted, anew bool) error {
	for {
		head, version, err := LoadHead(ctx, b)
		if err != nil {
			return err
		}
		if head != nil && head.Names(crawl) {
			return nil
		}
		if head == nil {
			if !anew {
				if err := neverNamed(ctx, b); err != nil {
					return err
				}
			}
			idle := &manifest.Active{Header: manifest.Header{Version: w.Version}, Nonce: "made-" + w.now(), Done: true}
			if _, err := manifest.Create(ctx, b, layout.Active(), idle); err != nil && !errors.Is(err, store.ErrExists) {
				return err
			}
			head = &manifest.Crawls{}
		}
		head.Version = w.Version
		head.Crawls = append(head.Crawls, manifest.CrawlName{Crawl: crawl, At: w.now(), Adopted: adopted})
		if _, err := manifest.Swap(ctx, b, layout.Crawls(), head, version); !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
}

// neverNamed returns a Lost if the store has no head, although some crawl's ledger has an entry
// that is only appended once the head names the crawl.
func neverNamed(ctx context.Context, b store.Bucket) error {
	crawls, err := Crawls(ctx, b)
	if err != nil {
		return err
	}
	for _, crawl := range crawls {
		l, err := Load(ctx, b, crawl)
		if err == nil {
			err = CheckHead(ctx, b, l)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// crawlPrefix matches the prefixes of crawl names such as 2026-11 and 2026-11r2.
var crawlPrefix = regexp.MustCompile(`^((1|19\d?|2|20\d?)?|(19|20)\d\d(-[01]?|-\d\d(r\d*)?)?)$`)

// Crawls lists the crawls that have a crawl.json, by name. A crawl is a month or a reparse of a
// month. A listing of all keys would read millions of names, so Crawls extends the prefixes of
// existing keys by one character at a time.
func Crawls(ctx context.Context, b store.Bucket) ([]string, error) {
	return crawlsWith(ctx, b, "")
}

func crawlsWith(ctx context.Context, b store.Bucket, prefix string) (crawls []string, err error) {
	if some, err := anyKey(ctx, b, "crawl="+prefix); err != nil || !some {
		return nil, err
	}
	if layout.ValidCrawl(prefix) {
		ok, err := manifest.Exists(ctx, b, layout.CrawlManifest(prefix))
		if err != nil {
			return nil, err
		}
		if ok {
			crawls = append(crawls, prefix)
		}
	}
	for _, next := range "-0123456789r" {
		if longer := prefix + string(next); crawlPrefix.MatchString(longer) {
			more, err := crawlsWith(ctx, b, longer)
			if err != nil {
				return nil, err
			}
			crawls = append(crawls, more...)
		}
	}
	return crawls, nil
}
