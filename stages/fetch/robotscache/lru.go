package robotscache

import (
	"container/list"
	"errors"
	"fmt"
	"os"

	"crawlbatch.io/crawlbatch/stages/fetch/robots"
)

// lru limits the memory for the rules of entries. It moves the least recently used rules to a
// scratch file. The cache's lock guards it.
type lru struct {
	dir    string
	max    int // limit of the memory for rules, in bytes
	held   int // memory that rules take now, in bytes
	recent list.List
	file   *os.File // scratch file, already unlinked; nil until the first write
	end    int64
	buf    []byte
}

// page says where the rules of an entry are.
type page struct {
	elem   *list.Element // element of lru.recent; nil if the rules are not in memory or take no memory
	size   int           // memory of the rules, in bytes
	offset int64         // offset of the rules in the scratch file
	length int           // length of the rules in the scratch file; 0 if they are not in it yet
}

var errDamaged = errors.New("a scratch file is damaged")

// put stores the new rules of an entry.
func (l *lru) put(e *Entry) error {
	l.drop(e)
	e.page = page{size: e.rules.Group.Size()}
	if e.page.size == 0 {
		return nil
	}
	return l.keep(e)
}

// drop removes the rules of an entry.
func (l *lru) drop(e *Entry) {
	if e.page.elem != nil {
		l.recent.Remove(e.page.elem)
		l.held -= e.page.size
	}
	e.page = page{}
}

// get returns the rules of an entry. If necessary, it loads them into memory.
func (l *lru) get(e *Entry) (*Rules, error) {
	if e.page.elem != nil {
		l.recent.MoveToFront(e.page.elem)
		return e.rules, nil
	}
	if e.rules.Group != nil {
		return e.rules, nil
	}
	l.buf = append(l.buf[:0], make([]byte, e.page.length)...)
	if _, err := l.file.ReadAt(l.buf, e.page.offset); err != nil {
		return nil, fmt.Errorf("read rules of robots.txt from scratch: %w", err)
	}
	rules := new(robots.Group)
	if err := rules.UnmarshalBinary(l.buf); err != nil {
		return nil, fmt.Errorf("read rules of robots.txt from scratch: %w: %w", errDamaged, err)
	}
	known := *e.rules // a copy, because a Rules is immutable
	known.Group = rules
	e.rules = &known
	return e.rules, l.keep(e)
}

// keep adds an entry to the entries whose rules are in memory. If they exceed the limit, it evicts
// other entries.
func (l *lru) keep(e *Entry) error {
	e.page.elem = l.recent.PushFront(e)
	l.held += e.page.size
	for l.held > l.max && l.recent.Len() > 1 {
		if err := l.evict(l.recent.Back().Value.(*Entry)); err != nil {
			return err
		}
	}
	return nil
}

// evict moves the rules of an entry to the scratch file.
func (l *lru) evict(e *Entry) (err error) {
	if e.page.length == 0 {
		if l.buf, err = e.rules.Group.AppendBinary(l.buf[:0]); err != nil {
			return err
		}
		if err := l.write(); err != nil {
			return fmt.Errorf("write rules of robots.txt to scratch: %w", err)
		}
		e.page.offset, e.page.length = l.end, len(l.buf)
		l.end += int64(len(l.buf))
	}
	l.recent.Remove(e.page.elem)
	l.held -= e.page.size
	e.page.elem = nil
	known := *e.rules
	known.Group = nil
	e.rules = &known
	return nil
}

// write appends buf to the scratch file.
func (l *lru) write() error {
	if l.file == nil {
		f, err := os.CreateTemp(l.dir, "rules-")
		if err != nil {
			return err
		}
		l.file = f
		if err := os.Remove(f.Name()); err != nil { // the unlinked file disappears when it is closed
			return err
		}
	}
	_, err := l.file.WriteAt(l.buf, l.end)
	return err
}

// close closes the scratch file.
func (l *lru) close() {
	if l.file != nil {
		_ = l.file.Close() // the rules are not needed any more, so the error does not matter
		l.file = nil
	}
}
