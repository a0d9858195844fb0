package ledger

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/stages"
)

// existingEntries returns the entries of a rebuilt ledger for a crawl, one for each document in the
// store. The entries are marked as rebuilt.
func existingEntries(ctx context.Context, b store.Bucket, crawl string) ([]manifest.Entry, error) {
	_, digest, err := LoadCrawl(ctx, b, crawl)
	if err != nil {
		return nil, err
	}
	all := []manifest.Entry{{What: manifest.EntryCrawl, Object: layout.CrawlManifest(crawl), SHA256: digest}}
	var p manifest.Politeness
	digest, found, err := readOptional(ctx, b, layout.Politeness(crawl), &p)
	if err != nil {
		return nil, err
	}
	if found {
		all = append(all, politenessEntry(crawl, p.Revision, digest))
	}
	rounds, err := roundsIn(ctx, b, crawl)
	if err != nil {
		return nil, err
	}
	for _, round := range rounds {
		entries, err := entriesOfRound(ctx, b, crawl, round)
		if err != nil {
			return nil, err
		}
		if len(entries) == 0 && !layout.IsReparse(crawl) {
			// The round's tables or WARC files show that URLs of the round were fetched, but
			// nothing shows the plan of the round.
			some, err := anyKey(ctx, b, layout.RoundDir(crawl, round))
			if err != nil {
				return nil, err
			}
			if !some {
				entries = append(entries, Named(manifest.EntryFetching, round, layout.StageDir(crawl, round, string(stages.Fetch)), ""))
			}
		}
		all = append(all, entries...)
	}
	removed, err := prunings(ctx, b, crawl)
	if err != nil {
		return nil, err
	}
	all = append(all, removed...)
	takedowns, err := removals(ctx, b, crawl)
	if err != nil {
		return nil, err
	}
	all = append(all, takedowns...)
	for i := range all {
		all[i].Rebuilt = true
	}
	return all, nil
}

// roundsIn lists the rounds of a crawl that have an object: a document, a part of the dataset
// fetches, or a WARC file. It also finds rounds that come after a lost round. A listing of all keys
// would read millions of names. roundsIn therefore finds the numbers digit by digit, and lists only
// one key for each prefix.
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

// politenessEntry returns the ledger's entry for a revision of the politeness.
func politenessEntry(crawl string, revision int, digest string) manifest.Entry {
	return manifest.Entry{What: manifest.EntryPoliteness, Revision: revision, Object: layout.Politeness(crawl), SHA256: digest}
}

// readOptional reads a document that may not exist. For an unreadable document, found is true and
// the digest is empty.
func readOptional(ctx context.Context, b store.Bucket, key string, d manifest.Document) (digest string, found bool, err error) {
	_, digest, err = manifest.LoadContents(ctx, b, key, d)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return "", false, nil
	case errors.Is(err, manifest.ErrCorrupt):
		return "", true, nil
	}
	return digest, err == nil, err
}

// entriesOfRound returns the ledger entries for a round, one for each existing document of the
// round.
func entriesOfRound(ctx context.Context, b store.Bucket, crawl string, round int) ([]manifest.Entry, error) {
	var all []manifest.Entry
	id, started, err := followedPlan(ctx, b, crawl, round)
	if err != nil {
		return nil, err
	}
	if id != "" {
		key := layout.PlanManifest(crawl, round, id)
		var p manifest.Plan
		digest, _, err := readOptional(ctx, b, key, &p)
		if err != nil {
			return nil, err
		}
		choice := Named(manifest.EntryPlan, round, key, digest)
		choice.Plan = id
		all = append(all, choice)
	}
	if started {
		all = append(all, manifest.Entry{What: manifest.EntryStarted, Round: &round, Plan: id})
	}
	fetched, err := anyKey(ctx, b, layout.StageDir(crawl, round, string(stages.Fetch))+"part-")
	if err != nil {
		return nil, err
	}
	if fetched && started && !layout.IsReparse(crawl) {
		all = append(all, Named(manifest.EntryFetching, round, layout.StageDir(crawl, round, string(stages.Fetch)), ""))
	}
	for _, stage := range stages.Order {
		key := layout.Inputs(crawl, round, string(stage))
		var in manifest.Inputs
		digest, found, err := readOptional(ctx, b, key, &in)
		if err != nil {
			return nil, err
		}
		if found {
			frozen := Named(manifest.EntryFrozen, round, key, digest)
			frozen.Stage = string(stage)
			all = append(all, frozen)
		}
	}
	key := layout.Sealed(crawl, round)
	var s manifest.Sealed
	digest, found, err := readOptional(ctx, b, key, &s)
	if found {
		sealed := Named(manifest.EntrySealed, round, key, digest)
		sealed.Generation = 1
		all = append(all, sealed)
	}
	return all, err
}

// followedPlan returns the ID of the plan that a round follows, and whether the round has started. It returns
// the plan that other objects of the round name, or the only plan.
func followedPlan(ctx context.Context, b store.Bucket, crawl string, round int) (id string, started bool, err error) {
	id, err = usedPlan(ctx, b, crawl, round)
	if err != nil || id != "" {
		return id, err == nil, err
	}
	ids, err := Plans(ctx, b, crawl, round)
	if err != nil || len(ids) != 1 {
		return "", false, err
	}
	started, err = anyKey(ctx, b, layout.StageDir(crawl, round, string(stages.Fetch)))
	return ids[0], started, err
}

// usedPlan returns the ID of the plan that a round uses, or "" if nothing shows that the round has
// begun. The plan's ID is in the round's seal, in an inputs.json, and in the objects under
// fetch/taken/. A list of plans does not tell which plan is used, because a process may have died
// before it deleted the replaced plans.
func usedPlan(ctx context.Context, b store.Bucket, crawl string, round int) (string, error) {
	var sealed manifest.Sealed
	if _, found, err := readOptional(ctx, b, layout.Sealed(crawl, round), &sealed); err != nil || found && sealed.Plan != "" {
		return sealed.Plan, err
	}
	for _, stage := range stages.Order {
		var in manifest.Inputs
		if _, found, err := readOptional(ctx, b, layout.Inputs(crawl, round, string(stage)), &in); err != nil || found && in.Plan != "" {
			return in.Plan, err
		}
	}
	for o, err := range b.List(ctx, layout.StageDir(crawl, round, string(stages.Fetch))+"taken/") {
		if err != nil {
			return "", fmt.Errorf("list taken partitions of %s.%d: %w", crawl, round, err)
		}
		var t manifest.Taken
		if _, found, err := readOptional(ctx, b, o.Key, &t); err != nil || found && t.Plan != "" {
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
