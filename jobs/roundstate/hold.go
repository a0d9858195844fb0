package roundstate

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/ledger"
)

// Hold is the right of one `prune --apply` or `takedown --apply` to change objects: active.json names it, so no round
// is planned or fetched, and no crawl is parsed again meanwhile. The zero Hold is that of a store without crawls,
// which has nothing to protect.
type Hold struct {
	bucket store.Bucket
	active *manifest.Active
	mine   store.Version
}

// HoldOf returns the Hold of a command that died, so that it can be released. v is the version of active.json.
func HoldOf(b store.Bucket, a *manifest.Active, v store.Version) *Hold { return &Hold{b, a, v} }

// ActiveToHold returns active.json and its version for TakeHold. If the store never had one, the document is Done.
// The error is ErrBusy if a round is being fetched. The caller decides about an unfinished prune, takedown or
// quarantine.
func ActiveToHold(ctx context.Context, b store.Bucket) (*manifest.Active, store.Version, error) {
	a, v, err := ledger.LoadActive(ctx, b, "YYYY-MM")
	if errors.Is(err, store.ErrNotFound) {
		return &manifest.Active{Done: true}, "", nil
	}
	if err != nil || a.Done || a.Prune {
		return a, v, err
	}
	l, err := ledger.OfActive(ctx, b, a, a.Crawl)
	if err == nil && l.Newest(manifest.EntrySealed, a.Round) == nil {
		err = fmt.Errorf("%s: nothing is changed while rounds are unfinished: round %d of %s is being fetched: %w", b, a.Round, a.Crawl, ErrBusy)
	}
	return a, v, err
}

// TakeHold writes active.json in place of the version v, which ActiveToHold returned. It so takes over the Hold of a
// command that died; if that one is alive, its Check fails from then on. The Nonce of held begins with the name of
// the command.
func TakeHold(ctx context.Context, b store.Bucket, held *manifest.Active, v store.Version) (*Hold, error) {
	mine, err := manifest.Swap(ctx, b, layout.Active(), held, v)
	if errors.Is(err, store.ErrConflict) {
		return nil, fmt.Errorf("%s: another command claimed active.json at the same time: run this command again: %w", b, ErrBusy)
	}
	if err != nil {
		return nil, err
	}
	return &Hold{b, held, mine}, nil
}

// Release ends the Hold, unless another command has taken it over.
func (h *Hold) Release(ctx context.Context) error {
	if h.active == nil {
		return nil
	}
	h.active.Done, h.active.Nonce = true, h.active.Nonce+"-done"
	_, err := manifest.Swap(ctx, h.bucket, layout.Active(), h.active, h.mine)
	if errors.Is(err, store.ErrConflict) {
		return nil
	}
	return err
}

// Check returns ErrBusy if another command has taken the Hold over. It may have decided otherwise what to change, and
// a round may have been planned since it ended.
func (h *Hold) Check(ctx context.Context) error {
	if h.active == nil {
		return nil
	}
	_, v, err := ledger.LoadActive(ctx, h.bucket, "YYYY-MM")
	if err == nil && v != h.mine {
		command, _, _ := strings.Cut(h.active.Nonce, "-")
		err = fmt.Errorf("%s: another command has taken over from this `crawlbatch %s --apply`: %w", h.bucket, command, ErrBusy)
	}
	return err
}
