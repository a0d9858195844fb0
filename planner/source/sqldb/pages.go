package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"net"
	"slices"
	"strings"
	"time"
)

// Row is a row of a table of URLs.
type Row struct {
	N        int64    // number of the row in the order of the key, from 1
	Key      []string // values of the key's columns, as texts
	URL      string   // at most as many bytes as the caller of Rows asked for
	Null     bool     // the URL is null
	Priority sql.NullFloat64
}

// Rows yields the rows in the order of the key. It cuts each URL to maxURL bytes. After a lost
// connection, Rows connects again and continues after the last row. An error ends the sequence. It
// wraps ErrUnusable, ErrLost or the error of ctx.
func (t *Table) Rows(ctx context.Context, maxURL int) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		r := reader{Table: t, maxURL: maxURL, yield: yield}
		if err := r.run(ctx); err != nil {
			yield(Row{}, err)
		}
	}
}

// reader reads the pages of a table.
type reader struct {
	*Table
	maxURL  int
	yield   func(Row, error) bool
	n       int64    // number of rows so far
	last    []string // key of the last row
	stopped bool     // the caller wants no more rows
}

// run reads page after page. After an error it repeats the rest of the page.
func (r *reader) run(ctx context.Context) error {
	for try := 0; ; {
		before, beforeKey := r.n, r.last
		n, err := r.page(ctx)
		switch {
		case r.stopped:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil && n < pageRows:
			return nil
		case err == nil && slices.Equal(r.last, beforeKey):
			return fmt.Errorf("where= makes the server repeat rows after row %d: does it close a parenthesis that it did not open? %w", before, ErrUnusable)
		case err == nil:
			try = 0
			continue
		}
		if r.n > before {
			try = 0
		}
		if err := r.pauseBeforeRetry(ctx, err, try, fmt.Sprintf("after row %d%s", r.n, r.place())); err != nil {
			return err
		}
		try++
	}
}

// pauseBeforeRetry waits before a failed operation is repeated. If the operation must not be
// repeated, it returns the final error. The error begins with the value of where, the place at which
// the operation stopped.
func (t *Table) pauseBeforeRetry(ctx context.Context, failed error, try int, where string) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(failed, ErrLost):
		return fmt.Errorf("%s: %w", where, failed)
	case t.dialect.final(failed):
		return fmt.Errorf("%s: %w: %w", where, failed, ErrUnusable)
	case try+1 >= lostTries:
		return fmt.Errorf("%s (tried %d times): %w: %w", where, try+1, failed, ErrLost)
	}
	return t.address.sleep(ctx, try)
}

// place describes the last key.
func (r *reader) place() string {
	if r.last == nil {
		return ""
	}
	parts := make([]string, len(r.last))
	for i, v := range r.last {
		parts[i] = fmt.Sprintf("%s=%.100q", r.key[i].name, v)
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// errSilent is the error of a server that keeps the connection but gives no row.
var errSilent = fmt.Errorf("no row within %v: %w", pageTimeout, ErrLost)

// page yields the rows of one page and returns their number.
//
// A page that gives no row for pageTimeout ends with an error that wraps ErrLost.
func (r *reader) page(ctx context.Context) (n int, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(pageTimeout, func() { cancel(errSilent) })
	defer silence.Stop()
	if tell, a := r.address.Tell, r.address; tell != nil {
		why := fmt.Sprintf("the database works on the rows after row %d; the plan waits up to %v for the next row", r.n, pageTimeout)
		slow := time.AfterFunc(slowPage, func() { tell(net.JoinHostPort(a.host, a.port), why) })
		defer slow.Stop()
	}
	defer func() {
		if err != nil && context.Cause(ctx) == errSilent {
			err = errSilent
		}
	}()
	s := r.statement()
	rows, err := r.db.QueryContext(ctx, s.String(), s.args...)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	var url sql.NullString
	var priority sql.NullFloat64
	for rows.Next() {
		key := make([]string, len(r.key))
		into := make([]any, 0, len(key)+2)
		for i := range key {
			into = append(into, &key[i])
		}
		if into = append(into, &url); r.priority != nil {
			into = append(into, &priority)
		}
		if err := rows.Scan(into...); err != nil {
			return n, err
		}
		n++
		r.n, r.last = r.n+1, key
		row := Row{N: r.n, Key: key, URL: url.String[:min(len(url.String), r.maxURL)], Null: !url.Valid, Priority: priority}
		if !r.yield(row, nil) {
			r.stopped = true
			return n, nil
		}
		silence.Reset(pageTimeout)
	}
	return n, rows.Err()
}

// statement returns the query of the next page. A line break follows the condition of the user, so
// that a comment at the condition's end does not hide the rest of the query.
func (r *reader) statement() *statement {
	s := &statement{dialect: r.dialect}
	keys := r.keyNames("")
	fmt.Fprintf(s, "SELECT %s, %s", strings.Join(keys, ", "), r.dialect.cut(r.url, r.maxURL))
	if r.priority != nil {
		fmt.Fprintf(s, ", %s", r.dialect.quote(r.priority.name))
	}
	fmt.Fprintf(s, " FROM %s", r.quoted)
	and := " WHERE "
	if r.last != nil {
		fmt.Fprintf(s, "%s(%s)", and, s.keyCondition(keys, ">", r.keyArgs(r.last)))
		and = " AND "
	}
	if where := r.address.options["where"]; where != "" {
		fmt.Fprintf(s, "%s(%s\n)", and, where)
	}
	// PostgreSQL refuses a text of several statements only if the text has arguments. Therefore, the
	// number of rows is an argument.
	fmt.Fprintf(s, " ORDER BY %s LIMIT %s", strings.Join(keys, ", "), s.bind(int64(pageRows)))
	return s
}
