package sqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/lib/pq"
)

// hanging is a driver whose server answers with rows and then hangs.
type hanging struct {
	rows int           // number of rows before the server hangs
	each time.Duration // time between two rows
	ctx  context.Context
}

func (h *hanging) Connect(context.Context) (driver.Conn, error) { return h, nil }
func (h *hanging) Driver() driver.Driver                        { return nil }
func (h *hanging) Prepare(string) (driver.Stmt, error)          { return nil, errors.ErrUnsupported }
func (h *hanging) Begin() (driver.Tx, error)                    { return nil, errors.ErrUnsupported }
func (h *hanging) Close() error                                 { return nil }
func (h *hanging) Columns() []string                            { return []string{"id", "url"} }

func (h *hanging) QueryContext(ctx context.Context, _ string, _ []driver.NamedValue) (driver.Rows, error) {
	h.ctx = ctx
	return h, nil
}

func (h *hanging) Next(into []driver.Value) error {
	if h.rows == 0 {
		<-h.ctx.Done()
		return h.ctx.Err()
	}
	time.Sleep(h.each)
	h.rows--
	into[0], into[1] = int64(h.rows), "http://example.com/"
	return nil
}

func TestAServerThatHangsEndsThePlan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hanging{rows: 3, each: pageTimeout - time.Minute}
		table := &Table{address: &Address{options: map[string]string{}}, db: sql.OpenDB(h), dialect: mySQL{}, quoted: "t", url: "url", key: []column{{name: "id"}}}
		defer table.Close()
		start, n := time.Now(), 0
		var last error
		for _, err := range table.Rows(t.Context(), 100) {
			if last = err; err == nil {
				n++
			}
		}
		if n != 3 || !errors.Is(last, ErrLost) || errors.Is(last, ErrUnusable) || !strings.HasPrefix(last.Error(), `after row 3 (id="0"): no row within 1h0m0s: `) {
			t.Errorf("%d rows, %v", n, last)
		}
		if took := time.Since(start); took != 3*h.each+pageTimeout {
			t.Errorf("it took %v", took)
		}
	})
}

func TestAServerThatIsAwayMayComeBack(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	for _, c := range []struct {
		dialect dialect
		err     error
		lost    bool
	}{
		{mySQL{}, refused, true},
		{postgreSQL{}, &net.OpError{Op: "read", Err: io.ErrUnexpectedEOF}, true},
		{mySQL{}, &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", IsNotFound: true}}, false},
		{mySQL{}, &net.OpError{Op: "dial", Err: &net.DNSError{Err: "server misbehaving", IsTemporary: true}}, true},
		{mySQL{}, &net.OpError{Op: "remote error", Err: errors.New("tls: bad certificate")}, false},
		{mySQL{}, &mysql.MySQLError{Number: 1040, Message: "Too many connections"}, true},
		{mySQL{}, &mysql.MySQLError{Number: 1045, Message: "Access denied"}, false},
		{postgreSQL{}, &pq.Error{Code: "57P03", Message: "the database system is starting up"}, true},
		{postgreSQL{}, &pq.Error{Code: "28P01", Message: "password authentication failed"}, false},
		{postgreSQL{}, pq.ErrSSLNotSupported, false},
	} {
		if err := advise(c.dialect, c.err); errors.Is(err, ErrLost) != c.lost || errors.Is(err, ErrUnusable) == c.lost {
			t.Errorf("%v: %v, want lost %t", c.err, err, c.lost)
		}
	}
	a, err := Parse("postgres://me:${PW}@127.0.0.1:1/crawler", lookup)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), a); !errors.Is(err, ErrLost) {
		t.Errorf("a port without a server: %v", err)
	}
}
