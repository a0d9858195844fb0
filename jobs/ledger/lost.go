package ledger

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"golang.org/x/sync/errgroup"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/stages"
)

// ErrLost means that an object is gone, or has other contents than the ledger or the store's head
// (crawls.json) recorded.
var ErrLost = errors.New("lost")

// Lost is the error for an object that is gone, or whose contents do not match the ledger or the
// head. Lost wraps ErrLost and stages.ErrPermanent.
type Lost struct {
	Object  string `json:"object"`            // key of the lost object, or a folder
	Round   *int   `json:"round,omitempty"`   // round of the object; nil if the object belongs to the whole crawl or store
	Was     string `json:"was"`               // description of the object, such as "the seal of round 1"
	Changed bool   `json:"changed,omitempty"` // true: the object exists with other contents
	Damage  error  `json:"-"`                 // why the existing object cannot be read; wraps manifest.ErrCorrupt
	Remedy  string `json:"remedy"`            // advice that risks no further loss
}

// Error names the object, describes the object, and gives the remedy.
func (l *Lost) Error() string {
	how := "is lost: it was"
	switch {
	case l.Damage != nil:
		how = "is damaged: it was"
	case l.Changed:
		how = "was changed or replaced since it was recorded: it is"
	}
	damage := ""
	if l.Damage != nil {
		damage = fmt.Sprintf(" (%v)", l.Damage)
	}
	return fmt.Sprintf("%q %s %s%s: %s", l.Object, how, l.Was, damage, l.Remedy)
}

// Unwrap lets errors.Is find ErrLost and stages.ErrPermanent in every Lost error.
func (l *Lost) Unwrap() []error {
	if l.Damage != nil {
		return []error{ErrLost, stages.ErrPermanent, l.Damage}
	}
	return []error{ErrLost, stages.ErrPermanent}
}

// restore is the remedy for an object that cannot be recreated.
const restore = "restore it from a copy, because its contents cannot be recreated"

// remake returns the remedy for an object that can be recreated from other objects.
func remake(crawl string) string {
	return fmt.Sprintf("restore it from a copy, or recreate it with `crawlbatch retry --month %s --rebuild`", crawl)
}

func lostLedger(crawl string) error {
	return &Lost{Object: layout.Ledger(crawl), Was: "the ledger of crawl " + crawl, Remedy: remake(crawl)}
}

// Miss returns the Lost error for a document that an entry names and that is gone or was changed.
func (l *Ledger) Miss(e *manifest.Entry, changed bool) *Lost {
	lost := &Lost{Object: e.Object, Round: e.Round, Changed: changed, Remedy: remake(l.Crawl)}
	switch e.What {
	case manifest.EntryCrawl:
		lost.Was, lost.Remedy = "what crawl "+l.Crawl+" froze", restore
		if choice, started := l.Plan(0); choice != nil && !started {
			lost.Remedy = l.planAnew()
		}
	case manifest.EntryPlan:
		lost.Was = fmt.Sprintf("the plan of round %d", *e.Round)
		if _, started := l.Plan(*e.Round); started {
			lost.Remedy = restore
		} else {
			lost.Remedy = l.planAnew()
		}
	case manifest.EntryFrozen:
		lost.Was = fmt.Sprintf("the inputs of %s in round %d", e.Stage, *e.Round)
	case manifest.EntrySealed:
		lost.Was = fmt.Sprintf("the seal of round %d", *e.Round)
	case manifest.EntryPoliteness:
		lost.Was = fmt.Sprintf("revision %d of the politeness", e.Revision)
		lost.Remedy = fmt.Sprintf("restore it from a copy, or publish it again with `crawlbatch run --month %s --config FILE`; until then nothing is requested", l.Crawl)
	case manifest.EntryFetching:
		lost.Was = fmt.Sprintf("what round %d fetched", *e.Round)
		lost.Remedy = "restore it from a copy: fetched data cannot be recreated, and a new fetch would request the URLs a second time"
	case manifest.EntryPruning:
		lost.Was = "the list of the WARC files of crawl " + l.Crawl + " that stayed when it was pruned"
		lost.Remedy = "restore it from a copy, or make it again with `crawlbatch prune --apply`"
	case manifest.EntryCompacted:
		lost.Was = "the list of the compacted copy of crawl " + l.Crawl
		lost.Remedy = fmt.Sprintf("make the copy again with `crawlbatch compact --month %s`; the published parts are not affected", l.Crawl)
	case manifest.EntryTakedown:
		lost.Was = "the list of the objects of crawl " + l.Crawl + " that a takedown changed"
		lost.Remedy = "restore it from a copy; the objects themselves are not affected"
	default:
		lost.Was = "named by entry " + fmt.Sprint(e.N)
	}
	return lost
}

// LostManifest returns the Lost error for a manifest that a seal names and that is gone or was
// changed.
func LostManifest(s *manifest.Sealed, key string, changed bool) *Lost {
	return &Lost{Object: key, Round: &s.Round, Was: fmt.Sprintf("a manifest of the seal of round %d", s.Round), Changed: changed, Remedy: remake(s.Crawl)}
}

// planAnew returns the remedy for lost documents of a round that has not started.
func (l *Ledger) planAnew() string {
	return fmt.Sprintf("restore it from a copy; nothing of the round was fetched, so `crawlbatch plan --month %s --replace --source FILE` also works", l.Crawl)
}

// NoPlan checks a round that has no plan. NoPlan returns a Lost error if the ledger proves that the
// round had begun. The proof is an entry about a later round, or an entry about the round's
// fetching.
func (l *Ledger) NoPlan(round int) error {
	if e := l.Newest(manifest.EntryFetching, round); e != nil {
		return l.Miss(e, false)
	}
	if round+1 >= l.Rounds() {
		return nil
	}
	return &Lost{
		Object: layout.RoundDir(l.Crawl, round), Round: &round, Was: fmt.Sprintf("round %d, about which a rebuilt ledger knows only that a later round exists", round),
		Remedy: "restore it from a copy: nothing else records what was planned and fetched, and planning the round again would request the URLs a second time",
	}
}

// Check reads into d the document that an entry names. The error is a Lost error if the document is
// gone or was changed, and also if it is damaged and a command makes it again.
func (l *Ledger) Check(ctx context.Context, b store.Bucket, e *manifest.Entry, d manifest.Document) error {
	_, digest, err := manifest.LoadContents(ctx, b, e.Object, d)
	if errors.Is(err, store.ErrNotFound) {
		return l.Miss(e, false)
	}
	if err == nil && e.SHA256 != "" && digest != e.SHA256 {
		if l.TakedownUnfinished() {
			return fmt.Errorf("%q: %w", e.Object, ErrTakedown)
		}
		return l.Miss(e, true)
	}
	if e.What == manifest.EntryCompacted && errors.Is(err, manifest.ErrCorrupt) {
		lost := l.Miss(e, false)
		lost.Damage = err
		return lost
	}
	return err
}

// Read reports whether a call of Check that returned err has filled its document. This is also the
// case if the document was changed.
func Read(err error) bool {
	var lost *Lost
	return err == nil || errors.As(err, &lost) && lost.Changed
}

// requiredEntries returns the entries whose objects must exist. If several entries are about the
// same subject, only the newest of them counts.
func (l *Ledger) requiredEntries() []*manifest.Entry {
	var all []*manifest.Entry
	add := func(e *manifest.Entry) {
		if e != nil && e.Object != "" {
			all = append(all, e)
		}
	}
	add(l.Pruning())
	if l.Gone() {
		return all
	}
	add(l.Of(manifest.EntryCrawl))
	add(l.Of(manifest.EntryPoliteness))
	add(l.Of(manifest.EntryCompacted))
	add(l.Takedown())
	for round := range l.Rounds() {
		choice, _ := l.Plan(round)
		add(choice)
		if sealed := l.Newest(manifest.EntrySealed, round); sealed == nil {
			add(l.Newest(manifest.EntryFetching, round))
		}
		add(l.Frozen(round, stages.Fetch))
		for _, stage := range stages.Order {
			if stage != stages.Fetch {
				add(l.Frozen(round, stage))
			}
		}
		add(l.Newest(manifest.EntrySealed, round))
	}
	return all
}

// Losses yields the objects that the ledger names but that are gone or have other contents. If a
// document is unreadable, Losses yields the error and continues. Losses stops after any other error.
func (l *Ledger) Losses(ctx context.Context, b store.Bucket) iter.Seq2[*Lost, error] {
	return func(yield func(*Lost, error) bool) {
		tell := func(err error) (more bool) {
			var lost *Lost
			if errors.As(err, &lost) {
				err = nil
			}
			damaged := errors.Is(err, manifest.ErrCorrupt) || errors.Is(err, manifest.ErrFormat)
			return lost == nil && err == nil || yield(lost, err) && (err == nil || damaged)
		}
		for _, e := range l.requiredEntries() {
			var s manifest.Sealed
			err := l.checkEntry(ctx, b, e, &s)
			if !tell(err) {
				return
			}
			if err != nil {
				continue
			}
			for _, err := range lookForManifests(ctx, b, &s) {
				if !tell(err) {
					return
				}
			}
		}
	}
}

// manifestsOpen is the number of manifests that are opened at the same time.
const manifestsOpen = 32

// lookForManifests opens each manifest of a seal, and returns an error for each manifest that
// cannot be opened or has another size. It does not compare digests, because the readers of a
// manifest do.
func lookForManifests(ctx context.Context, b store.Bucket, s *manifest.Sealed) []error {
	errs := make([]error, len(s.Manifests))
	var group errgroup.Group
	group.SetLimit(manifestsOpen)
	for i, m := range s.Manifests {
		group.Go(func() error {
			o, err := b.Open(ctx, m.Key)
			switch {
			case errors.Is(err, store.ErrNotFound):
				err = LostManifest(s, m.Key, false)
			case err == nil && o.Size() != m.Bytes:
				err = errors.Join(LostManifest(s, m.Key, true), o.Close())
			case err == nil:
				err = o.Close()
			}
			errs[i] = err
			return nil
		})
	}
	_ = group.Wait() // never fails: the errors are in errs
	return errs
}

// checkEntry checks the object that an entry names. If the object is a seal, checkEntry stores the
// seal in s.
func (l *Ledger) checkEntry(ctx context.Context, b store.Bucket, e *manifest.Entry, s *manifest.Sealed) error {
	switch e.What {
	case manifest.EntryCrawl:
		return l.Check(ctx, b, e, &manifest.Crawl{})
	case manifest.EntryPruning:
		return l.Check(ctx, b, e, &manifest.Prune{})
	case manifest.EntryCompacted:
		return l.Check(ctx, b, e, &manifest.Compaction{})
	case manifest.EntryTakedown:
		return l.Check(ctx, b, e, &manifest.Removal{})
	case manifest.EntryPlan:
		return l.Check(ctx, b, e, &manifest.Plan{})
	case manifest.EntryFrozen:
		return l.Check(ctx, b, e, &manifest.Inputs{})
	case manifest.EntrySealed:
		return l.Check(ctx, b, e, s)
	case manifest.EntryPoliteness:
		var p manifest.Politeness
		err := l.Check(ctx, b, e, &p)
		if p.Revision > e.Revision { // the publisher has not appended the entry yet
			return nil
		}
		return err
	case manifest.EntryFetching:
		return l.CheckFetched(ctx, b, *e.Round)
	}
	return nil
}

// CheckFetched checks a round that once had checkpoints. It returns a Lost error if all checkpoints
// and results of the round's fetch tasks are gone.
func (l *Ledger) CheckFetched(ctx context.Context, b store.Bucket, round int) error {
	choice, _ := l.Plan(round)
	if choice == nil || l.Newest(manifest.EntryFetching, round) == nil {
		return nil
	}
	var p manifest.Plan
	if err := l.Check(ctx, b, choice, &p); err != nil {
		return err
	}
	return l.CheckFetchedOf(ctx, b, &p)
}

// CheckFetchedOf does the same as CheckFetched for the round of a plan.
func (l *Ledger) CheckFetchedOf(ctx context.Context, b store.Bucket, p *manifest.Plan) error {
	fetching := l.Newest(manifest.EntryFetching, p.Round)
	if fetching == nil {
		return nil
	}
	for n := range p.Partitions {
		for _, key := range []string{layout.Checkpoint(l.Crawl, p.Round, n), layout.Result(l.Crawl, p.Round, string(stages.Fetch), n)} {
			if there, err := manifest.Exists(ctx, b, key); err != nil || there {
				return err
			}
		}
	}
	return l.Miss(fetching, false)
}

// CheckUnbegun checks a round for which the ledger has no entry `started`. If the round
// nevertheless has objects of its fetch stage, somebody has restored an older ledger, and
// CheckUnbegun returns a Lost error.
func (l *Ledger) CheckUnbegun(ctx context.Context, b store.Bucket, round int) error {
	if !l.Stored || l.Started(round) != nil {
		return nil
	}
	begun, err := anyKey(ctx, b, layout.StageDir(l.Crawl, round, string(stages.Fetch))+"part-")
	if err != nil || !begun {
		return err
	}
	if newer, err := l.Newer(ctx, b); err != nil || newer.Started(round) != nil { // another process may have started the round meanwhile
		return err
	}
	return &Lost{
		Object: layout.Ledger(l.Crawl), Changed: true, Was: fmt.Sprintf("an older ledger, which does not know that round %d was started", round),
		Remedy: fmt.Sprintf("restore the newest ledger, or recreate it with `crawlbatch retry --month %s --rebuild`", l.Crawl),
	}
}

// CheckBehind returns a Lost error if somebody has restored an older ledger, however much older it is. Rounds begin one
// after the other, so the first round that the ledger does not know shows it. A rebuilt ledger may lack earlier ones, too.
func (l *Ledger) CheckBehind(ctx context.Context, b store.Bucket) error {
	if l.Gone() {
		return nil
	}
	for round := range l.Rounds() + 1 {
		if err := l.CheckUnbegun(ctx, b, round); err != nil {
			return err
		}
	}
	return nil
}

// LoadNewest is like Load, for a command that reads or continues a crawl. The error is also a Lost error if the ledger is
// older than the objects of the crawl. Tasks need no such check for each of their reads.
func LoadNewest(ctx context.Context, b store.Bucket, crawl string) (*Ledger, error) {
	l, err := Load(ctx, b, crawl)
	if err == nil {
		err = l.CheckBehind(ctx, b)
	}
	if err != nil {
		return nil, err
	}
	return l, nil
}

// HeadLosses yields the losses that the head shows: the head itself, active.json, each crawl in the head
// without crawl.json or ledger.json, and the list of takedowns. crawl is the --month of the commands
// that the errors recommend.
func HeadLosses(ctx context.Context, b store.Bucket, crawl string) iter.Seq2[*Lost, error] {
	return func(yield func(*Lost, error) bool) {
		tell := func(err error) (more bool) {
			var lost *Lost
			if errors.As(err, &lost) {
				err = nil
			}
			return lost == nil && err == nil || yield(lost, err)
		}
		head, _, err := LoadHead(ctx, b, crawl)
		if !tell(err) || !tell(CheckActive(ctx, b, head, crawl)) || err != nil {
			return
		}
		if !tell(CheckCrawls(ctx, b, head, crawl)) || head == nil {
			return
		}
		for _, c := range head.Crawls {
			l, err := Load(ctx, b, c.Crawl)
			if err == nil && c.Crawl == crawl {
				_, _, err = LoadCrawl(ctx, b, c.Crawl) // other checks compare the crawl.json of this crawl with the ledger
			} else if err == nil {
				_, err = l.ReadCrawl(ctx, b)
			}
			if errors.Is(err, ErrReplacing) || errors.Is(err, ErrPruned) {
				err = nil
			}
			if !tell(err) {
				return
			}
		}
		there, err := manifest.Exists(ctx, b, layout.Takedowns())
		if err == nil && !there {
			err = CheckTakedownList(ctx, b)
		}
		tell(err)
	}
}
