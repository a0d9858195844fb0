package ledger

import (
	"context"
	"errors"
	"slices"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/stages"
)

// Keeper copies an object to quarantine/ and returns the key of the copy.
type Keeper func(ctx context.Context, b store.Bucket, key string) (to string, err error)

// Rebuild recreates a lost or damaged ledger, head or active.json from the objects in the store. It
// returns the keys of the recreated documents. Rebuild first copies damaged documents to
// quarantine/. crawls lists the crawls that have objects. A recreated ledger names only objects
// that still exist, so nobody notices any more that other objects were lost.
func (w Writer) Rebuild(ctx context.Context, b store.Bucket, crawl string, crawls []string, keep Keeper) (made []string, err error) {
	head, renamed, err := w.emptyHead(ctx, b, crawl, keep)
	if err != nil {
		return nil, err
	}
	var l *Ledger
	written, err := keep.recreate(ctx, b, layout.Ledger(crawl), func() error {
		if l, err = Load(ctx, b, crawl); err != nil {
			return err
		}
		return l.checkBegun(ctx, b)
	}, func(old store.Version) error { return w.write(ctx, b, crawl, old) })
	if err != nil {
		return nil, err
	}
	if written {
		made = append(made, layout.Ledger(crawl))
	} else if !l.Stored && head == nil {
		return nil, nil // no command has completely created the crawl yet
	}
	active, err := w.rebuildActive(ctx, b, crawl, crawls, keep)
	if err != nil {
		return made, err
	}
	if active {
		made = append(made, layout.Active())
	}
	stored, err := crawlsWith(ctx, b, "", layout.Ledger) // the head also names a crawl that has lost its crawl.json
	if err != nil {
		return made, err
	}
	for _, c := range stored {
		if head, _, err = LoadHead(ctx, b, crawl); err != nil {
			return made, err
		}
		if head != nil && head.Names(c) {
			continue
		}
		if err := w.name(ctx, b, c, true); err != nil {
			return made, err
		}
		renamed = true
	}
	if renamed {
		made = append(made, layout.Crawls())
	}
	return made, nil
}

// checkBegun calls CheckUnbegun for every round that has objects.
func (l *Ledger) checkBegun(ctx context.Context, b store.Bucket) error {
	rounds, err := roundsIn(ctx, b, l.Crawl)
	for _, round := range rounds {
		if err == nil {
			err = l.CheckUnbegun(ctx, b, round)
		}
	}
	return err
}

// recreate recreates the document under key if judge returns a Lost error for it. recreate first
// copies the existing document with keep, and then calls remake. remake replaces only the version
// that judge has seen, so that it undoes no change by another process. If another process has
// changed the document, recreate calls judge again.
func (keep Keeper) recreate(ctx context.Context, b store.Bucket, key string, judge func() error, remake func(old store.Version) error) (made bool, err error) {
	for {
		judged, err := versionOf(ctx, b, key)
		if err != nil {
			return false, err
		}
		err = judge()
		if lost, ok := errors.AsType[*Lost](err); !ok || lost.Object != key {
			return false, err
		}
		now, err := versionOf(ctx, b, key)
		if err == nil && now != judged {
			continue
		}
		if err == nil && judged != "" {
			_, err = keep(ctx, b, key)
		}
		if err == nil {
			err = remake(judged)
		}
		if !errors.Is(err, store.ErrConflict) {
			return err == nil, err
		}
	}
}

// versionOf returns the version of an object, or "" if the object does not exist.
func versionOf(ctx context.Context, b store.Bucket, key string) (store.Version, error) {
	_, version, err := b.Get(ctx, key, manifest.MaxBytes)
	if errors.Is(err, store.ErrNotFound) {
		return "", nil
	}
	return version, err
}

// emptyHead replaces a damaged head by a head without names. It returns the head, or nil if the
// store has no head.
func (w Writer) emptyHead(ctx context.Context, b store.Bucket, crawl string, keep Keeper) (head *manifest.Crawls, made bool, err error) {
	made, err = keep.recreate(ctx, b, layout.Crawls(), func() error {
		head, _, err = LoadHead(ctx, b, crawl)
		return err
	}, func(old store.Version) error {
		head = &manifest.Crawls{Header: manifest.Header{Version: w.Version}}
		_, err := manifest.Swap(ctx, b, layout.Crawls(), head, old)
		return err
	})
	return head, made, err
}

// rebuildActive recreates a lost or damaged active.json. The document names the newest round that has
// started and whose fetch stage has not ended, or an interrupted prune or takedown.
func (w Writer) rebuildActive(ctx context.Context, b store.Bucket, crawl string, crawls []string, keep Keeper) (made bool, err error) {
	return keep.recreate(ctx, b, layout.Active(), func() error {
		a, _, err := LoadActive(ctx, b, crawl)
		if errors.Is(err, store.ErrNotFound) {
			return DamagedActive(crawl, nil)
		}
		if err == nil && !a.Done {
			_, err = OfActive(ctx, b, a, crawl)
		}
		if lost, ok := errors.AsType[*Lost](err); ok && lost.Object != layout.Active() {
			return nil // the lost object belongs to the crawl that active.json names
		}
		return err
	}, func(old store.Version) error {
		a, err := w.activeOf(ctx, b, crawls)
		if err == nil {
			_, err = manifest.Swap(ctx, b, layout.Active(), a, old)
		}
		return err
	})
}

// write makes a ledger from the documents in the store. It replaces an existing ledger only if the
// version of that ledger equals old.
func (w Writer) write(ctx context.Context, b store.Bucket, crawl string, old store.Version) error {
	entries, err := existingEntries(ctx, b, crawl)
	if err != nil {
		return err
	}
	_, err = w.swap(ctx, b, &Ledger{Crawl: crawl, version: old}, entries)
	return err
}

// activeOf returns the active.json that follows from takedown.json and from the ledgers of the given crawls and of those
// that were pruned as a whole. An interrupted takedown or prune holds it, so that it is finished first. A recreated ledger
// does not know whether prune ended. If a round is unfinished, it did.
func (w Writer) activeOf(ctx context.Context, b store.Bucket, crawls []string) (*manifest.Active, error) {
	a := &manifest.Active{Header: manifest.Header{Version: w.Version}, Nonce: "rebuilt-" + w.now(), Done: true}
	stored, err := crawlsWith(ctx, b, "", layout.Ledger)
	if err != nil {
		return nil, err
	}
	all := slices.Compact(slices.Sorted(slices.Values(append(stored, crawls...))))
	pruning := ""
	for _, crawl := range all {
		l, err := Load(ctx, b, crawl)
		if err != nil {
			return nil, err
		}
		a.Takedown = a.Takedown || l.TakedownUnfinished()
		if l.PruneUnfinished() {
			pruning = crawl
		}
		for round := range l.Rounds() {
			if !layout.IsReparse(crawl) && l.Started(round) != nil && l.Frozen(round, stages.Merge) == nil && l.Newest(manifest.EntrySealed, round) == nil {
				a.Crawl, a.Round, a.Done = crawl, round, false
			}
		}
	}
	if !a.Takedown {
		err := CheckTakedown(ctx, b)
		if a.Takedown = errors.Is(err, ErrTakedown); err != nil && !a.Takedown {
			return nil, err
		}
	}
	switch {
	case a.Takedown && len(all) > 0:
		a.Crawl, a.Round, a.Done, a.Prune = all[0], 0, false, true
	case a.Done && pruning != "":
		a.Crawl, a.Done, a.Prune = pruning, false, true
	}
	return a, nil
}
