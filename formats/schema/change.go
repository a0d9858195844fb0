package schema

import (
	"crypto/sha1"
	"encoding/binary"
	"math/bits"
)

// Change says how an answer of a URL differs from the URL's last capture. A capture is a page without
// the page_hint soft_404. Answers are pages, and the statuses 304, 404 and 410. The last capture is
// that of the crawl's earlier rounds and of the crawls that it continues.
type Change string

// The changes. CaptureFacts.Compare tells the first four from each other.
const (
	ChangeNew      Change = "new"      // no earlier round has an answer with content
	ChangeNone     Change = "none"     // equal payload, or 304
	ChangeCosmetic Change = "cosmetic" // another payload with the same main text
	ChangeText     Change = "text"     // another main text
	ChangeGone     Change = "gone"     // 404, 410 or a page with the hint soft_404, after a capture
)

// Changes lists all changes.
var Changes = []Change{ChangeNew, ChangeNone, ChangeCosmetic, ChangeText, ChangeGone}

// CaptureFacts holds the facts of a capture that the next capture of its URL is compared with.
type CaptureFacts struct {
	ContentDigest string // SHA-1 of the payload
	TextDigest    string // SHA-1 of the normalised main text; empty for an empty text
	SimHash       int64  // SimHash of the normalised main text
	TitleHash     int64  // see TitleHash
	LinkSketch    LinkSketch
}

// Compare compares a capture with the last capture before it. distance is the number of differing bits
// of both SimHashes, 0 to 64. titleChanged reports whether the titles differ.
func (c *CaptureFacts) Compare(last *CaptureFacts) (change Change, distance int32, titleChanged bool) {
	change = ChangeText
	switch {
	case c.ContentDigest == last.ContentDigest:
		change = ChangeNone
	case c.TextDigest == last.TextDigest:
		change = ChangeCosmetic
	}
	return change, int32(bits.OnesCount64(uint64(c.SimHash) ^ uint64(last.SimHash))), c.TitleHash != last.TitleHash
}

// TitleHash returns the first 64 bits of a title's SHA-1, or 0 for a page without a title.
func TitleHash(title string) int64 {
	if title == "" {
		return 0
	}
	sum := sha1.Sum([]byte(title))
	return int64(binary.BigEndian.Uint64(sum[:]))
}
