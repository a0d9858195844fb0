package sqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"

	"github.com/lib/pq"
)

// postgreSQL is the dialect of PostgreSQL.
type postgreSQL struct{}

func (postgreSQL) port() string                       { return "5432" }
func (postgreSQL) variables() (user, password string) { return "PGUSER", "PGPASSWORD" }
func (postgreSQL) quote(name string) string           { return pq.QuoteIdentifier(name) }
func (postgreSQL) bind(n int) string                  { return fmt.Sprintf("$%d", n) }
func (postgreSQL) sameName(a, b string) bool          { return a == b }

func (postgreSQL) cut(column string, n int) string {
	return fmt.Sprintf("left(%s::text, %d)", column, n)
}

// postgresTLS are PostgreSQL's names for the values of the option tls.
var postgresTLS = map[string]string{tlsOffered: "verify-full", tlsVerify: "verify-full", tlsUnverified: "require", tlsOff: "disable"}

func (postgreSQL) connector(a *Address) (driver.Connector, error) {
	open := func(mode string) (driver.Connector, error) {
		quote := strings.NewReplacer(`\`, `\\`, `'`, `\'`)
		var dsn strings.Builder
		for _, s := range [][2]string{
			{"host", a.host}, {"port", a.port}, {"user", a.user}, {"password", a.password}, {"dbname", a.database}, {"sslmode", mode},
			{"connect_timeout", fmt.Sprint(int(connectTimeout.Seconds()))}, {"application_name", "crawlbatch"}, {"TimeZone", "UTC"},
		} {
			if s[1] != "" {
				fmt.Fprintf(&dsn, "%s='%s' ", s[0], quote.Replace(s[1]))
			}
		}
		return pq.NewConnector(dsn.String())
	}
	first, err := open(postgresTLS[a.options["tls"]])
	if err != nil || a.options["tls"] != tlsOffered {
		return first, err
	}
	plain, err := open(postgresTLS[tlsOff])
	return offeredTLS{first, plain}, err
}

// offeredTLS connects without TLS to a server that has none.
type offeredTLS struct{ encrypted, plain driver.Connector }

// Connect implements driver.Connector.
func (c offeredTLS) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.encrypted.Connect(ctx)
	if errors.Is(err, pq.ErrSSLNotSupported) {
		return c.plain.Connect(ctx)
	}
	return conn, err
}

// Driver implements driver.Connector.
func (c offeredTLS) Driver() driver.Driver { return c.plain.Driver() }

func (postgreSQL) final(err error) bool {
	var answer *pq.Error
	if !errors.As(err, &answer) {
		return false
	}
	// After errors of these classes, the same statement may succeed: connection exceptions, rolled
	// back transactions, insufficient resources, locks, and shutdown.
	switch answer.Code.Class() {
	case "08", "40", "53", "55", "57":
		return answer.Code == "57014" // the statement's own time limit ended it, and would end it again
	}
	return true
}

// regclass returns the argument of to_regclass.
func (d postgreSQL) regclass(table []string) string { return quoteAll(d, table) }

func (d postgreSQL) columns(ctx context.Context, db *sql.DB, table []string) ([]column, error) {
	rows, err := db.QueryContext(ctx, `SELECT a.attname, format_type(a.atttypid, NULL), CASE WHEN a.atttypid IN ('varchar'::regtype, 'bpchar'::regtype) THEN greatest(a.atttypmod - 4, 0) ELSE 0 END, a.attnotnull
		FROM pg_attribute a WHERE a.attrelid = to_regclass($1::text) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum`, d.regclass(table))
	return collect(rows, err, func(rows *sql.Rows) (c column, err error) {
		err = rows.Scan(&c.name, &c.typ, &c.length, &c.notNull)
		c.kind = d.kind(c.typ)
		return c, err
	})
}

func (postgreSQL) kind(typ string) kind {
	switch typ {
	case "smallint", "integer", "bigint":
		return integerKind
	case "numeric", "real", "double precision":
		return numberKind
	case "text", "character varying", "character", "citext", "uuid":
		return textKind
	case "bytea":
		return bytesKind
	case "timestamp with time zone", "timestamp without time zone":
		return timeKind
	}
	return otherKind
}

func (d postgreSQL) uniqueKeys(ctx context.Context, db *sql.DB, table []string) ([]uniqueKey, error) {
	rows, err := db.QueryContext(ctx, `SELECT c.relname, i.indisprimary, a.attname
		FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
		CROSS JOIN LATERAL unnest(i.indkey::int2[]) WITH ORDINALITY k(att, n)
		JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.att
		WHERE i.indrelid = to_regclass($1::text) AND i.indisunique AND i.indisvalid AND i.indpred IS NULL AND i.indexprs IS NULL AND k.n <= i.indnkeyatts
		ORDER BY NOT i.indisprimary, c.relname, k.n`, d.regclass(table))
	return collectKeys(rows, err)
}

func (d postgreSQL) createResults(t *Table, results string) []string {
	copies, names := make([]string, len(t.key)), make([]string, len(t.key))
	for i, c := range t.key {
		names[i] = d.quote(keyColumn(i))
		copies[i] = d.quote(c.name) + " AS " + names[i]
	}
	return []string{
		fmt.Sprintf("CREATE TABLE %s AS SELECT %s FROM %s WHERE false", results, strings.Join(copies, ", "), t.quoted),
		fmt.Sprintf(`ALTER TABLE %s ADD crawl text COLLATE "C" NOT NULL, ADD round int NOT NULL, ADD url text NOT NULL, ADD outcome text NOT NULL,
			ADD http_status smallint, ADD fetched_at timestamptz, ADD content_digest text, ADD PRIMARY KEY (%s, crawl, round)`, results, strings.Join(names, ", ")),
	}
}

func (postgreSQL) keepExisting() string { return " ON CONFLICT DO NOTHING" }

func (d postgreSQL) update(t *Table, results string, set []assignment, where string) string {
	sets := make([]string, len(set))
	for i, s := range set {
		sets[i] = fmt.Sprintf("%s = %s", d.quote(s.column), s.value("q."+d.quote(s.column)))
	}
	return fmt.Sprintf("UPDATE %s q SET %s FROM %s r WHERE %s AND %s", t.quoted, strings.Join(sets, ", "), results, t.joined(), where)
}
