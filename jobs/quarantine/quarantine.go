// Package quarantine moves objects out of the folders that query engines read. A move copies the
// object, compares the copy's digest, and then deletes the object, so that no byte is lost.
//
// The package takes a bucket and keys, and stores copies under quarantine/. The key of a copy ends
// in the object's key. No command reads or deletes the copies. The user deletes them when they are
// not needed. A second Move finishes a move that was interrupted. The package imports formats only.
package quarantine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
)

// ErrBusy means that a fetch stage runs in the store.
var ErrBusy = errors.New("a fetch stage runs in this store")

// Most is the largest number of copies of objects that had the same key. Contents that were copied
// before get no second copy.
const Most = 100

// readBuffer is the number of bytes that a read takes from an object.
const readBuffer = 4 << 20

// Move moves an object, and returns the key of its copy. A missing object is not an error.
func Move(ctx context.Context, b store.Bucket, key string) (to string, err error) {
	if to, err = Copy(ctx, b, key); err != nil || to == "" {
		return "", err
	}
	if err := b.Delete(ctx, key); err != nil {
		return "", fmt.Errorf("move %q to quarantine: %w", key, err)
	}
	return to, nil
}

// Copy copies an object, and returns the key of the copy, or "" for a missing object. A caller that
// wants to replace the object calls Copy and then swaps the object. If it called Move, it could
// delete an object that another process has just written.
func Copy(ctx context.Context, b store.Bucket, key string) (to string, err error) {
	o, err := b.Open(ctx, key)
	if errors.Is(err, store.ErrNotFound) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("move to quarantine: %w", err)
	}
	to, err = keep(ctx, b, key, o)
	if err = errors.Join(err, o.Close()); err != nil {
		return "", fmt.Errorf("move %q to quarantine: %w", key, err)
	}
	return to, nil
}

// keep copies an object and checks the copy.
func keep(ctx context.Context, b store.Bucket, key string, o store.Object) (to string, err error) {
	want, err := digest(o)
	if err != nil {
		return "", err
	}
	for n := 1; ; n++ {
		to = layout.Quarantined(key, n)
		_, err := b.Create(ctx, to, o, o.Size())
		if err == nil {
			break
		}
		if !errors.Is(err, store.ErrExists) || n == Most {
			return "", err
		}
	}
	c, err := b.Open(ctx, to)
	if err != nil {
		return "", err
	}
	got, err := digest(c)
	if err = errors.Join(err, c.Close()); err != nil {
		return "", err
	}
	if got != want {
		return "", fmt.Errorf("the copy %q has SHA-256 %s, the object has %s: nothing was deleted", to, got, want)
	}
	return to, nil
}

// digest returns the hex SHA-256 of an object.
func digest(o store.Object) (string, error) {
	h := sha256.New()
	_, err := io.CopyBuffer(struct{ io.Writer }{h}, io.NewSectionReader(o, 0, o.Size()), make([]byte, min(readBuffer, o.Size()+1)))
	return hex.EncodeToString(h.Sum(nil)), err
}

// Hold claims active.json for a round of a crawl. Until the caller calls release, no fetch stage can
// begin. The caller calls release at most one time. The error is ErrBusy if a fetch stage already
// runs, even one of this crawl. If the process dies before it calls release, the next `run` of the
// crawl takes active.json over.
func Hold(ctx context.Context, b store.Bucket, crawl string, round int, version string, now time.Time) (release func(context.Context) error, err error) {
	var a manifest.Active
	v, _, err := manifest.Load(ctx, b, layout.Active(), &a)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	if err == nil && !a.Done && a.Takedown {
		return nil, fmt.Errorf("%s: `crawlbatch takedown --apply` changes objects, or was interrupted: wait until it is done, or continue it with `crawlbatch takedown --resume`: %w", b, ErrBusy)
	}
	if err == nil && !a.Done && a.Prune {
		return nil, fmt.Errorf("%s: `crawlbatch prune --apply` deletes old objects, or was interrupted: wait until it is done, or run it again: %w", b, ErrBusy)
	}
	if err == nil && !a.Done {
		return nil, fmt.Errorf("%s: crawl %s round %d is being fetched: wait until it is done, or finish it with `crawlbatch run --month %s`: %w", b, a.Crawl, a.Round, a.Crawl, ErrBusy)
	}
	held := &manifest.Active{Header: manifest.Header{Version: version}, Crawl: crawl, Round: round, Nonce: "quarantine-" + now.UTC().Format(time.RFC3339Nano)}
	mine, err := manifest.Swap(ctx, b, layout.Active(), held, v)
	if errors.Is(err, store.ErrConflict) {
		return nil, fmt.Errorf("%s: another command claimed active.json at the same time: run this command again: %w", b, ErrBusy)
	}
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		held.Done, held.Nonce = true, held.Nonce+"-done"
		_, err := manifest.Swap(ctx, b, layout.Active(), held, mine)
		if errors.Is(err, store.ErrConflict) {
			return nil // a fetch stage of the round has taken active.json over
		}
		return err
	}, nil
}
