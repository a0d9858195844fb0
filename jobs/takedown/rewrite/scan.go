package rewrite

import (
	"context"
	"io"
	"strings"
	"unsafe"

	"github.com/parquet-go/parquet-go"

	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table/window"
)

// scan looks through those columns of a Parquet file that may name a target, without making rows. It
// reports whether a row may change by the rules of its columns, or points to a record that became a
// tombstone. If no row changes, mentions is the number of cells of others that name a target. Most
// files name nothing, so scan decides how long a takedown takes.
func (r *Rewriter) scan(obj store.Object, cells []cell) (affected bool, mentions int64, err error) {
	win, err := window.Open(obj, window.WholeBytes, false)
	if err != nil {
		return false, 0, err
	}
	defer win.CatchDamage(&err)
	f, err := parquet.OpenFile(win, win.Size(), parquet.SkipMagicBytes(true), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true), parquet.ReadBufferSize(16<<10))
	if err != nil {
		return false, 0, err
	}
	rules := map[string]rule{}
	for _, c := range cells {
		rules[c.name] = c.rule
	}
	for i, g := range f.RowGroups() {
		var chunks []parquet.ColumnChunk
		var found []rule
		var extents []window.Extent
		for at, chunk := range g.ColumnChunks() {
			m := &f.Metadata().RowGroups[i].Columns[at].MetaData
			name := m.PathInSchema[0]
			ru, named := rules[name]
			if !named && len(r.Removed) > 0 && strings.HasSuffix(name, "warc_filename") {
				ru, named = rule{noName, null}, true
			}
			if named {
				chunks, found = append(chunks, chunk), append(found, ru)
				extents = append(extents, window.ExtentOf(m.DataPageOffset, m.DictionaryPageOffset, m.TotalCompressedSize))
			}
		}
		if err := win.Enter(extents); err != nil {
			return false, 0, err
		}
		for at, chunk := range chunks {
			n, err := eachText(chunk, r.namedBy(found[at]))
			if err != nil || n > 0 && found[at].effect != keep {
				return true, 0, err
			}
			mentions += n
		}
	}
	return false, mentions, nil
}

// namedBy returns a function that reports whether a text of a column with the given rule names a target. A
// column without a name has files of WARC records.
func (r *Rewriter) namedBy(ru rule) func([]byte) bool {
	switch ru.form {
	case noName:
		return func(b []byte) bool { return len(r.Removed[string(b)]) > 0 }
	case text:
		return r.Matcher.Mentions
	}
	// The matcher keeps no part of the text, which is valid until the next page.
	return func(b []byte) bool { return ru.form.names(r.Matcher, unsafe.String(unsafe.SliceData(b), len(b))) }
}

// eachText returns the number of values of a column chunk for which named is true. It asks once for each
// entry of a dictionary.
func eachText(c parquet.ColumnChunk, named func([]byte) bool) (n int64, err error) {
	if c.Type().Kind() != parquet.ByteArray {
		return 0, nil
	}
	pages := c.Pages()
	defer pages.Close() // nolint:errcheck // they were only read
	var values [256]parquet.Value
	var entries []bool // of the dictionary; nil until it is read
	some := false      // an entry is named
	for {
		p, err := pages.ReadPage()
		if err == io.EOF {
			return n, nil
		}
		if err != nil {
			return n, err
		}
		d := p.Dictionary()
		if d != nil && entries == nil {
			entries = make([]bool, d.Len())
			for i := range entries {
				entries[i] = named(d.Index(int32(i)).ByteArray())
				some = some || entries[i]
			}
		}
		if d == nil || some {
			m, err := count(p.Values(), values[:], named)
			if n += m; err != nil {
				return n, err
			}
		}
		parquet.Release(p)
	}
}

func count(in parquet.ValueReader, values []parquet.Value, named func([]byte) bool) (n int64, err error) {
	for {
		m, err := in.ReadValues(values)
		for _, v := range values[:m] {
			if !v.IsNull() && named(v.ByteArray()) {
				n++
			}
		}
		if err == io.EOF {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}

// quick is scan of an object of the store, or of a section of one. Damage counts as affected: reading
// the rows then says what is wrong.
func (r *Rewriter) quick(ctx context.Context, open func() (store.Object, error), cells []cell) (affected bool, mentions int64, err error) {
	obj, err := open()
	if err != nil {
		return false, 0, err
	}
	defer obj.Close() // nolint:errcheck // it was only read
	if affected, mentions, err = r.scan(obj, cells); err != nil && ctx.Err() == nil {
		return true, 0, nil
	}
	return affected, mentions, err
}
