package sqldb

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"crawlbatch.io/crawlbatch/formats/schema"
)

// Result is the outcome of a round for one row of a table of URLs.
type Result struct {
	Key        []string // key of the row
	URL        string   // canonical URL
	Outcome    string
	HTTPStatus int16       // 0 without a response
	FetchedAt  schema.Time // 0 if nothing was requested
	Digest     string
}

// A batch of results is one INSERT. Both servers allow 65,535 arguments, and a packet of at least 16
// MiB unless the server is set up otherwise.
const (
	batchRows      = 4000
	batchArguments = 65_535
	batchBytes     = 1 << 20
)

// Results is the result table beside a table of URLs. It has a row for each outcome that a round gave
// to a row of the table of URLs.
type Results struct {
	table  *Table
	name   string // as a user writes it
	quoted string
	set    []assignment
}

// assignment sets a column of the table of URLs.
type assignment struct {
	column string
	from   string // column of the result table
	keeps  bool   // a null does not replace a value
}

// value returns the new value of the column, as SQL. old is the SQL of the present value.
func (s assignment) value(old string) string {
	if s.keeps {
		return fmt.Sprintf("coalesce(r.%s, %s)", s.from, old)
	}
	return "r." + s.from
}

// keyColumn returns the name of the n-th column of the key in the result table.
func keyColumn(n int) string { return fmt.Sprintf("key%d", n+1) }

// digestLength is the number of characters of a digest, SHA-1 in base 32.
const digestLength = 32

// outcomeLength returns the number of characters of the longest outcome.
func outcomeLength() (n int64) {
	for _, o := range schema.Outcomes {
		n = max(n, int64(len(o)))
	}
	return n
}

// OpenResults finds the columns that outcomes update, and makes the result table if there is none.
func (t *Table) OpenResults(ctx context.Context) (*Results, error) {
	status, err := t.option("status")
	if err != nil {
		return nil, err
	}
	if status.kind != textKind || status.length > 0 && status.length < outcomeLength() {
		return nil, fmt.Errorf("column %q of table %q is of type %s: outcomes such as robots_unreachable need a text of %d characters: name another with status=: %w", status.name, t.name, status.typ, outcomeLength(), ErrUnusable)
	}
	r := &Results{table: t, name: t.address.options["results"], set: []assignment{{status.name, "outcome", false}}}
	for _, c := range []struct {
		name  string
		kind  kind
		least int64
		keeps bool
	}{{"http_status", integerKind, 0, false}, {"fetched_at", timeKind, 0, true}, {"content_digest", textKind, digestLength, true}} {
		if have := t.find(c.name); have != nil && have.kind == c.kind && (have.length == 0 || have.length >= c.least) {
			r.set = append(r.set, assignment{have.name, c.name, c.keeps})
		}
	}
	if r.name == "" {
		r.name = t.name + "_results"
	}
	parts, err := partsOf(r.name)
	if err != nil {
		return nil, err
	}
	r.quoted = quoteAll(t.dialect, parts)
	err = r.create(ctx, parts)
	return r, err
}

// create makes the result table unless it exists.
func (r *Results) create(ctx context.Context, parts []string) error {
	t := r.table
	wrap := func(err error) error { return fmt.Errorf("table %q: %w: %w", r.name, err, ErrUnusable) }
	have, err := t.dialect.columns(ctx, t.db, parts)
	if err != nil {
		return wrap(err)
	}
	if len(have) > 0 {
		if n := len(r.columns()); len(have) != n {
			return fmt.Errorf("table %q is no result table for the key of %q: it has %d columns, not %d: remove it, or name another with results=: %w", r.name, t.name, len(have), n, ErrUnusable)
		}
		return nil
	}
	tx, err := t.db.BeginTx(ctx, nil)
	if err != nil {
		return wrap(err)
	}
	defer tx.Rollback() //nolint:errcheck // after Commit there is nothing to roll back
	for _, s := range t.dialect.createResults(t, r.quoted) {
		if _, err := tx.ExecContext(ctx, s); err != nil {
			return wrap(err)
		}
	}
	if err := tx.Commit(); err != nil {
		return wrap(err)
	}
	return nil
}

// Name returns the name of the result table.
func (r *Results) Name() string { return r.name }

// Columns returns the names of the columns that Apply updates.
func (r *Results) Columns() []string {
	names := make([]string, len(r.set))
	for i, s := range r.set {
		names[i] = s.column
	}
	return names
}

// Full reports whether a batch for Apply, with the given number of rows and the given bytes of texts,
// should take no more rows.
func (r *Results) Full(rows, bytes int) bool {
	return rows >= min(batchRows, batchArguments/len(r.columns())) || bytes >= batchBytes
}

// columns returns the quoted columns of the result table in the order of the arguments of insert.
func (r *Results) columns() []string {
	var names []string
	for i := range r.table.key {
		names = append(names, r.table.dialect.quote(keyColumn(i)))
	}
	return append(names, "crawl", "round", "url", "outcome", "http_status", "fetched_at", "content_digest")
}

// joined returns the condition that joins a row q of the table with a row r of the result table.
func (t *Table) joined() string {
	on := make([]string, len(t.key))
	for i, name := range t.keyNames("q.") {
		on[i] = name + " = r." + t.dialect.quote(keyColumn(i))
	}
	return strings.Join(on, " AND ")
}

// Apply stores a batch of results of a round for ascending keys, and updates the rows with these
// keys, in one transaction. If the result table has an outcome of a newer round for a row, the row
// keeps its values. A stored result has also been applied, so Apply skips it. Apply returns the
// number of stored and of updated rows. It repeats a transaction that the server or a lost
// connection has ended.
func (r *Results) Apply(ctx context.Context, crawl string, round int, results []Result) (stored, updated int64, err error) {
	if len(results) == 0 {
		return 0, 0, nil
	}
	for try := 0; ; try++ {
		stored, updated, err = r.applyOnce(ctx, crawl, round, results)
		if err == nil {
			return stored, updated, nil
		}
		if err = r.table.pauseBeforeRetry(ctx, err, try, fmt.Sprintf("results of round %s.%d up to the key %.100q", crawl, round, results[0].Key)); err != nil {
			return 0, 0, err
		}
	}
}

func (r *Results) applyOnce(ctx context.Context, crawl string, round int, results []Result) (stored, updated int64, err error) {
	// Two rounds may be applied at the same time, and each must see the results of the other.
	tx, err := r.table.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelSerializable})
	if err != nil {
		return 0, 0, err
	}
	defer tx.Rollback() //nolint:errcheck // after Commit there is nothing to roll back
	missing, some, err := r.missing(ctx, tx, crawl, round, results)
	if err != nil || len(missing) == 0 {
		return 0, 0, err
	}
	insert := r.insert(crawl, round, missing)
	if _, err := tx.ExecContext(ctx, insert.String(), insert.args...); err != nil {
		return 0, 0, err
	}
	join := r.newStatement()
	// The condition on the table's own key keeps a server without statistics from scanning the table.
	where := r.inRange(join, crawl, round, missing) + " AND " + r.betweenKeys(join, r.table.keyNames("q."), missing)
	if some {
		tuples := make([]string, len(missing))
		for i, one := range missing {
			tuples[i] = join.tuple(r.table.keyArgs(one.Key))
		}
		where += fmt.Sprintf(" AND (%s) IN (%s)", strings.Join(r.table.keyNames("q."), ", "), strings.Join(tuples, ", "))
	}
	newer := make([]string, len(r.table.key))
	for i := range newer {
		name := r.table.dialect.quote(keyColumn(i))
		newer[i] = "n." + name + " = r." + name
	}
	where += fmt.Sprintf(" AND NOT EXISTS (SELECT 1 FROM %s n WHERE %s AND (n.crawl > r.crawl OR n.crawl = r.crawl AND n.round > r.round))", r.quoted, strings.Join(newer, " AND "))
	done, err := tx.ExecContext(ctx, r.table.dialect.update(r.table, r.quoted, r.set, where), join.args...)
	if err != nil {
		return 0, 0, err
	}
	if updated, err = done.RowsAffected(); err != nil {
		return 0, 0, err
	}
	return int64(len(missing)), updated, tx.Commit()
}

// missing returns those results that the result table does not have. It also reports whether the round
// has some results in the range of keys.
func (r *Results) missing(ctx context.Context, tx *sql.Tx, crawl string, round int, results []Result) (missing []Result, some bool, err error) {
	s := r.newStatement()
	keys := r.columns()[:len(r.table.key)]
	fmt.Fprintf(s, "SELECT %s FROM %s r WHERE %s", strings.Join(keys, ", "), r.quoted, r.inRange(s, crawl, round, results))
	rows, err := tx.QueryContext(ctx, s.String(), s.args...)
	key := make([]string, len(keys))
	into := make([]any, len(keys))
	for i := range key {
		into[i] = &key[i]
	}
	stored, err := collect(rows, err, func(rows *sql.Rows) (string, error) {
		err := rows.Scan(into...)
		return fmt.Sprintf("%q", key), err
	})
	if err != nil || len(stored) == 0 {
		return results, false, err
	}
	have := make(map[string]bool, len(stored))
	for _, k := range stored {
		have[k] = true
	}
	for _, one := range results {
		if !have[fmt.Sprintf("%q", one.Key)] {
			missing = append(missing, one)
		}
	}
	return missing, true, nil
}

func (r *Results) newStatement() *statement { return &statement{dialect: r.table.dialect} }

// inRange returns the condition that a row r of the result table belongs to the round, and that its key
// lies between the keys of the first and the last result.
func (r *Results) inRange(s *statement, crawl string, round int, results []Result) string {
	var keys []string
	for i := range r.table.key {
		keys = append(keys, "r."+r.table.dialect.quote(keyColumn(i)))
	}
	return fmt.Sprintf("%s AND r.crawl = %s AND r.round = %s", r.betweenKeys(s, keys, results), s.bind(crawl), s.bind(int64(round)))
}

// betweenKeys returns the condition that a key lies between the keys of the first and the last
// result.
func (r *Results) betweenKeys(s *statement, columns []string, results []Result) string {
	first, last := r.table.keyArgs(results[0].Key), r.table.keyArgs(results[len(results)-1].Key)
	return fmt.Sprintf("(%s) AND (%s)", s.keyCondition(columns, ">=", first), s.keyCondition(columns, "<=", last))
}

// insert returns the statement that stores results. It does not change results that are already
// stored.
func (r *Results) insert(crawl string, round int, results []Result) *statement {
	s := r.newStatement()
	fmt.Fprintf(s, "INSERT INTO %s (%s) VALUES ", r.quoted, strings.Join(r.columns(), ", "))
	for i, one := range results {
		if i > 0 {
			s.WriteString(", ")
		}
		values := append(r.table.keyArgs(one.Key), crawl, int64(round), one.URL, one.Outcome, nullable(one.HTTPStatus), nil, nullable(one.Digest))
		if one.FetchedAt != 0 {
			values[len(values)-2] = one.FetchedAt.Time().Format("2006-01-02 15:04:05.000")
		}
		s.WriteString(s.tuple(values))
	}
	s.WriteString(r.table.dialect.keepExisting())
	return s
}

// nullable returns the value as an argument, or null for the zero value.
func nullable[T comparable](v T) any {
	var zero T
	if v == zero {
		return nil
	}
	if n, ok := any(v).(int16); ok {
		return int64(n)
	}
	return v
}
