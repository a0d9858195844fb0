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

// Digest is a labelled digest of a WARC header: algorithm, colon, value. crawlbatch writes "sha1:"
// with a base32 value, like Common Crawl. Other writers also use other algorithms, base16 and
// base64.
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

// Algorithm returns the label before the colon, in lower case.
func (d Digest) Algorithm() string {
	algorithm, _, _ := strings.Cut(string(d), ":")
	return strings.ToLower(algorithm)
}

// Value returns the part after the colon, as in the column content_digest of cc-index.
func (d Digest) Value() string {
	_, value, _ := strings.Cut(string(d), ":")
	return value
}

// hasher returns a new hash of d's algorithm, or nil for an unknown algorithm.
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

// matches compares the value of d with sum, encoded in base16, base32 or base64.
func (d Digest) matches(sum []byte) bool {
	v := strings.TrimSpace(d.Value())
	return strings.EqualFold(v, base32.StdEncoding.EncodeToString(sum)) ||
		strings.EqualFold(strings.TrimRight(v, "="), base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum)) ||
		strings.EqualFold(v, hex.EncodeToString(sum)) ||
		strings.TrimRight(v, "=") == base64.RawStdEncoding.EncodeToString(sum) ||
		strings.TrimRight(v, "=") == base64.RawURLEncoding.EncodeToString(sum)
}

// Verdict is the result of checking a digest.
type Verdict string

// The verdicts on digests.
const (
	// Withheld means that the record omits its payload on purpose (WARC-Truncated: unspecified). A
	// record with a withheld payload has no digest. Early versions of crawlbatch wrote the digest
	// of the omitted payload.
	Withheld Verdict = "withheld"
	// Unchecked means that the digest is missing, that its algorithm is unknown, or that the
	// payload of a revisit is in another record.
	Unchecked Verdict = "unchecked"
	// Matches means that the digest in the header is the digest of the record's bytes.
	Matches Verdict = "matches"
	// Differs means that the digest in the header is not the digest of the record's bytes.
	Differs Verdict = "differs"
)
