package verify

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/urlfilter"
	"crawlbatch.io/crawlbatch/formats/warc"
	"crawlbatch.io/crawlbatch/stages"
)

// sortMemory is what a check sorts in memory before it spills to disk, in bytes.
const sortMemory = 16 << 20

// isFault reports whether an error says that data are not as they must be. Any
// other says that the audit cannot be done.
func isFault(err error) bool {
	_, damaged := errors.AsType[*warc.DamageError](err)
	for _, fault := range []error{store.ErrNotFound, store.ErrTooLarge, store.ErrKey, manifest.ErrCorrupt, manifest.ErrNewer, table.ErrCorrupt, urlfilter.ErrCorrupt} {
		damaged = damaged || errors.Is(err, fault)
	}
	return damaged
}

// fault reports an object that could not be read as a violation, once a check, and
// returns nil; an error that is no fault of the data is returned. What documents
// and files are found to be before the other checks run is not reported by those.
func (a *audit) fault(err error, invariant int, check string, round int, key string) error {
	if !isFault(err) {
		return err
	}
	if a.isBroken(key) || !a.once(check, key) {
		return nil
	}
	a.setBroken(key)
	a.report(Violation{Invariant: invariant, Check: check, Round: round, Object: key, Problem: "it cannot be read: " + err.Error()})
	return nil
}

// files lists the files that hold a partition's rows of a dataset (of captures: of
// one subset, or of all where it is empty): those of the last stage that has a
// result, which are published ones, or else segments. sorted says that their rows
// are in the dataset's order.
func (r *round) files(dataset, subset string, n int) (files []manifest.File, sorted bool) {
	for _, stage := range []stages.Stage{stages.Publish, stages.Merge, stages.Fetch} {
		if stage == stages.Publish && dataset != stages.FilePages || r.results[stage][n] == nil {
			continue
		}
		for _, f := range r.results[stage][n].FilesOf(dataset) {
			if subset == "" || f.Subset == subset {
				files = append(files, f)
			}
		}
		return files, stage != stages.Fetch
	}
	return nil, false
}

func keysOf(files []manifest.File) []string {
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

// concat is table.Concat whose errors say which object they are of.
func concat[T any](ctx context.Context, a *audit, keys []string) iter.Seq2[T, error] {
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

// skip turns an error of concat into a violation of the check, if it is a fault of
// the data: what follows from that object is not known.
func (a *audit) skip(err error, invariant int, check string, r *round) error {
	u, ok := errors.AsType[unreadable](err)
	if !ok {
		return err
	}
	return a.fault(u.error, invariant, check, r.number, u.key)
}

// sortRows reads the rows of objects into a sorter, which the caller closes.
func sortRows[T any](ctx context.Context, a *audit, keys []string, compare func(x, y *T) int) (*table.Sorter[T], error) {
	s, err := table.NewSorter(a.Scratch, compare, sortMemory)
	if err != nil {
		return nil, err
	}
	for row, err := range concat[T](ctx, a, keys) {
		if err == nil {
			err = s.Add(&row)
		}
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	return s, nil
}

// quoted is a text as an SQL literal.
func quoted(s string) string {
	out := []byte{'\''}
	for i := range len(s) {
		if s[i] == '\'' {
			out = append(out, '\'')
		}
		out = append(out, s[i])
	}
	return string(append(out, '\''))
}

// urlIs is the SQL condition that a row's URL is the given one.
func urlIs(url string) string { return fmt.Sprintf("url = %s", quoted(url)) }
