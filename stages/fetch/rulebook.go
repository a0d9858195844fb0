package fetch

import (
	lru "container/list"
	"errors"
	"fmt"
	"os"

	"crawlbatch.io/crawlbatch/stages/fetch/robots"
)

// maxRules bounds what the rules of robots.txt files take in memory, in bytes. A
// partition may have a million hosts, and a robots.txt 500 KiB of rules.
const maxRules = 64 << 20

// rulebook bounds the memory of the rules of origins: those that were not asked for
// longest wait in a scratch file until they are. It is guarded by the crawl's mutex.
type rulebook struct {
	dir    string
	max    int
	held   int
	recent lru.List // of *origin with rules in memory, the last asked for in front
	file   *os.File // unlinked; nil until it is needed
	end    int64
	buf    []byte
}

// rulebookPage is an origin's place in the rulebook.
type rulebookPage struct {
	seat   *lru.Element // nil: the rules are not in memory, or take none
	size   int
	offset int64 // in the scratch file
	length int   // there; 0: not written yet
}

var errRulebook = errors.New("a scratch file is damaged")

// put takes the rules that an origin has got.
func (b *rulebook) put(o *origin) error {
	b.drop(o)
	o.page = rulebookPage{size: o.known.rules.Size()}
	if o.page.size == 0 {
		return nil
	}
	return b.seat(o)
}

// drop forgets what is kept of an origin.
func (b *rulebook) drop(o *origin) {
	if o.page.seat != nil {
		b.recent.Remove(o.page.seat)
		b.held -= o.page.size
	}
	o.page = rulebookPage{}
}

// rules has an origin's rules in memory, wherever they were.
func (b *rulebook) rules(o *origin) (*inForce, error) {
	if o.page.seat != nil {
		b.recent.MoveToFront(o.page.seat)
		return o.known, nil
	}
	if o.known.rules != nil {
		return o.known, nil
	}
	b.buf = append(b.buf[:0], make([]byte, o.page.length)...)
	if _, err := b.file.ReadAt(b.buf, o.page.offset); err != nil {
		return nil, fmt.Errorf("read rules of robots.txt from scratch: %w", err)
	}
	rules := new(robots.Group)
	if err := rules.UnmarshalBinary(b.buf); err != nil {
		return nil, fmt.Errorf("read rules of robots.txt from scratch: %w: %w", errRulebook, err)
	}
	known := *o.known // what was given out stays as it is
	known.rules = rules
	o.known = &known
	return o.known, b.seat(o)
}

// seat notes that an origin's rules are in memory, and makes room.
func (b *rulebook) seat(o *origin) error {
	o.page.seat = b.recent.PushFront(o)
	b.held += o.page.size
	for b.held > b.max && b.recent.Len() > 1 {
		if err := b.evict(b.recent.Back().Value.(*origin)); err != nil {
			return err
		}
	}
	return nil
}

// evict leaves an origin's rules to the scratch file.
func (b *rulebook) evict(o *origin) (err error) {
	if o.page.length == 0 {
		if b.buf, err = o.known.rules.AppendBinary(b.buf[:0]); err != nil {
			return err
		}
		if err := b.write(); err != nil {
			return fmt.Errorf("write rules of robots.txt to scratch: %w", err)
		}
		o.page.offset, o.page.length = b.end, len(b.buf)
		b.end += int64(len(b.buf))
	}
	b.recent.Remove(o.page.seat)
	b.held -= o.page.size
	o.page.seat = nil
	known := *o.known
	known.rules = nil
	o.known = &known
	return nil
}

// write appends buf to the file.
func (b *rulebook) write() error {
	if b.file == nil {
		f, err := os.CreateTemp(b.dir, "rules-")
		if err != nil {
			return err
		}
		b.file = f
		if err := os.Remove(f.Name()); err != nil { // it ends with the process
			return err
		}
	}
	_, err := b.file.WriteAt(b.buf, b.end)
	return err
}

// close gives the file back.
func (b *rulebook) close() {
	if b.file != nil {
		_ = b.file.Close() // scratch, and nothing is read from it any more
		b.file = nil
	}
}
