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

// hanging is a driver whose server answers with rows and then hangs, unless ends is set.
type hanging struct {
	rows int           // number of rows before the server hangs
	each time.Duration // time between two rows
	ends bool          // after the rows, the server ends the page instead
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
	if h.rows == 0 && h.ends {
		return io.EOF
	}
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

func TestTheUserIsToldOfASlowPageOnce(t *testing.T) {
	for each, want := range map[time.Duration]int{slowPage / 4: 0, slowPage: 1} {
		synctest.Test(t, func(t *testing.T) {
			calls := make(chan string, 9)
			a := &Address{host: "db.example", port: "3306", options: map[string]string{}, Tell: func(host, why string) { calls <- host + ": " + why }}
			table := &Table{address: a, db: sql.OpenDB(&hanging{rows: 3, each: each, ends: true}), dialect: mySQL{}, quoted: "t", url: "url", key: []column{{name: "id"}}}
			defer table.Close()
			for _, err := range table.Rows(t.Context(), 100) {
				if err != nil {
					t.Fatal(err)
				}
			}
			synctest.Wait()
			close(calls)
			var told []string
			for s := range calls {
				told = append(told, s)
			}
			if len(told) != want || want > 0 && told[0] != "db.example:3306: the database works on the rows after row 0; the plan waits up to 1h0m0s for the next row" {
				t.Errorf("a row each %v: told %q", each, told)
			}
		})
	}
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
