// Package external reads the documents of external WARC files as a source of a plan.
//
// The input is a store and the names of its WARC files, or of WACZ files with WARC files inside. The output is an
// entry for each response, with the place of its record, for each revisit whose payload is in these files, with the
// places of both records, and an entry with the reason for each response, revisit or file that cannot be read.
// Nothing is passed over in silence except records that are not HTTP responses. Package external imports formats
// packages and package source.
package external

import (
	"bytes"
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
	"os"
	"runtime"
	"strconv"
	"strings"

	"crawlbatch.io/crawlbatch/formats/mediatype"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/takedown"
	"crawlbatch.io/crawlbatch/formats/warc"
	"crawlbatch.io/crawlbatch/planner/source"
)

// WARC returns the source of the documents in external WARC files. files lists keys of the store b.
// For each response, the source yields an entry with the place of its record. For each response record
// without a whole response, and each file in another format, it yields an entry with the reason. It skips
// requests, metadata, robots.txt files, and responses of protocols other than HTTP. Entries come in the order
// of files and records. After them come the entries of revisits.
func WARC(b store.Bucket, name string, files []string, o Options) source.Source {
	return &warcFiles{bucket: b, name: name, files: files, opt: o}
}

// Options configure a source. The zero value is valid.
type Options struct {
	// Scratch is a directory for the index of captures, by which the source resolves revisits. "" is the system's
	// directory for temporary files.
	Scratch string
	// Gone recognizes URLs that were taken down. No other URL gets their payloads. A nil Gone recognizes none.
	Gone *takedown.Guard
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
	opt    Options
}

func (w *warcFiles) Name() string { return w.name }

// warcBatch is the number of entries that a reader of a WARC file passes on in one batch.
const warcBatch = 256

// readEntries is a batch of records from one file. A batch with an err is the last batch of its
// file.
type readEntries struct {
	found []found
	err   error
}

// found is what the source makes of a record: an entry, except of a revisit, and what the index holds of it.
type found struct {
	entry source.Entry // without a URL: none
	index *indexed     // nil: nothing
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
				records := make(chan readEntries, 4)
				select {
				case files <- records:
				case <-ctx.Done():
					return
				}
				go w.read(ctx, key, records)
			}
		}()
		x, err := newIndex(cmp.Or(w.opt.Scratch, os.TempDir()))
		if err != nil {
			yield(source.Entry{}, err)
			return
		}
		defer x.close()
		some, n := false, 0 // n is the number of the file
		for records := range files {
			for part := range records {
				some = some || len(part.found) > 0
				for _, f := range part.found {
					if f.index != nil {
						if err := x.add(f.index, n); err != nil {
							yield(source.Entry{}, err)
							return
						}
					}
					if f.entry.URL != "" && !yield(f.entry, nil) {
						return
					}
				}
				if part.err != nil {
					yield(source.Entry{}, fmt.Errorf("source %q: %w", w.name, part.err))
					return
				}
			}
			n++
		}
		switch {
		case ctx.Err() != nil:
			yield(source.Entry{}, ctx.Err())
			return
		case !some:
			yield(source.Entry{}, fmt.Errorf("source %q: its %d WARC files hold no HTTP response: %w", w.name, len(w.files), source.ErrEmpty))
			return
		}
		err = x.resolve(ctx, func(r *revisit, payload *captured, why string) error {
			if !yield(r.entry(w.files, payload, why), nil) {
				return errStop
			}
			return nil
		})
		if err != nil && !errors.Is(err, errStop) {
			yield(source.Entry{}, fmt.Errorf("source %q: %w", w.name, err))
		}
	}
}

// read reads one file to its end.
func (w *warcFiles) read(ctx context.Context, key string, out chan<- readEntries) {
	defer close(out)
	var batch []found
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
	parts, broken, err := partsOf(in, key, obj.Size())
	if err != nil {
		send(fmt.Errorf("%q: %w", key, err))
		return
	}
	for _, why := range broken {
		if batch = append(batch, found{entry: brokenEntry(key, key, 1, why)}); len(batch) == warcBatch && !send(nil) {
			return
		}
	}
	r := warc.NewReader(nil, warc.ReaderOptions{})
	n := int64(0) // number of the record in the file
	for _, part := range parts {
		r.Reset(io.NewSectionReader(in, part.offset, part.size), part.offset)
		for {
			n++
			f, ok, err := w.next(r, key, n)
			if err == io.EOF {
				n--
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
			if batch = append(batch, f); len(batch) == warcBatch && !send(nil) {
				return
			}
		}
	}
	send(nil)
}

// partsOf returns the stretches of a file that are WARC: the whole file, or members of a WACZ file. Each text
// of broken says why the file, or a part of it, is not read.
func partsOf(in io.ReaderAt, key string, size int64) (parts []member, broken []string, err error) {
	if why := Refused(key); why != "" {
		return nil, []string{why}, nil
	}
	head := make([]byte, min(size, 4<<10))
	if n, err := in.ReadAt(head, 0); n < len(head) {
		return nil, nil, err
	}
	if why := refusedContent(head); why != "" {
		return nil, []string{why}, nil
	}
	if bytes.HasPrefix(head, magicZip) {
		return members(in, size)
	}
	return []member{{size: size}}, nil, nil
}

// brokenEntry returns an entry that refuses record n of a file, or the whole file.
func brokenEntry(text, key string, n int64, why string) source.Entry {
	if text == "" {
		text = "a record without a URL"
	}
	return source.Entry{URL: text[:min(len(text), source.MaxURL)], File: key, Line: n, Due: true, Listed: true, Broken: why}
}

// next reads the next record, record n of a file. It returns false if the record is not a response.
func (w *warcFiles) next(r *warc.Reader, key string, n int64) (f found, ok bool, err error) {
	broken := func(text, why string) (found, bool, error) {
		return found{entry: brokenEntry(text, key, n, why)}, true, nil
	}
	var target, partial string
	var status int
	var s warc.Summary
	rec, err := r.Next()
	if err == nil {
		if !isResponse(rec) {
			return found{}, false, nil
		}
		target = rec.TargetURI()
		if rec.Type != warc.Continuation {
			status, partial = statusOf(rec)
		}
		s, err = rec.Finish()
	}
	if damage, ok := errors.AsType[*warc.DamageError](err); ok {
		return broken(target, damage.Error())
	}
	if err != nil {
		return found{}, false, err
	}
	at, err := rec.Date()
	if err != nil {
		return broken(target, err.Error())
	}
	why := refusedRecord(rec, &s, partial)
	if why != "" {
		f.entry = brokenEntry(target, key, n, why)
	}
	if rec.Type == warc.Continuation || why != "" && rec.Type == warc.Revisit {
		return f, true, nil
	}
	f.index = newIndexed(rec, &s, at, status, n, why == "" && (rec.Type == warc.Revisit || !w.opt.Gone.URL(target)))
	if why == "" && rec.Type == warc.Response {
		f.entry = source.Entry{
			URL: target, File: key, Line: n, Due: true, Listed: true, Priority: source.DefaultPriority,
			Content: source.Content{At: schema.TimeOf(at), Filename: key, Offset: int32(s.Offset), Length: int32(s.Length)},
		}
	}
	return f, true, nil
}

// refusedRecord says why a response or revisit cannot be read alone and whole, or "".
func refusedRecord(rec *warc.Entry, s *warc.Summary, partial string) string {
	switch {
	case rec.Type == warc.Continuation || rec.Header.Get(warc.FieldSegmentNumber) != "":
		return fmt.Sprintf("the record at %d is only a segment of a response (%s %.20q): crawlbatch does not join segments, so give it a record with the whole response", s.Offset, warc.FieldSegmentNumber, rec.Header.Get(warc.FieldSegmentNumber))
	case partial != "":
		return fmt.Sprintf("the record at %d holds only a part of the document (%s): give a record with the whole document", s.Offset, partial)
	case s.Length == 0:
		return fmt.Sprintf("the record at %d shares its gzip member with others, so that it cannot be read alone: %s", s.Offset, adviseMembers)
	case s.Offset > math.MaxInt32 || s.Length > math.MaxInt32:
		return fmt.Sprintf("the %d bytes at %d lie beyond the first 2 GiB of their file", s.Length, s.Offset)
	}
	return ""
}

// statusOf returns the status of a response, or 0 if it has no HTTP head. partial is the status and range of a
// response that does not have the whole document (RFC 9110, section 15.3.7), or "" for other responses.
func statusOf(rec io.Reader) (status int, partial string) {
	head := make([]byte, 4<<10)
	n, _ := io.ReadFull(rec, head) // an error comes back at the end of the record
	line, rest, _ := bytes.Cut(head[:n], []byte("\n"))
	words := bytes.Fields(line)
	if len(words) < 2 || !bytes.HasPrefix(words[0], []byte("HTTP/")) {
		return 0, ""
	}
	if status, _ = strconv.Atoi(string(words[1])); status != 206 {
		return status, ""
	}
	for line := range bytes.Lines(rest) {
		name, value, _ := bytes.Cut(bytes.TrimSpace(line), []byte(":"))
		if len(name) == 0 {
			break
		}
		if !bytes.EqualFold(bytes.TrimSpace(name), []byte("Content-Range")) {
			continue
		}
		var first, last, total int64
		value = bytes.TrimSpace(value)
		if _, err := fmt.Sscanf(string(value), "bytes %d-%d/%d", &first, &last, &total); err == nil && first == 0 && last == total-1 {
			return status, ""
		}
		return status, fmt.Sprintf("status 206, %.60q", value)
	}
	return status, "status 206"
}

// isResponse reports whether a record holds the response to an HTTP request, or a segment of one.
func isResponse(rec *warc.Entry) bool {
	if rec.Type != warc.Response && rec.Type != warc.Revisit && rec.Type != warc.Continuation {
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
