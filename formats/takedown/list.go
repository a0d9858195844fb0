package takedown

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
)

// ErrKey means that the secret key of the store's list is missing or another.
var ErrKey = errors.New("the list of takedowns needs its secret key, store.takedown_key")

// MinKey is the length of the shortest secret key, in bytes. A shorter one can be guessed, and with it
// the names.
const MinKey = 16

// The kinds of names in a list. The same name has another digest as another kind.
const (
	kindCheck  = "check"
	kindDomain = "domain"
	kindHost   = "host"
	kindURL    = "url"
)

// Key is the secret key of a store's list.
type Key struct{ secret []byte }

// NewKey returns a Key. The error wraps ErrKey if the secret is empty or too short. No error quotes a
// secret.
func NewKey(secret string) (Key, error) {
	if len(secret) < MinKey {
		has := fmt.Sprintf("it has %d bytes", len(secret))
		if secret == "" {
			has = "it is not set"
		}
		return Key{}, fmt.Errorf("%w: %s, but at least %d bytes are needed, such as those that `openssl rand -hex 32` prints: give a --config with `store: {takedown_key: \"${TAKEDOWN_KEY}\"}`", ErrKey, has, MinKey)
	}
	return Key{[]byte(secret)}, nil
}

// digest returns the HMAC-SHA256 of a name. Of its 32 bytes, 24 are kept.
func (k Key) digest(kind, name string) string {
	h := hmac.New(sha256.New, k.secret)
	h.Write([]byte("crawlbatch takedown 1\x00" + kind + "\x00" + name))
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:24])
}

// Digests returns the digests of the Matcher's names for the store's list.
func (m *Matcher) Digests(k Key) manifest.Takedown {
	of := func(kind string, names map[string]struct{}) (out []string) {
		for n := range names {
			out = append(out, k.digest(kind, n))
		}
		slices.Sort(out)
		return out
	}
	return manifest.Takedown{Domains: of(kindDomain, m.domains), URLs: of(kindURL, m.urls), Hosts: of(kindHost, m.urlHosts)}
}

// Append adds a takedown to the store's list. The digests come from Matcher.Digests. If the newest
// entry with the same digests has the same reason, Append changes this entry, so a command that is
// given again adds no other. The error wraps ErrKey if the list was made with another key, and ErrTarget
// if the reason names a target.
func Append(ctx context.Context, b store.Bucket, k Key, m *Matcher, entry manifest.Takedown) error {
	if m.Mentions([]byte(entry.Reason)) {
		return fmt.Errorf("the reason %w: it names a target, and the store would keep it", ErrTarget)
	}
	d := m.Digests(k)
	entry.Domains, entry.URLs, entry.Hosts = d.Domains, d.URLs, d.Hosts
	for {
		list, version, err := read(ctx, b)
		if err != nil {
			return err
		}
		if list == nil {
			list = &manifest.Takedowns{Check: k.digest(kindCheck, "")}
		}
		if err := k.opens(list); err != nil {
			return err
		}
		same := slices.IndexFunc(list.Entries, func(e manifest.Takedown) bool { return sameTakedown(e, entry) })
		switch {
		case same < 0:
			list.Entries = append(list.Entries, entry)
		case len(entry.Counts) == 0, equalCounts(list.Entries[same], entry): // a repeated command without counts keeps those of the first
			return nil
		default:
			entry.At = list.Entries[same].At // the first call counts
			list.Entries[same] = entry
		}
		if _, err = manifest.Swap(ctx, b, layout.Takedowns(), list, version); !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
}

// Carry adds the entries of another store's list that the store's list lacks, and returns their number. The error wraps
// ErrKey if one of the lists was made with another key. Without apply, Carry only counts.
func Carry(ctx context.Context, b store.Bucket, k Key, from *manifest.Takedowns, apply bool) (int, error) {
	if err := k.opens(from); err != nil {
		return 0, fmt.Errorf("the list to carry over: %w", err)
	}
	for {
		list, version, err := read(ctx, b)
		if err != nil {
			return 0, err
		}
		if list == nil {
			list = &manifest.Takedowns{Check: from.Check}
		}
		if err := k.opens(list); err != nil {
			return 0, err
		}
		added := 0
		for _, e := range from.Entries {
			if !slices.ContainsFunc(list.Entries, func(has manifest.Takedown) bool { return sameTakedown(has, e) && has.At == e.At }) {
				list.Entries = append(list.Entries, e)
				added++
			}
		}
		if added == 0 || !apply {
			return added, nil
		}
		if _, err = manifest.Swap(ctx, b, layout.Takedowns(), list, version); !errors.Is(err, store.ErrConflict) {
			return added, err
		}
	}
}

// sameTakedown reports whether two entries have the same reason and names.
func sameTakedown(a, b manifest.Takedown) bool {
	return a.Reason == b.Reason && slices.Equal(a.Domains, b.Domains) && slices.Equal(a.URLs, b.URLs)
}

func equalCounts(a, b manifest.Takedown) bool { return slices.Equal(a.Counts, b.Counts) }

// read returns the store's list, or nil if there is none.
func read(ctx context.Context, b store.Bucket) (*manifest.Takedowns, store.Version, error) {
	var list manifest.Takedowns
	version, _, err := manifest.Load(ctx, b, layout.Takedowns(), &list)
	if errors.Is(err, store.ErrNotFound) {
		return nil, "", nil
	}
	return &list, version, err
}

// List returns the store's list. Without one, it returns nil.
func List(ctx context.Context, b store.Bucket) (*manifest.Takedowns, error) {
	list, _, err := read(ctx, b)
	return list, err
}

// Count returns the number of takedowns in the store's list.
func Count(ctx context.Context, b store.Bucket) (int, error) {
	list, _, err := read(ctx, b)
	if err != nil || list == nil {
		return 0, err
	}
	return len(list.Entries), nil
}

// opens returns an error if the list was made with another key.
func (k Key) opens(list *manifest.Takedowns) error {
	if !hmac.Equal([]byte(list.Check), []byte(k.digest(kindCheck, ""))) {
		return fmt.Errorf("%w: store.takedown_key is not the key with which %q was begun", ErrKey, layout.Takedowns())
	}
	return nil
}

// Open returns the Guard of the store's list. Without a list, the Guard is nil and the secret may be
// empty. If there is a list, the error wraps ErrKey if the secret is not that of the list, and says what
// to set.
func Open(ctx context.Context, b store.Bucket, secret string) (*Guard, error) {
	list, _, err := read(ctx, b)
	if err != nil || list == nil {
		return nil, err
	}
	if secret == "" {
		return nil, fmt.Errorf("%w: set store.takedown_key to \"${TAKEDOWN_KEY}\", and TAKEDOWN_KEY in the environment of every process (of pods: with kubernetes.env_from_secrets)", ErrKey)
	}
	k, err := NewKey(secret)
	if err == nil {
		err = k.opens(list)
	}
	if err != nil {
		return nil, err
	}
	return newGuard(k, list), nil
}
