package manifest

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
)

// proofSince is the first format that has the field Proof in documents and the field Blocks in
// Files.
const proofSince = 3

// blocks matches the field Blocks in an encoded document.
var blocks = regexp.MustCompile(`,\n *"blocks": "[^"]*"`)

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
	if *proof == "" {
		return d.header().Format < proofSince
	}
	before, ok := bytes.CutSuffix(body, fmt.Appendf(nil, ",\n \"proof\": %q\n}\n", *proof))
	return ok && Digest(append(slices.Clip(before), "\n}\n"...)) == *proof
}
