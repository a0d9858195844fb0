package text

import (
	"bytes"
	"slices"
	"strings"

	"golang.org/x/net/html/atom"
)

// Block is a line of text between two breaks.
type Block struct {
	Start, End uint32 // range of the block in the outline's text
	Link       uint32 // number of bytes of the block within links
	Elem       int32  // index of the innermost element around the block
	Tag        Tag    // tag of the p, li, heading … around the block; 0 if there is none
	Join       Join   // how the block continues the line of the visible block before it
}

// Join says how a block continues a line that hidden text interrupts.
type Join uint8

// The kinds of joins.
const (
	Joinless  Join = iota // the block begins a new line
	JoinTight             // the block continues the line without a space
	JoinSpace             // the block continues the line after a space
)

// Tag is the kind of the element around a block. Only kinds that matter for the choice of the main
// content have a Tag.
type Tag uint8

// The tags of blocks.
const (
	TagNone Tag = iota
	TagParagraph
	TagItem
	TagHeading1
	TagHeading
	TagCaption
	TagCell
	TagPre
	TagQuote
)

// Elem is an element that may contain blocks.
type Elem struct {
	Parent int32
	Atom   atom.Atom
	Hint   Hint

	// Main computes the following fields.
	last    int32 // index of the last descendant of the element
	good    int32 // number of bytes of prose within the element
	value   int32 // number of bytes of prose outside dropped elements, less the cost of clutter
	dropped bool
}

// maxElems bounds the number of elements of an outline. If an outline has maxElems elements, the
// content of a further element belongs to the element around it.
const maxElems = 1 << 18

// Outline is the text of a document as blocks in a small tree of elements. The caller builds the
// Outline in document order with Open, Close, Text and Break. The zero value is ready for use.
// Reset empties the outline and keeps its memory. An Outline is not safe for concurrent use.
type Outline struct {
	buf     []byte // text with folded white space and a line feed after each block
	blocks  []Block
	elems   []Elem
	cur     int32  // index of the open element; elems[0] is the document
	start   int    // offset at which the open block starts
	link    uint32 // number of bytes of the open block within links
	inLink  bool
	space   bool // whether white space came after the last byte of the block
	tag     Tag
	joint   Join // Join of the open block
	held    Join // Join of the block with which Resume will continue the line
	maxText int
	cut     bool
	deep    int // number of open elements that the outline does not record, because of maxElems
	scratch []byte
}

// Reset empties the outline. maxText bounds the next text, in bytes.
func (o *Outline) Reset(maxText int) {
	o.buf, o.blocks, o.elems = o.buf[:0], o.blocks[:0], o.elems[:0]
	o.elems = append(o.elems, Elem{Parent: -1})
	o.cur, o.start, o.link, o.inLink, o.space, o.tag = 0, 0, 0, false, false, TagNone
	o.maxText, o.cut, o.deep, o.joint, o.held = maxText, false, 0, Joinless, Joinless
}

// Open enters an element.
func (o *Outline) Open(a atom.Atom, h Hint) {
	if len(o.elems) >= maxElems {
		o.deep++
		return
	}
	up := &o.elems[o.cur]
	h |= up.Hint & inherited
	o.elems = append(o.elems, Elem{Parent: o.cur, Atom: a, Hint: h})
	o.cur = int32(len(o.elems) - 1)
}

// Close leaves the element that was entered last.
func (o *Outline) Close() {
	if o.deep > 0 {
		o.deep--
		return
	}
	if p := o.elems[o.cur].Parent; p >= 0 {
		o.cur = p
	}
}

// Hint returns the hint of the open element.
func (o *Outline) Hint() Hint { return o.elems[o.cur].Hint }

// SetLink sets whether the next text is within a link.
func (o *Outline) SetLink(in bool) { o.inLink = in }

// Len returns the number of bytes of text so far. The next text begins at this position.
func (o *Outline) Len() int { return len(o.buf) }

// Break ends the open block. The next block is in an element with the given tag.
func (o *Outline) Break(tag Tag) {
	if len(o.buf) > o.start {
		o.blocks = append(o.blocks, Block{uint32(o.start), uint32(len(o.buf)), o.link, o.cur, o.tag, o.joint})
		o.buf = append(o.buf, '\n')
		o.start = len(o.buf)
	}
	o.link, o.space, o.tag, o.joint = 0, false, tag, Joinless
}

// Suspend ends the open block at the beginning of hidden text within a line. Resume begins the
// block that continues the line after the hidden text. The caller calls Resume before the next
// Suspend.
func (o *Outline) Suspend() {
	held := o.joint
	if len(o.buf) > o.start {
		held = JoinTight
	}
	if held != Joinless && o.space {
		held = JoinSpace
	}
	o.Break(o.tag)
	o.held = held
}

// Resume continues the line that Suspend ended.
func (o *Outline) Resume(tag Tag) {
	o.Break(tag)
	o.joint, o.held = o.held, Joinless
}

// spaceAt returns the length of the white space character at the beginning of p, or 0 if p does not
// begin with white space. White space is Unicode's White_Space and the byte order mark.
func spaceAt(p []byte) int {
	switch c := p[0]; {
	case c <= ' ':
		return 1
	case c < 0xC2:
		return 0
	case c == 0xC2:
		if len(p) > 1 && (p[1] == 0xA0 || p[1] == 0x85) {
			return 2
		}
	case c == 0xE1, c == 0xE2, c == 0xE3, c == 0xEF:
		if len(p) < 3 {
			return 0
		}
		switch r := rune(c&0xF)<<12 | rune(p[1]&0x3F)<<6 | rune(p[2]&0x3F); {
		case r == 0x1680, r >= 0x2000 && r <= 0x200B, r == 0x2028, r == 0x2029, r == 0x202F, r == 0x205F,
			r == 0x3000, r == 0xFEFF:
			return 3
		}
	}
	return 0
}

// maySpace marks the first bytes of white space characters.
var maySpace = func() (t [256]bool) {
	for c := 0; c <= ' '; c++ {
		t[c] = true
	}
	t[0xC2], t[0xE1], t[0xE2], t[0xE3], t[0xEF] = true, true, true, true, true
	return t
}()

// Text appends text to the open block. It writes every run of white space as one space.
func (o *Outline) Text(p []byte) {
	for len(p) > 0 && !o.cut {
		if n := spaceAt(p); n > 0 {
			o.space = true
			p = p[n:]
			continue
		}
		i := 1
		for i < len(p) && !maySpace[p[i]] {
			i++
		}
		o.appendWord(p[:i])
		p = p[i:]
	}
}

// appendWord appends bytes that have no white space.
func (o *Outline) appendWord(p []byte) {
	if o.cut || len(o.buf)+len(p)+2 > o.maxText {
		o.cut = true // also drops all later words, even short ones, so that the kept text is a prefix of the text
		return
	}
	n := len(p)
	if o.space {
		o.space = false
		if len(o.buf) > o.start {
			o.buf = append(o.buf, ' ')
			n++
		} else if o.joint == JoinTight {
			o.joint = JoinSpace
		}
	}
	o.buf = append(o.buf, p...)
	if o.inLink {
		o.link += uint32(n)
	}
}

// Lines appends preformatted text. It ends a block after each line (LF, CR LF or CR).
func (o *Outline) Lines(p []byte) {
	for len(p) > 0 {
		i := bytes.IndexAny(p, "\n\r")
		if i < 0 {
			o.Text(p)
			return
		}
		o.Text(p[:i])
		o.Break(o.tag)
		p = p[i+1:]
	}
}

// LinkDensity returns the share of the visible text that is within links. If there is no visible
// text, LinkDensity returns false.
func (o *Outline) LinkDensity() (float64, bool) {
	var all, links int64
	for i := range o.blocks {
		if b := &o.blocks[i]; o.elems[b.Elem].Hint&Hidden == 0 {
			all += int64(b.End - b.Start)
			links += int64(b.Link)
		}
	}
	if all == 0 {
		return 0, false
	}
	return float64(links) / float64(all), true
}

// maxHeading bounds the length of the result of Heading, in bytes.
const maxHeading = 200

// Heading returns the first visible headline. If there is no headline or the headline is too long,
// the result is "".
func (o *Outline) Heading() string {
	for i := range o.blocks {
		if b := &o.blocks[i]; b.Tag == TagHeading1 && o.elems[b.Elem].Hint&Hidden == 0 {
			if b.End-b.Start > maxHeading {
				return ""
			}
			return string(o.buf[b.Start:b.End])
		}
	}
	return ""
}

// Cut reports whether text was dropped because the text exceeded its bound.
func (o *Outline) Cut() bool { return o.cut }

// All returns all text, including hidden text. Len returns positions in this text.
func (o *Outline) All() string { return string(o.buf) }

// prepareJoin prepares out for the text of the block b. out is empty or ends in a line feed. If b
// continues the last line, prepareJoin removes the line feed or replaces it by a space.
func (b *Block) prepareJoin(out []byte) []byte {
	if n := len(out); n > 0 && b.Join != Joinless {
		if b.Join == JoinSpace {
			out[n-1] = ' '
			return out
		}
		return out[:n-1]
	}
	return out
}

// Full returns the visible text, with one block per line. all is the result of All. If no text is
// hidden, the result of Full shares the memory of all.
func (o *Outline) Full(all string) string {
	if !slices.ContainsFunc(o.blocks, func(b Block) bool { return o.elems[b.Elem].Hint&Hidden != 0 || b.Join != Joinless }) {
		return strings.TrimSuffix(all, "\n")
	}
	out := make([]byte, 0, len(all))
	for i := range o.blocks {
		if b := &o.blocks[i]; o.elems[b.Elem].Hint&Hidden == 0 {
			out = b.prepareJoin(out)
			out = append(out, o.buf[b.Start:b.End]...)
			out = append(out, '\n')
		}
	}
	return string(bytes.TrimSuffix(out, []byte{'\n'}))
}
