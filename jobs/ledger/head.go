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

// LoadHead reads the head, or returns nil if the store has none. If the head is damaged, the error
// is a Lost error. crawl is the --month of the command that the error recommends.
func LoadHead(ctx context.Context, b store.Bucket, crawl string) (*manifest.Crawls, store.Version, error) {
	var head manifest.Crawls
	version, _, err := manifest.Load(ctx, b, layout.Crawls(), &head)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, "", nil
	case errors.Is(err, manifest.ErrCorrupt):
		return nil, "", &Lost{Object: layout.Crawls(), Damage: err, Was: "the list of the store's crawls", Remedy: remake(crawl)}
	case err != nil:
		return nil, "", err
	}
	return &head, version, nil
}

// LoadActive reads active.json. The error wraps store.ErrNotFound if the document does not exist,
// and is a Lost error if the document is damaged. crawl is the --month of the command
// that a Lost error recommends.
func LoadActive(ctx context.Context, b store.Bucket, crawl string) (*manifest.Active, store.Version, error) {
	var a manifest.Active
	version, _, err := manifest.Load(ctx, b, layout.Active(), &a)
	if errors.Is(err, manifest.ErrCorrupt) {
		err = DamagedActive(crawl, err)
	}
	return &a, version, err
}

// CheckActive returns a Lost error if active.json is damaged. A missing active.json is also an
// error if the head exists, because active.json is always created before the head.
func CheckActive(ctx context.Context, b store.Bucket, head *manifest.Crawls, crawl string) error {
	_, _, err := LoadActive(ctx, b, crawl)
	if errors.Is(err, store.ErrNotFound) {
		if err = nil; head != nil {
			err = DamagedActive(crawl, nil)
		}
	}
	return err
}

// DamagedActive returns a Lost error for active.json. damage says why active.json cannot be
// trusted, or is nil if active.json is gone.
func DamagedActive(crawl string, damage error) error {
	return &Lost{Object: layout.Active(), Damage: damage, Was: "the round that may be fetched", Remedy: remake(crawl)}
}

// OfActive returns the ledger of the crawl that active.json names. If the crawl or the round does
// not exist, the error is a Lost error for active.json. crawl is the --month of the
// command that this error recommends.
func OfActive(ctx context.Context, b store.Bucket, a *manifest.Active, crawl string) (*Ledger, error) {
	l, err := Load(ctx, b, a.Crawl)
	if errors.Is(err, ErrNoCrawl) || err == nil && a.Round >= max(1, l.Rounds()) {
		return nil, DamagedActive(crawl, fmt.Errorf("it names round %d of crawl %s, which does not exist: %w", a.Round, a.Crawl, manifest.ErrCorrupt))
	}
	return l, err
}

// CheckHead returns a Lost error if the head is gone, or if somebody restored an older head. The
// ledger of a crawl gets entries beyond those of its creation or rebuilding only after the head names
// the crawl. If such a ledger's crawl is not in the head, the head is too old.
func CheckHead(l *Ledger, head *manifest.Crawls) error {
	if !l.Stored || l.fresh() || head != nil && head.Names(l.Crawl) {
		return nil
	}
	return lostName(l.Crawl, head != nil, l.Crawl)
}

func lostName(named string, changed bool, crawl string) error {
	return &Lost{Object: layout.Crawls(), Changed: changed, Was: "the list of the store's crawls, with " + named, Remedy: remake(crawl)}
}

// CheckNames reads the stored head and then calls CheckCrawls.
func CheckNames(ctx context.Context, b store.Bucket, crawl string) error {
	head, _, err := LoadHead(ctx, b, crawl)
	if err != nil {
		return err
	}
	return CheckCrawls(ctx, b, head, crawl)
}

// CheckCrawls checks the head against every crawl of the store, as CheckHead does for one crawl.
// Tasks do not call CheckCrawls, because it takes a long time to list the store's crawls.
// crawl is the --month of the command that the error recommends.
func CheckCrawls(ctx context.Context, b store.Bucket, head *manifest.Crawls, crawl string) error {
	crawls, err := Crawls(ctx, b)
	if err != nil {
		return err
	}
	for _, name := range crawls {
		if head != nil && head.Names(name) {
			continue
		}
		l, err := Load(ctx, b, name)
		if err != nil && !errors.Is(err, ErrLost) {
			return err
		}
		if err != nil || CheckHead(l, head) == nil {
			continue
		}
		if head, _, err = LoadHead(ctx, b, crawl); err != nil { // another process may have created the crawl meanwhile
			return err
		}
		if CheckHead(l, head) != nil {
			return lostName(name, head != nil, crawl)
		}
	}
	return nil
}

// Found establishes a crawl whose crawl.json exists. Found creates the crawl's ledger, then
// active.json, and then writes the crawl's name into the head. If an earlier call was interrupted,
// Found completes the missing steps.
func (w Writer) Found(ctx context.Context, b store.Bucket, crawl string) error {
	l, err := w.foundLedger(ctx, b, crawl)
	if err != nil {
		return err
	}
	head, _, err := LoadHead(ctx, b, crawl)
	if err == nil {
		err = CheckHead(l, head)
	}
	if err != nil {
		return err
	}
	return w.name(ctx, b, crawl, false)
}

// foundLedger makes the ledger of a new crawl.
func (w Writer) foundLedger(ctx context.Context, b store.Bucket, crawl string) (*Ledger, error) {
	for {
		l, err := Load(ctx, b, crawl)
		if err != nil || l.Stored {
			return l, err
		}
		_, digest, err := LoadCrawl(ctx, b, crawl)
		if err != nil {
			return nil, err
		}
		l, err = w.swap(ctx, b, l, []manifest.Entry{{What: manifest.EntryCrawl, Object: layout.CrawlManifest(crawl), SHA256: digest}})
		if !errors.Is(err, store.ErrConflict) {
			return l, err
		}
	}
}

// name writes a crawl's name into the head. If the head does not exist yet, name first creates
// active.json, which is always older than the head. If anew is true, name may recreate a lost head.
func (w Writer) name(ctx context.Context, b store.Bucket, crawl string, anew bool) error {
	for {
		head, version, err := LoadHead(ctx, b, crawl)
		if err != nil {
			return err
		}
		if head != nil && head.Names(crawl) {
			return nil
		}
		if !anew {
			if err := CheckCrawls(ctx, b, head, crawl); err != nil {
				return err
			}
		}
		if head == nil {
			idle := &manifest.Active{Header: manifest.Header{Version: w.Version}, Nonce: "made-" + w.now(), Done: true}
			if _, err := manifest.Create(ctx, b, layout.Active(), idle); err != nil && !errors.Is(err, store.ErrExists) {
				return err
			}
			head = &manifest.Crawls{}
		}
		head.Version = w.Version
		head.Crawls = append(head.Crawls, manifest.CrawlName{Crawl: crawl, At: w.now()})
		if _, err := manifest.Swap(ctx, b, layout.Crawls(), head, version); !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
}

// Fence changes the ledger of each crawl, for a command that has claimed active.json. Whoever chooses a plan reads the
// ledger, then looks whether active.json is claimed, and then swaps the ledger. A swap that the store has not made by now
// fails, and its process looks again. Fence repeats the entry `crawl`, which changes nothing else.
func (w Writer) Fence(ctx context.Context, b store.Bucket) error {
	head, _, err := LoadHead(ctx, b, "YYYY-MM")
	if err != nil || head == nil {
		return err
	}
	for _, c := range head.Crawls {
		_, err := w.Append(ctx, b, c.Crawl, func(l *Ledger) ([]manifest.Entry, error) {
			e := l.Of(manifest.EntryCrawl)
			if e == nil || l.Gone() {
				return nil, nil
			}
			return []manifest.Entry{*e}, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// crawlPrefix matches every prefix of a crawl's name, such as 2026-11 or 2026-11r2.
var crawlPrefix = regexp.MustCompile(`^((1|19\d?|2|20\d?)?|(19|20)\d\d(-[01]?|-\d\d(r\d*)?)?)$`)

// Crawls returns the names of the crawls that have a crawl.json, in ascending order. A crawl is a
// month or a reparse of a month. A listing of all keys would read millions of names. Crawls
// therefore tries prefixes of names, and extends each prefix that some key has by one character.
func Crawls(ctx context.Context, b store.Bucket) ([]string, error) {
	return crawlsWith(ctx, b, "", layout.CrawlManifest)
}

// crawlsWith lists the crawls whose name has the given prefix and for which an object exists under
// key(name).
func crawlsWith(ctx context.Context, b store.Bucket, prefix string, key func(crawl string) string) (crawls []string, err error) {
	if some, err := anyKey(ctx, b, "crawl="+prefix); err != nil || !some {
		return nil, err
	}
	if layout.ValidCrawl(prefix) {
		ok, err := manifest.Exists(ctx, b, key(prefix))
		if err != nil {
			return nil, err
		}
		if ok {
			crawls = append(crawls, prefix)
		}
	}
	for _, next := range "-0123456789r" {
		if longer := prefix + string(next); crawlPrefix.MatchString(longer) {
			more, err := crawlsWith(ctx, b, longer, key)
			if err != nil {
				return nil, err
			}
			crawls = append(crawls, more...)
		}
	}
	return crawls, nil
}
