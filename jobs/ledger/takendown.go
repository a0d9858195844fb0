package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/stages"
)

// ErrTakedown means that a takedown of the store is unfinished: some objects are changed, and others
// are not.
var ErrTakedown = errors.New("a takedown is not finished: continue it with `crawlbatch takedown --resume`")

// CheckTakedown returns an error that wraps ErrTakedown if a takedown of the store is unfinished.
func CheckTakedown(ctx context.Context, b store.Bucket) error {
	there, err := manifest.Exists(ctx, b, layout.Takedown())
	if err == nil && there {
		err = fmt.Errorf("%s: %w", b, ErrTakedown)
	}
	return err
}

// CheckTakedownList is for callers that have not found the store's list of takedowns. It returns a Lost error
// if a ledger says that the list existed. Without the list, nobody knows what may not be planned again. It reads the
// ledgers of all crawls, also of those that were pruned as a whole.
func CheckTakedownList(ctx context.Context, b store.Bucket) error {
	head, _, err := LoadHead(ctx, b, "YYYY-MM")
	if errors.Is(err, ErrLost) || errors.Is(err, manifest.ErrCorrupt) || err == nil && head == nil {
		return nil // the commands that need the head report it
	}
	if err != nil {
		return err
	}
	for _, c := range head.Crawls {
		l, err := Load(ctx, b, c.Crawl)
		switch {
		case errors.Is(err, store.ErrUnavailable), ctx.Err() != nil:
			return err
		case err != nil: // the commands that need this crawl report it
		case l.Takedown() != nil:
			return lostTakedowns(fmt.Sprintf("a takedown changed %s on %.10s", c.Crawl, l.Takedown().At))
		case l.Of(manifest.EntryTakenDown) != nil:
			return lostTakedowns(fmt.Sprintf("the ledger of %s says on %.10s that it exists", c.Crawl, l.Of(manifest.EntryTakenDown).At))
		}
	}
	return nil
}

// NoteTakedowns returns the entries for a ledger of a store that has a list of takedowns. A ledger in which no takedown
// has begun gets one entry `taken_down`.
func (l *Ledger) NoteTakedowns() []manifest.Entry {
	if l.Takedown() != nil || l.Of(manifest.EntryTakenDown) != nil {
		return nil
	}
	return []manifest.Entry{{What: manifest.EntryTakenDown}}
}

// NoteTakedowns makes the ledger of the newest crawl say that the store has a list of takedowns. In a store without
// crawls, the first plan does that.
func (w Writer) NoteTakedowns(ctx context.Context, b store.Bucket) error {
	head, _, err := LoadHead(ctx, b, "YYYY-MM")
	if err != nil || head == nil || len(head.Crawls) == 0 {
		return err
	}
	newest := head.Crawls[len(head.Crawls)-1].Crawl
	_, err = w.Append(ctx, b, newest, func(l *Ledger) ([]manifest.Entry, error) { return l.NoteTakedowns(), nil })
	return err
}

// CheckTakedownListOf does the same as CheckTakedownList for a plan, which also says whether it refused names
// of the list.
func CheckTakedownListOf(ctx context.Context, b store.Bucket, p *manifest.Plan) error {
	if p.TakenDown > 0 {
		return lostTakedowns(fmt.Sprintf("the plan of round %d of %s refused names that it lists", p.Round, p.Crawl))
	}
	return CheckTakedownList(ctx, b)
}

// lostTakedowns returns the Lost error for the list of takedowns. why says how the loss shows.
func lostTakedowns(why string) error {
	return &Lost{
		Object: layout.Takedowns(), Was: "the list of what was taken down and may not be planned again (" + why + ")",
		Remedy: "restore it from a copy; if there is none, give the names of all takedowns again with `crawlbatch takedown --list FILE --apply`",
	}
}

// Takedown returns the newest entry `takedown`, or nil if no takedown changed objects of the crawl.
func (l *Ledger) Takedown() *manifest.Entry { return l.Of(manifest.EntryTakedown) }

// TakedownUnfinished reports whether a takedown was interrupted, or is running, in the ledger's crawl.
func (l *Ledger) TakedownUnfinished() bool {
	began, ended := l.Takedown(), l.Of(manifest.EntryTakenDown)
	return began != nil && (ended == nil || ended.N < began.N)
}

// CheckComputable returns an error if objects of a round cannot be computed again, because a takedown
// changed what they were computed from.
func (l *Ledger) CheckComputable(round int) error {
	if !l.TakenDownIn(round) {
		return nil
	}
	return fmt.Errorf("round %d of %s: a takedown changed its objects on %.10s, so lost objects cannot be computed again: restore them from a copy that was made later: %w", round, l.Crawl, l.Takedown().At, stages.ErrPermanent)
}

// TakenDownIn reports whether a takedown changed objects of the crawl after the round began. Takedowns wait
// until all rounds are sealed.
func (l *Ledger) TakenDownIn(round int) bool {
	e, began := l.Takedown(), l.Started(round)
	return e != nil && began != nil && began.N < e.N
}

// NamesRemoval reports whether an entry names a list of changed objects.
func (l *Ledger) NamesRemoval(key string) bool {
	return slices.ContainsFunc(l.doc.Entries, func(e manifest.Entry) bool { return e.What == manifest.EntryTakedown && e.Object == key })
}

// removals returns the ledger entries for a crawl's lists of changed objects, oldest first, or the one of NoteTakedowns.
// A takedown that is unfinished gets no entry for its end.
func removals(ctx context.Context, b store.Bucket, crawl string) (all []manifest.Entry, err error) {
	at := map[string]string{}
	for o, err := range b.List(ctx, layout.RemovalDir(crawl)) {
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", layout.RemovalDir(crawl), err)
		}
		var list manifest.Removal
		digest, _, err := readOptional(ctx, b, o.Key, &list)
		if err != nil {
			return nil, err
		}
		if digest == "" || list.Crawl != crawl {
			continue
		}
		at[o.Key] = list.At
		all = append(all, manifest.Entry{What: manifest.EntryTakedown, Object: o.Key, SHA256: digest})
	}
	slices.SortFunc(all, func(a, b manifest.Entry) int { return strings.Compare(at[a.Object]+a.Object, at[b.Object]+b.Object) })
	if len(all) == 0 {
		listed, err := manifest.Exists(ctx, b, layout.Takedowns())
		if listed {
			all = append(all, manifest.Entry{What: manifest.EntryTakenDown})
		}
		return all, err
	}
	unfinished := CheckTakedown(ctx, b)
	if !errors.Is(unfinished, ErrTakedown) {
		all = append(all, manifest.Entry{What: manifest.EntryTakenDown})
		err = unfinished
	}
	return all, err
}

// BeginTakedown appends the entry `takedown` for a stored Removal, unless the ledger has it.
func (w Writer) BeginTakedown(ctx context.Context, b store.Bucket, crawl, key, digest string) error {
	_, err := w.Append(ctx, b, crawl, func(l *Ledger) ([]manifest.Entry, error) {
		if l.NamesRemoval(key) {
			return nil, nil
		}
		return []manifest.Entry{{What: manifest.EntryTakedown, Object: key, SHA256: digest}}, nil
	})
	return err
}

// EndTakedown appends the entries of the Removal under key and the entry `taken_down`, unless the ledger has it. If
// another takedown has begun since then, it ended this one before.
// From then on, readers find the digests of the changed documents in the newest entries about them.
func (w Writer) EndTakedown(ctx context.Context, b store.Bucket, key string, r *manifest.Removal) error {
	_, err := w.Append(ctx, b, r.Crawl, func(l *Ledger) ([]manifest.Entry, error) {
		if !l.TakedownUnfinished() || l.Takedown().Object != key {
			return nil, nil
		}
		return append(append([]manifest.Entry{}, r.Entries...), manifest.Entry{What: manifest.EntryTakenDown}), nil
	})
	return err
}
