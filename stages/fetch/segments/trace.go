package segments

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/warc"
	"crawlbatch.io/crawlbatch/stages"
)

// The files of a partition show which checkpoints the partition has had. Each segment file and WARC
// file names the checkpoint that it follows: the last acknowledged checkpoint when the segment was
// finished or the WARC file was begun. A file that no checkpoint lists, because its attempt died,
// follows the last checkpoint or an earlier one.

// followsKey is the name of a metadata entry of Parquet files and of a field of warcinfo records.
// Its value is the position of the checkpoint that the file follows.
const followsKey = "crawlbatch-follows"

// maxInfo limits the warcinfo record that Follows reads, in bytes.
const maxInfo = 64 << 10

// Follows returns the position of the checkpoint that a segment file or WARC file follows. It
// returns false for files that name no checkpoint, such as CDXJ indexes. The
// error comes from the store or wraps table.ErrCorrupt.
func Follows(ctx context.Context, b store.Bucket, key string) (at manifest.Position, ok bool, err error) {
	switch {
	case strings.HasSuffix(key, ".parquet"):
		return tableFollows(ctx, b, key)
	case strings.HasSuffix(key, ".warc.gz"):
		return archiveFollows(ctx, b, key)
	}
	return at, false, nil
}

// tableFollows reads the footer of a segment's table.
func tableFollows(ctx context.Context, b store.Bucket, key string) (at manifest.Position, ok bool, err error) {
	r, err := table.Open[struct {
		URL string `parquet:"url,optional"` // a row type needs a column; this one is not read
	}](ctx, b, key)
	if err != nil {
		return at, false, err
	}
	if value, noted := r.Noted(followsKey); noted {
		at, ok = manifest.ParsePosition(value)
	}
	return at, ok, r.Close()
}

// archiveFollows reads the first record of a WARC file.
func archiveFollows(ctx context.Context, b store.Bucket, key string) (at manifest.Position, ok bool, err error) {
	obj, err := b.Open(ctx, key)
	if err != nil {
		return at, false, err
	}
	defer obj.Close() //nolint:errcheck // only read
	head := make([]byte, min(maxInfo, obj.Size()))
	if n, err := obj.ReadAt(head, 0); err != nil && (err != io.EOF || n < len(head)) {
		return at, false, fmt.Errorf("read %q: %w", key, err)
	}
	e, err := warc.NewReader(bytes.NewReader(head), warc.ReaderOptions{}).Next()
	if err != nil || e.Type != warc.Warcinfo {
		return at, false, fmt.Errorf("%q does not begin with a warcinfo record: %w", key, table.ErrCorrupt)
	}
	for lines := bufio.NewScanner(io.LimitReader(e, maxInfo)); lines.Scan(); {
		if value, found := strings.CutPrefix(lines.Text(), followsKey+": "); found {
			at, ok = manifest.ParsePosition(strings.TrimSpace(value))
		}
	}
	return at, ok, nil
}

// EvidenceOfPutBack looks for objects that show that somebody put back the older checkpoint c. It
// returns a sentence about one of them, or "" if there is none. Files of a single segment after c
// show nothing, because an attempt that died leaves at most one unlisted segment. EvidenceOfPutBack
// lists the partition's files and reads the unlisted files of the last epoch.
//
// If an attempt swaps the checkpoint meanwhile, the caller must call EvidenceOfPutBack again.
func EvidenceOfPutBack(ctx context.Context, b store.Bucket, t stages.Task, c *manifest.Checkpoint) (evidence string, err error) {
	listed := map[string]bool{}
	last := map[int]int{} // number of the last listed segment, by epoch
	for _, f := range c.Files {
		listed[f.Key] = true
		if epoch, number, ok := numbersOf(f.Key); ok && isSegment(f.Key) {
			if n, known := last[epoch]; !known || number > n {
				last[epoch] = number
			}
		}
	}
	var unlisted []string
	read := map[int]bool{} // segments of which a table was read; one is enough
	for _, prefix := range filePrefixes(t, c.Plan) {
		for o, err := range b.List(ctx, prefix) {
			if err != nil {
				return "", fmt.Errorf("list the partition's files: %w", err)
			}
			epoch, number, ok := numbersOf(o.Key)
			if !ok || listed[o.Key] {
				continue
			}
			if epoch > c.Epoch {
				return fmt.Sprintf("%q was written in epoch %d, but the checkpoint is of epoch %d", o.Key, epoch, c.Epoch), nil
			}
			if n, known := last[epoch]; isSegment(o.Key) {
				if next := n + 1; known && number > next || !known && number > 0 {
					return fmt.Sprintf("%q was written after another segment that the checkpoint does not list", o.Key), nil
				}
				if read[number] {
					continue
				}
				read[number] = epoch == c.Epoch
			}
			if epoch == c.Epoch {
				unlisted = append(unlisted, o.Key)
			}
		}
	}
	for _, key := range unlisted {
		at, ok, err := Follows(ctx, b, key)
		switch {
		case errors.Is(err, store.ErrNotFound), errors.Is(err, table.ErrCorrupt):
			continue // the file was deleted after the LIST, or is damaged, so it shows nothing
		case err != nil:
			return "", err
		case ok && at.Compare(c.Position()) > 0:
			return fmt.Sprintf("%q follows checkpoint %v, but the checkpoint found is %v", key, at, c.Position()), nil
		}
	}
	return "", nil
}

// Witness returns the key of an object that shows that the partition has had a checkpoint, or "".
// Attempts create such objects only after the first checkpoint.
func Witness(ctx context.Context, b store.Bucket, t stages.Task, plan string) (key string, err error) {
	taken := layout.Taken(t.Crawl, t.Round, t.Partition)
	if there, err := manifest.Exists(ctx, b, taken); err != nil || there {
		return taken, err
	}
	for _, prefix := range filePrefixes(t, plan) {
		for o, err := range b.List(ctx, prefix) {
			if err != nil {
				return "", fmt.Errorf("list the partition's files: %w", err)
			}
			return o.Key, nil
		}
	}
	return "", nil
}

// filePrefixes returns the key prefixes of a partition's segments and WARC files under a plan.
func filePrefixes(t stages.Task, plan string) []string {
	return []string{layout.WARCs(t.Crawl, t.Round, plan, t.Partition), layout.FetchDir(t.Crawl, t.Round, t.Partition) + "segments/" + plan + "-"}
}

// isSegment reports whether a key names a segment's table.
func isSegment(key string) bool { return strings.HasSuffix(key, ".parquet") }
