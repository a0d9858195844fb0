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

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/store"
)

// Most is the largest number of copies of objects that had the same key. Contents that were copied
// before get no second copy.
const Most = 100

// readBuffer is the number of bytes that a read takes from an object.
const readBuffer = 4 << 20

// Move moves an object, and returns the key of its copy. A missing object is not an error. Before Move deletes the
// object, it calls each function of may, which returns an error if the caller has lost the right to delete.
func Move(ctx context.Context, b store.Bucket, key string, may ...func(context.Context) error) (to string, err error) {
	if to, err = Copy(ctx, b, key); err != nil || to == "" {
		return "", err
	}
	for _, check := range may {
		if err := check(ctx); err != nil {
			return "", fmt.Errorf("%q stays: %w", key, err)
		}
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
