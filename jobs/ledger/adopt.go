package ledger

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/stages"
)

// assemble makes the ledger of a crawl of an older format from the objects in the store.
func assemble(ctx context.Context, b store.Bucket, m *manifest.Crawl) (*Ledger, error) {
	doc := manifest.Ledger{Crawl: m.Crawl}
	entries, err := there(ctx, b, m.Crawl)
	if err != nil {
		return nil, err
	}
	for i := range entries {
		entries[i].Adopted = true
	}
	err = doc.Append(entries...)
	return indexed(&Ledger{Crawl: m.Crawl, doc: doc}), err
}

// The function there returns the entries of a crawl's ledger, one for each document that exists in
// the store.
func there(ctx context.Context, b store.Bucket, crawl string) ([]manifest.Entry, error) {
	m, digest, err := LoadCrawl(ctx, b, crawl)
	if err != nil {
		return nil, err
	}
	all := []manifest.Entry{{What: manifest.EntryCrawl, Object: layout.CrawlManifest(crawl), SHA256: digest, Format: m.Format}}
	var p manifest.Politeness
	digest, found, err := look(ctx, b, layout.Politeness(crawl), &p)
	if err != nil {
		return nil, err
	}
	if found {
		all = append(all, politeness(crawl, p.Revision, digest, p.Format))
	}
	rounds, err := roundsIn(ctx, b, crawl)
	if err != nil {
		return nil, err
	}
	for _, round := range rounds {
		entries, err := ofRound(ctx, b, crawl, round)
		if err != nil {
			return nil, err
		}
		if len(entries) == 0 && !layout.IsReparse(crawl) {
			// The round's tables or WARC files show that the round had fetched. The round's plan
			// cannot be known.
			some, err := anyKey(ctx, b, layout.RoundDir(crawl, round))
			if err != nil {
				return nil, err
			}
			if !some {
				entries = append(entries, Named(manifest.EntryFetching, round, layout.StageDir(crawl, round, string(stages.Fetch)), "", 0))
			}
		}
		all = append(all, entries...)
	}
	return all, nil
}

// roundsIn lists the rounds of a crawl that have an object. An object may be a document, a part of
// the dataset fetches, or a WARC file. Lost rounds do not hide the rounds after them. A listing of
// all keys would read millions of names. roundsIn therefore finds the numbers digit by digit, and
// lists only one key for each prefix.
func roundsIn(ctx context.Context, b store.Bucket, crawl string) ([]int, error) {
	seen := map[int]bool{}
	var extend func(folder, digits string) error
	extend = func(folder, digits string) error {
		some, err := anyKey(ctx, b, folder+digits)
		if err != nil || !some {
			return err
		}
		if round, err := strconv.Atoi(digits); err == nil {
			if whole, err := anyKey(ctx, b, folder+digits+"/"); err != nil {
				return err
			} else if whole {
				seen[round] = true
			}
		}
		for next := byte('0'); next <= '9' && digits != "0"; next++ {
			if err := extend(folder, digits+string(next)); err != nil {
				return err
			}
		}
		return nil
	}
	for _, root := range []string{"", "tables/fetches/", "warc/"} {
		if err := extend(root+layout.CrawlDir(crawl)+"round=", ""); err != nil {
			return nil, err
		}
	}
	return slices.Sorted(maps.Keys(seen)), nil
}

// politeness returns the ledger's entry for a revision of the politeness.
func politeness(crawl string, revision int, digest string, format int) manifest.Entry {
	return manifest.Entry{What: manifest.EntryPoliteness, Revision: revision, Object: layout.Politeness(crawl), SHA256: digest, Format: format}
}

// look reads a document that may not exist. For an unreadable document, found is true and the
// digest is empty.
func look(ctx context.Context, b store.Bucket, key string, d manifest.Document) (digest string, found bool, err error) {
	_, digest, err = manifest.LoadContents(ctx, b, key, d)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return "", false, nil
	case errors.Is(err, manifest.ErrCorrupt):
		return "", true, nil
	}
	return digest, err == nil, err
}

// ofRound returns the ledger entries for a round, one for each document of the round that exists.
func ofRound(ctx context.Context, b store.Bucket, crawl string, round int) ([]manifest.Entry, error) {
	var all []manifest.Entry
	id, format, err := followed(ctx, b, crawl, round)
	if err != nil {
		return nil, err
	}
	if id != "" {
		key := layout.PlanManifest(crawl, round, id)
		var p manifest.Plan
		digest, _, err := look(ctx, b, key, &p)
		if err != nil {
			return nil, err
		}
		choice := Named(manifest.EntryPlan, round, key, digest, p.Format)
		choice.Plan = id
		all = append(all, choice)
	}
	if id != "" && format > 0 {
		all = append(all, manifest.Entry{What: manifest.EntryStarted, Round: &round, Plan: id, Format: format})
	}
	fetched, err := anyKey(ctx, b, layout.StageDir(crawl, round, string(stages.Fetch))+"part-")
	if err != nil {
		return nil, err
	}
	if fetched && format > 0 && !layout.IsReparse(crawl) {
		all = append(all, Named(manifest.EntryFetching, round, layout.StageDir(crawl, round, string(stages.Fetch)), "", 0))
	}
	for _, stage := range stages.Order {
		key := layout.Inputs(crawl, round, string(stage))
		var in manifest.Inputs
		digest, found, err := look(ctx, b, key, &in)
		if err != nil {
			return nil, err
		}
		if found {
			frozen := Named(manifest.EntryFrozen, round, key, digest, in.Format)
			frozen.Stage = string(stage)
			all = append(all, frozen)
		}
	}
	key := layout.Sealed(crawl, round)
	var s manifest.Sealed
	digest, found, err := look(ctx, b, key, &s)
	if found {
		sealed := Named(manifest.EntrySealed, round, key, digest, s.Format)
		sealed.Generation = 1
		all = append(all, sealed)
	}
	return all, err
}

// followed returns the plan of a round. If the round has started, followed also returns the format
// in which the round began. For a round of an older format, start.json names the plan and the
// format. If start.json does not exist, followed returns the plan that other objects of the round
// name, or the only plan.
func followed(ctx context.Context, b store.Bucket, crawl string, round int) (id string, format int, err error) {
	var s manifest.Start
	_, _, err = manifest.Load(ctx, b, layout.Start(crawl, round), &s)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return "", 0, err
	}
	if err == nil {
		if there, err := manifest.Exists(ctx, b, layout.PlanManifest(crawl, round, s.Plan)); err != nil || there {
			return s.Plan, s.Format, err
		}
	}
	made, err := madeOf(ctx, b, crawl, round)
	switch {
	case err != nil:
		return "", 0, err
	case s.Plan != "" && (made == "" || made == s.Plan):
		return s.Plan, s.Format, nil
	case made != "":
		return made, schema.FormatVersion, nil
	}
	ids, err := Plans(ctx, b, crawl, round)
	if err != nil || len(ids) != 1 {
		return "", 0, err
	}
	begun, err := anyKey(ctx, b, layout.StageDir(crawl, round, string(stages.Fetch)))
	if begun {
		format = schema.FormatVersion
	}
	return ids[0], format, err
}

// madeOf returns the plan that a round's seal, inputs or taken partitions name, or "" if the round
// has none of these objects. A round may have several plans, because a process may die before it
// deletes the replaced plans. start.json alone proves nothing, because an older driver may create
// start.json during an adoption.
func madeOf(ctx context.Context, b store.Bucket, crawl string, round int) (string, error) {
	var sealed manifest.Sealed
	if _, found, err := look(ctx, b, layout.Sealed(crawl, round), &sealed); err != nil || found && sealed.Plan != "" {
		return sealed.Plan, err
	}
	for _, stage := range stages.Order {
		var in manifest.Inputs
		if _, found, err := look(ctx, b, layout.Inputs(crawl, round, string(stage)), &in); err != nil || found && in.Plan != "" {
			return in.Plan, err
		}
	}
	for o, err := range b.List(ctx, layout.StageDir(crawl, round, string(stages.Fetch))+"taken/") {
		if err != nil {
			return "", fmt.Errorf("list what was taken of %s.%d: %w", crawl, round, err)
		}
		var t manifest.Taken
		if _, found, err := look(ctx, b, o.Key, &t); err != nil || found && t.Plan != "" {
			return t.Plan, err
		}
	}
	return "", nil
}

// Plans lists the IDs of a round's complete plans.
func Plans(ctx context.Context, b store.Bucket, crawl string, round int) ([]string, error) {
	var ids []string
	prefix := layout.RoundDir(crawl, round) + "plan-"
	for o, err := range b.List(ctx, prefix) {
		if err != nil {
			return nil, fmt.Errorf("list plans of %s.%d: %w", crawl, round, err)
		}
		id, rest, _ := strings.Cut(strings.TrimPrefix(o.Key, prefix), "/")
		if rest == "plan.json" {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// Adopt creates the ledger of each crawl of an older format, and the store's head. Adopt calls the
// function alive, which waits until no process of an older version fetches. Adopt continues an
// interrupted adoption, and may run in several processes at once. Adopt does nothing for crawls
// that have a ledger.
//
// Adopt first writes active.json and crawl.json in the new format, which older versions refuse.
// Adopt writes the ledger after these documents, and the crawl's name in the head last. An
// interrupted adoption leaves a crawl.json of the new format with adopted_from, and a head that
// does not name the crawl.
func (w Writer) Adopt(ctx context.Context, b store.Bucket, crawls []string, alive func(ctx context.Context, a *manifest.Active) error) (adopted []string, err error) {
	var old []string
	for _, crawl := range crawls {
		head, _, err := LoadHead(ctx, b, crawl)
		if err != nil {
			return nil, err
		}
		l, err := Load(ctx, b, crawl)
		if err != nil {
			return nil, err
		}
		m, _, err := LoadCrawl(ctx, b, crawl)
		if err != nil {
			return nil, err
		}
		if l.Unadopted(m, head) {
			old = append(old, crawl)
		}
	}
	if len(old) == 0 {
		return nil, nil
	}
	if err := w.adoptActive(ctx, b, old[0], alive); err != nil {
		return nil, err
	}
	for _, crawl := range old {
		if err := w.adoptCrawl(ctx, b, crawl); err != nil {
			return nil, fmt.Errorf("adopt crawl %s: %w", crawl, err)
		}
	}
	for _, crawl := range old {
		if err := w.name(ctx, b, crawl, true, false); err != nil {
			return nil, fmt.Errorf("adopt crawl %s: %w", crawl, err)
		}
	}
	return old, nil
}

// Unadopted reports whether Adopt still has to adopt the ledger's crawl, or to finish its adoption.
func (l *Ledger) Unadopted(m *manifest.Crawl, head *manifest.Crawls) bool {
	return m.Format < Since || m.AdoptedFrom > 0 && l.fresh() && !(head != nil && head.Names(l.Crawl))
}

// adoptActive gives active.json the new format, so that an older version can claim no round any
// more.
func (w Writer) adoptActive(ctx context.Context, b store.Bucket, crawl string, alive func(ctx context.Context, a *manifest.Active) error) error {
	for {
		a, version, err := LoadActive(ctx, b, crawl)
		if errors.Is(err, store.ErrNotFound) {
			a, version, err = &manifest.Active{Done: true}, "", nil
		}
		if err != nil || a.Format >= Since {
			return err
		}
		if !a.Done && alive != nil {
			if err := alive(ctx, a); err != nil {
				return err
			}
		}
		a.Version, a.Nonce = w.Version, "adopted-"+w.now()
		if _, err := manifest.Swap(ctx, b, layout.Active(), a, version); !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
}

// adoptCrawl gives crawl.json the new format, then writes the ledger.
func (w Writer) adoptCrawl(ctx context.Context, b store.Bucket, crawl string) error {
	for {
		var m manifest.Crawl
		version, _, err := manifest.Load(ctx, b, layout.CrawlManifest(crawl), &m)
		if err != nil {
			return err
		}
		if m.Format >= Since {
			break
		}
		m.AdoptedFrom = m.Format
		if _, err := manifest.Swap(ctx, b, layout.CrawlManifest(crawl), &m, version); err != nil && !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
	if stands, err := manifest.Exists(ctx, b, layout.Ledger(crawl)); err != nil || stands {
		return err
	}
	if err := w.write(ctx, b, crawl, ""); !errors.Is(err, store.ErrConflict) { // else another process has written the ledger first
		return err
	}
	return nil
}

// write stores the ledger that assemble makes, in place of the version old.
func (w Writer) write(ctx context.Context, b store.Bucket, crawl string, old store.Version) error {
	entries, err := there(ctx, b, crawl)
	if err != nil {
		return err
	}
	for i := range entries {
		entries[i].Adopted = true
	}
	_, err = w.swap(ctx, b, &Ledger{Crawl: crawl, version: old}, entries)
	return err
}

// Keeper copies an object to quarantine/.
type Keeper func(ctx context.Context, b store.Bucket, key string) (to string, err error)

// Rebuild recreates a lost or damaged ledger, head or active.json from the objects in the store,
// and returns the keys. Rebuild copies damaged documents to quarantine/ first. The parameter crawls
// lists the crawls that have objects. A recreated ledger does not name other lost objects, so their
// loss stays unknown.
func (w Writer) Rebuild(ctx context.Context, b store.Bucket, crawl string, crawls []string, keep Keeper) (made []string, err error) {
	head, renamed, err := w.emptyHead(ctx, b, crawl, keep)
	if err != nil {
		return nil, err
	}
	var l *Ledger
	written, err := keep.anew(ctx, b, layout.Ledger(crawl), func() error {
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
		return nil, nil // no command has adopted or fully created the crawl yet
	}
	active, err := w.rebuildActive(ctx, b, crawl, crawls, keep)
	if err != nil {
		return made, err
	}
	if active {
		made = append(made, layout.Active())
	}
	for _, c := range crawls {
		if head, _, err = LoadHead(ctx, b, crawl); err != nil {
			return made, err
		}
		l, err := Load(ctx, b, c)
		if err != nil {
			return made, err
		}
		if !l.Stored || head != nil && head.Names(c) {
			continue
		}
		if err := w.name(ctx, b, c, true, true); err != nil {
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

// anew recreates a document for which judge returns a Lost error. Before that, keep copies the
// document. The function remake swaps the new document over the judged version only, so that no
// change by another process is undone. After such a change, anew calls judge again.
func (keep Keeper) anew(ctx context.Context, b store.Bucket, key string, judge func() error, remake func(old store.Version) error) (made bool, err error) {
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

// emptyHead replaces a damaged head by a head without names. emptyHead returns the head, or nil if
// the store has no head.
func (w Writer) emptyHead(ctx context.Context, b store.Bucket, crawl string, keep Keeper) (head *manifest.Crawls, made bool, err error) {
	made, err = keep.anew(ctx, b, layout.Crawls(), func() error {
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
// started and whose fetch stage has not ended.
func (w Writer) rebuildActive(ctx context.Context, b store.Bucket, crawl string, crawls []string, keep Keeper) (made bool, err error) {
	return keep.anew(ctx, b, layout.Active(), func() error {
		a, _, err := LoadActive(ctx, b, crawl)
		if errors.Is(err, store.ErrNotFound) {
			return DamagedActive(crawl, nil)
		}
		if err == nil && !a.Done {
			_, err = OfActive(ctx, b, a, crawl)
		}
		if lost, ok := errors.AsType[*Lost](err); ok && lost.Object != layout.Active() {
			return nil // the loss concerns the crawl that active.json names
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

// activeOf returns the active.json that the ledgers of crawls imply.
func (w Writer) activeOf(ctx context.Context, b store.Bucket, crawls []string) (*manifest.Active, error) {
	a := &manifest.Active{Header: manifest.Header{Version: w.Version}, Nonce: "rebuilt-" + w.now(), Done: true}
	for _, crawl := range crawls {
		if layout.IsReparse(crawl) {
			continue
		}
		l, err := Load(ctx, b, crawl)
		if err != nil {
			return nil, err
		}
		for round := range l.Rounds() {
			if l.Started(round) != nil && l.Frozen(round, stages.Merge) == nil && l.Newest(manifest.EntrySealed, round) == nil {
				a.Crawl, a.Round, a.Done = crawl, round, false
			}
		}
	}
	return a, nil
}

// Planning returns the entry that freezes the time for planning a round.
func Planning(round int, now time.Time) manifest.Entry {
	return manifest.Entry{What: manifest.EntryPlanning, Round: &round, Now: now.UTC().Format(time.RFC3339Nano)}
}
