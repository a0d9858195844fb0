package publish

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table"
)

// The bounds of a manifest. A manifest has at most about 2 MiB.
const (
	manifestFiles  = 8192
	manifestBlocks = 1 << 20 // bytes of the digests of blocks, in base 64
)

// listedFile is a row of a manifest: a manifest.File and the file's reduce bucket, which is
// manifest.NoBucket for a file without one.
type listedFile struct {
	Dataset string `parquet:"dataset,dict"`
	Subset  string `parquet:"subset,optional,dict"`
	Bucket  int32  `parquet:"bucket"`
	Key     string `parquet:"key,delta"`
	Bytes   int64  `parquet:"bytes"`
	Rows    int64  `parquet:"rows"`
	SHA256  string `parquet:"sha256"`
	Blocks  string `parquet:"blocks,optional"`
}

// compareFiles orders files for manifests. The files of bucket tasks come before the files of
// partition tasks. A task of a later round mostly reads the files of one bucket: few manifests list them.
func compareFiles(a, b sealedFile) int {
	if a.mapped != b.mapped {
		if b.mapped {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(a.bucket, b.bucket), strings.Compare(a.Key, b.Key))
}

// cutManifest returns the number of files, at least 1, that the next manifest lists.
func cutManifest(files []sealedFile) int {
	blocks := 0
	for n := range files {
		if blocks += len(files[n].Blocks); n == manifestFiles || n > 0 && blocks > manifestBlocks {
			return n
		}
	}
	return len(files)
}

// encodeManifest makes the n-th manifest of a round.
func encodeManifest(p *manifest.Plan, n int, files []sealedFile) (l manifest.FileList, body []byte, err error) {
	var out bytes.Buffer
	w, err := table.NewWriterTo[listedFile](&out)
	if err != nil {
		return l, nil, err
	}
	defer w.Abort()
	l.FirstBucket, l.LastBucket = files[0].bucket, files[0].bucket
	datasets := map[string]bool{}
	for _, f := range files {
		err := w.Append(&listedFile{f.Dataset, f.Subset, int32(f.bucket), f.Key, f.Bytes, f.Rows, f.SHA256, f.Blocks})
		if err != nil {
			return l, nil, err
		}
		l.FirstBucket, l.LastBucket = min(l.FirstBucket, f.bucket), max(l.LastBucket, f.bucket)
		datasets[f.Dataset] = true
	}
	l.Datasets = slices.Sorted(maps.Keys(datasets))
	local, err := w.Close()
	if err != nil {
		return l, nil, err
	}
	l.File = local.File("manifest", layout.FileList(p.Crawl, p.Round, n, local.SHA256))
	return l, out.Bytes(), nil
}

// ReadManifest returns those files in a manifest for which keep returns true. b must check the
// manifest's digest (see manifest.Checked).
func ReadManifest(ctx context.Context, b store.Bucket, l *manifest.FileList, keep func(dataset string, bucket int) bool) (files []manifest.File, err error) {
	r, err := table.Open[listedFile](ctx, b, l.Key)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	names := map[string]string{} // equal names of datasets share memory
	for _, name := range l.Datasets {
		names[name] = name
	}
	for f, err := range r.All(ctx) {
		if err != nil {
			return nil, err
		}
		dataset, listed := names[f.Dataset]
		bucket := int(f.Bucket)
		if !listed || bucket < l.FirstBucket || bucket > l.LastBucket {
			return nil, fmt.Errorf("%q lists %q, a file of %s in bucket %d, which contradicts the seal: %w", l.Key, f.Key, f.Dataset, bucket, manifest.ErrCorrupt)
		}
		if keep(dataset, bucket) {
			files = append(files, manifest.File{Dataset: dataset, Subset: f.Subset, Key: f.Key, Bytes: f.Bytes, Rows: f.Rows, SHA256: f.SHA256, Blocks: f.Blocks})
		}
	}
	return files, nil
}
