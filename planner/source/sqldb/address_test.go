package sqldb

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func lookup(name string) (string, bool) {
	value, ok := map[string]string{"PW": "hunter2", "WHO": "alice", "MYSQL_USER": "bob", "MYSQL_PWD": "hunter2", "PGUSER": "carol", "PGPASSWORD": "hunter2"}[name]
	return value, ok
}

func TestAnAddressNamesATable(t *testing.T) {
	for _, c := range []struct{ text, name, user, password, host, options string }{
		{"mysql://${WHO}:${PW}@db.example/crawler", "mysql://db.example/crawler", "alice", "hunter2", "db.example:3306", "table=url_queue where="},
		{"mariadb://me:${PW}@db.example:3307/crawler?table=a.b", "mariadb://db.example:3307/crawler?table=a.b", "me", "hunter2", "db.example:3307", "table=a.b where="},
		{"MySQL://me:${PW}@db.example/crawler", "mysql://db.example/crawler", "me", "hunter2", "db.example:3306", "table=url_queue where="},
		{"mysql://m%40e@db.example/crawler", "mysql://db.example/crawler", "m@e", "hunter2", "db.example:3306", "table=url_queue where="},
		{"mysql://db.example/crawler", "mysql://db.example/crawler", "bob", "hunter2", "db.example:3306", "table=url_queue where="},
		{"postgres://db.example/crawler?where=status='pending' AND mail <> 'a@b'", "postgres://db.example/crawler?where=status='pending' AND mail <> 'a@b'", "carol", "hunter2", "db.example:5432", "table=url_queue where=status='pending' AND mail <> 'a@b'"},
		{"postgresql://[::1]:1/crawler?where=url LIKE 'a%25'", "postgresql://[::1]:1/crawler?where=url LIKE 'a%25'", "carol", "hunter2", "::1:1", "table=url_queue where=url LIKE 'a%'"},
	} {
		a, err := Parse(c.text, lookup)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		got := []string{a.Name(), a.user, a.password, a.host + ":" + a.port, fmt.Sprintf("table=%s where=%s", a.options["table"], a.options["where"])}
		want := []string{c.name, c.user, c.password, c.host, c.options}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("%s: %q, want %q", c.text, got[i], want[i])
			}
		}
	}
}

// TestASecretInAnAddressIsRefusedAndNotShown writes the password hunter2 in every place of a URL.
func TestASecretInAnAddressIsRefusedAndNotShown(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"mysql://me:hunter2@db/crawler", "write mysql://USER:${MYSQL_PWD}@HOST/DATABASE, and set MYSQL_PWD"},
		{"postgres://me:hunter2@db/crawler", "write postgres://USER:${PGPASSWORD}@HOST/DATABASE, and set PGPASSWORD"},
		{"mysql://me:${PW}hunter2@db/crawler", "is written out"},
		{"mysql://me:x/hunter2@db/crawler", "is written out"},
		{"mysql://me:hunter2/x@db/crawler", "is written out"},
		{"mysql://me:hunter2?x@db/crawler", "is written out"},
		{"mysql://me:12?hunter2@db/crawler", "is written out"},
		{"mysql://me:12/x?hunter2@db/crawler", "is written out"},
		{"mysql://me:12?where=hunter2@db/crawler", "names no database"},
		{"mysql://me:12?where=%hunter2@db/crawler", "names no database"},
		{"mysql://me:12/x?hunter2=x@db/crawler", "an option is unknown"},
		{"mysql://me:12/x?tls=hunter2@db/crawler", "tls is offered, verify, unverified or off"},
		{"mysql://me:12/x?where=%hunter2@db/crawler", "write % as %25"},
		{"mysql://me:12/x?where=#hunter2@db/crawler", "write # as %23"},
		{"mysql://me:hunter2#x@db/crawler", "is written out"},
		{"mysql://me:hunter2@x@db/crawler", "is written out"},
		{"mysql://db/crawler?password=hunter2", `option "password" is unknown`},
	} {
		_, err := Parse(c.text, lookup)
		if !errors.Is(err, ErrUnusable) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v, want %s", c.text, err, c.want)
		}
	}
}

func TestBadAddressesAreExplained(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"mysql://me:${NONE}@db/crawler", "${NONE}, which the environment does not set"},
		{"mysql://", "not of the form"},
		{"mysql://db", "names no database"},
		{"mysql://db/crawler?where=a LIKE 'x%y'", "write % as %25"},
		{"mysql://db/crawler?table=a&table=b", `option "table" is unknown or repeated`},
		{"mysql://db/crawler?tables=a", "an address has the options key, priority, results, status, table, tls, url, where"},
		{"mysql://db/crawler?where=a#b", "write # as %23"},
		{"mysql://db/crawler?tls=maybe", "tls is offered, verify, unverified or off"},
		{"oracle://db/crawler", "mysql://…"},
	} {
		if _, err := Parse(c.text, lookup); !errors.Is(err, ErrUnusable) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %s", c.text, err, c.want)
		}
	}
}

func TestKeysAreComparedColumnByColumn(t *testing.T) {
	for _, c := range []struct {
		dialect dialect
		want    string
	}{
		{mySQL{}, "a >= ? AND (a > ? OR (a = ? AND b > ?))"},
		{postgreSQL{}, "a >= $1 AND (a > $2 OR (a = $3 AND b > $4))"},
	} {
		s := &statement{dialect: c.dialect}
		if got := s.keyCondition([]string{"a", "b"}, ">", []any{1, 2}); got != c.want || fmt.Sprint(s.args) != "[1 1 1 2]" {
			t.Errorf("%s with %v, want %s", got, s.args, c.want)
		}
	}
}

// FuzzErrorsShowNoPassword parses addresses whose password has texts around hunter2.
func FuzzErrorsShowNoPassword(f *testing.F) {
	for _, s := range [][2]string{{"", ""}, {"12?", "#"}, {"/", "?a=b"}, {"1/x?tls=", "%"}, {"${PW}@", "&table=x"}} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, before, after string) {
		text := "mysql://me:" + before + "hunter2" + after + "@db/crawler"
		if _, err := Parse(text, lookup); err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", text, err)
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"mysql://me:${PW}@db/crawler?table=a", "postgres://x:y@z:1/d?where=a'%25#", "mysql://[::1/", "mariadb://@/x?tls=off"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, err := Parse(text, lookup)
		if err != nil {
			if !errors.Is(err, ErrUnusable) || strings.Contains(err.Error(), "hunter2") != strings.Contains(text, "hunter2") && !strings.Contains(text, "hunter2") {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		if a.database == "" || a.host == "" || strings.Contains(a.Name(), "hunter2") && !strings.Contains(text, "hunter2") {
			t.Errorf("%q: %+v", text, a.Name())
		}
	})
}
