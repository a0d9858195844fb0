package roundstate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/publish"
	"crawlbatch.io/crawlbatch/stages/publish/domains"
)

// Selection says which files of sealed rounds a reader needs. The zero value selects all files.
type Selection struct {
	Dataset func(name string) bool // nil: every dataset
	// Bucket is the number of the reader's bucket, and Buckets is the number of buckets in the
	// reader's plan. A file is selected if its bucket overlaps the reader's bucket, or if it has no
	// bucket. If Buckets is 0, every bucket is selected.
	Bucket, Buckets int
}

// overlaps reports whether the selection includes files of the buckets first to last, in a round
// with the given number of buckets. This number may differ from s.Buckets, because any number of
// buckets divides the same hashes into equal ranges.
func (s *Selection) overlaps(first, last, buckets int) bool {
	if s.Buckets == 0 || first == manifest.NoBucket {
		return true
	}
	from, to := urlkey.Overlapping(s.Bucket, s.Buckets, buckets)
	return first <= to && from <= last
}

// datasets returns those datasets of a manifest that the selection includes.
func (s *Selection) datasets(l *manifest.FileList) []string {
	return slices.DeleteFunc(slices.Clone(l.Datasets), func(name string) bool { return s.Dataset != nil && !s.Dataset(name) })
}

// manifestReaders is the number of manifests of a round that WithFiles reads at the same time. A
// manifest takes up to 8 MiB of memory while it is read.
const manifestReaders = 8

// WithFiles returns copies of sealed rounds. The Files of each copy are the selected files, in key order.
// WithFiles reads only the manifests that may list a selected file. If manifests are gone or were changed, the error is the
// ledger.Lost error of the first of them.
func WithFiles(ctx context.Context, b store.Bucket, sealed []*manifest.Sealed, want Selection) ([]*manifest.Sealed, error) {
	out := make([]*manifest.Sealed, len(sealed))
	found, errs := make([][][]manifest.File, len(sealed)), make([][]error, len(sealed))
	var group errgroup.Group
	group.SetLimit(manifestReaders)
	for i, s := range sealed {
		found[i], errs[i] = make([][]manifest.File, len(s.Manifests)), make([]error, len(s.Manifests))
		for n := range s.Manifests {
			l := &s.Manifests[n]
			if want.overlaps(l.FirstBucket, l.LastBucket, s.Buckets) && len(want.datasets(l)) > 0 {
				group.Go(func() error {
					found[i][n], errs[i][n] = readManifest(ctx, b, s, l, want)
					return nil
				})
			}
		}
	}
	_ = group.Wait() // never fails: the errors are in errs, in an order that does not depend on timing
	for i, s := range sealed {
		if err := cmp.Or(errs[i]...); err != nil {
			return nil, err
		}
		if out[i] = s; len(s.Manifests) > 0 {
			filled := *s
			filled.Files = slices.Concat(found[i]...)
			slices.SortFunc(filled.Files, func(a, b manifest.File) int { return strings.Compare(a.Key, b.Key) })
			out[i] = &filled
		}
		found[i] = nil
	}
	return out, nil
}

// EachFile calls each for each file that a seal lists, in the order of the manifests. It holds the files
// of one manifest at a time.
func EachFile(ctx context.Context, b store.Bucket, s *manifest.Sealed, each func(manifest.File)) error {
	files := s.Files
	for i := 0; ; i++ {
		for _, f := range files {
			each(f)
		}
		if i >= len(s.Manifests) {
			return nil
		}
		var err error
		if files, err = readManifest(ctx, b, s, &s.Manifests[i], Selection{}); err != nil {
			return err
		}
	}
}

// readManifest returns those files of a manifest that are selected.
func readManifest(ctx context.Context, b store.Bucket, s *manifest.Sealed, l *manifest.FileList, want Selection) ([]manifest.File, error) {
	checked := manifest.NewChecked(b)
	checked.Add("", l.File)
	wanted := want.datasets(l)
	files, err := publish.ReadManifest(ctx, checked, l, func(dataset string, bucket int) bool {
		return want.overlaps(bucket, bucket, s.Buckets) && slices.Contains(wanted, dataset)
	})
	if missing := errors.Is(err, store.ErrNotFound); missing || errors.Is(err, manifest.ErrChanged) {
		return nil, ledger.LostManifest(s, l.Key, !missing)
	}
	return files, err
}

// HasStates reports whether a dataset holds the states of URLs. Later rounds read such datasets.
func HasStates(dataset string) bool {
	return dataset == stages.FileURLs || dataset == stages.FileURLsBase
}

// earlierFiles selects the files of earlier rounds that a task reads.
func earlierFiles(t stages.Task, p *manifest.Plan) Selection {
	switch t.Stage {
	case stages.Merge:
		if t.Partition < len(p.Partitions) { // the links of pages that answered 304
			return Selection{Dataset: func(d string) bool { return d == stages.FileLinks }, Bucket: p.Partitions[t.Partition].Bucket, Buckets: p.Buckets}
		}
	case stages.Digest, stages.Cluster, stages.Dedup:
		if t.Stage == stages.Dedup && stages.Cluster.Tasks(p) > 0 {
			break
		}
		return Selection{Dataset: func(d string) bool { return d == stages.FileRepresentatives }}
	case stages.Frontier:
		return Selection{Dataset: HasStates, Bucket: t.Partition, Buckets: p.Buckets}
	case stages.Publish:
		if t.Partition < len(p.Partitions) && domains.WrittenBy(p, t.Partition) {
			return Selection{Dataset: func(d string) bool { return d == stages.FileDomains }, Bucket: p.Partitions[t.Partition].Bucket, Buckets: p.Buckets}
		}
	}
	return Selection{Dataset: func(string) bool { return false }}
}

// createManifest creates a manifest under a key that contains the manifest's digest. If an object
// with this key has other contents, it is damaged. No seal names it yet, so the user may remove it.
func createManifest(ctx context.Context, b store.Bucket, f manifest.File, body []byte) error {
	_, err := store.CreateBytes(ctx, b, f.Key, body)
	if errors.Is(err, store.ErrExists) {
		return fmt.Errorf("%q does not have the digest that its name contains, and no seal names it: remove it: %w", f.Key, manifest.ErrCorrupt)
	}
	return err
}
