package external

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zeebo/xxh3"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/warc"
	"crawlbatch.io/crawlbatch/planner/source"
)

// A revisit's payload may be in a record before or after it, in any file, and tasks read only the records of
// their own URLs. Therefore the source resolves revisits while it reads the files for the plan: it writes a row
// for each response and revisit to scratch files, and after the last file it joins them by sorting. The plan's
// row then has two places, and no task needs to search. Memory is bounded by that of the sorters. Without
// revisits, the rows of responses are written once, and not sorted or read.
//
// A revisit wants a record in up to four ways. Rank says which of the records found it takes.
const (
	byID      int32 = iota // the record that WARC-Refers-To names
	byDate                 // the capture of a URL at a time: WARC-Refers-To-Target-URI and WARC-Refers-To-Date
	byOwnURL               // a record of the URL with the payload digest, as of crawlers that only compare captures of one URL
	byDigest               // any record with the payload digest
	byHistory              // the document before, of a 304 that says nothing of the above: a server compares only captures of one URL
)

// mostRounds bounds the length of a chain of revisits that refer to revisits. Most crawlers name the original.
const mostRounds = 8

// captured is a response or a revisit in the index. Names are hashed, so that rows are small.
type captured struct {
	N      int64  // place among all captures, in the order of files and records
	ID     string // hash of the record's ID
	URL    string // hash of the target URI
	Digest string // payload digest, as digestKey writes it
	At     int64  // time of the capture in Unix seconds: references to times often lack the fraction
	// Document tells that the status is one of those with which a later 304 can be compared.
	Document  bool
	Truncated bool

	// File, Offset and Length are the place of the record with the payload; of a revisit that is not resolved yet,
	// of the revisit. Length 0 means that the payload cannot be read.
	File           int32
	Offset, Length int64
}

// revisit is a revisit that waits for its payload.
type revisit struct {
	captured
	Text string // target URI
	Line int64
	Time schema.Time

	RefersTo    string // hash of the ID that the revisit names; "" for none
	RefersURL   string // hash of the URI
	RefersAt    int64
	HasRefersAt bool
	History     bool   // rank byHistory applies
	Named       string // text that tells a reader where the payload should be
}

// fact is a row of the join: a capture under one of its names, or a revisit's wish for a capture of that name.
type fact struct {
	captured
	Space int32  // what Name is
	Name  string // hash of an ID or a URL, or a digest
	Sub   string // by digest: the URL
	When  int64  // by URL: time, in seconds
	Class int32
	Rank  int32
	Wish  bool
	Open  bool // a revisit that waits itself
}

// The spaces of names.
const (
	spaceID int32 = iota
	spaceURL
	spaceDigest
)

// The classes of facts of a URL in one second. A revisit wants the capture before it, which is not itself.
const (
	classResponse int32 = iota
	classRevisit
	classExact
)

// lastSub comes after all hashes.
const lastSub = "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"

func factKey(k table.Key, f *fact) table.Key {
	return k.Int(int64(f.Space)).Text(f.Name).Text(f.Sub).Int(f.When).Int(int64(f.Class)).Int(f.N).Bool(!f.Wish)
}

// candidate is a capture that a revisit wants.
type candidate struct {
	captured       // the capture; N is the number of the revisit
	Rank     int32 // how the revisit named it
	Open     bool  // the capture is a revisit that waits itself
	Order    int64 // number of the capture
}

// candidateKey orders the candidates of a revisit: those that wait come last, those that cannot be read before them.
func candidateKey(k table.Key, c *candidate) table.Key {
	return k.Int(c.N).Bool(c.Open).Bool(c.Length == 0).Bool(c.Truncated).Int(int64(c.Rank)).Int(c.Order)
}

// sortMemory is the memory of one sorter, in bytes. At most six are in use at a time.
const sortMemory = 8 << 20

// index holds the captures of the files.
type index struct {
	scratch  string // directory
	captures *table.Sorter[captured]
	revisits *table.Sorter[revisit]
}

func newIndex(scratch string) (x *index, err error) {
	x = &index{scratch: scratch}
	if x.captures, err = table.NewSorter(scratch, func(k table.Key, c *captured) table.Key { return k.Int(c.N) }, sortMemory); err != nil {
		return nil, err
	}
	x.revisits, err = x.newRevisits()
	return x, err
}

func (x *index) newRevisits() (*table.Sorter[revisit], error) {
	return table.NewSorter(x.scratch, func(k table.Key, r *revisit) table.Key { return k.Int(r.N) }, sortMemory)
}

func (x *index) close() {
	x.captures.Close() //nolint:errcheck // scratch
	x.revisits.Close() //nolint:errcheck // scratch
}

// add adds a capture of the file with this number.
func (x *index) add(c *indexed, file int) error {
	n := x.captures.Len() + x.revisits.Len()
	if c.revisit != nil {
		c.revisit.N, c.revisit.File = n, int32(file)
		return x.revisits.Add(c.revisit)
	}
	c.captured.N, c.captured.File = n, int32(file)
	return x.captures.Add(c.captured)
}

// indexed is what the index holds of a record: one of both.
type indexed struct {
	captured *captured
	revisit  *revisit
}

// newIndexed describes record n of a file for the index. status is that of its HTTP head, or 0 if it has none. Of a
// response that is not readable, no revisit can have the payload.
func newIndexed(rec *warc.Entry, s *warc.Summary, at time.Time, status int, n int64, readable bool) *indexed {
	url := rec.TargetURI()
	c := captured{
		ID: hash(rec.ID()), URL: hash(url), Digest: digestKey(warc.Digest(rec.Header.Get(warc.FieldPayloadDigest))), At: at.Unix(),
		Document: status/100 == 2, Truncated: rec.Header.Get(warc.FieldTruncated) != "", Offset: s.Offset, Length: s.Length,
	}
	if !readable {
		c.Length = 0
	}
	if rec.Type != warc.Revisit {
		return &indexed{captured: &c}
	}
	ref, unmodified := rec.Header.Reference(), rec.Header.NotModified()
	c.Document = c.Document || unmodified || status == 0
	c.Truncated = false // says here that the payload is in another record
	if unmodified && ref.Digest.Of(nil) {
		c.Digest = "" // some versions of Heritrix wrote the digest of the 304's own empty body (HER-2080)
	}
	r := &revisit{
		captured: c, Text: url[:min(len(url), source.MaxURL)], Line: n, Time: schema.TimeOf(at), RefersTo: hash(ref.ID),
		RefersURL: hash(cmp.Or(ref.URI, url)), RefersAt: ref.Date.Unix(), HasRefersAt: !ref.Date.IsZero(),
	}
	// Without a digest, a date or an ID, "the same payload" may be that of any capture. But a 304 compares with the
	// last document that the crawler had of the URL.
	r.History = unmodified && c.Digest == "" && ref.ID == "" && !r.HasRefersAt
	r.Document = r.Document && !r.History // the next such 304 has the payload of the same document
	switch {
	case ref.URI != "" && r.HasRefersAt:
		r.Named = fmt.Sprintf("that of %.300s at %s", ref.URI, ref.Date.Format(time.RFC3339))
	case ref.URI != "" || ref.ID != "":
		r.Named = fmt.Sprintf("%.300s", cmp.Or(ref.URI, ref.ID))
	case ref.Digest != "" && c.Digest != "":
		r.Named = fmt.Sprintf("one with the payload digest %.200s", ref.Digest)
	default:
		r.Named = "an earlier one of this URL"
	}
	return &indexed{revisit: r}
}

// hash returns the key of a name, or "" for none.
func hash(name string) string {
	if name == "" {
		return ""
	}
	sum := xxh3.HashString128(name).Bytes()
	return string(sum[:])
}

// digestKey returns a digest in the form in which equal digests are equal, or "" for one of an unknown algorithm.
func digestKey(d warc.Digest) string {
	algorithm, sum, ok := d.Sum()
	if !ok {
		return ""
	}
	return algorithm + ":" + string(sum)
}

// contradict reports whether two digests cannot be of the same payload.
func contradict(a, b string) bool {
	return a != "" && b != "" && len(a) == len(b) && a != b // the lengths of the algorithms differ
}

// resolved is called for each revisit, with the capture that has its payload, or with the reason why there is none.
type resolved func(r *revisit, payload *captured, why string) error

// resolve finds the payloads of all revisits. Each round resolves revisits that refer to responses, or to revisits
// that an earlier round resolved.
func (x *index) resolve(ctx context.Context, done resolved) (err error) {
	known, err := table.NewSorter(x.scratch, func(k table.Key, c *captured) table.Key { return k.Int(c.N) }, sortMemory)
	if err != nil {
		return err
	}
	defer known.Close() //nolint:errcheck // scratch
	open, own := x.revisits, false
	for round := 1; open.Len() > 0; round++ {
		var left *table.Sorter[revisit]
		if left, err = x.round(ctx, open, known, round == mostRounds, done); err != nil {
			return err
		}
		stuck := left.Len() == open.Len()
		if own {
			open.Close() //nolint:errcheck // scratch
		}
		open, own = left, true
		if stuck { // the rest refer to each other
			break
		}
	}
	if own {
		defer open.Close() //nolint:errcheck // scratch
		for r, err := range open.Sorted(ctx) {
			if err == nil {
				err = done(&r, nil, "it refers to revisits that refer to each other")
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// round resolves what it can of the open revisits, adds them to known and returns the others.
func (x *index) round(ctx context.Context, open *table.Sorter[revisit], known *table.Sorter[captured], last bool, done resolved) (*table.Sorter[revisit], error) {
	facts, err := table.NewSorter(x.scratch, factKey, sortMemory)
	if err != nil {
		return nil, err
	}
	defer facts.Close() //nolint:errcheck // scratch
	if err := x.addFacts(ctx, facts, open, known); err != nil {
		return nil, err
	}
	found, err := table.NewSorter(x.scratch, candidateKey, sortMemory)
	if err != nil {
		return nil, err
	}
	defer found.Close() //nolint:errcheck // scratch
	if err := match(ctx, facts, found); err != nil {
		return nil, err
	}
	left, err := x.newRevisits()
	if err != nil {
		return nil, err
	}
	if err := choose(ctx, open, found, known, left, last, done); err != nil {
		left.Close() //nolint:errcheck // scratch
		return nil, err
	}
	return left, nil
}

// addFacts adds the captures and the wishes of open revisits.
func (x *index) addFacts(ctx context.Context, facts *table.Sorter[fact], open *table.Sorter[revisit], known *table.Sorter[captured]) error {
	for c, err := range x.captures.Sorted(ctx) {
		if err == nil {
			err = addCapture(facts, &c, classResponse, false)
		}
		if err != nil {
			return err
		}
	}
	for c, err := range known.Sorted(ctx) {
		if err == nil {
			err = addCapture(facts, &c, classRevisit, false)
		}
		if err != nil {
			return err
		}
	}
	for r, err := range open.Sorted(ctx) {
		if err == nil {
			err = addCapture(facts, &r.captured, classRevisit, true)
		}
		if err == nil {
			err = addWishes(facts, &r)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// addCapture adds a capture under its names.
func addCapture(facts *table.Sorter[fact], c *captured, class int32, open bool) error {
	f := fact{captured: *c, Class: class, Open: open, Space: spaceURL, Name: c.URL, When: c.At}
	err := facts.Add(&f)
	if f.When = 0; err == nil && c.ID != "" {
		f.Space, f.Name = spaceID, c.ID
		err = facts.Add(&f)
	}
	if err == nil && c.Digest != "" && class == classResponse { // a revisit with the digest has it from such a response too
		f.Space, f.Name, f.Sub = spaceDigest, c.Digest, c.URL
		err = facts.Add(&f)
	}
	return err
}

// addWishes adds what a revisit wants.
func addWishes(facts *table.Sorter[fact], r *revisit) error {
	var wishes []fact
	if r.RefersTo != "" {
		wishes = append(wishes, fact{Space: spaceID, Name: r.RefersTo, Class: classExact, Rank: byID})
	}
	if r.HasRefersAt {
		wishes = append(wishes, fact{Space: spaceURL, Name: r.RefersURL, When: r.RefersAt, Class: classExact, Rank: byDate})
	}
	if r.Digest != "" {
		wishes = append(wishes,
			fact{Space: spaceDigest, Name: r.Digest, Sub: r.RefersURL, Class: classExact, Rank: byOwnURL},
			fact{Space: spaceDigest, Name: r.Digest, Sub: lastSub, Class: classExact, Rank: byDigest})
	}
	if r.History {
		wishes = append(wishes, fact{Space: spaceURL, Name: r.URL, When: r.At, Class: classRevisit, Rank: byHistory})
	}
	for i := range wishes {
		wishes[i].captured, wishes[i].Wish = r.captured, true
		if err := facts.Add(&wishes[i]); err != nil {
			return err
		}
	}
	return nil
}

// match passes the captures of one name in their order, and gives each wish the best one so far.
func match(ctx context.Context, facts *table.Sorter[fact], found *table.Sorter[candidate]) error {
	var group fact // the first fact of the current name
	var first, ofURL, response, again, document *fact
	for f, err := range facts.Sorted(ctx) {
		if err != nil {
			return err
		}
		if f.Space != group.Space || f.Name != group.Name {
			group, first, ofURL, response, again, document = f, nil, nil, nil, nil, nil
		}
		if !f.Wish {
			first, ofURL = prefer(first, &f), prefer(sameURL(ofURL, f.Sub), &f)
			if f.Class == classResponse {
				response = prefer(sameTime(response, f.When), &f)
			} else {
				again = &f
			}
			if f.Document {
				document = &f
			}
			continue
		}
		var options [2]*fact
		switch f.Rank {
		case byID, byDigest:
			options[0] = first
		case byOwnURL:
			options[0] = sameURL(ofURL, f.Sub)
		case byDate:
			options = [2]*fact{sameTime(response, f.When), sameTime(again, f.When)}
		case byHistory:
			options[0] = document
		}
		for _, o := range options {
			if o == nil || o.N == f.N || contradict(o.Digest, f.Digest) {
				continue
			}
			c := candidate{captured: o.captured, Rank: f.Rank, Open: o.Open, Order: o.N}
			c.N = f.N
			if err := found.Add(&c); err != nil {
				return err
			}
		}
	}
	return nil
}

// prefer returns the better one of two captures of one name: that which can be read, and is whole.
func prefer(was, is *fact) *fact {
	if was == nil || was.Length == 0 && is.Length > 0 || was.Truncated && !is.Truncated && is.Length > 0 {
		return is
	}
	return was
}

func sameURL(f *fact, sub string) *fact {
	if f == nil || f.Sub != sub {
		return nil
	}
	return f
}

func sameTime(f *fact, when int64) *fact {
	if f == nil || f.When != when {
		return nil
	}
	return f
}

// choose gives each open revisit the best of the captures found. It adds a revisit to left if that must wait for
// another one, unless this is the last round.
func choose(ctx context.Context, open *table.Sorter[revisit], found *table.Sorter[candidate], known *table.Sorter[captured], left *table.Sorter[revisit], last bool, done resolved) error {
	candidates := table.Pull(found.Sorted(ctx))
	defer candidates.Close() //nolint:errcheck // closing a cursor returns no error
	for r, err := range open.Sorted(ctx) {
		if err != nil {
			return err
		}
		best, waits, err := bestOf(candidates, r.N)
		if err != nil {
			return err
		}
		why := ""
		switch {
		case best != nil && best.Length > 0:
			r.captured.Digest, r.captured.Truncated = cmp.Or(r.Digest, best.Digest), best.Truncated
		case waits && !last:
			if err := left.Add(&r); err != nil {
				return err
			}
			continue
		case waits:
			why = fmt.Sprintf("it refers to a revisit of a revisit …, more than %d deep", mostRounds)
		case best != nil:
			why = "the record with its payload cannot be read either, or was taken down"
		default:
			why = "no file has the record with its payload"
		}
		k := r.captured
		if k.Length = 0; why == "" {
			k.File, k.Offset, k.Length = best.File, best.Offset, best.Length
			err = done(&r, &best.captured, "")
		} else {
			err = done(&r, nil, why)
		}
		if err == nil {
			err = known.Add(&k)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// bestOf returns the best candidate of revisit n that does not wait itself, or nil, and whether there is one that waits.
func bestOf(candidates *table.Cursor[candidate], n int64) (best *candidate, waits bool, err error) {
	for {
		c, err := candidates.Peek()
		if err != nil || c == nil || c.N != n {
			return best, waits, err
		}
		if c.Open {
			waits = true
		} else if best == nil {
			first := *c
			best = &first
		}
		_, _ = candidates.Next() // skips the row that Peek returned
	}
}

// entry returns the entry of a revisit, from the result of resolve.
func (r *revisit) entry(files []string, payload *captured, why string) source.Entry {
	key := files[r.File]
	if why != "" {
		return brokenEntry(r.Text, key, r.Line, fmt.Sprintf("the record at %d is a revisit, without content: its payload is in another record (%s), but %s", r.Offset, r.Named, why))
	}
	return source.Entry{
		URL: r.Text, File: key, Line: r.Line, Due: true, Listed: true, Priority: source.DefaultPriority,
		Content: source.Content{
			At: r.Time, Filename: key, Offset: int32(r.Offset), Length: int32(r.Length),
			PayloadFilename: files[payload.File], PayloadOffset: int32(payload.Offset), PayloadLength: int32(payload.Length),
		},
	}
}

// errStop ends a sequence whose caller wants no more.
var errStop = errors.New("stop")
