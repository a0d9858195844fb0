package records

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/formats/warc"
	"crawlbatch.io/crawlbatch/stages"
)

// archived makes a store with WARC files of n records each, and returns the records' places.
func archived(t *testing.T, files, n int) (store.Bucket, []Place) {
	t.Helper()
	b, err := dirstore.Open(filepath.Join(t.TempDir(), "store"), dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var places []Place
	for f := range files {
		var out bytes.Buffer
		w := warc.NewWriter(&out)
		key := fmt.Sprintf("warc/file-%d.warc.gz", f)
		for i := range n {
			at, err := w.Write(&warc.Record{
				Type: warc.Response, Date: time.Unix(1, 0), TargetURI: fmt.Sprintf("http://a.test/%d/%d", f, i),
				Block: [][]byte{fmt.Appendf(nil, "HTTP/1.1 200 OK\r\n\r\nbody %d of %d %s", i, f, strings.Repeat("x", i%50))},
			})
			if err != nil {
				t.Fatal(err)
			}
			places = append(places, Place{key, at.Offset, at.Length})
		}
		if _, err := store.CreateBytes(t.Context(), b, key, out.Bytes()); err != nil {
			t.Fatal(err)
		}
	}
	return b, places
}

func docs(places []Place) iter.Seq2[*Place, error] {
	return func(yield func(*Place, error) bool) {
		for _, p := range places {
			if !yield(&p, nil) {
				return
			}
		}
	}
}

func TestDocumentsComeInTheirOrderWithTheirRecords(t *testing.T) {
	b, places := archived(t, 3, 700)
	// The places are out of order, and some occur twice.
	slices.Reverse(places)
	places = append(places, places[:50]...)
	a := NewArchive(b, 1<<20)
	defer a.Close()
	var emitted []Place
	err := Each(t.Context(), a, docs(places), Steps[Place]{
		Places: func(p *Place) []Place { return []Place{*p} },
		Work: func(d *Decoder, p *Place, raws []Raw) error {
			r, err := d.Record(&raws[0], 1<<20)
			if err != nil {
				return err
			}
			var f, i int
			if _, err := fmt.Sscanf(r.URL, "http://a.test/%d/%d", &f, &i); err != nil {
				return err
			}
			if !bytes.Contains(r.Block, fmt.Appendf(nil, "body %d of %d ", i, f)) || !strings.Contains(p.File, fmt.Sprint(f)) {
				return fmt.Errorf("%s at %d: %q", r.URL, p.Offset, r.Block)
			}
			return nil
		},
		Emit: func(p *Place) error { emitted = append(emitted, *p); return nil },
	})
	if err != nil || !slices.Equal(emitted, places) {
		t.Errorf("%d of %d documents came, or in another order: %v", len(emitted), len(places), err)
	}
	if a.Ranges() > 12 {
		t.Errorf("%d ranges were read for %d records", a.Ranges(), len(places))
	}
}

func TestARecordThatIsNotWholeIsItsDocumentsTrouble(t *testing.T) {
	b, places := archived(t, 1, 5)
	beyond, amid, short := places[4], places[1], places[2]
	beyond.Offset += 1 << 20
	amid.Offset++
	short.Length -= 9
	wrong := []Place{places[0], beyond, amid, short, {places[0].File, -1, 10}, {places[0].File, 0, 0}, places[3]}
	a := NewArchive(b, 1<<20)
	defer a.Close()
	var good []bool
	err := Each(t.Context(), a, docs(wrong), Steps[Place]{
		Places: func(p *Place) []Place { return []Place{*p} },
		Work: func(d *Decoder, p *Place, raws []Raw) error {
			_, err := d.Record(&raws[0], 1<<20)
			if err != nil && !errors.Is(err, ErrDamaged) {
				return err
			}
			if err != nil {
				p.File = "" // the empty name marks a failure
			}
			return nil
		},
		Emit: func(p *Place) error { good = append(good, p.File != ""); return nil },
	})
	if want := []bool{true, false, false, false, false, false, true}; err != nil || !slices.Equal(good, want) {
		t.Errorf("read %v, want %v: %v", good, want, err)
	}
}

func TestAnErrorOfAnyStepEndsAll(t *testing.T) {
	b, places := archived(t, 1, 600)
	boom := errors.New("boom")
	for name, c := range map[string]struct {
		steps  Steps[Place]
		places []Place
		want   error
	}{
		"work":  {Steps[Place]{Work: func(*Decoder, *Place, []Raw) error { return boom }}, places, boom},
		"fault": {Steps[Place]{Work: func(*Decoder, *Place, []Raw) error { panic(boom) }}, places, stages.ErrFault},
		"emit":  {Steps[Place]{Emit: func(*Place) error { return boom }}, places, boom},
		"file":  {Steps[Place]{}, []Place{{"warc/none.warc.gz", 0, 10}}, store.ErrNotFound},
	} {
		c.steps.Places = func(p *Place) []Place { return []Place{*p} }
		if c.steps.Work == nil {
			c.steps.Work = func(*Decoder, *Place, []Raw) error { return nil }
		}
		if c.steps.Emit == nil {
			c.steps.Emit = func(*Place) error { return nil }
		}
		a := NewArchive(b, 1<<20)
		if err := Each(t.Context(), a, docs(c.places), c.steps); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		a.Close()
	}
	ctx, stop := context.WithCancel(t.Context())
	n := 0
	a := NewArchive(b, 1<<20)
	defer a.Close()
	err := Each(ctx, a, docs(places), Steps[Place]{
		Places: func(p *Place) []Place { return []Place{*p} },
		Work:   func(*Decoder, *Place, []Raw) error { return nil },
		Emit: func(*Place) error {
			if n++; n == 3 {
				stop()
			}
			return nil
		},
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("stopped: %v", err)
	}
}

func TestOfALongRecordOnlyTheBeginningIsRead(t *testing.T) {
	var out bytes.Buffer
	w := warc.NewWriter(&out)
	noise := make([]byte, 1<<20) // incompressible
	for i, x := 0, uint32(1); i < len(noise); i++ {
		x = x*1664525 + 1013904223
		noise[i] = byte(x >> 24)
	}
	at, err := w.Write(&warc.Record{Type: warc.Response, Date: time.Unix(1, 0), TargetURI: "http://a.test/", Block: [][]byte{[]byte("HTTP/1.1 200 OK\r\n\r\n"), noise}})
	if err != nil {
		t.Fatal(err)
	}
	b, err := dirstore.Open(filepath.Join(t.TempDir(), "store"), dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.CreateBytes(t.Context(), b, "long.warc.gz", out.Bytes()); err != nil {
		t.Fatal(err)
	}
	a := NewArchive(b, 200<<10)
	defer a.Close()
	raws, err := a.load(t.Context(), []Place{{"long.warc.gz", 0, at.Length}})
	if err != nil {
		t.Fatal(err)
	}
	var d Decoder
	r, err := d.Record(&raws[0], 100<<10)
	if err != nil || !r.Cut || len(r.Block) != 100<<10 || !bytes.Equal(r.Block[19:], noise[:100<<10-19]) {
		t.Errorf("%d bytes, cut %t: %v", len(r.Block), r.Cut, err)
	}
}

// FuzzRecord decodes any bytes as a record.
func FuzzRecord(f *testing.F) {
	var out bytes.Buffer
	w := warc.NewWriter(&out)
	if _, err := w.Write(&warc.Record{Type: warc.Response, Date: time.Unix(1, 0), TargetURI: "http://a.test/", Block: [][]byte{[]byte("HTTP/1.1 200 OK\r\n\r\nbody")}}); err != nil {
		f.Fatal(err)
	}
	f.Add(out.Bytes(), true)
	f.Add([]byte("WARC/1.1\r\nWARC-Type: response\r\nWARC-Date: 2026-11-01\r\nContent-Length: 99999999999999\r\n\r\nHTTP/1.1 200 OK\r\n\r\n"), false)
	f.Fuzz(func(t *testing.T, member []byte, cut bool) {
		var d Decoder
		raw := Raw{Place: Place{"f", 0, int64(len(member))}, Bytes: member, Cut: cut}
		if r, err := d.Record(&raw, 1<<10); err != nil && !errors.Is(err, ErrDamaged) || err == nil && len(r.Block) > 1<<10 {
			t.Errorf("%v", err)
		}
	})
}
