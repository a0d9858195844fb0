package sitemap

import (
	"testing"
	"time"
)

func TestDatesDoNotDependOnTheMachinesZone(t *testing.T) {
	local := time.Local
	t.Cleanup(func() { time.Local = local })
	// The test's local zone has names that collide with names of other zones.
	names := map[string]int{"IST": 5*3600 + 1800, "CEST": 7200, "BST": 6 * 3600, "XYZ": 3600}
	zones := []*time.Location{time.UTC}
	for name, offset := range names {
		zones = append(zones, time.FixedZone(name, offset))
	}
	for _, zone := range zones {
		time.Local = zone
		for in, want := range map[string]string{
			"Sat, 21 Nov 2026 10:00:00 CET":            "2026-11-21T09:00:00Z",
			"Tue, 21 Jul 2026 10:00:00 CEST":           "2026-07-21T08:00:00Z",
			"Tue, 21 Jul 2026 10:00:00 BST":            "2026-07-21T09:00:00Z",
			"Sat, 21 Nov 2026 10:00:00 JST":            "2026-11-21T01:00:00Z",
			"Sat, 21 Nov 2026 10:00:00 IST":            "2026-11-21T10:00:00Z", // IST is ambiguous: India, Ireland or Israel
			"Sat, 21 Nov 2026 10:00:00 XYZ":            "2026-11-21T10:00:00Z",
			"Sat, 21 Nov 2026 10:00:00 EST":            "2026-11-21T15:00:00Z",
			"Sat, 21 Nov 2026 10:00:00 pdt":            "2026-11-21T17:00:00Z",
			"Sat, 21 Nov 2026 10:00:00":                "2026-11-21T10:00:00Z",
			"Sat Nov 21 10:00:00 CET 2026":             "2026-11-21T09:00:00Z",
			"Sat Nov 21 10:00:00 2026":                 "2026-11-21T10:00:00Z",
			"2026-11-21 10:00:00 XYZ":                  "2026-11-21T10:00:00Z",
			"2026-11-21 10:00:00":                      "2026-11-21T10:00:00Z",
			"2026-11-21T10:00:00":                      "2026-11-21T10:00:00Z",
			"Sat, 21 Nov 2026 10:00:00 +0200":          "2026-11-21T08:00:00Z",
			"Sat Nov 21 2026 10:00:00 GMT+0100 (CEST)": "2026-11-21T09:00:00Z",
		} {
			got, ok := ParseTime(in)
			if ok != (want != "") || ok && got.Format(time.RFC3339) != want {
				t.Errorf("at %s: %q is %v, %t; want %s", zone, in, got, ok, want)
			}
		}
	}
}

func TestOffsetsOfDates(t *testing.T) {
	for in, want := range map[string]string{
		"Sat, 21 Nov 2026 10:00:00 UT":       "2026-11-21T10:00:00Z",
		"Sat, 21 Nov 2026 10:00:00 Z":        "2026-11-21T10:00:00Z",
		"Sat, 21 Nov 2026 10:00 UT":          "2026-11-21T10:00:00Z",
		"21 Nov 26 10:00:00 UT":              "2026-11-21T10:00:00Z",
		"Sat, 21 Nov 2026 10:00:00 GMT+2":    "2026-11-21T08:00:00Z",
		"Sat, 21 Nov 2026 10:00:00 UTC-0330": "2026-11-21T13:30:00Z",
		"Sat, 21 Nov 2026 10:00:00 GMT+1:30": "2026-11-21T08:30:00Z",
		"2026-11-21 10:00:00 UTC+05:45":      "2026-11-21T04:15:00Z",
		"2026-11-21 10:00:00UTC":             "2026-11-21T10:00:00Z",
		"2026-11-21T10:00:00+02":             "2026-11-21T08:00:00Z",
		"2026-11-21T10:00-03":                "2026-11-21T13:00:00Z",
		"2026-11-21 10:00:00+02":             "2026-11-21T08:00:00Z",
		"2026-11-21 10:00:00.5-08":           "2026-11-21T18:00:00Z",
		"2026-11-21T10:00:00 PST":            "2026-11-21T18:00:00Z",
		"Sat Nov 21 10:00:00 GMT+2 2026":     "2026-11-21T08:00:00Z",
		"Nov 21, 2026 10:00 pm":              "2026-11-21T22:00:00Z",
		"Nov 21, 2026 10:00 PM EST":          "2026-11-22T03:00:00Z",
		"Sat, 21 Nov 2026 10:00:00 GMT+99":   "",
		"Sat, 21 Nov 2026 10:00:00 GMT+":     "",
		"Sat, 21 Nov 2026 10:00:00 EST+1":    "",
		"Sat, 21 Nov 2026 10:00:00 hours":    "",
		"10:00:00 GMT":                       "",
		":EST":                               "",
		"(:)(:)":                             "",
	} {
		got, ok := ParseTime(in)
		if ok != (want != "") || ok && got.Truncate(time.Second).Format(time.RFC3339) != want {
			t.Errorf("%q is %v, %t; want %s", in, got, ok, want)
		}
	}
}
