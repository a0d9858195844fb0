package audit

import (
	"cmp"
	"context"
	"errors"
	"iter"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/urlfilter"
	"crawlbatch.io/crawlbatch/formats/warc"
	"crawlbatch.io/crawlbatch/jobs/ledger"
)

// SortMemory is the number of bytes that a check sorts in memory before it writes to disk.
const SortMemory = 16 << 20

// IsFault reports whether an error means that stored data is damaged or missing. After any other
// error, the audit cannot continue.
func IsFault(err error) bool {
	_, damaged := errors.AsType[*warc.DamageError](err)
	for _, fault := range []error{store.ErrNotFound, store.ErrTooLarge, store.ErrKey, manifest.ErrCorrupt, manifest.ErrChanged, manifest.ErrFormat, table.ErrCorrupt, urlfilter.ErrCorrupt, ledger.ErrLost} {
		damaged = damaged || errors.Is(err, fault)
	}
	return damaged
}

// Fault reports an unreadable object as a violation, once for each check, and returns nil. It does not
// report objects that were found unreadable before the steps ran. If the error is not about the data,
// Fault returns the error.
func (a *Audit) Fault(err error, c Check, round int, key string) error {
	if !IsFault(err) {
		return err
	}
	if a.Broken(key) {
		return nil
	}
	a.WrongOnce(c, key, round, At{Object: key}, "it cannot be read: %v", err)
	a.setBroken(key)
	return nil
}

// Keys returns the keys of files.
func Keys(files []manifest.File) []string {
	var keys []string
	for _, f := range files {
		keys = append(keys, f.Key)
	}
	return keys
}

// unreadable adds an object's key to its error.
type unreadable struct {
	key string
	error
}

func (u unreadable) Unwrap() error { return u.error }

// Concat yields the rows of objects as table.Concat does. The errors also name the object, because
// Skip needs the name.
func Concat[T any](ctx context.Context, a *Audit, keys []string) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, key := range keys {
			for row, err := range table.Concat[T](ctx, a.Bucket, []string{key}) {
				if err != nil {
					err = unreadable{key, err}
				}
				if !yield(row, err) || err != nil {
					return
				}
			}
		}
	}
}

// Merge yields the rows of sorted objects in order, as table.MergeFiles does. Its errors name the object,
// as those of Concat do.
func Merge[T any](ctx context.Context, a *Audit, keys []string, key func(table.Key, *T) table.Key) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for row, err := range table.MergeFiles(ctx, a.Bucket, a.Scratch, keys, key) {
			if err != nil && IsFault(err) { // its text alone says which object it is about, so the objects are read again, one by one
				err = cmp.Or(Each(ctx, a, keys, func(string, *T) error { return nil }), err)
			}
			if !yield(row, err) || err != nil {
				return
			}
		}
	}
}

// Each calls do with each row of the objects, and stops at the first error. The caller
// passes the error to Skip, which handles unreadable objects.
func Each[T any](ctx context.Context, a *Audit, keys []string, do func(key string, row *T) error) error {
	for _, key := range keys {
		for row, err := range Concat[T](ctx, a, []string{key}) {
			if err == nil {
				err = do(key, &row)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// Skip turns an error of Concat into a violation of the check, if the data is at fault. The caller must
// then skip everything that depends on the unreadable object.
func (a *Audit) Skip(err error, c Check, r *Round) error {
	u, ok := errors.AsType[unreadable](err)
	if !ok {
		return err
	}
	return a.Fault(u.error, c, r.Number, u.key)
}

// SortRows reads the rows of objects into a sorter. If keep is not nil, SortRows takes
// only the rows that keep selects. The caller closes the sorter.
func SortRows[T any](ctx context.Context, a *Audit, keys []string, key func(table.Key, *T) table.Key, keep func(*T) bool) (*table.Sorter[T], error) {
	s, err := table.NewSorter(a.Scratch, key, SortMemory)
	if err != nil {
		return nil, err
	}
	for row, err := range Concat[T](ctx, a, keys) {
		if err == nil && (keep == nil || keep(&row)) {
			err = s.Add(&row)
		}
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	return s, nil
}

// InOrder yields a partition's rows of a dataset in the dataset's order. If sorted is false, as for
// segments, InOrder sorts the rows.
func InOrder[T any](ctx context.Context, a *Audit, keys []string, sorted bool, key func(table.Key, *T) table.Key) iter.Seq2[T, error] {
	if sorted {
		return Concat[T](ctx, a, keys)
	}
	return func(yield func(T, error) bool) {
		s, err := SortRows(ctx, a, keys, key, nil)
		if err != nil {
			yield(*new(T), err)
			return
		}
		defer s.Close() //nolint:errcheck // the sorter holds only temporary data
		s.Sorted(ctx)(yield)
	}
}
