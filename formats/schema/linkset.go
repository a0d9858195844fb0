package schema

import (
	"encoding/binary"
	"errors"
	"iter"
	"math"
	"strings"

	"crawlbatch.io/crawlbatch/formats/pack"
)

// LinkSet holds consecutive links of a document, or one redirect. Segments have sets in
// place of rows of Link: they cost an eighth of the CPU, because the links of a document share their source
// and parts of their targets.
type LinkSet struct {
	SourceSURT string `parquet:"source_surtkey" doc:"SURT key of the source"`
	Source     string `parquet:"source" doc:"canonical URL of the page with the links"`
	Redirect   bool   `parquet:"redirect" doc:"whether the set is a redirect"`
	First      int32  `parquet:"first_ordinal" doc:"ordinal of the first link"`
	Last       int32  `parquet:"last_ordinal" doc:"ordinal of the last link"`
	Count      int32  `parquet:"link_count" doc:"number of links"`
	Links      []byte `parquet:"links" doc:"encoded links (LinkEncoder)"`
}

// LinkEncoder encodes the links of a set. The encoding of a link has these fields, where a string is its
// length as an unsigned varint and its bytes:
//
//   - a byte of flags (link…);
//   - kind, rel, position and hreflang: a string for each that differs from the link before;
//   - the ordinal as a signed varint, unless it is one more than that of the link before;
//   - the number of first bytes that the target shares with the target before, or with the source if the link
//     is the first, as an unsigned varint, and the rest of the target as a string;
//   - the anchor as a string;
//   - with linkDetails, a byte of flags (detail…), and the details that it says are there, in the order of
//     the flags: strings, lastmod as a signed varint, and the sitemap priority as 8 bytes in little-endian order.
//
// Before the first link, all columns are empty and the ordinal is -1.
type LinkEncoder struct {
	links                              []byte
	target, kind, rel, place, hreflang []byte // of the last link
	first, last, count                 int32  // ordinals of the first and the last link, and number of links
}

// The flags of a link.
const (
	linkSameKind = 1 << iota
	linkSameRel
	linkSamePosition
	linkSameHreflang
	linkNextOrdinal
	linkNofollow
	linkDetails
)

// The flags of a link's details.
const (
	detailSent = 1 << iota
	detailLastMod
	detailChangeFreq
	detailWeight
)

// Begin starts the set of a source. It discards the links that were added before.
func (e *LinkEncoder) Begin(source string) {
	e.links = e.links[:0]
	e.target = append(e.target[:0], source...)
	e.kind, e.rel, e.place, e.hreflang = e.kind[:0], e.rel[:0], e.place[:0], e.hreflang[:0]
	e.last, e.count = -1, 0
}

// Len returns the size of the encoded links, in bytes.
func (e *LinkEncoder) Len() int { return len(e.links) }

// Add adds a link to the set. The caller may change the link's strings afterwards.
func (e *LinkEncoder) Add(l *Link) {
	at := len(e.links)
	if at == 0 {
		e.first = l.Ordinal
	}
	e.links = append(e.links, 0)
	flags := e.changed(&e.kind, string(l.Kind), linkSameKind) | e.changed(&e.rel, l.Rel, linkSameRel) |
		e.changed(&e.place, l.Position, linkSamePosition) | e.changed(&e.hreflang, l.Hreflang, linkSameHreflang)
	if l.Ordinal == e.last+1 {
		flags |= linkNextOrdinal
	} else {
		e.links = binary.AppendVarint(e.links, int64(l.Ordinal))
	}
	e.last = l.Ordinal
	e.count++
	n := shared(e.target, l.Target)
	e.links = binary.AppendUvarint(e.links, uint64(n))
	e.string(l.Target[n:])
	e.target = append(e.target[:n], l.Target[n:]...)
	e.string(l.Anchor)
	if l.Nofollow {
		flags |= linkNofollow
	}
	if l.Sent != "" || l.LastMod != 0 || l.ChangeFreq != "" || l.Weight != nil {
		flags |= linkDetails
		e.details(l)
	}
	e.links[at] = flags
}

// changed appends a string if it differs from that of the link before, else it returns the flag for that.
func (e *LinkEncoder) changed(last *[]byte, s string, same byte) byte {
	if string(*last) == s {
		return same
	}
	*last = append((*last)[:0], s...)
	e.string(s)
	return 0
}

func (e *LinkEncoder) string(s string) {
	e.links = append(binary.AppendUvarint(e.links, uint64(len(s))), s...)
}

func (e *LinkEncoder) details(l *Link) {
	at := len(e.links)
	e.links = append(e.links, 0)
	var flags byte
	if l.Sent != "" {
		flags |= detailSent
		e.string(l.Sent)
	}
	if l.LastMod != 0 {
		flags |= detailLastMod
		e.links = binary.AppendVarint(e.links, int64(l.LastMod))
	}
	if l.ChangeFreq != "" {
		flags |= detailChangeFreq
		e.string(l.ChangeFreq)
	}
	if l.Weight != nil {
		flags |= detailWeight
		e.links = binary.LittleEndian.AppendUint64(e.links, math.Float64bits(*l.Weight))
	}
	e.links[at] = flags
}

// Full reports whether the set is full. The next links of the document go to a new set. Sets are small
// because a merge of spilled sets holds thousands of sets in memory, and a sitemap may have megabytes of links.
func (e *LinkEncoder) Full() bool { return len(e.links) >= linkSetBytes }

// linkSetBytes is the size of a full set, in bytes.
const linkSetBytes = 16 << 10

// LinkSets yields the sets of links. Links of a document follow each other, with ascending ordinals.
func LinkSets(links []Link) iter.Seq[LinkSet] {
	return func(yield func(LinkSet) bool) {
		var e LinkEncoder
		var last *Link
		flush := func() bool {
			return e.Len() == 0 || yield(e.Set(last.SourceSURT, last.Source, last.Kind == KindRedirect))
		}
		for i := range links {
			l := &links[i]
			if last == nil || e.Full() || BeginsLinks(l, last.Source, last.Ordinal, last.Kind == KindRedirect) {
				if !flush() {
					return
				}
				e.Begin(l.Source)
			}
			e.Add(l)
			last = l
		}
		flush()
	}
}

// BeginsLinks reports whether a link is a redirect, or the first link of a document. source, ordinal and redirect
// are those of the link before.
func BeginsLinks(l *Link, source string, ordinal int32, redirect bool) bool {
	return redirect || l.Kind == KindRedirect || l.Source != source || l.Ordinal <= ordinal
}

// shared returns the number of first bytes that a and b share.
func shared(a []byte, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// Encoded returns the encoded links. They are valid until the next call of Begin or Add.
func (e *LinkEncoder) Encoded() []byte { return e.links }

// Set returns the set of the links that were added since Begin. It shares no memory with the encoder.
func (e *LinkEncoder) Set(surt, source string, redirect bool) LinkSet {
	return LinkSet{SourceSURT: surt, Source: source, Redirect: redirect, First: e.first, Last: e.last, Count: e.count, Links: append([]byte(nil), e.links...)}
}

// ErrLinkSet means that encoded links are damaged.
var ErrLinkSet = errors.New("damaged set of links")

// EachLink decodes the links of a set and calls take for each of them. The link changes with the next call,
// its strings do not. They may share the memory of links. EachLink returns the first error of take, or
// ErrLinkSet.
func EachLink(surt, source, links string, take func(*Link) error) error {
	d := linkDecoder{Decoder: pack.Decoder{Data: links}}
	l := Link{SourceSURT: surt, Source: source, Target: source, Ordinal: -1}
	for d.Data != "" {
		flags := d.Byte()
		d.unless(flags&linkSameKind, (*string)(&l.Kind))
		d.unless(flags&linkSameRel, &l.Rel)
		d.unless(flags&linkSamePosition, &l.Position)
		d.unless(flags&linkSameHreflang, &l.Hreflang)
		if l.Ordinal++; flags&linkNextOrdinal == 0 {
			l.Ordinal = int32(d.Varint())
		}
		l.Target = d.target(l.Target)
		l.Anchor = d.Text()
		l.Nofollow = flags&linkNofollow != 0
		l.Sent, l.LastMod, l.ChangeFreq, l.Weight = "", 0, "", nil
		if flags&linkDetails != 0 {
			d.details(&l)
		}
		if d.Bad {
			return ErrLinkSet
		}
		if err := take(&l); err != nil {
			return err
		}
	}
	return nil
}

// linkDecoder reads the fields of links.
type linkDecoder struct {
	pack.Decoder
	targets strings.Builder // targets that are put together of two parts; they share few allocations
}

// targetsBytes is the size of an allocation for the targets of a large set, in bytes.
const targetsBytes = 8 << 10

// unless reads a string if it differs from that of the link before.
func (d *linkDecoder) unless(same byte, s *string) {
	if same == 0 {
		*s = d.Text()
	}
}

// target returns the target that begins like the last one.
func (d *linkDecoder) target(last string) string {
	n := d.Uvarint()
	rest := d.Text()
	switch {
	case n > uint64(len(last)):
		d.Bad, d.Data = true, ""
		return ""
	case n == 0:
		return rest
	case n == uint64(len(last)) && rest == "":
		return last
	}
	size := int(n) + len(rest)
	if d.targets.Cap()-d.targets.Len() < size {
		d.targets = strings.Builder{}
		d.targets.Grow(max(size, min(2*len(d.Data), targetsBytes)))
	}
	d.targets.WriteString(last[:n])
	d.targets.WriteString(rest)
	return d.targets.String()[d.targets.Len()-size:]
}

func (d *linkDecoder) details(l *Link) {
	flags := d.Byte()
	if flags&detailSent != 0 {
		l.Sent = d.Text()
	}
	if flags&detailLastMod != 0 {
		l.LastMod = Time(d.Varint())
	}
	if flags&detailChangeFreq != 0 {
		l.ChangeFreq = d.Text()
	}
	if flags&detailWeight != 0 {
		if s := d.Take(8); !d.Bad {
			w := math.Float64frombits(binary.LittleEndian.Uint64([]byte(s)))
			l.Weight = &w
		}
	}
}
