package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
)

// Table is a table of URLs in an open database. Only one goroutine may use a Table. The caller must
// close the Table.
type Table struct {
	address  *Address
	db       *sql.DB
	dialect  dialect
	name     string // name as given
	parts    []string
	quoted   string
	columns  []column
	key      []column
	url      string  // name of the column of URLs, in quotes
	priority *column // column of priorities, nil if there is none
}

// Open connects to the database and finds the columns and the key of the table. Open does not retry.
// Errors wrap ErrUnusable or ErrLost.
func Open(ctx context.Context, a *Address) (_ *Table, err error) {
	connector, err := a.dialect.connector(a)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, ErrUnusable)
	}
	t := &Table{address: a, db: sql.OpenDB(connector), dialect: a.dialect, name: a.options["table"]}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.Close())
		}
	}()
	t.db.SetMaxOpenConns(1)
	if t.parts, err = partsOf(t.name); err != nil {
		return nil, err
	}
	t.quoted = quoteAll(t.dialect, t.parts)
	limited, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	err = t.inspect(limited)
	switch {
	case err == nil:
		return t, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case limited.Err() != nil:
		return nil, fmt.Errorf("the database at %s gives no answer within %v: %w", net.JoinHostPort(a.host, a.port), openTimeout, ErrLost)
	case errors.Is(err, ErrUnusable):
		return nil, err
	}
	return nil, advise(t.dialect, err)
}

// Name returns the name of the table as the address gives it.
func (t *Table) Name() string { return t.name }

// Close closes the connection.
func (t *Table) Close() error { return t.db.Close() }

// partsOf splits the name of a table, perhaps with the name of its schema.
func partsOf(name string) ([]string, error) {
	parts := strings.Split(name, ".")
	for _, p := range parts {
		if p == "" || len(parts) > 2 || strings.ContainsRune(name, 0) {
			return nil, fmt.Errorf("%q is no name of a table: write TABLE or SCHEMA.TABLE: %w", name, ErrUnusable)
		}
	}
	return parts, nil
}

// inspect finds the columns of the table that the options name.
func (t *Table) inspect(ctx context.Context) (err error) {
	if t.columns, err = t.dialect.columns(ctx, t.db, t.parts); err != nil {
		return err
	}
	if len(t.columns) == 0 {
		return fmt.Errorf("database %q has no table %q that this user may read: name another with table=: %w", t.address.database, t.name, ErrUnusable)
	}
	url, err := t.option("url")
	if err != nil {
		return err
	}
	t.url = t.dialect.quote(url.name)
	if t.address.options["priority"] == "" {
		t.priority = t.find("priority")
	} else if t.priority, err = t.option("priority"); err != nil {
		return err
	}
	if p := t.priority; p != nil && p.kind != integerKind && p.kind != numberKind {
		if t.address.options["priority"] != "" {
			return fmt.Errorf("column %q of table %q is of type %s: a priority is a number from 0 to 1000: %w", p.name, t.name, p.typ, ErrUnusable)
		}
		t.priority = nil
	}
	return t.findKey(ctx)
}

// find returns the column with the given name, or nil.
func (t *Table) find(name string) *column {
	for i := range t.columns {
		if t.dialect.sameName(t.columns[i].name, name) {
			return &t.columns[i]
		}
	}
	return nil
}

// option returns the column that an option of the address names.
func (t *Table) option(option string) (*column, error) {
	name := t.address.options[option]
	if c := t.find(name); c != nil {
		return c, nil
	}
	return nil, fmt.Errorf("table %q has no column %q: name another with %s=: it has %s: %w", t.name, name, option, t.columnNames(), ErrUnusable)
}

// columnNames lists the columns for an error.
func (t *Table) columnNames() string {
	var names []string
	for i, c := range t.columns {
		if i == 20 {
			names = append(names, fmt.Sprintf("and %d more", len(t.columns)-i))
			break
		}
		names = append(names, c.name)
	}
	return strings.Join(names, ", ")
}

// findKey chooses the unique key whose order the pages follow: the key that the address names, or
// the primary key.
func (t *Table) findKey(ctx context.Context) error {
	keys, err := t.dialect.uniqueKeys(ctx, t.db, t.parts)
	if err != nil {
		return err
	}
	given := t.address.options["key"]
	for _, k := range keys {
		if given == "" && !k.primary || given != "" && !t.sameColumns(k.columns, strings.Split(given, ",")) {
			continue
		}
		t.key = nil
		for _, name := range k.columns {
			c := t.find(name)
			if c == nil || !c.notNull || c.kind != integerKind && c.kind != textKind && c.kind != bytesKind {
				return fmt.Errorf("table %q: column %q of its key %q may be null, or is neither an integer nor a text: name another unique key with key=COLUMN,…: %w", t.name, name, k.name, ErrUnusable)
			}
			t.key = append(t.key, *c)
		}
		return nil
	}
	if given != "" {
		return fmt.Errorf("table %q has no unique key on exactly %s, in this order and on whole columns: pages without a unique key would lose rows: %w", t.name, given, ErrUnusable)
	}
	return fmt.Errorf("table %q has no primary key (a view has none): name a unique key with key=COLUMN,…: %w", t.name, ErrUnusable)
}

func (t *Table) sameColumns(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !t.dialect.sameName(a[i], strings.TrimSpace(b[i])) {
			return false
		}
	}
	return true
}

// keyNames returns the quoted columns of the key, each behind a prefix.
func (t *Table) keyNames(prefix string) []string {
	names := make([]string, len(t.key))
	for i, c := range t.key {
		names[i] = prefix + t.dialect.quote(c.name)
	}
	return names
}

// keyArgs returns the values of a key as arguments. An integer key is passed as an integer. If it
// were a text, the database would compare both as floating-point numbers.
func (t *Table) keyArgs(key []string) []any {
	args := make([]any, len(key))
	for i, text := range key {
		switch t.key[i].kind {
		case integerKind:
			if n, err := strconv.ParseInt(text, 10, 64); err == nil {
				args[i] = n
			} else if u, err := strconv.ParseUint(text, 10, 64); err == nil {
				args[i] = u
			} else {
				args[i] = text
			}
		case bytesKind:
			args[i] = []byte(text)
		default:
			args[i] = text
		}
	}
	return args
}
