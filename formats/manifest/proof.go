package manifest

import (
	"bytes"
	"fmt"
	"math"
	"regexp"
	"slices"
)

// blocksSince is the format since which a File may have Blocks.
const blocksSince = 4

// blocks matches the field Blocks in an encoded document.
var blocks = regexp.MustCompile(`,\n *"blocks": "[^"]*"`)

// proofOf returns the field of a document that proves its other fields, and the format since
// which documents of the kind have a proof. For other documents nothing reads the field.
func proofOf(d Document) (proof *string, since int) {
	switch d := d.(type) {
	case *Checkpoint:
		return &d.Proof, 3
	case *Result:
		return &d.Proof, 4
	}
	return new(string), math.MaxInt
}

// proven reports whether a decoded document's proof matches its encoding.
func proven(d Document, body []byte) bool {
	proof, since := proofOf(d)
	if *proof == "" {
		return d.header().Format < since
	}
	before, ok := bytes.CutSuffix(body, fmt.Appendf(nil, ",\n \"proof\": %q\n}\n", *proof))
	return ok && Digest(append(slices.Clip(before), "\n}\n"...)) == *proof
}
