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

// Digest is a digest as in a WARC header: algorithm, colon, value. Like Common Crawl, crawlbatch
// writes "sha1:" and a value in base 32. Other writers also use other algorithms, base 16 and base 64.
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

// Algorithm returns the text before the colon, in lower case.
func (d Digest) Algorithm() string {
	algorithm, _, _ := strings.Cut(string(d), ":")
	return strings.ToLower(strings.TrimSpace(algorithm))
}

// Value returns the part after the colon, as in the column content_digest of cc-index.
func (d Digest) Value() string {
	_, value, _ := strings.Cut(string(d), ":")
	return value
}

// Sum returns the digest in a form that does not depend on how the value is written: in base 16, 32 or 64, in any
// letter case that the base allows, padded or not. It returns false if the algorithm is unknown, or if the value is
// not a digest of this algorithm. The name of the algorithm has no hyphen.
func (d Digest) Sum() (algorithm string, sum []byte, ok bool) {
	h := d.hasher()
	if h == nil {
		return "", nil, false
	}
	v := strings.TrimRight(strings.TrimSpace(d.Value()), "=")
	var err error
	switch n := h.Size(); len(v) { // the lengths of the encodings differ for each algorithm
	case hex.EncodedLen(n):
		sum, err = hex.DecodeString(v)
	case base32.StdEncoding.WithPadding(base32.NoPadding).EncodedLen(n):
		sum, err = base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(strings.ToUpper(v))
	case base64.RawStdEncoding.EncodedLen(n):
		sum, err = base64.RawStdEncoding.DecodeString(urlAlphabet.Replace(v))
	}
	// The decoders skip line ends and ignore surplus bits, of which another digest may be made.
	if err != nil || len(sum) != h.Size() || !d.matches(sum) {
		return "", nil, false
	}
	return strings.ReplaceAll(d.Algorithm(), "-", ""), sum, true
}

// urlAlphabet replaces the letters that base 64 for URLs has instead of those of plain base 64.
var urlAlphabet = strings.NewReplacer("-", "+", "_", "/")

// Of reports whether d is the digest of p. It is false if the algorithm is unknown.
func (d Digest) Of(p []byte) bool {
	h := d.hasher()
	if h == nil {
		return false
	}
	h.Write(p)
	return d.matches(h.Sum(nil))
}

// hasher returns a new hash of d's algorithm, or nil if the algorithm is unknown.
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

// matches reports whether the value of d is the encoding of sum in base 16, base 32 or base 64.
func (d Digest) matches(sum []byte) bool {
	v := strings.TrimSpace(d.Value())
	return strings.EqualFold(v, base32.StdEncoding.EncodeToString(sum)) ||
		strings.EqualFold(strings.TrimRight(v, "="), base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum)) ||
		strings.EqualFold(v, hex.EncodeToString(sum)) ||
		strings.TrimRight(v, "=") == base64.RawStdEncoding.EncodeToString(sum) ||
		strings.TrimRight(v, "=") == base64.RawURLEncoding.EncodeToString(sum)
}

// Reading is a way to find the payload in an HTTP message, other than that of WARC 1.1: the entity body to the
// end of the block, without chunk framing (section 6.3.2). Archives store decoded bodies under the header
// fields of the encoded ones, so Content-Length and Transfer-Encoding may describe other bytes than those
// that are stored.
type Reading string

const (
	ReadLength Reading = "length" // as many bytes of the body as the HTTP Content-Length says; more follow
	ReadFramed Reading = "framed" // the body of a message that says that it is chunked, with its framing
)

// Verdict is the result of checking a digest.
type Verdict string

// The verdicts on digests.
const (
	// Withheld means that the record omits its payload on purpose (WARC-Truncated: unspecified).
	// Such a record has no payload digest. Early versions of crawlbatch wrote the digest of the
	// omitted payload.
	Withheld Verdict = "withheld"
	// Unchecked means that there is no digest, that its algorithm is unknown, or that the payload
	// is not available: the record is a revisit, or the head of its message is too long.
	Unchecked Verdict = "unchecked"
	// Matches means that the digest in the header is the digest of the record's bytes.
	Matches Verdict = "matches"
	// Differs means that the digest in the header is not the digest of the record's bytes.
	Differs Verdict = "differs"
)
