package planner

import (
	"bufio"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// group is what is planned of the domains of one hash: of one domain, that is, but
// for a collision. It is the unit that is put into partitions.
type group struct {
	hash    uint64
	urls    int64
	domains int32
	hosts   int32
	longest float64 // predicted seconds of its slowest host
	off     int64   // where its records begin in the chosen list
}

// chosenList is a scratch file of the chosen URLs, group by group in order of hash.
// Each record is the URL, the value that record.parse reads, and the place.
type chosenList struct {
	file   *os.File
	groups []group
}

func (l *chosenList) close() error {
	err := l.file.Close()
	if rerr := os.Remove(l.file.Name()); err == nil {
		err = rerr
	}
	return err
}

// chosenWriter writes a chosenList and counts its groups.
type chosenWriter struct {
	rules *rules
	list  *chosenList
	out   *bufio.Writer
	off   int64
	buf   []byte

	cur   group
	hosts map[string]*hostCount // of the group at hand
	last  *hostCount
	names []string // domains of the group at hand
}

type hostCount struct {
	host, domain string
	n            int64
}

func newChosenWriter(r *rules, dir, name string) (*chosenWriter, error) {
	f, err := os.Create(filepath.Join(dir, name))
	if err != nil {
		return nil, fmt.Errorf("create scratch file: %w", err)
	}
	return &chosenWriter{
		rules: r, list: &chosenList{file: f}, out: bufio.NewWriterSize(f, 1<<20), hosts: map[string]*hostCount{},
	}, nil
}

// begin begins a group.
func (w *chosenWriter) begin(hash uint64) { w.cur = group{hash: hash, off: w.off} }

// put writes a URL to the group of its domain's hash, which it begins where need be.
func (w *chosenWriter) put(hash uint64, u *chosen) error {
	if w.cur.urls == 0 || w.cur.hash != hash {
		w.end()
		w.begin(hash)
	}
	return w.add(u)
}

// add writes a URL to the group at hand.
func (w *chosenWriter) add(u *chosen) error {
	b := binary.AppendUvarint(w.buf[:0], uint64(len(u.url)))
	b = append(b, u.url...)
	b = append(binary.AppendUvarint(b, uint64(len(u.value))), u.value...)
	b = binary.AppendUvarint(b, uint64(u.seq))
	w.buf = b
	n, err := w.out.Write(b)
	w.off += int64(n)
	if err != nil {
		return fmt.Errorf("write scratch file: %w", err)
	}
	w.cur.urls++
	if w.last == nil || w.last.host != u.host {
		h, ok := w.hosts[u.host]
		if !ok {
			h = &hostCount{host: u.host, domain: u.domain}
			w.hosts[u.host] = h
		}
		w.last = h
	}
	w.last.n++
	return nil
}

// end closes the group at hand; one without URLs leaves no trace.
func (w *chosenWriter) end() {
	if w.cur.urls > 0 {
		w.names = w.names[:0]
		for _, h := range w.hosts {
			w.cur.longest = max(w.cur.longest, w.rules.hostSeconds(h.domain, h.n))
			known := false
			for _, name := range w.names {
				known = known || name == h.domain
			}
			if !known {
				w.names = append(w.names, h.domain)
			}
		}
		w.cur.hosts, w.cur.domains = int32(len(w.hosts)), int32(len(w.names))
		w.list.groups = append(w.list.groups, w.cur)
	}
	if len(w.hosts) > 1024 {
		w.hosts = map[string]*hostCount{} // clearing a map that was large costs as much each time
	} else {
		clear(w.hosts)
	}
	w.cur, w.last = group{}, nil
}

// close ends the list.
func (w *chosenWriter) close() (*chosenList, error) {
	w.end()
	if err := w.out.Flush(); err != nil {
		return nil, fmt.Errorf("write scratch file: %w", err)
	}
	return w.list, nil
}

// read visits the URLs of groups that lie side by side.
func (l *chosenList) read(ctx context.Context, groups []group, visit func(g *group, u *chosen) error) error {
	if len(groups) == 0 {
		return nil
	}
	size := 256 << 10
	if groups[len(groups)-1].off-groups[0].off < int64(size)/4 {
		size = 16 << 10
	}
	in := bufio.NewReaderSize(io.NewSectionReader(l.file, groups[0].off, 1<<62), size)
	for i := range groups {
		for n := range groups[i].urls {
			if n%1024 == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			u, err := readChosen(in)
			if err != nil {
				return fmt.Errorf("read scratch file: %w", err)
			}
			if err := visit(&groups[i], &u); err != nil {
				return err
			}
		}
	}
	return nil
}

// of visits the groups of the list that have the hashes of these, which are in order of
// them, in pieces that lie side by side.
func (l *chosenList) of(groups []group, visit func([]group) error) error {
	first, end := 0, 0
	for i := range groups {
		at, found := slices.BinarySearchFunc(l.groups[end:], groups[i].hash, func(g group, hash uint64) int { return cmp.Compare(g.hash, hash) })
		if !found {
			continue
		}
		if at += end; at > end && end > first {
			if err := visit(l.groups[first:end]); err != nil {
				return err
			}
		}
		if at > end {
			first = at
		}
		end = at + 1
	}
	if end == first {
		return nil
	}
	return visit(l.groups[first:end])
}

func readChosen(in *bufio.Reader) (u chosen, err error) {
	text := func() string {
		var n uint64
		if err == nil {
			n, err = binary.ReadUvarint(in)
		}
		if err == nil && n > 1<<20 {
			err = errRecord
		}
		if err != nil {
			return ""
		}
		b := make([]byte, n)
		_, err = io.ReadFull(in, b)
		return string(b)
	}
	u.url, u.value = text(), text()
	if err != nil {
		return u, err
	}
	s, err := binary.ReadUvarint(in)
	u.seq = seq(s)
	return u, err
}

// cut keeps the limit best new URLs of the list, by priority and then in order of
// the list; URLs that were planned before stay. The others are refused.
func (l *chosenList) cut(ctx context.Context, r *rules, dir string, limit int64, priorities *[1001]int64, refuse func(*chosen) error) (*chosenList, error) {
	threshold, rest := len(priorities)-1, limit
	for threshold >= 0 && priorities[threshold] <= rest {
		rest -= priorities[threshold]
		threshold--
	}
	w, err := newChosenWriter(r, dir, "chosen-cut")
	if err != nil {
		return nil, err
	}
	err = l.read(ctx, l.groups, func(g *group, u *chosen) error {
		var rec record
		if err := rec.parse(u.url, u.value); err != nil {
			return err
		}
		u.host, u.domain = rec.host, rec.domain
		switch p := int(rec.priority); {
		case rec.flags&isSpent != 0 || p > threshold:
		case p == threshold && rest > 0:
			rest--
		default:
			return refuse(u)
		}
		return w.put(g.hash, u)
	})
	if err != nil {
		return nil, errors.Join(err, w.list.close())
	}
	return w.close()
}
