package namesearch

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/urlfilter"
	"crawlbatch.io/crawlbatch/formats/warc"
)

// Hit is a place that holds a name.
type Hit struct {
	Key string
	// Where says what in the object holds the name, without the name and without positions: "key",
	// "bytes", "column url", "dictionary of url", "statistics of url", "page index of url", "metadata",
	// "JSON at .entries.reason", "gzip", "WARC header of a response", "HTTP header of a response", "body of
	// a response", "URL filter", "Bloom filter of url".
	Where string
	Form  string // how the name is written
	Text  string // the name and what is around it
	Count int    // number of values of the object with this Where; Text and Form are those of the first
}

func (h Hit) String() string {
	return fmt.Sprintf("%s: %s (%s, %d times): %q", h.Key, h.Where, h.Form, h.Count, h.Text)
}

// maxObject bounds an object in memory. The stores of tests are small.
const maxObject = 1 << 30

// Search returns a Hit for each place in each object of the store, in the order of keys. It also returns
// the number of objects. An object that looks like Parquet or JSON but cannot be read is an error, so
// that nothing stays unsearched unnoticed.
func Search(ctx context.Context, b store.Bucket, names *Names) (hits []Hit, objects int, err error) {
	for info, err := range b.List(ctx, "") {
		if err != nil {
			return nil, objects, err
		}
		body, _, err := b.Get(ctx, info.Key, maxObject)
		if err != nil {
			return nil, objects, err
		}
		found, err := Object(info.Key, body, names)
		if err != nil {
			return nil, objects, fmt.Errorf("search %q: %w", info.Key, err)
		}
		hits, objects = append(hits, found...), objects+1
	}
	return hits, objects, nil
}

// Object is like Search for one object.
func Object(key string, body []byte, names *Names) ([]Hit, error) {
	s := &search{key: key, names: names, seen: map[string]int{}}
	s.text("key", []byte(key))
	s.text("key", []byte(strings.TrimSuffix(key, path.Ext(key)))) // in a.example.json, json is no label
	if len(names.words) == 0 {
		return nil, fmt.Errorf("no names to search for")
	}
	s.text("bytes", body)
	var err error
	switch {
	case bytes.HasPrefix(body, []byte("PAR1")):
		err = s.parquets(body)
	case bytes.HasPrefix(body, []byte{0x1f, 0x8b}):
		err = s.gzip(body)
	case strings.HasSuffix(key, ".json"):
		err = s.json(body)
	case strings.HasSuffix(key, ".bloom"):
		err = s.filter(body)
	}
	if strings.HasPrefix(key, "quarantine/") { // what was moved there may be damaged
		err = nil
	}
	return s.hits, err
}

type search struct {
	key   string
	names *Names
	hits  []Hit
	seen  map[string]int // index in hits of a Where
}

func (s *search) text(where string, text []byte) {
	if form, around, ok := s.names.find(text); ok {
		s.hit(where, form, around)
	}
}

func (s *search) hit(where, form, around string) {
	if i, ok := s.seen[where]; ok {
		s.hits[i].Count++
		return
	}
	s.seen[where] = len(s.hits)
	s.hits = append(s.hits, Hit{s.key, where, form, around, 1})
}

// parquets searches Parquet files that follow one another, as in a run.
func (s *search) parquets(body []byte) error {
	boundary := []byte("PAR1PAR1")
	for from := 0; from < len(body); {
		var end int
		var file *parquet.File
		var err error
		for at := from; ; {
			i := bytes.Index(body[at:], boundary)
			end = len(body)
			if i >= 0 {
				end = at + i + 4
			}
			if file, err = parquet.OpenFile(bytes.NewReader(body[from:end]), int64(end-from)); err == nil {
				break
			}
			if i < 0 {
				return err
			}
			at = end // the boundary was a coincidence of bytes
		}
		if err := s.parquet(file); err != nil {
			return err
		}
		from = end
	}
	return nil
}

func (s *search) parquet(f *parquet.File) error {
	for _, kv := range f.Metadata().KeyValueMetadata {
		s.text("metadata", []byte(kv.Key))
		s.text("metadata", []byte(kv.Value))
		if raw, err := base64.StdEncoding.DecodeString(kv.Value); err == nil {
			s.text("metadata", raw)
		}
	}
	for _, g := range f.Metadata().RowGroups {
		for _, c := range g.Columns {
			st := &c.MetaData.Statistics
			for _, v := range [][]byte{st.Min, st.Max, st.MinValue, st.MaxValue} {
				s.text("statistics of "+strings.Join(c.MetaData.PathInSchema, "."), v)
			}
		}
	}
	for i, index := range f.ColumnIndexes() {
		where := "page index of " + pathOf(f, i)
		for _, v := range append(append([][]byte{}, index.MinValues...), index.MaxValues...) {
			s.text(where, v)
		}
	}
	for _, g := range f.RowGroups() {
		for _, c := range g.ColumnChunks() {
			if err := s.chunk(f.Schema().Columns()[c.Column()], c); err != nil {
				return err
			}
		}
	}
	if slices.ContainsFunc(f.Schema().Columns(), func(c []string) bool { return c[0] == "first_ordinal" }) {
		return s.linkSets(f)
	}
	return nil
}

// linkSets searches the texts of encoded links, which share their first bytes with other texts.
func (s *search) linkSets(f *parquet.File) error {
	rows := parquet.NewGenericReader[schema.LinkSet](f)
	defer rows.Close() // nolint:errcheck // it was only read
	one := make([]schema.LinkSet, 1)
	for {
		n, err := rows.Read(one)
		if n == 1 {
			set := &one[0]
			if err := schema.EachLink(set.SourceSURT, set.Source, string(set.Links), func(l *schema.Link) error {
				for name, text := range map[string]string{"target": l.Target, "anchor": l.Anchor, "rel": l.Rel, "sent": l.Sent} {
					s.text("column links."+name, []byte(text))
				}
				return nil
			}); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// pathOf returns the name of the column of the i-th column index. The indexes of the columns of a row
// group follow one another.
func pathOf(f *parquet.File, i int) string {
	columns := f.Schema().Columns()
	return strings.Join(columns[i%len(columns)], ".")
}

func (s *search) chunk(column []string, c parquet.ColumnChunk) error {
	name := strings.Join(column, ".")
	if kind := c.Type().Kind(); kind != parquet.ByteArray && kind != parquet.FixedLenByteArray {
		return nil
	}
	if filter := c.BloomFilter(); filter != nil {
		if err := s.probe("Bloom filter of "+name, func(v string) (bool, error) { return filter.Check(parquet.ValueOf(v)) }); err != nil {
			return err
		}
	}
	pages := c.Pages()
	defer func() { _ = pages.Close() }()
	for {
		page, err := pages.ReadPage()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("column %s: %w", name, err)
		}
		if d := page.Dictionary(); d != nil {
			for i := range d.Len() {
				s.text("dictionary of "+name, d.Index(int32(i)).ByteArray())
			}
		}
		values := make([]parquet.Value, page.NumValues())
		n, err := page.Values().ReadValues(values)
		if err != nil && err != io.EOF {
			return fmt.Errorf("column %s: %w", name, err)
		}
		for _, v := range values[:n] {
			if !v.IsNull() {
				s.text("column "+name, v.ByteArray())
			}
		}
		parquet.Release(page)
	}
}

// probe asks a Bloom filter for the names. A filter may answer so by chance, so the caller judges by the
// Count.
func (s *search) probe(where string, holds func(string) (bool, error)) error {
	for _, p := range s.names.probes {
		ok, err := holds(p)
		if err != nil {
			return fmt.Errorf("%s: %w", where, err)
		}
		if ok {
			s.hit(where, "plain", p)
		}
	}
	return nil
}

func (s *search) filter(body []byte) error {
	f, err := urlfilter.Read(bytes.NewReader(body), int64(len(body)))
	if err != nil {
		return err
	}
	return s.probe("URL filter", func(v string) (bool, error) { return f.MayHold(v), nil })
}

// gzip searches a WARC file by its records, or another gzip file as text.
func (s *search) gzip(body []byte) error {
	z, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return err
	}
	s.text("gzip header", []byte(z.Name+"\x00"+z.Comment+"\x00"+string(z.Extra)))
	buffered := bufio.NewReader(z)
	start, err := buffered.Peek(5)
	if err != nil && err != io.EOF {
		return err
	}
	if !strings.HasSuffix(s.key, ".warc.gz") && string(start) != "WARC/" {
		text, err := io.ReadAll(buffered)
		if err != nil {
			return err
		}
		s.text("gzip", text)
		return nil
	}
	s.memberHeaders(body)
	r := warc.NewReader(bytes.NewReader(body), warc.ReaderOptions{})
	for {
		e, err := r.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		var head bytes.Buffer
		for _, f := range e.Header {
			fmt.Fprintf(&head, "%s: %s\r\n", f.Name, f.Value)
		}
		s.text("WARC header of a "+string(e.Type), head.Bytes())
		block, err := io.ReadAll(e)
		if err != nil {
			return err
		}
		http, body, _ := bytes.Cut(block, []byte("\r\n\r\n"))
		if e.Type != warc.Response && e.Type != warc.Request && e.Type != warc.Revisit {
			http, body = nil, block
		}
		s.text("HTTP header of a "+string(e.Type), http)
		s.text("body of a "+string(e.Type), body)
	}
}

// memberHeaders searches what the headers of gzip members hold besides the content.
func (s *search) memberHeaders(body []byte) {
	in := bufio.NewReader(bytes.NewReader(body))
	z := new(gzip.Reader)
	for z.Reset(in) == nil {
		z.Multistream(false)
		s.text("gzip header", []byte(z.Name+"\x00"+z.Comment+"\x00"+string(z.Extra)))
		if _, err := io.Copy(io.Discard, z); err != nil {
			return // the WARC reader reports it
		}
	}
}

// json searches the strings of a document, decoded, and what those in base64 encode.
func (s *search) json(body []byte) error {
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		return err
	}
	s.value("", v)
	return nil
}

func (s *search) value(at string, v any) {
	switch v := v.(type) {
	case string:
		s.text("JSON at "+at, []byte(v))
		if raw, err := base64.StdEncoding.DecodeString(v); err == nil {
			s.text("base64 in JSON at "+at, raw)
		}
	case []any:
		for _, e := range v {
			s.value(at, e)
		}
	case map[string]any:
		for k, e := range v {
			s.text("name in JSON at "+at, []byte(k))
			s.value(at+"."+k, e)
		}
	}
}
