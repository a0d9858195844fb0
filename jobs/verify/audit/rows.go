package audit

import (
	"context"
	"errors"
	"iter"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/urlfilter"
	"crawlbatch.io/crawlbatch/formats/warc"
	"crawlbatch.io/crawlbatch/stages"
)

// SortMemory is what a check sorts in memory before it spills to disk, in bytes.
const SortMemory = 16 << 20

// IsFault reports whether an error says that stored data is damaged or missing. Any other
// error says that the audit cannot be done.
func IsFault(err error) bool {
	_, damaged := errors.AsType[*warc.DamageError](err)
	for _, fault := range []error{store.ErrNotFound, store.ErrTooLarge, store.ErrKey, manifest.ErrCorrupt, manifest.ErrNewer, table.ErrCorrupt, urlfilter.ErrCorrupt} {
		damaged = damaged || errors.Is(err, fault)
	}
	return damaged
}

// Fault reports an unreadable object as a violation, once a check, and returns nil; it
// returns an error that is not about the data. Steps do not report again what was found
// unreadable before they ran.
func (a *Audit) Fault(err error, c Check, round int, key string) error {
	if !IsFault(err) {
		return err
	}
	if a.Broken(key) || !a.FirstTime(c, key) {
		return nil
	}
	a.setBroken(key)
	a.Wrong(c, round, At{Object: key}, "it cannot be read: %v", err)
	return nil
}

// Files lists the files with a partition's rows of a dataset (for captures: of one subset,
// or of all if it is empty). They come from the last stage that has a result: published
// files, or else segments. sorted reports whether the rows are in the dataset's order.
func (r *Round) Files(dataset, subset string, n int) (files []manifest.File, sorted bool) {
	for _, stage := range []stages.Stage{stages.Publish, stages.Merge, stages.Fetch} {
		if stage == stages.Publish && dataset != stages.FilePages || r.Results[stage][n] == nil {
			continue
		}
		for _, f := range r.Results[stage][n].FilesOf(dataset) {
			if subset == "" || f.Subset == subset {
				files = append(files, f)
			}
		}
		return files, stage != stages.Fetch
	}
	return nil, false
}

// Keys returns the keys of files.
func Keys(files []manifest.File) []string {
	var keys []string
	for _, f := range files {
		keys = append(keys, f.Key)
	}
	return keys
}

// unreadable wraps the error of one object with its key.
type unreadable struct {
	key string
	error
}

func (u unreadable) Unwrap() error { return u.error }

// Concat is table.Concat whose errors name the object for Skip.
func Concat[T any](ctx context.Context, a *Audit, keys []string) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, key := range keys {
			for row, err := range table.Concat[T](ctx, a.Bucket, []string{key}) {
				if err != nil {
					yield(row, unreadable{key, err})
					return
				}
				if !yield(row, nil) {
					return
				}
			}
		}
	}
}

// Skip turns an error of Concat into a violation of the check if the data is at fault: the
// check then skips what depends on that object.
func (a *Audit) Skip(err error, c Check, r *Round) error {
	u, ok := errors.AsType[unreadable](err)
	if !ok {
		return err
	}
	return a.Fault(u.error, c, r.Number, u.key)
}

// SortRows reads the rows of objects into a sorter, which the caller closes.
func SortRows[T any](ctx context.Context, a *Audit, keys []string, compare func(x, y *T) int) (*table.Sorter[T], error) {
	s, err := table.NewSorter(a.Scratch, compare, SortMemory)
	if err != nil {
		return nil, err
	}
	for row, err := range Concat[T](ctx, a, keys) {
		if err == nil {
			err = s.Add(&row)
		}
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	return s, nil
}

// InOrder yields a partition's rows of a dataset in its order: it sorts segments, which are
// not in order. close ends the iteration.
func InOrder[T any](ctx context.Context, a *Audit, keys []string, sorted bool, compare func(x, y *T) int) (rows iter.Seq2[T, error], closeRows func(), err error) {
	if sorted {
		return Concat[T](ctx, a, keys), func() {}, nil
	}
	s, err := SortRows(ctx, a, keys, compare)
	if err != nil {
		return nil, nil, err
	}
	return s.Sorted(ctx), func() { _ = s.Close() }, nil // scratch
}
