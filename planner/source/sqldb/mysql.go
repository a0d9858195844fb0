package sqldb

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/go-sql-driver/mysql"
)

// mySQL is the dialect of MySQL and MariaDB.
type mySQL struct{}

func (mySQL) port() string                       { return "3306" }
func (mySQL) variables() (user, password string) { return "MYSQL_USER", "MYSQL_PWD" }
func (mySQL) quote(name string) string           { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }
func (mySQL) bind(int) string                    { return "?" }
func (mySQL) sameName(a, b string) bool          { return strings.EqualFold(a, b) }

func (mySQL) cut(column string, n int) string { return fmt.Sprintf("LEFT(%s, %d)", column, n) }

func (mySQL) connector(a *Address) (driver.Connector, error) {
	c := mysql.NewConfig()
	c.User, c.Passwd, c.DBName = a.user, a.password, a.database
	c.Net, c.Addr, c.Timeout = "tcp", net.JoinHostPort(a.host, a.port), connectTimeout
	c.TLS, c.AllowFallbackToPlaintext = a.tlsConfig()
	c.Params = map[string]string{"time_zone": "'+00:00'"}
	c.Logger = &mysql.NopLogger{} // the driver also returns every error that it logs
	return mysql.NewConnector(c)
}

// passing lists server errors after which the same statement may succeed: too many connections,
// shutdown, lock wait, deadlock, killed statement or connection.
var passing = []uint16{1040, 1053, 1129, 1203, 1205, 1213, 1317, 1927, 4031}

func (mySQL) final(err error) bool {
	var answer *mysql.MySQLError
	return errors.As(err, &answer) && !slices.Contains(passing, answer.Number)
}

// schemaOf returns the condition that a row of information_schema belongs to a table.
func (mySQL) schemaOf(table []string) (condition string, args []any) {
	if len(table) == 2 {
		return "table_schema = ? AND table_name = ?", []any{table[0], table[1]}
	}
	return "table_schema = DATABASE() AND table_name = ?", []any{table[0]}
}

func (d mySQL) columns(ctx context.Context, db *sql.DB, table []string) ([]column, error) {
	of, args := d.schemaOf(table)
	rows, err := db.QueryContext(ctx, "SELECT column_name, data_type, character_maximum_length, is_nullable = 'NO' FROM information_schema.columns WHERE "+of+" ORDER BY ordinal_position", args...)
	return collect(rows, err, func(rows *sql.Rows) (c column, err error) {
		var length sql.NullInt64
		err = rows.Scan(&c.name, &c.typ, &length, &c.notNull)
		c.kind = d.kind(strings.ToLower(c.typ))
		if c.length = length.Int64; c.length >= 1<<16-1 {
			c.length = 0
		}
		return c, err
	})
}

func (mySQL) kind(typ string) kind {
	switch typ {
	case "tinyint", "smallint", "mediumint", "int", "bigint":
		return integerKind
	case "decimal", "float", "double":
		return numberKind
	case "char", "varchar", "tinytext", "text", "mediumtext", "longtext", "uuid":
		return textKind
	case "binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob":
		return bytesKind
	case "datetime", "timestamp":
		return timeKind
	}
	return otherKind
}

func (d mySQL) uniqueKeys(ctx context.Context, db *sql.DB, table []string) ([]uniqueKey, error) {
	of, args := d.schemaOf(table)
	// The query leaves out keys on the first characters of a column or on an expression, because such
	// keys do not order whole values.
	rows, err := db.QueryContext(ctx, `SELECT index_name, index_name = 'PRIMARY', column_name FROM information_schema.statistics WHERE `+of+` AND non_unique = 0
		AND index_name NOT IN (SELECT index_name FROM information_schema.statistics WHERE `+of+` AND (sub_part IS NOT NULL OR column_name IS NULL))
		ORDER BY index_name <> 'PRIMARY', index_name, seq_in_index`, append(args, args...)...)
	return collectKeys(rows, err)
}

func (d mySQL) createResults(t *Table, results string) []string {
	copies, names := make([]string, len(t.key)), make([]string, len(t.key))
	for i, c := range t.key {
		names[i] = d.quote(keyColumn(i))
		copies[i] = d.quote(c.name) + " AS " + names[i]
	}
	// The columns of the key are copies, so that they have the type and the collation of the originals.
	return []string{fmt.Sprintf(`CREATE TABLE IF NOT EXISTS %s (crawl VARCHAR(16) CHARACTER SET ascii NOT NULL, round INT NOT NULL,
		url MEDIUMTEXT CHARACTER SET utf8mb4 NOT NULL, outcome VARCHAR(32) CHARACTER SET ascii NOT NULL, http_status SMALLINT NULL,
		fetched_at DATETIME(3) NULL, content_digest VARCHAR(64) CHARACTER SET ascii NULL,
		PRIMARY KEY (%s, crawl, round)) SELECT %s, '' AS crawl, 0 AS round, '' AS url, '' AS outcome FROM %s WHERE 1 = 0`, results, strings.Join(names, ", "), strings.Join(copies, ", "), t.quoted)}
}

// keepExisting needs the right UPDATE. INSERT IGNORE needs only INSERT, but it also cuts values that are too long.
func (mySQL) keepExisting() string { return " ON DUPLICATE KEY UPDATE round = VALUES(round)" }

func (d mySQL) update(t *Table, results string, set []assignment, where string) string {
	sets := make([]string, len(set))
	for i, s := range set {
		sets[i] = fmt.Sprintf("q.%s = %s", d.quote(s.column), s.value("q."+d.quote(s.column)))
	}
	return fmt.Sprintf("UPDATE %s q JOIN %s r ON %s SET %s WHERE %s", t.quoted, results, t.joined(), strings.Join(sets, ", "), where)
}

// collect reads all rows of a small answer.
func collect[T any](rows *sql.Rows, err error, read func(*sql.Rows) (T, error)) (all []T, _ error) {
	if err != nil {
		return nil, err
	}
	for err == nil && rows.Next() {
		var v T
		v, err = read(rows)
		all = append(all, v)
	}
	return all, cmp.Or(err, rows.Err(), rows.Close())
}

// collectKeys reads the columns of unique keys, ordered by key and place.
func collectKeys(rows *sql.Rows, err error) (keys []uniqueKey, _ error) {
	parts, err := collect(rows, err, func(rows *sql.Rows) (uniqueKey, error) {
		k := uniqueKey{columns: make([]string, 1)}
		return k, rows.Scan(&k.name, &k.primary, &k.columns[0])
	})
	for _, p := range parts {
		if n := len(keys); n > 0 && keys[n-1].name == p.name {
			keys[n-1].columns = append(keys[n-1].columns, p.columns...)
		} else {
			keys = append(keys, p)
		}
	}
	return keys, err
}
