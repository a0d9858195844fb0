package warc

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"hash"
	"strings"
)

// Digest is a labelled digest of a WARC header: algorithm, colon, value. crawlbatch
// writes "sha1:" with base32, like Common Crawl. Other writers use other algorithms, and
// base16 or base64.
type Digest string

// DigestOf returns the SHA-1 digest of the concatenation of parts.
func DigestOf(parts ...[]byte) Digest {
	h := sha1.New()
	for _, p := range parts {
		h.Write(p)
	}
	var sum [sha1.Size]byte
	return Digest("sha1:" + base32.StdEncoding.EncodeToString(h.Sum(sum[:0])))
}

// Algorithm is the label before the colon, in lower case.
func (d Digest) Algorithm() string {
	algorithm, _, _ := strings.Cut(string(d), ":")
	return strings.ToLower(algorithm)
}

// Value is the part after the colon: the column content_digest of cc-index.
func (d Digest) Value() string {
	_, value, _ := strings.Cut(string(d), ":")
	return value
}

// hasher returns a new hash of d's algorithm, or nil if that is unknown.
func (d Digest) hasher() hash.Hash {
	switch d.Algorithm() {
	case "sha1", "sha-1":
		return sha1.New()
	case "sha256", "sha-256":
		return sha256.New()
	case "sha512", "sha-512":
		return sha512.New()
	case "md5":
		return md5.New()
	}
	return nil
}

// is reports whether d's value is sum in one of the usual encodings.
func (d Digest) is(sum []byte) bool {
	v := strings.TrimSpace(d.Value())
	return strings.EqualFold(v, base32.StdEncoding.EncodeToString(sum)) ||
		strings.EqualFold(strings.TrimRight(v, "="), base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum)) ||
		strings.EqualFold(v, hex.EncodeToString(sum)) ||
		strings.TrimRight(v, "=") == base64.RawStdEncoding.EncodeToString(sum) ||
		strings.TrimRight(v, "=") == base64.RawURLEncoding.EncodeToString(sum)
}

// Verdict is the result of checking a digest.
type Verdict string

// The verdicts.
const (
	// Withheld: the record says that it omits its payload, and has none (WARC-Truncated:
	// unspecified). It has no digest. Records of early versions of crawlbatch have the digest of
	// the omitted payload.
	Withheld Verdict = "withheld"
	// Unchecked: the digest is missing, its algorithm is unknown, or the digested bytes are in
	// another record (a revisit's payload).
	Unchecked Verdict = "unchecked"
	// Matches: the digest in the header is that of the bytes.
	Matches Verdict = "matches"
	// Differs: the bytes have another digest.
	Differs Verdict = "differs"
)
