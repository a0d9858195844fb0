// Package entry holds the entries of a plan's sources, as the planner sorts and stores them.
//
// The input is entries of package source. The output is records and refusals in scratch files, and lists of
// records by domain. A record is small and needs no names of files: Names keeps them once, by the places of the
// entries. The order of records and refusals does not depend on the order in which they were added.
//
// Package entry imports formats packages, and the packages pack, slowest and source.
package entry

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"
	"strings"
	"unsafe"

	"crawlbatch.io/crawlbatch/formats/extsort"
	"crawlbatch.io/crawlbatch/formats/pack"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/planner/source"
)

// Seq is the place of an entry among all entries: the number of its source, then the place in this
// source.
type Seq uint64

// NewSeq returns the place with number n in a source.
func NewSeq(source int, n int64) Seq { return Seq(source)<<48 | Seq(n)&(1<<48-1) }

// Source returns the number of the source.
func (s Seq) Source() int { return int(s >> 48) }

// MaxSources is the largest number of sources that a Seq can distinguish.
const MaxSources = 1 << 16

// Record is a canonical URL in the planner, with its row of the partition file and the fields for
// decisions. Records are sorted by domain hash, then by URL, then by place. The URLs of a domain
// are therefore adjacent, and a URL's first entry comes first.
type Record struct {
	schema.PlannedURL // SURT is empty until the record is written to a file
	Hash              uint64
	Seq               Seq
	Due               bool
	Renamed           bool  // earlier rounds have another form of the URL, which is due
	RenamedPlanned    int32 // newest round that planned the other form, as source.Entry.Planned
	Planned           int32
	GaveContent       string // form that gave the last content; its validators hold for no other
	Merged            int32  // urlkey.Merged of a listed entry: steps that made the URL of its text
	Spent             bool
	History           bool
	NewHost           bool // no earlier round has requested the host; only known with budgets by host
	FetchedAt         schema.Time

	// Listed reports whether a source of the user lists the URL. Line is the line of the first entry that
	// lists it. Origins holds what few records need of their Listing, as PackOrigins packs it: there are
	// many records, so they are small. Names makes the Listing when the plan's files are written.
	Listed  bool
	Line    int64
	Origins string
}

// Records encodes records in scratch files.
var Records = table.MustCodec[Record]()

// New returns the record of an entry with the canonical URL k.
func New(k urlkey.Key, e *source.Entry, form schema.Form, s Seq) Record {
	r := Record{
		PlannedURL: schema.PlannedURL{
			URL: k.URL, Host: k.Host, Domain: k.Domain, Priority: min(max(e.Priority, 0), 1000), Depth: max(e.Depth, 0), Fetches: e.Fetches,
			ContentDigest: e.ContentDigest, ETag: e.ETag, LastModified: e.LastModified,
			ContentAt: e.Content.At, WARCFilename: e.Content.Filename, WARCRecordOff: e.Content.Offset, WARCRecordLen: e.Content.Length,
			PayloadFilename: e.Content.PayloadFilename, PayloadRecordOff: e.Content.PayloadOffset, PayloadRecordLen: e.Content.PayloadLength,
			Form: form, PlannedFor: e.DueReason,
		},
		Hash: urlkey.Hash(k.Domain), Seq: s, Due: e.Due, Spent: e.Spent, GaveContent: form.Sent,
		History: e.History, FetchedAt: e.FetchedAt, Planned: e.Planned,
	}
	o := Origins{Known: e.Listing}
	if e.Listed {
		r.Listed, r.Line = true, e.Line
		o.First = Place{s, e.Line, Excerpt(e.Key)}
		o.Last = o.First
	}
	r.Origins = PackOrigins(&r, o)
	return r
}

// Compare compares records by domain, URL and place.
func Compare(a, b *Record) int {
	if a.Hash != b.Hash {
		return cmp.Compare(a.Hash, b.Hash)
	}
	return cmp.Or(strings.Compare(a.URL, b.URL), cmp.Compare(a.Seq, b.Seq))
}

// Order is an order of records. The bytes of the records' keys decide: a head, the URL, a zero, and the place.
type Order struct {
	head     func(b []byte, hash uint64, host string, priority int32) []byte // appends the head
	headSize func(key []byte) int
}

var (
	// ByDomain is the order of Compare.
	ByDomain = Order{
		head:     func(b []byte, hash uint64, _ string, _ int32) []byte { return binary.BigEndian.AppendUint64(b, hash) },
		headSize: func([]byte) int { return 8 },
	}
	// ByHost is the order of a partition file: by host, by priority with the highest first, and by URL.
	ByHost = Order{
		head: func(b []byte, _ uint64, host string, priority int32) []byte {
			return binary.BigEndian.AppendUint32(append(append(b, host...), 0), uint32(math.MaxInt32-priority))
		},
		headSize: func(key []byte) int { return bytes.IndexByte(key, 0) + 5 },
	}
)

// keyTail is the size of the part of a key after the URL.
const keyTail = 1 + 8

// appendKey appends the key of a record. Canonical URLs have no zeros, so no key is the beginning of another.
func (o *Order) appendKey(b []byte, r *Record) []byte {
	b = append(append(o.head(b, r.Hash, r.Host, r.Priority), r.URL...), 0)
	return binary.BigEndian.AppendUint64(b, uint64(r.Seq))
}

// appendRest appends what the URL and the place do not tell of a record: where the URL has its host and its domain,
// the priority, and the other fields.
func appendRest(b []byte, r *Record) []byte {
	b = binary.AppendUvarint(b, uint64(len(r.Host)))
	domain := len(r.Host) - len(r.Domain)
	if !strings.HasSuffix(r.Host, r.Domain) { // the host has a port
		domain = strings.LastIndex(r.Host, r.Domain)
	}
	b = binary.AppendUvarint(b, uint64(domain))
	b = binary.AppendUvarint(b, uint64(len(r.Domain)))
	b = binary.AppendUvarint(b, uint64(r.Priority))
	other := *r
	other.URL, other.Host, other.Domain, other.Hash, other.Seq, other.Priority = "", "", "", 0, 0, 0
	return Records.Append(b, &other)
}

// keys are the fields of a record that the URL and the beginning of the rest tell.
type keys struct {
	url, host, domain string
	priority          int32
}

// parse returns the keys of a record, and the encoding of its other fields.
func parse(url, rest string) (k keys, other string, ok bool) {
	d := pack.Decoder{Data: rest}
	host, domain, size, priority := d.Uvarint(), d.Uvarint(), d.Uvarint(), d.Uvarint()
	after := url[min(strings.IndexByte(url, '/')+len("//"), len(url)):]
	if d.Bad || host > uint64(len(after)) || domain > host || size > host-domain {
		return k, "", false
	}
	return keys{url, after[:host], after[domain : domain+size], int32(priority)}, d.Data, true
}

// urlIn returns the place of the URL in a key.
func (o *Order) urlIn(key []byte) (from, to int, ok bool) {
	from, to = o.headSize(key), len(key)-keyTail
	return from, to, to >= from
}

// decode decodes a record, with the memory of buf. The result is the memory for the next call.
func (o *Order) decode(buf, key, rest []byte, r *Record) ([]byte, error) {
	from, to, ok := o.urlIn(key)
	if !ok {
		return buf, extsort.ErrScratch
	}
	buf = append(append(buf[:0], key[from:to]...), rest...)
	text, n := string(buf), to-from // all texts of the record share this one string
	k, other, ok := parse(text[:n], text[n:])
	if !ok {
		return buf, extsort.ErrScratch
	}
	if err := Records.Decode(other, r); err != nil {
		return buf, err
	}
	r.URL, r.Host, r.Domain, r.Priority = k.url, k.host, k.domain, k.priority
	r.Hash, r.Seq = urlkey.Hash(r.Domain), Seq(binary.BigEndian.Uint64(key[to+1:]))
	return buf, nil
}

// rekey appends the key of a record in the order o, from its key by domain and its rest.
func (o *Order) rekey(b, key, rest []byte) ([]byte, error) {
	from, to, ok := ByDomain.urlIn(key)
	if !ok {
		return b, extsort.ErrScratch
	}
	k, _, ok := parse(text(key[from:to]), text(rest))
	if !ok {
		return b, extsort.ErrScratch
	}
	return append(o.head(b, binary.BigEndian.Uint64(key), k.host, k.priority), key[from:]...), nil
}

// text returns a string with the memory of b.
func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
