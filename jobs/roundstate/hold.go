package roundstate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/ledger"
)

// Hold is the right of one `prune --apply`, `takedown --apply` or `verify --quarantine --yes` to change objects:
// active.json names it. During the first two no round is planned or fetched, and no crawl is parsed again. A fetch
// stage takes the Hold of a quarantine over. The zero Hold is that of a store without crawls, which has nothing to
// protect.
type Hold struct {
	bucket store.Bucket
	active *manifest.Active
	mine   store.Version
}

// HoldOf returns the Hold of a command that died, so that it can be released. v is the version of active.json.
func HoldOf(b store.Bucket, a *manifest.Active, v store.Version) *Hold { return &Hold{b, a, v} }

// The commands that hold active.json.
const (
	holdPrune      = "prune"
	holdTakedown   = "takedown"
	holdQuarantine = "quarantine"
)

// holder returns the command that holds active.json, or "" if none does.
func holder(a *manifest.Active) string {
	switch quarantine := strings.HasPrefix(a.Nonce, holdQuarantine+"-"); {
	case a.Done:
		return ""
	case a.Takedown:
		return holdTakedown
	case a.Prune:
		return holdPrune
	case quarantine:
		return holdQuarantine
	}
	return ""
}

// busyHeld returns the error of a command that cannot work because another one holds active.json.
func busyHeld(b store.Bucket, a *manifest.Active) error {
	does := map[string]string{
		holdTakedown:   "`crawlbatch takedown --apply` changes objects, or was interrupted: wait until it is done, or continue it with `crawlbatch takedown --resume`",
		holdPrune:      "`crawlbatch prune --apply` deletes old objects, or was interrupted: wait until it is done, or run it again",
		holdQuarantine: fmt.Sprintf("`crawlbatch verify --month %s --quarantine --yes` moves objects, or was interrupted: wait until it is done, or run it again", a.Crawl),
	}
	return fmt.Errorf("%s: %s: %w", b, does[holder(a)], ErrBusy)
}

// Held says which command holds active.json: it runs, or was interrupted. "" means that none does.
func Held(ctx context.Context, b store.Bucket) (string, error) {
	a, _, err := ledger.LoadActive(ctx, b, "YYYY-MM")
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, ledger.ErrLost) || err == nil && holder(a) == "" {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return busyHeld(b, a).Error(), nil
}

// TakeHold writes held to active.json. It takes over the Hold of the same command, because nobody knows whether that one
// is alive; if it is, its Check fails from then on. The error is ErrBusy if a round is being fetched or another command
// holds active.json.
func TakeHold(ctx context.Context, b store.Bucket, held *manifest.Active) (*Hold, error) {
	v, err := toTake(ctx, b, held)
	if err != nil {
		return nil, err
	}
	mine, err := manifest.Swap(ctx, b, layout.Active(), held, v)
	if errors.Is(err, store.ErrConflict) {
		return nil, fmt.Errorf("%s: another command claimed active.json at the same time: run this command again: %w", b, ErrBusy)
	}
	if err != nil {
		return nil, err
	}
	return &Hold{b, held, mine}, nil
}

// toTake returns the version of active.json that TakeHold replaces.
func toTake(ctx context.Context, b store.Bucket, held *manifest.Active) (store.Version, error) {
	a, v, err := ledger.LoadActive(ctx, b, "YYYY-MM")
	switch {
	case errors.Is(err, store.ErrNotFound):
		return "", nil
	case err != nil || a.Done || holder(a) == holder(held):
		return v, err
	case holder(a) != "":
		return "", busyHeld(b, a)
	}
	l, err := ledger.OfActive(ctx, b, a, a.Crawl)
	if err == nil && l.Newest(manifest.EntrySealed, a.Round) == nil {
		err = fmt.Errorf("%s: nothing is changed while rounds are unfinished: round %d of %s is being fetched: wait until it is done, or finish it with `crawlbatch run --month %s`: %w", b, a.Round, a.Crawl, a.Crawl, ErrBusy)
	}
	return v, err
}

// HoldForQuarantine claims active.json for `verify --quarantine --yes` of a crawl. round is the newest sealed one, or 0.
func HoldForQuarantine(ctx context.Context, b store.Bucket, crawl string, round int, w ledger.Writer) (*Hold, error) {
	return TakeHold(ctx, b, &manifest.Active{
		Header: manifest.Header{Version: w.Version}, Crawl: crawl, Round: round, Nonce: holdQuarantine + "-" + w.Clock.Now().UTC().Format(time.RFC3339Nano),
	})
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
		err = fmt.Errorf("%s: another command has taken over from this %s: run it again when that one has ended: %w", h.bucket, holder(h.active), ErrBusy)
	}
	return err
}
