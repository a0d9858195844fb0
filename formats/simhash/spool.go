package simhash

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"os"
)

// item is a fingerprint with the caller's number for it.
type item struct {
	fingerprint uint64
	label       uint64 // the number, shifted left by one, plus 1 if the fingerprint is old
}

func (i item) number() uint64 { return i.label >> 1 }
func (i item) old() bool      { return i.label&1 != 0 }

const (
	itemBytes    = 16
	spoolBytes   = 64 << 10 // size of the buffer of a spool
	maxShardBits = 8        // a list is divided into at most 1<<maxShardBits shards at a time
)

// list is a sequence of items, in memory or in a scratch file.
type list struct {
	items []item
	spool *spool // nil if the items are in memory
}

func (l list) len() int {
	if l.spool != nil {
		return l.spool.n
	}
	return len(l.items)
}

// each calls visit with the items of the list, in order and in batches.
func (l list) each(visit func([]item) error) error {
	if l.spool != nil {
		return l.spool.each(visit)
	}
	return visit(l.items)
}

// spool is a scratch file of items. After the first call of each, no items may be appended.
type spool struct {
	file *os.File
	out  *bufio.Writer
	n    int
}

// newSpool makes a spool. Search.Close removes all spools that still exist.
func (s *Search) newSpool() (*spool, error) {
	f, err := os.CreateTemp(s.dir, "items-*")
	if err != nil {
		return nil, fmt.Errorf("create scratch file: %w", err)
	}
	p := &spool{file: f, out: bufio.NewWriterSize(f, spoolBytes)}
	s.spools[p] = true
	return p, nil
}

func (s *Search) remove(p *spool) error {
	delete(s.spools, p)
	return errors.Join(p.file.Close(), os.Remove(p.file.Name()))
}

func (p *spool) append(items ...item) error {
	for _, i := range items {
		b := p.out.AvailableBuffer()
		if cap(b) < itemBytes { // the next write flushes the buffer
			b = make([]byte, 0, itemBytes)
		}
		b = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(b, i.fingerprint), i.label)
		if _, err := p.out.Write(b); err != nil {
			return fmt.Errorf("write scratch file: %w", err)
		}
	}
	p.n += len(items)
	return nil
}

// each calls visit with the items of the spool, in order and in batches.
func (p *spool) each(visit func([]item) error) error {
	if err := p.out.Flush(); err != nil {
		return fmt.Errorf("write scratch file: %w", err)
	}
	in := io.NewSectionReader(p.file, 0, int64(p.n)*itemBytes)
	b, items := make([]byte, spoolBytes), make([]item, spoolBytes/itemBytes)
	for left := p.n; left > 0; {
		n := min(left, len(items))
		if _, err := io.ReadFull(in, b[:n*itemBytes]); err != nil {
			return fmt.Errorf("read scratch file: %w", err)
		}
		for i := range items[:n] {
			at := b[i*itemBytes:]
			items[i] = item{binary.LittleEndian.Uint64(at), binary.LittleEndian.Uint64(at[8:])}
		}
		if err := visit(items[:n]); err != nil {
			return err
		}
		left -= n
	}
	return nil
}

// load appends the items of the spool to a slice.
func (p *spool) load(items []item) ([]item, error) {
	err := p.each(func(batch []item) error {
		items = append(items, batch...)
		return nil
	})
	return items, err
}

// shards are the items of a list, divided by the highest bits of a mask. Each shard holds a range of
// the keys, and the shards are in the order of the keys. The items of a shard keep the order of the
// list.
type shards struct {
	digit  *digit // the highest bits, which are equal in all items of a shard
	rest   uint64 // the other bits of the mask
	spools []*spool
}

// newShards makes empty shards for n items. If the items are evenly spread, each shard fits into
// memory.
func (s *Search) newShards(mask uint64, n int) (*shards, error) {
	width := min(bits.Len(uint(2*n/s.memory)), maxShardBits, bits.OnesCount64(mask))
	high := highest(mask, width)
	d := &shards{digit: digitOf(high), rest: mask &^ high, spools: make([]*spool, 1<<width)}
	for i := range d.spools {
		var err error
		if d.spools[i], err = s.newSpool(); err != nil {
			return nil, err
		}
	}
	return d, nil
}

func (d *shards) add(items []item) error {
	for n := range items {
		if err := d.spools[d.digit.valueIn(items[n].fingerprint)].append(items[n : n+1]...); err != nil {
			return err
		}
	}
	return nil
}
