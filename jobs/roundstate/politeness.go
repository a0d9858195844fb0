package roundstate

import (
	"context"
	"errors"
	"fmt"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/ledger"
)

// NewestPoliteness reads the newest revision of a crawl's politeness. If no revision was ever
// published, NewestPoliteness returns revision 0, and the frozen politeness applies. The error is a
// ledger.Lost error if the newest revision in the ledger is gone. Nothing may then be requested,
// because nobody knows which domains are stopped.
func NewestPoliteness(ctx context.Context, b store.Bucket, crawl string) (p config.Politeness, revision int, err error) {
	l, err := ledger.Load(ctx, b, crawl)
	if err != nil {
		return p, 0, err
	}
	return NewestPolitenessIn(ctx, b, l)
}

// NewestPolitenessIn is like NewestPoliteness, with a ledger that the caller has read.
func NewestPolitenessIn(ctx context.Context, b store.Bucket, l *ledger.Ledger) (p config.Politeness, revision int, err error) {
	named := namedPoliteness(l)
	p, revision, _, digest, err := loadPoliteness(ctx, b, l.Crawl)
	switch {
	case named == nil:
	case err == nil:
		err = named.check(revision, digest)
	case errors.Is(err, manifest.ErrCorrupt):
		err = named.ledger.Miss(named.entry, true)
	}
	return p, revision, err
}

// namedRevision is the newest revision of politeness that a ledger names.
type namedRevision struct {
	ledger *ledger.Ledger
	entry  *manifest.Entry
}

// namedPoliteness returns the newest revision in a ledger, or nil.
func namedPoliteness(l *ledger.Ledger) *namedRevision {
	e := l.Of(manifest.EntryPoliteness)
	if e == nil {
		return nil
	}
	return &namedRevision{l, e}
}

// check returns a ledger.Lost error if the stored revision is older than the named revision, or has
// other contents. A newer revision is allowed, because its publisher may not have appended the
// entry yet.
func (n *namedRevision) check(revision int, digest string) error {
	switch {
	case revision < n.entry.Revision:
		return n.ledger.Miss(n.entry, revision > 0)
	case revision == n.entry.Revision && n.entry.SHA256 != "" && digest != n.entry.SHA256:
		return n.ledger.Miss(n.entry, true)
	}
	return nil
}

func loadPoliteness(ctx context.Context, b store.Bucket, crawl string) (p config.Politeness, revision int, v store.Version, digest string, err error) {
	var m manifest.Politeness
	key := layout.Politeness(crawl)
	v, digest, err = manifest.LoadContents(ctx, b, key, &m)
	if errors.Is(err, store.ErrNotFound) {
		return p, 0, "", "", nil
	}
	if err != nil {
		return p, 0, "", "", err
	}
	c, err := config.ReadFrozen(key, []byte(m.Config), func(string) (string, bool) { return "", false })
	if err != nil {
		return p, 0, "", "", fmt.Errorf("%w: %w", err, manifest.ErrCorrupt)
	}
	return c.Politeness, m.Revision, v, digest, nil
}

// PublishPoliteness makes p the newest revision of a crawl's politeness, unless p already is the
// newest. PublishPoliteness returns the number of the newest revision. Tasks that start later
// follow this revision, even if their own config has another politeness. If the newest revision is
// lost or damaged, the new revision gets a higher number.
func PublishPoliteness(ctx context.Context, b store.Bucket, crawl string, p config.Politeness, w ledger.Writer) (int, error) {
	text, err := p.YAML()
	if err != nil {
		return 0, err
	}
	for {
		l, err := ledger.Load(ctx, b, crawl)
		if err != nil {
			return 0, err
		}
		named := namedPoliteness(l)
		newest, revision, v, digest, err := loadPoliteness(ctx, b, crawl)
		if named != nil && errors.Is(err, manifest.ErrCorrupt) {
			revision = named.entry.Revision + 1 // the damaged revision may be one newer than the ledger's entry
			_, v, err = b.Get(ctx, layout.Politeness(crawl), manifest.MaxBytes)
		}
		if err != nil {
			return 0, err
		}
		lost := named != nil && named.check(revision, digest) != nil
		have, err := newest.YAML()
		if err != nil {
			return revision, err
		}
		if lost || revision == 0 || have != text {
			next := &manifest.Politeness{Header: manifest.Header{Version: w.Version}, Revision: revision + 1, Config: text}
			if lost {
				next.Revision = max(revision, named.entry.Revision) + 1
			}
			if _, err := manifest.Swap(ctx, b, layout.Politeness(crawl), next, v); errors.Is(err, store.ErrConflict) {
				continue
			} else if err != nil {
				return 0, err
			}
			revision = next.Revision
		}
		return revision, recordPoliteness(ctx, b, crawl, revision, w)
	}
}

// recordPoliteness appends the entry of the stored revision, unless the ledger has this entry or a
// newer one.
func recordPoliteness(ctx context.Context, b store.Bucket, crawl string, revision int, w ledger.Writer) error {
	_, err := w.Append(ctx, b, crawl, func(l *ledger.Ledger) ([]manifest.Entry, error) {
		if e := l.Of(manifest.EntryPoliteness); e != nil && e.Revision >= revision {
			return nil, nil
		}
		var m manifest.Politeness
		key := layout.Politeness(crawl)
		_, digest, err := manifest.LoadContents(ctx, b, key, &m)
		return []manifest.Entry{{What: manifest.EntryPoliteness, Revision: m.Revision, Object: key, SHA256: digest}}, err
	})
	return err
}
