package main

import (
	"errors"
	"testing"
)

func TestTheNameOfAJobTellsTheMonth(t *testing.T) {
	for _, c := range []struct{ name, want string }{
		{"crawl-2026-11", "2026-11"},
		{"2026-11", "2026-11"},
		{"crawlbatch-29881440", "2026-10"}, // 2026-10-25T00:00Z
		{"crawlbatch-29891519", "2026-10"}, // 2026-10-31T23:59Z
		{"crawlbatch-29891520", "2026-11"}, // a minute later
		{"crawl-2026-13", ""},
		{"crawl-20261101", ""}, // a date would be the minute of another year
		{"crawl-99999999999", ""},
		{"crawlbatch", ""},
		{"", ""},
	} {
		got, err := monthOfJob(c.name)
		if c.want == "" {
			if !errors.Is(err, errUsage) {
				t.Errorf("%q: %q, %v; want an error of usage", c.name, got, err)
			}
			continue
		}
		if err != nil || got != c.want {
			t.Errorf("%q: %q, %v; want %s", c.name, got, err, c.want)
		}
	}
}
