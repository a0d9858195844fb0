package sqldb

import (
	"context"
	"crypto/x509"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/lib/pq"
)

// dialect is what differs between MySQL (with MariaDB) and PostgreSQL.
type dialect interface {
	port() string
	variables() (user, password string) // variables of the environment that the database's client reads
	connector(a *Address) (driver.Connector, error)
	quote(name string) string // a quoted identifier
	bind(n int) string        // the placeholder of the n-th argument, from 1
	cut(column string, n int) string
	columns(ctx context.Context, db *sql.DB, table []string) ([]column, error)
	uniqueKeys(ctx context.Context, db *sql.DB, table []string) ([]uniqueKey, error)
	sameName(a, b string) bool // reports whether two names mean the same column
	final(err error) bool      // reports whether the server refuses a statement for good

	createResults(t *Table, results string) []string // statements that create the result table
	keepExisting() string                            // end of an INSERT that leaves existing rows as they are
	update(t *Table, results string, set []assignment, where string) string
}

// dialects maps the schemes of addresses to their dialects.
var dialects = map[string]dialect{"mysql": mySQL{}, "mariadb": mySQL{}, "postgres": postgreSQL{}, "postgresql": postgreSQL{}}

// Schemes returns the schemes of addresses.
func Schemes() []string { return slices.Sorted(maps.Keys(dialects)) }

// column describes a column of a table.
type column struct {
	name    string
	typ     string // name of the type as the database writes it
	kind    kind
	length  int64 // largest number of characters; 0 without a bound
	notNull bool
}

// kind says how values of a column are compared and passed.
type kind int

const (
	otherKind kind = iota
	integerKind
	numberKind // numbers with a fraction
	textKind
	bytesKind
	timeKind
)

// uniqueKey is a unique index of a table.
type uniqueKey struct {
	name    string
	primary bool
	columns []string
}

// quoteAll quotes the parts of a table's name.
func quoteAll(d dialect, parts []string) string {
	quoted := make([]string, len(parts))
	for i, p := range parts {
		quoted[i] = d.quote(p)
	}
	return strings.Join(quoted, ".")
}

// statement is a statement with its arguments.
type statement struct {
	strings.Builder
	dialect dialect
	args    []any
}

// bind adds an argument and returns its placeholder.
func (s *statement) bind(v any) string {
	s.args = append(s.args, v)
	return s.dialect.bind(len(s.args))
}

// tuple adds arguments and returns their placeholders in parentheses.
func (s *statement) tuple(values []any) string {
	places := make([]string, len(values))
	for i, v := range values {
		places[i] = s.bind(v)
	}
	return "(" + strings.Join(places, ", ") + ")"
}

// keyCondition returns the condition that a key is larger (> or >=) or smaller (< or <=) than the
// values, column by column. A comparison of rows would be shorter, but MySQL does not use an index
// for it.
func (s *statement) keyCondition(columns []string, operator string, values []any) string {
	if len(columns) == 1 {
		return columns[0] + " " + operator + " " + s.bind(values[0])
	}
	strict := operator[:1]
	return fmt.Sprintf("%s %s= %s AND (%[1]s %[2]s %[4]s OR (%[1]s = %[5]s AND %[6]s))", columns[0], strict,
		s.bind(values[0]), s.bind(values[0]), s.bind(values[0]), s.keyCondition(columns[1:], operator, values[1:]))
}

// advise adds advice to an error of the first connection, and marks the error. A server that cannot be
// reached, or that refuses everybody for the moment, may serve the same command later.
func advise(d dialect, err error) error {
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	if errors.As(err, &unknown) || errors.As(err, &name) || errors.As(err, &invalid) {
		return fmt.Errorf("%w: name the file of its authority in SSL_CERT_FILE, or give tls=unverified or tls=off: %w", err, ErrUnusable)
	}
	if mayPass(d, err) {
		return fmt.Errorf("%w: %w", err, ErrLost)
	}
	return fmt.Errorf("%w: %w", err, ErrUnusable)
}

// mayPass reports whether the first connection failed for a reason that may end without the user.
func mayPass(d dialect, err error) bool {
	var name *net.DNSError
	var network *net.OpError
	var postgres *pq.Error
	var mySQL *mysql.MySQLError
	switch {
	case errors.As(err, &name) && name.IsNotFound:
		return false
	case errors.As(err, &network):
		return network.Op == "dial" || network.Op == "read" || network.Op == "write" // others are alerts of TLS
	case errors.As(err, &postgres), errors.As(err, &mySQL):
		return !d.final(err)
	}
	return false
}
