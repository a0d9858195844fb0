package charset

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/transform"
)

// QueryEncoder encodes the queries of the references in a document in the document's character set, as
// the URL Standard requires for all character sets but UTF-8 and UTF-16 (5.2, "percent-encode after
// encoding"). Servers of such documents read the queries that way. A nil QueryEncoder leaves references
// unchanged. A QueryEncoder is not safe for concurrent use.
type QueryEncoder struct {
	e   *encoding.Encoder
	buf [256]byte
}

// NewQueryEncoder returns the QueryEncoder of documents in the character set that Decode returned under
// this name. For UTF-8, UTF-16 and an unknown or empty name it returns nil.
func NewQueryEncoder(name string) *QueryEncoder {
	if name == "UTF-8" || name == "replacement" || strings.HasPrefix(name, "UTF-16") {
		return nil
	}
	e, err := htmlindex.Get(name) // unlike package charset, without character references for missing characters
	if err != nil {
		return nil
	}
	return &QueryEncoder{e: e.NewEncoder()}
}

// Encode returns the reference with the characters outside ASCII of its query encoded and then
// percent-encoded. The path and the fragment stay unchanged. The reference is in UTF-8.
func (q *QueryEncoder) Encode(ref []byte) []byte {
	if q == nil {
		return ref
	}
	from := bytes.IndexByte(ref, '?')
	if from < 0 {
		return ref
	}
	to := bytes.IndexByte(ref, '#')
	if to < 0 {
		to = len(ref)
	}
	if from > to || ascii(ref[from:to]) {
		return ref
	}
	out := append(make([]byte, 0, 2*len(ref)), ref[:from]...)
	for i := from; i < to; {
		start, other := i, ref[i] >= utf8.RuneSelf
		for i < to && (ref[i] >= utf8.RuneSelf) == other {
			i++
		}
		if other {
			out = q.appendEncoded(out, ref[start:i])
		} else {
			out = append(out, ref[start:i]...)
		}
	}
	return append(out, ref[to:]...)
}

// appendEncoded appends characters outside ASCII. A character that the character set lacks becomes a
// percent-encoded character reference.
func (q *QueryEncoder) appendEncoded(out, run []byte) []byte {
	const hex = "0123456789ABCDEF"
	q.e.Reset()
	for {
		n, read, err := q.e.Transformer.Transform(q.buf[:], run, true)
		for _, c := range q.buf[:n] {
			if c <= ' ' || c >= 0x7F || strings.IndexByte(`"#<>'`, c) >= 0 { // the special-query percent-encode set
				out = append(out, '%', hex[c>>4], hex[c&15])
			} else {
				out = append(out, c)
			}
		}
		run = run[read:]
		switch err {
		case nil:
			return out
		case transform.ErrShortDst:
		default:
			r, size := utf8.DecodeRune(run)
			out = append(strconv.AppendInt(append(out, "%26%23"...), int64(r), 10), "%3B"...)
			run = run[size:]
		}
	}
}
