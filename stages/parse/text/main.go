package text

import "golang.org/x/net/html/atom"

// These are the parameters of the choice of main content, in percent. A change of one parameter by
// a quarter changes F1 on real pages by less than 0.01.
const (
	clutterShare = 40 // an element whose class or id names clutter may be content if it has this share of the page's prose
	chromeShare  = 50 // the same for nav, footer and aside elements
	imprintShare = 75 // the same for elements whose class or id names a footer or a cookie notice
	regionShare  = 40 // a main or article element is the content if it has this share of the page's prose
	descendShare = 85 // a child is chosen instead of its parent if it has this share of the parent's value
)

// notContent marks elements that are never main content.
const notContent = Hidden | Control | Caption

// Main returns the main content of the page, with one block per line. Main tries the following
// steps in order:
//
//  1. The content is all visible text of the only main element, or of the only article if there is
//     no main element. Everything outside that element must be in nav, header, footer and aside
//     elements, and no element in it may be clutter, navigation or a control.
//  2. The content is taken from the element with the greatest value. The value is the number of
//     bytes of prose in the element (paragraphs that are not mostly links) less the cost of its
//     other blocks. Elements named as navigation, comments, sharing … do not count, unless they
//     have a large share of the prose. The content is the blocks that are not mostly links, without
//     the headline and captions.
//  3. If the page has no prose, the content is all blocks that are not mostly links.
func (o *Outline) Main() string {
	if len(o.blocks) == 0 {
		return ""
	}
	o.measureElements()
	if r := o.declaredMain(); r >= 0 {
		return o.join(r, func(b *Block) bool { return o.elems[b.Elem].Hint&Hidden == 0 })
	}
	root := o.mainRoot()
	if root < 0 {
		root = max(o.hintedRegion(InMain, 0), 0)
	}
	begun := false // whether prose came before the current block; an h1 after prose is not the page's headline
	return o.join(root, func(b *Block) bool {
		if o.elems[b.Elem].dropped {
			return false
		}
		if n := b.End - b.Start; b.Link*2 > n && n-b.Link < 60 {
			return false
		}
		begun = begun || b.proseBytes() > 0
		return begun || b.Tag != TagHeading1
	})
}

// join returns the text of those blocks within the element root for which keep returns true. It
// drops headings at the end.
func (o *Outline) join(root int32, keep func(*Block) bool) string {
	out := o.scratch[:0]
	body := 0     // length of out after the last block that is not a heading
	kept := false // whether out ends with the last visible block before the current block
	for i := range o.blocks {
		b := &o.blocks[i]
		if !o.isWithin(b.Elem, root) || !keep(b) {
			kept = kept && o.elems[b.Elem].Hint&Hidden != 0
			continue
		}
		if kept {
			out = b.prepareJoin(out)
		}
		kept = true
		out = append(out, o.buf[b.Start:b.End]...)
		if b.Tag != TagHeading {
			body = len(out)
		}
		out = append(out, '\n')
	}
	o.scratch = out
	if body == 0 && len(out) > 0 {
		body = len(out) - 1 // every block is a heading, so all are kept
	}
	return string(out[:body])
}

// proseBytes returns the number of bytes of running text in a block. The result is 0 for a heading,
// a caption or a short block. It is also 0 for a block with more than a third of its text in links
// and fewer than 80 other bytes.
func (b *Block) proseBytes() int32 {
	n := b.End - b.Start
	if b.Link*3 > n && n-b.Link < 80 {
		return 0
	}
	least := uint32(80)
	switch b.Tag {
	case TagHeading1, TagHeading, TagCaption:
		return 0
	case TagParagraph, TagQuote, TagPre:
		least = 25
	}
	if n < least {
		return 0
	}
	return int32(n - b.Link)
}

// measureElements goes through the tree three times: upwards for the prose of elements, downwards
// for the elements to drop, and upwards for the values of the remaining elements. In the list of
// elements, parents come before their children.
func (o *Outline) measureElements() {
	for i := range o.blocks {
		b := &o.blocks[i]
		if e := &o.elems[b.Elem]; e.Hint&notContent == 0 {
			e.good += b.proseBytes()
		}
	}
	for i := len(o.elems) - 1; i >= 0; i-- {
		e := &o.elems[i]
		e.last = max(e.last, int32(i))
		if i > 0 {
			p := &o.elems[e.Parent]
			p.good += e.good
			p.last = max(p.last, e.last)
		}
	}
	total := int64(o.elems[0].good)
	for i := 1; i < len(o.elems); i++ {
		e := &o.elems[i]
		switch {
		case o.elems[e.Parent].dropped || e.Hint&notContent != 0:
			e.dropped = true
		case e.Hint&Imprint != 0:
			e.dropped = int64(e.good)*100 < total*imprintShare
		case e.Hint&Chrome != 0:
			e.dropped = int64(e.good)*100 < total*chromeShare
		case e.Hint&Clutter != 0:
			e.dropped = int64(e.good)*100 < total*clutterShare
		}
	}
	for i := range o.blocks {
		b := &o.blocks[i]
		e := &o.elems[b.Elem]
		if e.dropped {
			continue
		}
		if p := b.proseBytes(); p > 0 {
			e.value += p
		} else {
			e.value -= int32(b.Link) + 10
		}
	}
	for i := len(o.elems) - 1; i > 0; i-- {
		e := &o.elems[i]
		switch {
		case e.dropped:
		case e.value > 0:
			o.elems[e.Parent].value += e.value
		default:
			o.elems[e.Parent].value += e.value / 2 // clutter in a child lowers the value of its parent by only half as much
		}
	}
}

// isWithin reports whether the element e is the element root or one of its descendants.
func (o *Outline) isWithin(e, root int32) bool { return e >= root && e <= o.elems[root].last }

// declaredMain returns the element that step 1 of Main finds, or -1.
func (o *Outline) declaredMain() int32 {
	r := o.soleElement(InMain, atom.Main)
	if r < 0 {
		r = o.soleElement(InArticle, atom.Article)
	}
	if r < 0 {
		return -1
	}
	for i := r; i <= o.elems[r].last; i++ {
		if e := &o.elems[i]; e.Hint&(Clutter|Chrome|Control) != 0 {
			return -1
		}
	}
	for i := range o.blocks {
		b := &o.blocks[i]
		if o.isWithin(b.Elem, r) || o.elems[b.Elem].Hint&Hidden != 0 {
			continue
		}
		e := b.Elem
		for e > 0 && !surrounds(o.elems[e].Atom) {
			e = o.elems[e].Parent
		}
		if e <= 0 {
			return -1
		}
	}
	return r
}

func surrounds(a atom.Atom) bool {
	switch a {
	case atom.Nav, atom.Header, atom.Footer, atom.Aside:
		return true
	}
	return false
}

// soleElement looks for the outermost elements with the hint h. If there is exactly one, and it has
// the given tag, soleElement returns its index. Otherwise it returns -1.
func (o *Outline) soleElement(h Hint, tag atom.Atom) int32 {
	found := int32(-1)
	for i := 1; i < len(o.elems); i++ {
		e := &o.elems[i]
		if e.Hint&h == 0 || o.elems[e.Parent].Hint&h != 0 {
			continue
		}
		if found >= 0 || e.Atom != tag {
			return -1
		}
		found = int32(i)
	}
	return found
}

// mainRoot returns the element with the main content, or -1 if the page has no prose.
func (o *Outline) mainRoot() int32 {
	top := o.bestElement(0)
	if o.elems[top].value <= 0 {
		return -1
	}
	for _, h := range [...]Hint{InMain, InArticle} {
		least := int32(int64(o.elems[top].value) * regionShare / 100)
		if r := o.hintedRegion(h, max(least, 1)); r >= 0 && (h == InMain || o.isWithin(r, top)) {
			top = o.bestElement(r)
		}
	}
	for i := top + 1; i <= o.elems[top].last; i++ { // in the list of elements, children come after their parents
		e := &o.elems[i]
		if e.Parent == top && !e.dropped && int64(e.value)*100 >= int64(o.elems[top].value)*descendShare {
			top = i
		}
	}
	return top
}

// bestElement returns the element with the greatest value within the element root. If several
// elements have the greatest value, the method returns the last of these elements.
func (o *Outline) bestElement(root int32) int32 {
	best := root
	for i := root; i <= o.elems[root].last; i++ {
		if e := &o.elems[i]; !e.dropped && e.value >= o.elems[best].value {
			best = i
		}
	}
	return best
}

// hintedRegion looks at the outermost elements with the hint, and returns the one with the greatest
// value. If this value is below least, hintedRegion returns -1.
func (o *Outline) hintedRegion(h Hint, least int32) int32 {
	best := int32(-1)
	for i := 1; i < len(o.elems); i++ {
		e := &o.elems[i]
		if e.Hint&h == 0 || o.elems[e.Parent].Hint&h != 0 || e.dropped {
			continue
		}
		if e.value >= least && (best < 0 || e.value > o.elems[best].value) {
			best = int32(i)
		}
	}
	return best
}
