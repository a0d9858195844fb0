package manifest

import (
	"bytes"
	"fmt"
	"slices"
)

// proofOf returns a pointer to a document's field Proof, or nil if documents of this kind have no
// proof.
func proofOf(d Document) *string {
	switch d := d.(type) {
	case *Checkpoint:
		return &d.Proof
	case *Result:
		return &d.Proof
	case *Active:
		return &d.Proof
	case *Crawls:
		return &d.Proof
	}
	return nil
}

// proven reports whether a decoded document's proof matches its encoding.
func proven(d Document, body []byte) bool {
	proof := proofOf(d)
	if proof == nil {
		return true
	}
	before, ok := bytes.CutSuffix(body, fmt.Appendf(nil, ",\n \"proof\": %q\n}\n", *proof))
	return ok && Digest(append(slices.Clip(before), "\n}\n"...)) == *proof
}
