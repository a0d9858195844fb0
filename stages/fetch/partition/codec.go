package partition

import (
	"encoding/binary"
	"errors"

	"crawlbatch.io/crawlbatch/formats/schema"
)

// appendPlanned encodes a row for the scratch file.
func appendPlanned(b []byte, r *schema.PlannedURL) []byte {
	for _, s := range []string{r.URL, r.SURT, r.Host, r.Domain, r.ContentDigest, r.ETag, r.LastModified, r.WARCFilename} {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	for _, n := range []int32{r.Priority, r.Depth, r.Fetches, r.WARCRecordOff, r.WARCRecordLen} {
		b = binary.AppendVarint(b, int64(n))
	}
	b = binary.AppendVarint(b, r.ContentAt)
	b = binary.AppendUvarint(b, uint64(len(r.Spellings)))
	for _, s := range r.Spellings {
		b = append(binary.AppendUvarint(b, uint64(len(s))), s...)
	}
	return b
}

var errScratch = errors.New("a scratch file is damaged")

func decodePlanned(b []byte) (r schema.PlannedURL, err error) {
	text := func() (s string, ok bool) {
		n, k := binary.Uvarint(b)
		if k <= 0 || n > uint64(len(b)-k) {
			return "", false
		}
		s, b = string(b[k:k+int(n)]), b[k+int(n):]
		return s, true
	}
	ok := true
	for _, s := range []*string{&r.URL, &r.SURT, &r.Host, &r.Domain, &r.ContentDigest, &r.ETag, &r.LastModified, &r.WARCFilename} {
		if *s, ok = text(); !ok {
			return r, errScratch
		}
	}
	for _, p := range []*int32{&r.Priority, &r.Depth, &r.Fetches, &r.WARCRecordOff, &r.WARCRecordLen} {
		n, k := binary.Varint(b)
		if k <= 0 {
			return r, errScratch
		}
		*p, b = int32(n), b[k:]
	}
	n, k := binary.Varint(b)
	if k <= 0 {
		return r, errScratch
	}
	r.ContentAt, b = n, b[k:]
	left, k := binary.Uvarint(b)
	if k <= 0 {
		return r, errScratch
	}
	for b = b[k:]; left > 0; left-- {
		s, ok := text()
		if !ok {
			return r, errScratch
		}
		r.Spellings = append(r.Spellings, s)
	}
	return r, nil
}
