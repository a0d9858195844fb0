package source

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"unicode/utf8"

	"crawlbatch.io/crawlbatch/formats/urltext"
	"crawlbatch.io/crawlbatch/planner/source/sqldb"
)

// Databases returns the openers of tables in databases, for Options.Schemes. The names are
// addresses of package sqldb. lookup reads the environment. Errors of the sources wrap those of
// package sqldb, and show no password.
func Databases(lookup func(string) (string, bool)) map[string]Opener {
	openers := map[string]Opener{}
	for _, scheme := range sqldb.Schemes() {
		openers[scheme] = func(_ context.Context, name string, o Options) (Source, error) {
			a, err := sqldb.Parse(name, lookup)
			if err != nil {
				return nil, fmt.Errorf("source: %w", err)
			}
			a.Tell = o.Tell
			return &sqlTable{a}, nil
		}
	}
	return openers
}

type sqlTable struct{ address *sqldb.Address }

func (s *sqlTable) Name() string { return s.address.Name() }

// Entries implements Source. A null URL becomes an entry that is not a URL, so that the planner
// refuses and lists it like a line that is not a URL.
func (s *sqlTable) Entries(ctx context.Context) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		n, more := int64(0), true
		err := s.each(ctx, func(row *sqldb.Row) bool {
			n = row.N
			e := Entry{File: s.Name(), Line: n, Key: keyText(row.Key), Due: true, Listed: true, Priority: priorityOf(row)}
			if e.URL, e.Broken = urlOf([]byte(row.URL), urltext.Field); row.Null {
				e.URL = "NULL"
			}
			more = yield(e, nil)
			return more
		})
		if err == nil && n == 0 {
			err = s.empty()
		}
		if err != nil && more {
			yield(Entry{}, fmt.Errorf("source %q: %w", s.Name(), err))
		}
	}
}

// empty returns the error of a table that gives no row. With a condition, it is not the end of a plan
// from several sources: a queue may have no pending rows.
func (s *sqlTable) empty() error {
	if s.address.HasWhere() {
		return fmt.Errorf("%w: check where=, or plan again when rows of the table meet it", ErrNoMatch)
	}
	return fmt.Errorf("the table has no rows: fill it, or name another with table=: %w", sqldb.ErrUnusable)
}

// keyText returns the values of a key as one text. Bytes that are no text become hexadecimal digits.
func keyText(key []string) string {
	shown := slices.Clone(key)
	for i, v := range shown {
		if !utf8.ValidString(v) {
			shown[i] = fmt.Sprintf("0x%X", v)
		}
	}
	return strings.Join(shown, ",")
}

// each calls visit with each row until visit returns false.
func (s *sqlTable) each(ctx context.Context, visit func(*sqldb.Row) bool) (err error) {
	t, err := sqldb.Open(ctx, s.address)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	for row, err := range t.Rows(ctx, MaxURL) {
		if err != nil || !visit(&row) {
			return err
		}
	}
	return nil
}

// priorityOf returns the priority of a row on the scale of Entry.
func priorityOf(row *sqldb.Row) int32 {
	p := row.Priority.Float64
	if !row.Priority.Valid || p != p {
		return DefaultPriority
	}
	return int32(min(max(p, 0), 1000))
}
