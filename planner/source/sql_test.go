package source

import (
	"errors"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/planner/source/sqldb"
)

// A plan continues without a table of which no row meets the condition, but an empty table is a mistake.
func TestATableWithoutRows(t *testing.T) {
	openers := Databases(func(string) (string, bool) { return "", false })
	for _, c := range []struct {
		options, want string
		noMatch       bool
	}{
		{"?where=status='pending'", "check where=", true},
		{"?where=&table=a", "name another with table=", false},
		{"?table=a", "name another with table=", false},
	} {
		s, err := openers["mysql"](t.Context(), "mysql://db.example/crawler"+c.options, Options{})
		if err != nil {
			t.Fatal(err)
		}
		err = s.(*sqlTable).empty()
		if !strings.Contains(err.Error(), c.want) || errors.Is(err, ErrNoMatch) != c.noMatch || errors.Is(err, sqldb.ErrUnusable) == c.noMatch {
			t.Errorf("%q: %v", c.options, err)
		}
	}
}

// The place of a row in a table is the text of its key.
func TestTheKeyOfARowIsOneText(t *testing.T) {
	for want, key := range map[string][]string{
		"17":                   {"17"},
		"example.org,17":       {"example.org", "17"},
		"0xFF00,é":             {"\xff\x00", "é"},
		"":                     {""},
		"2026-11-25,0x80,long": {"2026-11-25", "\x80", "long"},
	} {
		if got := keyText(key); got != want {
			t.Errorf("%q: %q, want %q", key, got, want)
		}
	}
}
