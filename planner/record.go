package planner

import (
	"encoding/binary"
	"errors"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/planner/source"
)

// errRecord is a fault of this program or of the scratch disk.
var errRecord = errors.New("damaged record in scratch space")

// seq is an entry's place among all entries: the source, then the place in it.
type seq uint64

func newSeq(source int, n int64) seq { return seq(source)<<48 | seq(n)&(1<<48-1) }

func (s seq) source() int { return int(s >> 48) }

// maxSources is how many sources a seq can tell apart.
const maxSources = 1 << 16

// record is a canonical URL on its way through the planner. Its key is the hash of
// the domain, the URL and the place: so a bucket's domains lie side by side, a
// domain's URLs too, and of one URL the first entry comes first.
type record struct {
	hash   uint64 // urlkey.Hash of the domain
	seq    seq
	url    string
	host   string // a part of url
	domain string // a part of host
	flags  uint8

	priority, depth, fetches          int32
	contentDigest, etag, lastModified string
	content                           source.Content
	spellings                         schema.Spellings
}

const (
	isDue uint8 = 1 << iota
	isSpent
	isListed
)

func newRecord(k urlkey.Key, e *source.Entry, spellings schema.Spellings, s seq) record {
	r := record{
		hash: urlkey.Hash(k.Domain), seq: s, url: k.URL, host: k.Host, domain: k.Domain,
		priority: min(max(e.Priority, 0), 1000), depth: max(e.Depth, 0), fetches: e.Fetches,
		contentDigest: e.ContentDigest, etag: e.ETag, lastModified: e.LastModified, content: e.Content,
		spellings: spellings,
	}
	if e.Due {
		r.flags |= isDue
	}
	if e.Spent {
		r.flags |= isSpent
	}
	if e.Listed {
		r.flags |= isListed
	}
	return r
}

func (r *record) appendKey(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, r.hash)
	b = append(b, r.url...)
	b = append(b, 0)
	return binary.BigEndian.AppendUint64(b, uint64(r.seq))
}

// appendValue appends what the key does not say. Host and domain are stored as where
// they lie in the URL.
func (r *record) appendValue(b []byte) []byte {
	start := len("http://")
	if r.url[4] == 's' {
		start++
	}
	b = append(b, r.flags)
	b = binary.AppendUvarint(b, uint64(start))
	b = binary.AppendUvarint(b, uint64(len(r.host)))
	b = binary.AppendUvarint(b, uint64(domainOffset(r.host, r.domain)))
	b = binary.AppendUvarint(b, uint64(len(r.domain)))
	for _, n := range [...]int32{r.priority, r.depth, r.fetches} {
		b = binary.AppendUvarint(b, uint64(uint32(n)))
	}
	for _, s := range [...]string{r.contentDigest, r.etag, r.lastModified, r.content.Filename} {
		b = append(binary.AppendUvarint(b, uint64(len(s))), s...)
	}
	if r.content.Filename != "" {
		for _, n := range [...]int64{r.content.At, int64(r.content.Offset), int64(r.content.Length)} {
			b = binary.AppendUvarint(b, uint64(n))
		}
	}
	return appendTexts(b, r.spellings)
}

// appendTexts appends a list of texts, for fields.texts.
func appendTexts(b []byte, texts []string) []byte {
	b = binary.AppendUvarint(b, uint64(len(texts)))
	for _, s := range texts {
		b = append(binary.AppendUvarint(b, uint64(len(s))), s...)
	}
	return b
}

// domainOffset is where the domain begins in the host, whose port may follow it.
func domainOffset(host, domain string) int {
	if end := len(host) - len(domain); end > 0 {
		for i := end; i > 0; i-- {
			if host[i:i+len(domain)] == domain {
				return i
			}
		}
	}
	return 0
}

// splitKey takes a key apart.
func splitKey(key []byte) (hash uint64, url []byte, s seq, err error) {
	if len(key) < 17 {
		return 0, nil, 0, errRecord
	}
	end := len(key) - 8
	return binary.BigEndian.Uint64(key), key[8 : end-1], seq(binary.BigEndian.Uint64(key[end:])), nil
}

// parse reads what appendValue wrote of a URL. All strings share memory with url and value.
func (r *record) parse(url, value string) error {
	d := fields{rest: value}
	*r = record{url: url, flags: d.octet()}
	start, hostLen := d.number(), d.number()
	domainStart, domainLen := d.number(), d.number()
	r.priority, r.depth, r.fetches = int32(d.number()), int32(d.number()), int32(d.number())
	r.contentDigest, r.etag, r.lastModified, r.content.Filename = d.text(), d.text(), d.text(), d.text()
	if r.content.Filename != "" {
		r.content.At, r.content.Offset, r.content.Length = int64(d.number()), int32(d.number()), int32(d.number())
	}
	r.spellings = d.texts()
	if d.bad || start > 8 || hostLen > 1<<16 || start+hostLen > uint64(len(url)) || domainStart+domainLen > hostLen {
		return errRecord
	}
	r.host = url[start : start+hostLen]
	r.domain = r.host[domainStart : domainStart+domainLen]
	return nil
}

// planned is the row of a partition file.
func (r *record) planned() (schema.PlannedURL, error) {
	surt, err := urlkey.SURT(r.url)
	return schema.PlannedURL{
		URL: r.url, SURT: surt, Host: r.host, Domain: r.domain, Priority: r.priority, Depth: r.depth,
		ContentDigest: r.contentDigest, ETag: r.etag, LastModified: r.lastModified, Fetches: r.fetches,
		ContentAt: r.content.At, WARCFilename: r.content.Filename, WARCRecordOff: r.content.Offset, WARCRecordLen: r.content.Length,
		Spellings: r.spellings,
	}, err
}

// fields takes values off the front of what was encoded; once bad, it gives zeros.
type fields struct {
	rest string
	bad  bool
}

func (f *fields) octet() byte {
	if f.rest == "" {
		f.bad = true
		return 0
	}
	c := f.rest[0]
	f.rest = f.rest[1:]
	return c
}

func (f *fields) number() uint64 {
	var n uint64
	for shift := 0; shift < 64; shift += 7 {
		c := f.octet()
		n |= uint64(c&0x7f) << shift
		if c < 0x80 {
			return n
		}
	}
	f.bad = true
	return 0
}

func (f *fields) text() string {
	n := f.number()
	if n > uint64(len(f.rest)) {
		f.bad = true
		return ""
	}
	s := f.rest[:n]
	f.rest = f.rest[n:]
	return s
}

func (f *fields) texts() []string {
	n := f.number()
	if n > uint64(len(f.rest)) {
		f.bad = true
	}
	if f.bad || n == 0 {
		return nil
	}
	texts := make([]string, n)
	for i := range texts {
		texts[i] = f.text()
	}
	return texts
}
