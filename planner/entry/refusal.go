package entry

import (
	"strings"
	"unicode/utf8"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/urlkey"
)

// MaxText bounds the text of a line that is not a URL: the planner keeps at most MaxText bytes of the line.
const MaxText = 1024

// Excerpt returns the beginning of a text in a form for storage: valid UTF-8 of bounded length,
// without NULs and without the credentials of a URL.
func Excerpt(s string) string {
	s = urlkey.WithoutCredentials(s)
	if len(s) > MaxText {
		cut := MaxText
		for cut > MaxText-utf8.UTFMax && !utf8.RuneStart(s[cut]) {
			cut--
		}
		s = s[:cut]
	}
	s = strings.ToValidUTF8(s, "\ufffd")
	return strings.ReplaceAll(s, "\x00", "\ufffd")
}

// Refusal is a row of refused.parquet and the place of its entry.
type Refusal struct {
	schema.Refused
	Hash uint64 // hash of the domain
	Seq  Seq
}

// RefusalKey appends a key that orders refusals by domain hash, then by SURT, URL and place. The order of
// hashes is also the order of buckets.
func RefusalKey(k table.Key, r *Refusal) table.Key {
	return k.Uint(r.Hash).Text(r.SURT).Text(r.URL).Uint(uint64(r.Seq))
}
