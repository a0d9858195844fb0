package planner

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"time"

	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/planner/pack"
)

// chosenList is a scratch file of records. The records are ordered by group, and the groups by
// hash.
type chosenList struct {
	file   *os.File
	groups []pack.Group
	// addresses holds the hash of each group's address, or 0. If no round has observed hosts,
	// addresses is nil.
	addresses []uint64
	slowest   slowest
	observed  int64 // number of hosts that an earlier round requested
	size      int64 // size of the file, in bytes
}

func (l *chosenList) close() error {
	return errors.Join(l.file.Close(), os.Remove(l.file.Name()))
}

// chosenWriter writes a chosenList and counts its groups.
type chosenWriter struct {
	rules *rules
	list  *chosenList
	buf   *bufio.Writer
	out   *table.RowWriter[record]
	off   int64

	cur   pack.Group
	hosts map[string]*hostCount // counts of the current group's URLs by host
	last  *hostCount

	observed *table.Cursor[observation] // observations of hosts in earlier rounds; nil if there are none
}

type hostCount struct {
	host, domain string
	n            int64
	delay        time.Duration // newest observed delay of the host
	perURL       float64       // newest observed number of requests for each URL, or 0
	latency      time.Duration // newest observed time until a response begins
	answered     bool          // whether latency is known

	observed    bool          // whether a round has requested the host
	unreachable bool          // whether the newest such round could not fetch robots.txt
	requests    int64         // requests of the newest such rounds, without the first of each round
	span        time.Duration // time of these requests
}

func newChosenWriter(r *rules, dir, name string) (*chosenWriter, error) {
	f, err := os.Create(filepath.Join(dir, name))
	if err != nil {
		return nil, fmt.Errorf("create scratch file: %w", err)
	}
	buf := bufio.NewWriterSize(f, 1<<20)
	return &chosenWriter{rules: r, list: &chosenList{file: f}, buf: buf, out: recordCodec.Writer(buf), hosts: map[string]*hostCount{}}, nil
}

// begin starts a group.
func (w *chosenWriter) begin(hash uint64) { w.cur = pack.Group{Hash: hash, Off: w.off} }

// put writes a record to the group of the record's hash, and starts the group if necessary.
func (w *chosenWriter) put(u *record) error {
	if w.cur.URLs == 0 || w.cur.Hash != u.Hash {
		if err := w.endGroup(); err != nil {
			return err
		}
		w.begin(u.Hash)
	}
	return w.add(u)
}

// add writes a record to the current group.
func (w *chosenWriter) add(u *record) error {
	n, err := w.out.Write(u)
	if err != nil {
		return err
	}
	w.off += int64(n)
	w.cur.URLs++
	if w.last == nil || w.last.host != u.Host {
		h, ok := w.hosts[u.Host]
		if !ok {
			h = &hostCount{host: u.Host, domain: u.Domain}
			w.hosts[u.Host] = h
		}
		w.last = h
	}
	w.last.n++
	return nil
}

// endGroup closes the current group and adds it to the list of groups if it has URLs.
func (w *chosenWriter) endGroup() error {
	if w.cur.URLs > 0 {
		address, err := w.observe()
		if err != nil {
			return err
		}
		var domains []string
		for _, h := range w.hosts {
			slow := w.rules.slowHost(h)
			w.list.slowest.add(slow)
			seconds := w.rules.pack().WithinWindow(slow.Time().Seconds())
			if h.observed {
				w.list.observed++
			}
			if w.rules.BeforeFormat8 {
				seconds = w.rules.oldSeconds(h)
			}
			w.cur.Longest = max(w.cur.Longest, seconds)
			if !slices.Contains(domains, h.domain) {
				domains = append(domains, h.domain)
			}
		}
		w.cur.Hosts, w.cur.Domains = int32(len(w.hosts)), int32(len(domains))
		w.list.groups = append(w.list.groups, w.cur)
		if w.observed != nil {
			w.list.addresses = append(w.list.addresses, address)
		}
	}
	if len(w.hosts) > 1024 {
		w.hosts = map[string]*hostCount{} // makes a new map, because clearing a map that was once large is slow
	} else {
		clear(w.hosts)
	}
	w.cur, w.last = pack.Group{}, nil
	return nil
}

// close writes the end of the list, which stays open for reading.
func (w *chosenWriter) close() error {
	if err := w.endGroup(); err != nil {
		return err
	}
	w.list.size = w.off
	if err := w.buf.Flush(); err != nil {
		return fmt.Errorf("write scratch file: %w", err)
	}
	return nil
}

// allIndices returns the indices of all groups.
func (l *chosenList) allIndices() iter.Seq[int32] {
	return func(yield func(int32) bool) {
		for i := range l.groups {
			if !yield(int32(i)) {
				return
			}
		}
	}
}

// readAhead is the size of the buffer of read. To skip few groups, read discards a part of the
// buffer instead of seeking.
const readAhead = 32 << 10

// read calls the function visit with the records of the given groups. The indices must be in
// ascending order. A record is valid until the function visit returns.
func (l *chosenList) read(ctx context.Context, indices iter.Seq[int32], visit func(*record) error) error {
	file := io.NewSectionReader(l.file, 0, 1<<62)
	buf := bufio.NewReaderSize(file, readAhead)
	in := recordCodec.Reader(buf)
	var u record
	next := int32(0) // index of the group that starts at the buffer's position
	for i := range indices {
		if err := l.skipTo(file, buf, next, i); err != nil {
			return err
		}
		next = i + 1
		for n := range l.groups[i].URLs {
			if n%1024 == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			if err := in.Next(&u); err != nil {
				return err
			}
			if err := visit(&u); err != nil {
				return err
			}
		}
	}
	return nil
}

// skipTo moves the buffer forward in the list's file. from and to are indices of groups.
func (l *chosenList) skipTo(file *io.SectionReader, buf *bufio.Reader, from, to int32) (err error) {
	if from == to {
		return nil
	}
	off := l.groups[to].Off
	if n := off - l.groups[from].Off; n <= int64(buf.Buffered()) {
		_, err = buf.Discard(int(n))
	} else if _, err = file.Seek(off, io.SeekStart); err == nil {
		buf.Reset(file)
	}
	return err
}

// matchingIndices compares the groups of l with some groups of other. The groups of other are given by
// their indices, in ascending order. matchingIndices yields the index of each group in l that has
// the hash of a selected group. Both lists are sorted by hash.
func (l *chosenList) matchingIndices(other *chosenList, indices []int32) iter.Seq[int32] {
	return func(yield func(int32) bool) {
		end := 0
		for _, i := range indices {
			at, found := slices.BinarySearchFunc(l.groups[end:], other.groups[i].Hash, func(g pack.Group, hash uint64) int { return cmp.Compare(g.Hash, hash) })
			end += at
			if found && !yield(int32(end)) {
				return
			}
		}
	}
}
