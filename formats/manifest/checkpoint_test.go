package manifest

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
)

// checkpoint returns a valid checkpoint of three URLs in two files.
func checkpoint(t *testing.T) *Checkpoint {
	t.Helper()
	recorded, err := roaring.BitmapOf(0, 2, 7).ToBytes()
	if err != nil {
		t.Fatal(err)
	}
	return &Checkpoint{
		Plan: "p", Epoch: 2, Counter: 17, Recorded: recorded,
		Files:  []File{{Dataset: "fetches", Key: "a", Rows: 1}, {Dataset: "fetches", Key: "b", Rows: 2}, {Dataset: "pages", Key: "c", Rows: 9}},
		Counts: []Count{{"outcome.deferred", 1}, {"outcome.ok", 2}, {"pages", 9}, {"urls", 3}},
	}
}

func TestACheckpointProvesEveryByteOfItself(t *testing.T) {
	body, err := Encode(checkpoint(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := Decode("k", body, &Checkpoint{}); err != nil {
		t.Fatal(err)
	}
	for i := range body {
		for _, flip := range []byte{1, 0x20} {
			changed := bytes.Clone(body)
			changed[i] ^= flip
			if err := Decode("k", changed, &Checkpoint{}); !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrFormat) {
				t.Fatalf("byte %d changed: %v\n%s", i, err, changed)
			}
		}
	}
	without := bytes.Replace(body, []byte(",\n \"proof\""), []byte(",\n \"prove\""), 1)
	if err := Decode("k", without, &Checkpoint{}); !errors.Is(err, ErrCorrupt) {
		t.Errorf("without a proof: %v", err)
	}
}

func TestSumsOfACheckpointAgree(t *testing.T) {
	if err := checkpoint(t).Check(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(c *Checkpoint){
		"no bitmap":       func(c *Checkpoint) { c.Recorded = nil },
		"no counts":       func(c *Checkpoint) { c.Counts = nil },
		"a file less":     func(c *Checkpoint) { c.Files = c.Files[1:] },
		"a file twice":    func(c *Checkpoint) { c.Files[2] = c.Files[1] },
		"rows of a file":  func(c *Checkpoint) { c.Files[0].Rows++ },
		"an outcome less": func(c *Checkpoint) { c.Counts[0].N-- },
		"a URL more":      func(c *Checkpoint) { c.Counts[3].N++ },
	} {
		c := checkpoint(t)
		change(c)
		err := c.Check()
		if !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		} else if !strings.Contains(err.Error(), "twice") && !strings.Contains(err.Error(), "sums disagree") {
			t.Errorf("%s: %v does not say what disagrees", name, err)
		}
	}
}

func TestPositionsAreReadBack(t *testing.T) {
	p := Position{2, 17}
	if got, ok := ParsePosition(p.String()); got != p || !ok {
		t.Errorf("%q: %v, %t", p.String(), got, ok)
	}
	for _, s := range []string{"", "2", "2.", ".17", "2.17 ", "02.17", "2.x", "2.1.7"} {
		if got, ok := ParsePosition(s); ok {
			t.Errorf("%q is read as %v", s, got)
		}
	}
	if p.Compare(Position{3, 1}) >= 0 || p.Compare(Position{2, 16}) <= 0 || p.Compare(p) != 0 {
		t.Error("Compare does not order positions by swaps")
	}
}
