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

// Digest is a labelled digest as a WARC header holds it: the algorithm, a
// colon, the value. crawlbatch writes "sha1:" with base32, as Common Crawl
// does; others write other algorithms, and base16 or base64.
type Digest string

// DigestOf gives the SHA-1 digest of the concatenation of parts.
func DigestOf(parts ...[]byte) Digest {
	h := sha1.New()
	for _, p := range parts {
		h.Write(p)
	}
	return sha1Digest(h)
}

func sha1Digest(h hash.Hash) Digest {
	var sum [sha1.Size]byte
	return Digest("sha1:" + base32.StdEncoding.EncodeToString(h.Sum(sum[:0])))
}

// Algorithm is the label before the colon, in lower case.
func (d Digest) Algorithm() string {
	algorithm, _, _ := strings.Cut(string(d), ":")
	return strings.ToLower(algorithm)
}

// Value is what follows the colon: the column content_digest of cc-index.
func (d Digest) Value() string {
	_, value, _ := strings.Cut(string(d), ":")
	return value
}

// hasher makes the hash of d's algorithm, or nil if it is not a known one.
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

// is tells whether d's value is sum, in whichever of the usual encodings.
func (d Digest) is(sum []byte) bool {
	v := strings.TrimSpace(d.Value())
	return strings.EqualFold(v, base32.StdEncoding.EncodeToString(sum)) ||
		strings.EqualFold(strings.TrimRight(v, "="), base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum)) ||
		strings.EqualFold(v, hex.EncodeToString(sum)) ||
		strings.TrimRight(v, "=") == base64.RawStdEncoding.EncodeToString(sum) ||
		strings.TrimRight(v, "=") == base64.RawURLEncoding.EncodeToString(sum)
}

// Verdict is what checking a digest came to.
type Verdict string

// The verdicts.
const (
	// Withheld: the record says that its payload was left out, and holds none
	// (WARC-Truncated: unspecified). It gives no digest, or, as crawlbatch wrote them
	// at first, that of what was left out.
	Withheld Verdict = "withheld"
	// Unchecked: the record has no such digest, or one of an unknown
	// algorithm, or one that is not of anything in the record (a revisit's payload).
	Unchecked Verdict = "unchecked"
	// Matches: what the record holds has the digest that its header gives.
	Matches Verdict = "matches"
	// Differs: it has another one.
	Differs Verdict = "differs"
)
