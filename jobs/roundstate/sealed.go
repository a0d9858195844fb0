package roundstate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/publish"
)

// Seal creates the manifests and sealed.json of a round, and appends the seal's entry to the
// ledger. All tasks of the round must have results. Before it writes anything, Seal calls account
// with the counts of the round. account writes the round's parts of the datasets stages and runs,
// unless they exist. account may be nil.
func Seal(ctx context.Context, b store.Bucket, p *manifest.Plan, w ledger.Writer, account func(counts []manifest.Count) error) error {
	s, err := sealOf(ctx, b, p, w, account, func(f manifest.File, body []byte) error { return createManifest(ctx, b, f, body) })
	if err != nil {
		return err
	}
	if err := createOnce(ctx, b, layout.Sealed(p.Crawl, p.Round), s); err != nil { // succeeds if another process has stored a seal first
		return err
	}
	return RecordSeal(ctx, b, p.Crawl, p.Round, w)
}

// sealOf makes the seal of a round from the round's results. It calls put with each manifest of the
// seal. To save memory, sealOf keeps only the files that the seal lists, not the results.
func sealOf(ctx context.Context, b store.Bucket, p *manifest.Plan, w ledger.Writer, account func(counts []manifest.Count) error, put func(f manifest.File, body []byte) error) (*manifest.Sealed, error) {
	sealing, digests := publish.NewSealing(p), map[stages.Stage][]string{}
	var mu sync.Mutex
	for _, stage := range stages.Of(p) {
		tasks := Tasks(p, stage)
		of := make([]string, len(tasks))
		err := EachResult(ctx, b, p, tasks, func(i int, r *manifest.Result, digest string) {
			if of[i] = digest; r != nil {
				mu.Lock()
				defer mu.Unlock()
				sealing.Add(stage, i, r)
			}
		})
		if err != nil {
			return nil, err
		}
		digests[stage] = of
	}
	if err := checkFrozen(ctx, b, p, digests); err != nil {
		return nil, err
	}
	if account != nil {
		if err := account(sealing.Counts()); err != nil {
			return nil, err
		}
	}
	accounts, err := accountsOf(ctx, b, p)
	if err != nil {
		return nil, err
	}
	sealing.AddAccounts(accounts)
	s, err := sealing.Seal(put)
	if err == nil {
		s.Version = w.Version
	}
	return s, err
}

// Reseal makes the seal of a round again, from results that a takedown changed. It calls put with each
// manifest of the seal. It stores nothing.
func Reseal(ctx context.Context, b store.Bucket, p *manifest.Plan, old *manifest.Sealed, put func(f manifest.File, body []byte) error) (*manifest.Sealed, error) {
	return sealOf(ctx, b, p, ledger.Writer{Version: old.Version}, nil, put)
}

// checkFrozen compares the digests of results with the digests that later stages froze in
// inputs.json. It returns an error if a digest differs or an inputs.json was changed. It ignores a
// lost inputs.json, because verify reports the loss.
func checkFrozen(ctx context.Context, b store.Bucket, p *manifest.Plan, digests map[stages.Stage][]string) error {
	l, err := ledger.Load(ctx, b, p.Crawl)
	if err != nil {
		return err
	}
	for _, stage := range stages.Of(p) {
		if len(feeds[stage]) == 0 {
			continue
		}
		e := l.Frozen(p.Round, stage)
		if e == nil { // a rebuilt ledger does not know an inputs.json that was lost before
			continue
		}
		var in manifest.Inputs
		err := l.Check(ctx, b, e, &in)
		var lost *ledger.Lost
		if errors.As(err, &lost) && !lost.Changed {
			continue
		}
		if err != nil {
			return err
		}
		for _, f := range in.Tasks {
			of := stages.Task{Stage: stages.Stage(f.Stage), Crawl: p.Crawl, Round: p.Round, Partition: f.Partition}
			if have := digests[of.Stage]; f.Partition < 0 || f.Partition >= len(have) || have[f.Partition] != f.SHA256 {
				return changedResult(string(stage), of)
			}
		}
	}
	return nil
}

// changedResult returns the error for a result that was changed after its digest was frozen in
// inputs.json. reader names the stage or task that reads the result.
func changedResult(reader string, of stages.Task) error {
	return fmt.Errorf("%s: the result of %s has changed since inputs.json froze its digest: restore it from a copy: %w", reader, of, stages.ErrPermanent)
}

// RecordSeal appends the entry of an existing seal, unless the ledger has the entry.
func RecordSeal(ctx context.Context, b store.Bucket, crawl string, round int, w ledger.Writer) error {
	_, err := w.Append(ctx, b, crawl, func(l *ledger.Ledger) ([]manifest.Entry, error) {
		if l.Newest(manifest.EntrySealed, round) != nil {
			return nil, nil
		}
		var s manifest.Sealed
		key := layout.Sealed(crawl, round)
		_, digest, err := manifest.LoadContents(ctx, b, key, &s)
		e := ledger.Named(manifest.EntrySealed, round, key, digest)
		e.Generation = 1
		return []manifest.Entry{e}, err
	})
	return err
}

// History returns all sealed rounds of a crawl and of the crawls that this crawl continues, oldest
// first. For the files of the rounds, call WithFiles.
func History(ctx context.Context, b store.Bucket, crawl string) ([]*manifest.Sealed, error) {
	sealed, _, err := sealedHistory(ctx, b, crawl, math.MaxInt)
	return sealed, err
}

// sealedHistory returns the sealed rounds of a crawl whose number is below the limit before, preceded
// by the rounds of the crawls that this crawl continues. The second result is the crawl's document.
func sealedHistory(ctx context.Context, b store.Bucket, crawl string, before int) ([]*manifest.Sealed, *manifest.Crawl, error) {
	l, err := ledger.Load(ctx, b, crawl)
	if err != nil {
		return nil, nil, err
	}
	own, err := sealedBefore(ctx, b, l, before)
	if err != nil {
		return nil, nil, err
	}
	m, err := l.ReadCrawl(ctx, b)
	if err != nil {
		return nil, nil, err
	}
	continued, err := Continued(ctx, b, m)
	if err != nil {
		return nil, nil, err
	}
	return append(continued, own...), m, nil
}

// Continued returns the sealed rounds of the crawls that the crawl m continues, oldest first. For
// the files of the rounds, call WithFiles.
func Continued(ctx context.Context, b store.Bucket, m *manifest.Crawl) ([]*manifest.Sealed, error) {
	crawls := m.Continued
	if len(crawls) == 0 {
		var err error
		if crawls, err = continuedFrom(ctx, b, m.Crawl, m.Continues); err != nil {
			return nil, err
		}
	}
	var chain []*manifest.Sealed
	for _, c := range crawls {
		l, err := ledger.Load(ctx, b, c.Crawl)
		if err != nil {
			return nil, err
		}
		sealed, err := continuedBefore(ctx, b, l, c.Rounds)
		if err != nil {
			return nil, err
		}
		if len(m.Continued) > 0 && len(sealed) < c.Rounds {
			return nil, fmt.Errorf("%s continues %d rounds of %s, of which %d are sealed: restore the others: %w", m.Crawl, c.Rounds, c.Crawl, len(sealed), manifest.ErrCorrupt)
		}
		chain = append(chain, sealed...)
	}
	return chain, nil
}

// continuedBefore returns the sealed rounds of a continued crawl whose number is below the limit
// before. For a crawl that was pruned as a whole, it returns placeholders without files.
func continuedBefore(ctx context.Context, b store.Bucket, l *ledger.Ledger, before int) ([]*manifest.Sealed, error) {
	if l.Gone() {
		return l.Placeholders(before), nil
	}
	return sealedBefore(ctx, b, l, before)
}

// Continuing lists the crawls that a new crawl continues, oldest first, each with the number of its
// rounds that are sealed now. before names the newest of them; it is "" if the new crawl continues
// none.
func Continuing(ctx context.Context, b store.Bucket, crawl, before string) ([]manifest.ContinuedCrawl, error) {
	crawls, err := continuedFrom(ctx, b, crawl, before)
	if err != nil {
		return nil, err
	}
	for i, c := range crawls {
		l, err := ledger.LoadNewest(ctx, b, c.Crawl)
		if err != nil {
			return nil, err
		}
		sealed, err := continuedBefore(ctx, b, l, math.MaxInt)
		if err != nil {
			return nil, err
		}
		crawls[i].Rounds = len(sealed)
	}
	return slices.DeleteFunc(crawls, func(c manifest.ContinuedCrawl) bool { return c.Rounds == 0 }), nil
}

// continuedFrom lists the crawl named before and the crawls that it continues, oldest first, each
// with all its rounds.
func continuedFrom(ctx context.Context, b store.Bucket, crawl, before string) (crawls []manifest.ContinuedCrawl, err error) {
	seen := map[string]bool{crawl: true}
	for before != "" && !seen[before] {
		seen[before] = true
		crawls = append(crawls, manifest.ContinuedCrawl{Crawl: before, Rounds: math.MaxInt})
		l, err := ledger.Load(ctx, b, before)
		if err != nil {
			return nil, err
		}
		if l.Gone() {
			before = l.Pruning().Prune.Continues
			continue
		}
		m, err := l.ReadCrawl(ctx, b)
		if err != nil {
			return nil, err
		}
		before = m.Continues
	}
	slices.Reverse(crawls)
	return crawls, nil
}

// Sealed returns the sealed rounds of a crawl, from round 0 on. If a seal is gone, the error is a
// ledger.Lost error. For the files of the rounds, call WithFiles.
func Sealed(ctx context.Context, b store.Bucket, crawl string) ([]*manifest.Sealed, error) {
	l, err := ledger.LoadNewest(ctx, b, crawl)
	if err != nil {
		return nil, err
	}
	return sealedBefore(ctx, b, l, math.MaxInt)
}

// sealedBefore returns the sealed rounds of a crawl with numbers below end. It also reads the seals of
// later rounds, because every task must stop at a seal that is damaged or belongs to another crawl.
func sealedBefore(ctx context.Context, b store.Bucket, l *ledger.Ledger, end int) ([]*manifest.Sealed, error) {
	var all []*manifest.Sealed
	for {
		s, err := SealIn(ctx, b, l, len(all))
		if len(all) >= end && errors.Is(err, ledger.ErrLost) {
			err = nil // ignore the lost seal of a later round: `retry --rebuild` recreates it after the earlier rounds
		}
		if err != nil || s == nil {
			return all[:min(end, len(all))], err
		}
		all = append(all, s)
	}
}

// SealedRound returns the seal of a round, or nil if the round is not sealed.
func SealedRound(ctx context.Context, b store.Bucket, crawl string, round int) (*manifest.Sealed, error) {
	l, err := ledger.Load(ctx, b, crawl)
	if err != nil {
		return nil, err
	}
	return SealIn(ctx, b, l, round)
}

// SealIn is like SealedRound, with a ledger that the caller has read.
func SealIn(ctx context.Context, b store.Bucket, l *ledger.Ledger, round int) (*manifest.Sealed, error) {
	if err := l.CheckGone(); err != nil {
		return nil, err
	}
	var s manifest.Sealed
	key := layout.Sealed(l.Crawl, round)
	var err error
	if e := l.Newest(manifest.EntrySealed, round); e != nil {
		err = l.Check(ctx, b, e, &s)
		if lost, ok := errors.AsType[*ledger.Lost](err); ok && !lost.Changed {
			err = cmp.Or(lostPlan(ctx, b, l, round), err)
		}
	} else {
		_, _, err = manifest.Load(ctx, b, key, &s) // the process that sealed the round may not have appended the entry yet
	}
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if ledger.Read(err) && (s.Crawl != l.Crawl || s.Round != round) {
		err = misplaced(key, fmt.Sprintf("round %s.%d", s.Crawl, s.Round), fmt.Sprintf("round %s.%d", l.Crawl, round))
	}
	if err != nil {
		return nil, err
	}
	return &s, nil
}

// lostPlan returns a ledger.Lost error if the plan of a round is lost, otherwise nil. If the seal is
// lost too, the user must restore the plan first, because the seal cannot be recreated without it.
func lostPlan(ctx context.Context, b store.Bucket, l *ledger.Ledger, round int) error {
	if _, _, err := PlanIn(ctx, b, l, round); errors.Is(err, ledger.ErrLost) {
		return err
	}
	return nil
}

// AllSealed returns the sealed rounds of every crawl of a store, ordered by crawl and round.
func AllSealed(ctx context.Context, b store.Bucket) ([]*manifest.Sealed, error) {
	crawls, err := Crawls(ctx, b)
	if err != nil {
		return nil, err
	}
	var all []*manifest.Sealed
	for _, crawl := range crawls {
		s, err := Sealed(ctx, b, crawl)
		if errors.Is(err, ledger.ErrPruned) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, s...)
	}
	return all, nil
}

// NewestSealed returns the newest listed crawl that has a sealed round, and the sealed rounds of
// this crawl. The newest crawl is that of the last month. The reparses of a month follow, the highest
// number first, and then earlier months. If no crawl has a sealed round, NewestSealed returns the
// newest crawl and no rounds.
func NewestSealed(ctx context.Context, b store.Bucket, crawls []string) (string, []*manifest.Sealed, error) {
	byAge := slices.SortedFunc(slices.Values(crawls), newerFirst)
	for _, crawl := range byAge {
		sealed, err := Sealed(ctx, b, crawl)
		if errors.Is(err, ledger.ErrPruned) {
			continue
		}
		if err != nil || len(sealed) > 0 {
			return crawl, sealed, err
		}
	}
	if len(byAge) == 0 {
		return "", nil, nil
	}
	return byAge[0], nil, nil
}

func newerFirst(a, b string) int {
	monthA, _ := layout.MonthOf(a)
	monthB, _ := layout.MonthOf(b)
	if monthA != monthB {
		return cmp.Compare(monthB, monthA)
	}
	reparseA, reparseB := strings.TrimPrefix(a, monthA), strings.TrimPrefix(b, monthB)
	if reparseA == "" || reparseB == "" {
		return cmp.Compare(len(reparseA), len(reparseB))
	}
	return cmp.Or(cmp.Compare(len(reparseB), len(reparseA)), cmp.Compare(reparseB, reparseA)) // the longer number is greater: r10 comes before r9
}
