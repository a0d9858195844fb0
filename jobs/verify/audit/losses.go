package audit

import (
	"context"
	"errors"
	"strings"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/jobs/ledger"
)

// checkLosses reports the objects that the crawl's ledger or the store's head names but that are gone
// or do not match their entry. If a whole round is gone, it reports only the round's folder.
func (a *Audit) checkLosses(ctx context.Context) error {
	if a.Ledger == nil {
		return a.checkHead(ctx)
	}
	lost, err := a.listLosses(ctx)
	if err != nil {
		return err
	}
	if len(lost) > 0 { // look again: a command may have replaced a document and its entry since the ledger was read
		if a.Ledger, err = ledger.Load(ctx, a.Bucket, a.Crawl); err != nil {
			return err
		}
		if lost, err = a.listLosses(ctx); err != nil {
			return err
		}
	}
	for round := range a.Ledger.Rounds() {
		some, err := a.hasRound(ctx, round)
		if err != nil {
			return err
		}
		if !some {
			a.reportLoss(&ledger.Lost{Object: layout.RoundDir(a.Crawl, round), Round: &round, Was: a.wasRound(round),
				Remedy: "restore it from a copy: nothing else records what was planned and fetched, and planning the round again would request the URLs a second time"})
		}
	}
	for _, l := range lost {
		if l.Round == nil || !a.lost[layout.RoundDir(a.Crawl, *l.Round)] {
			a.reportLoss(l)
		}
	}
	return a.checkHead(ctx)
}

// wasRound describes a lost round by the newest state of the round in the ledger.
func (a *Audit) wasRound(round int) string {
	switch {
	case a.Ledger.Newest(manifest.EntrySealed, round) != nil:
		return "a sealed round, with all its documents"
	case a.Ledger.Started(round) != nil:
		return "a round that has started"
	}
	return "a round that is planned"
}

// listLosses lists the objects in the ledger that are gone or changed. The list omits unreadable
// documents, because other checks report them.
func (a *Audit) listLosses(ctx context.Context) (all []*ledger.Lost, err error) {
	if err := a.Ledger.CheckBehind(ctx, a.Bucket); err != nil {
		lost, ok := errors.AsType[*ledger.Lost](err)
		if !ok {
			return nil, err
		}
		all = append(all, lost)
	}
	for lost, err := range a.Ledger.Losses(ctx, a.Bucket) {
		if lost != nil {
			all = append(all, lost)
		} else if err != nil && !IsFault(err) {
			return nil, err
		}
	}
	return all, nil
}

// checkHead reports a lost head or active.json, and a lost crawl.json or ledger.json if the head names
// the crawl. For lost objects of other crawls, it only adds a note.
func (a *Audit) checkHead(ctx context.Context) error {
	a.Count(documents, 1)
	for lost, err := range ledger.HeadLosses(ctx, a.Bucket, a.Crawl) {
		switch {
		case lost != nil && ofOther(lost.Object, a.Crawl):
			a.Note("another crawl of the store: %v", lost)
		case lost != nil:
			a.reportLoss(lost)
		case !IsFault(err):
			return err
		case !strings.Contains(err.Error(), layout.CrawlDir(a.Crawl)): // other checks report the errors about the crawl's own documents
			a.Note("another crawl of the store: %v", err)
		}
	}
	return nil
}

// ofOther reports whether an object belongs to another crawl.
func ofOther(key, crawl string) bool {
	return strings.HasPrefix(key, "crawl=") && !strings.HasPrefix(key, layout.CrawlDir(crawl))
}

// reportLoss reports a lost object, unless it was reported before. The checks of documents do not
// report the object again.
func (a *Audit) reportLoss(l *ledger.Lost) {
	if a.lost[l.Object] {
		return
	}
	round := -1
	if l.Round != nil {
		round = *l.Round
	}
	a.misplaced(round, l.Object, "%v", l)
	a.lost[l.Object] = true
	if !l.Changed {
		a.setBroken(l.Object)
	}
}
