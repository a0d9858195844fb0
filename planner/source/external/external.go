// Package external reads the documents of external WARC files as a source of a plan.
//
// The input is a store and the names of its WARC files. The output is an entry for each response, with the place
// of its record. Package external imports formats packages and package source.
package external

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"net/url"
	"runtime"
	"strings"

	"crawlbatch.io/crawlbatch/formats/mediatype"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/warc"
	"crawlbatch.io/crawlbatch/planner/source"
)

// WARC returns the source of the documents in external WARC files. files lists keys of the store b.
// For each response, the source yields an entry with the place of its record. For each unreadable
// response record, it yields an entry with the reason. It skips requests, metadata, robots.txt
// files, and responses of protocols other than HTTP. Entries come in the order of files and records.
func WARC(b store.Bucket, name string, files []string) source.Source {
	return &warcFiles{bucket: b, name: name, files: files}
}

// Digest returns a digest that identifies a list of WARC files.
func Digest(files []string) string {
	sum := sha256.Sum256([]byte(strings.Join(files, "\n")))
	return hex.EncodeToString(sum[:])
}

type warcFiles struct {
	bucket store.Bucket
	name   string
	files  []string
}

func (w *warcFiles) Name() string { return w.name }

// warcBatch is the number of entries that a reader of a WARC file passes on in one batch.
const warcBatch = 256

// readEntries is a batch of entries from one file. A batch with an err is the last batch of its
// file.
type readEntries struct {
	entries []source.Entry
	err     error
}

// Entries implements source.Source and reads several files at a time.
func (w *warcFiles) Entries(ctx context.Context) iter.Seq2[source.Entry, error] {
	return func(yield func(source.Entry, error) bool) {
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		files := make(chan chan readEntries, runtime.GOMAXPROCS(0)-1) // one channel for each file that is being read, in the order of the files
		go func() {
			defer close(files)
			for _, key := range w.files {
				found := make(chan readEntries, 4)
				select {
				case files <- found:
				case <-ctx.Done():
					return
				}
				go w.read(ctx, key, found)
			}
		}()
		some := false
		for found := range files {
			for part := range found {
				for _, e := range part.entries {
					some = true
					if !yield(e, nil) {
						return
					}
				}
				if part.err != nil {
					yield(source.Entry{}, fmt.Errorf("source %q: %w", w.name, part.err))
					return
				}
			}
		}
		switch {
		case ctx.Err() != nil:
			yield(source.Entry{}, ctx.Err())
		case !some:
			yield(source.Entry{}, fmt.Errorf("source %q: its %d WARC files hold no HTTP response: %w", w.name, len(w.files), source.ErrEmpty))
		}
	}
}

// read reads one file to its end.
func (w *warcFiles) read(ctx context.Context, key string, out chan<- readEntries) {
	defer close(out)
	var batch []source.Entry
	send := func(err error) bool {
		select {
		case out <- readEntries{batch, err}:
			batch = nil
			return err == nil
		case <-ctx.Done():
			return false
		}
	}
	obj, err := w.bucket.Open(ctx, key)
	if err != nil {
		if errors.Is(err, store.ErrNotFound) {
			err = fmt.Errorf("%w (%w)", source.ErrNoWARC, err)
		}
		send(err)
		return
	}
	defer obj.Close() //nolint:errcheck // the object was only read, so an error of Close does not matter
	in := source.Ahead(obj)
	r := warc.NewReader(io.NewSectionReader(in, 0, obj.Size()), warc.ReaderOptions{})
	for n := int64(1); ; n++ {
		e, ok, err := nextEntry(r, key, n)
		if err == io.EOF {
			break
		}
		if err == nil && ctx.Err() != nil {
			return
		}
		if err != nil {
			send(fmt.Errorf("%q: %w", key, err))
			return
		}
		if !ok {
			continue
		}
		if batch = append(batch, e); len(batch) == warcBatch && !send(nil) {
			return
		}
	}
	send(nil)
}

// nextEntry reads the next record and returns its entry, or false if the record is not a response.
func nextEntry(r *warc.Reader, key string, n int64) (source.Entry, bool, error) {
	broken := func(text, why string) (source.Entry, bool, error) {
		if text == "" {
			text = "a record without a URL"
		}
		return source.Entry{URL: text[:min(len(text), source.MaxURL)], File: key, Line: n, Due: true, Listed: true, Broken: why}, true, nil
	}
	var target string
	var s warc.Summary
	rec, err := r.Next()
	if err == nil {
		if !isResponse(rec) {
			return source.Entry{}, false, nil
		}
		target = rec.TargetURI()
		s, err = rec.Finish()
	}
	if damage, ok := errors.AsType[*warc.DamageError](err); ok {
		return broken(target, damage.Error())
	}
	if err != nil {
		return source.Entry{}, false, err
	}
	at, err := rec.Date()
	switch {
	case err != nil:
		return broken(target, err.Error())
	case rec.Type == warc.Revisit:
		return broken(target, fmt.Sprintf("the record at %d is a revisit, without content: the record %s has it",
			s.Offset, cmp.Or(rec.Header.Get(warc.FieldRefersToURI), rec.Header.Get(warc.FieldRefersTo), "of another capture")))
	case s.Length == 0:
		return broken(target, fmt.Sprintf("the record at %d shares its gzip member with others, so that it cannot be read alone: compress each by itself", s.Offset))
	case s.Offset > math.MaxInt32 || s.Length > math.MaxInt32:
		return broken(target, fmt.Sprintf("the %d bytes at %d lie beyond the first 2 GiB of their file", s.Length, s.Offset))
	}
	return source.Entry{
		URL: target, File: key, Line: n, Due: true, Listed: true, Priority: source.DefaultPriority,
		Content: source.Content{At: schema.TimeOf(at), Filename: key, Offset: int32(s.Offset), Length: int32(s.Length)},
	}, true, nil
}

// isResponse reports whether a record holds the response to an HTTP request.
func isResponse(rec *warc.Entry) bool {
	if rec.Type != warc.Response && rec.Type != warc.Revisit {
		return false
	}
	u, err := url.Parse(rec.TargetURI())
	if err == nil && u.Scheme != "http" && u.Scheme != "https" {
		return false // a record of another protocol, such as dns or ftp
	}
	if err == nil && u.Path == "/robots.txt" && u.RawQuery == "" {
		return false // robots.txt is not a document
	}
	t := mediatype.Essence(rec.Header.Get(warc.FieldContentType))
	return t == "" || t == "application/http"
}
