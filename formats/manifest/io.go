package manifest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"crawlbatch.io/crawlbatch/formats/store"
)

// Load reads the document under key into d. It returns the object's version and the SHA-256 of its
// bytes, in hex. The error wraps store.ErrNotFound if the document is missing, ErrFormat if it has
// another format, and ErrCorrupt if it is damaged.
func Load(ctx context.Context, b store.Bucket, key string, d Document) (store.Version, string, error) {
	body, version, err := b.Get(ctx, key, int64(limitOf(d)))
	if err != nil {
		return "", "", fmt.Errorf("load %s: %w", d.kind(), err)
	}
	if err := Decode(key, body, d); err != nil {
		return "", "", fmt.Errorf("load %s: %w", d.kind(), err)
	}
	return version, Digest(body), nil
}

// LoadAnyFormat reads the document under key into d, whatever its format is, and returns its header. It ignores fields that
// d lacks, and fields that another format lacks have the zero value. It is only for the few facts that a new store
// takes over from an old one. The error wraps store.ErrNotFound if the document is missing, and ErrCorrupt if it is damaged.
func LoadAnyFormat(ctx context.Context, b store.Bucket, key string, d Document) (Header, error) {
	body, _, err := b.Get(ctx, key, int64(limitOf(d)))
	if err != nil {
		return Header{}, fmt.Errorf("load %s: %w", d.kind(), err)
	}
	err = json.Unmarshal(body, d)
	if h := d.header(); err != nil || h.Format <= 0 || h.Kind != d.kind() {
		return Header{}, fmt.Errorf("load %s: %q: %w", d.kind(), key, ErrCorrupt)
	}
	return *d.header(), nil
}

// Create writes a document that is never replaced, and returns its SHA-256 in hex. If key already
// holds a different document, the error wraps store.ErrExists.
func Create(ctx context.Context, b store.Bucket, key string, d Document) (string, error) {
	body, err := Encode(d)
	if err != nil {
		return "", err
	}
	if _, err := store.CreateBytes(ctx, b, key, body); err != nil {
		return "", fmt.Errorf("create %s: %w", d.kind(), err)
	}
	return Digest(body), nil
}

// Swap writes the document d if the stored document still has the version old.
func Swap(ctx context.Context, b store.Bucket, key string, d Document, old store.Version) (store.Version, error) {
	body, err := Encode(d)
	if err != nil {
		return "", err
	}
	v, err := store.SwapBytes(ctx, b, key, body, old)
	if err != nil {
		return "", fmt.Errorf("swap %s: %w", d.kind(), err)
	}
	return v, nil
}

// Exists reports whether an object exists under key.
func Exists(ctx context.Context, b store.Bucket, key string) (bool, error) {
	_, _, err := b.Get(ctx, key, maxListBytes)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// Digest returns the SHA-256 of body in hex.
func Digest(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}
