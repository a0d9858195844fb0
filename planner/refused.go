package planner

import (
	"context"
	"encoding/binary"
	"errors"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/planner/source"
)

// maxText bounds the text that is kept of a line that is no URL, in octets.
const maxText = 1024

// reasonOf is the skip reason for an error of package urlkey.
func reasonOf(err error) schema.SkipReason {
	switch {
	case errors.Is(err, urlkey.ErrScheme):
		return schema.SkipScheme
	case errors.Is(err, urlkey.ErrTooLong):
		return schema.SkipTooLong
	}
	return schema.SkipNotURL
}

// detailOf says what the reason alone does not.
func detailOf(err error) string {
	if errors.Is(err, urlkey.ErrHost) {
		return urlkey.ErrHost.Error()
	}
	return ""
}

// excerpt is a bounded piece of text, valid UTF-8 without NULs, and without
// credentials if it is meant for a URL.
func excerpt(s string) string {
	s = urlkey.WithoutCredentials(s)
	if len(s) > maxText {
		cut := maxText
		for cut > maxText-utf8.UTFMax && !utf8.RuneStart(s[cut]) {
			cut--
		}
		s = s[:cut]
	}
	s = strings.ToValidUTF8(s, "\ufffd")
	return strings.ReplaceAll(s, "\x00", "\ufffd")
}

// refusals are the rows of refused.parquet in the making, sorted by the bucket of
// their domain (however many buckets there will be), SURT, URL and place.
type refusals struct {
	out    *builder
	counts map[schema.SkipReason]int64
	key    []byte
	value  []byte
}

func newRefusals(r *runs, limit int64) *refusals {
	return &refusals{out: r.builder(limit), counts: map[schema.SkipReason]int64{}}
}

// text refuses an entry that is no URL.
func (r *refusals) text(e *source.Entry, s seq, reason schema.SkipReason, detail string) error {
	return r.add(0, &schema.Refused{URL: excerpt(e.URL), Reason: reason, Detail: detail, Source: e.File, Line: e.Line, Depth: e.Depth}, s)
}

// url refuses a URL; the row has its keys yet to come.
func (r *refusals) url(k urlkey.Key, s seq, row *schema.Refused) error {
	row.URL, row.SURT, row.Domain = k.URL, k.SURT, k.Domain
	return r.add(urlkey.Hash(k.Domain), row, s)
}

func (r *refusals) add(hash uint64, row *schema.Refused, s seq) error {
	r.counts[row.Reason]++
	k := binary.BigEndian.AppendUint64(r.key[:0], hash)
	k = append(append(k, row.SURT...), 0)
	k = append(append(k, row.URL...), 0)
	r.key = binary.BigEndian.AppendUint64(k, uint64(s))
	v := r.value[:0]
	for _, t := range [...]string{row.SURT, row.URL, row.Domain, string(row.Reason), row.Detail, row.Source} {
		v = append(binary.AppendUvarint(v, uint64(len(t))), t...)
	}
	v = binary.AppendUvarint(v, uint64(row.Line))
	v = binary.AppendUvarint(v, uint64(uint32(row.Depth)))
	r.value = appendTexts(v, row.Spellings)
	return r.out.add(r.key, r.value)
}

func parseRefused(value string) (schema.Refused, error) {
	f := fields{rest: value}
	row := schema.Refused{SURT: f.text(), URL: f.text(), Domain: f.text()}
	row.Reason = schema.SkipReason(f.text())
	row.Detail, row.Source = f.text(), f.text()
	row.Line, row.Depth, row.Spellings = int64(f.number()), int32(f.number()), f.texts()
	if f.bad {
		return row, errRecord
	}
	return row, nil
}

// writeRefused writes refused.parquet to scratch space.
func writeRefused(ctx context.Context, dir string, r *runs) (_ table.Local, err error) {
	w, err := table.NewWriter[schema.Refused](filepath.Join(dir, "refused.parquet"))
	if err != nil {
		return table.Local{}, err
	}
	defer w.Abort()
	for rec, err := range r.sorted(ctx) {
		if err != nil {
			return table.Local{}, err
		}
		row, err := parseRefused(string(rec[1]))
		if err != nil {
			return table.Local{}, err
		}
		if err := w.Append(&row); err != nil {
			return table.Local{}, err
		}
	}
	return w.Close()
}
