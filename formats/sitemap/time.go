package sitemap

import (
	"strings"
	"time"
)

// layouts are tried in turn; W3C's profile of ISO 8601 (NOTE-datetime) comes first,
// then RFC 822 and 1123 as feeds write them, then what is common in the wild.
var layouts = []string{
	time.RFC3339,
	"2006-01-02T15:04:05Z0700",
	"2006-01-02T15:04:05",
	"2006-01-02T15:04Z07:00",
	"2006-01-02T15:04Z0700",
	"2006-01-02T15:04",
	"2006-01-02",
	"2006-01-02 15:04:05Z07:00",
	"2006-01-02 15:04:05 Z0700",
	"2006-01-02 15:04:05 MST",
	"2006-01-02 15:04:05",
	"2006-01-02 15:04",
	"2006-01",
	"2006",
	"20060102T150405Z0700",
	"20060102",
	"Mon, 2 Jan 2006 15:04:05 Z0700",
	"Mon, 2 Jan 2006 15:04:05 MST",
	"Mon, 2 Jan 2006 15:04 Z0700",
	"Mon, 2 Jan 2006 15:04 MST",
	"Mon, 2 Jan 06 15:04:05 Z0700",
	"Mon, 2 Jan 06 15:04:05 MST",
	"Mon, 2 Jan 2006",
	"2 Jan 2006 15:04:05 Z0700",
	"2 Jan 2006 15:04:05 MST",
	"2 Jan 2006 15:04 Z0700",
	"2 Jan 2006 15:04 MST",
	"2 Jan 06 15:04:05 Z0700",
	"2 Jan 06 15:04:05 MST",
	"2 Jan 2006 15:04:05",
	"2 Jan 06 15:04:05",
	"2 Jan 2006",
	"2 January 2006",
	"Jan 2, 2006",
	"January 2, 2006",
	"January 2, 2006 15:04:05",
	"Jan 2, 2006 3:04 PM",
	"January 2, 2006 3:04 PM",
	"Monday, January 2, 2006",
	"Mon Jan 2 15:04:05 MST 2006",
	"Mon Jan 2 15:04:05 2006",
	"2006/01/02 15:04:05",
	"2006/01/02",
	"2006.01.02",
}

// zones are the offsets, in hours, of the zone names that RFC 822, 5.1 defines;
// package time takes any name for UTC.
var zones = map[string]int{"EST": -5, "EDT": -4, "CST": -6, "CDT": -5, "MST": -7, "MDT": -6, "PST": -8, "PDT": -7}

// ParseTime reads a date as sitemaps, feeds and pages write it. A date without an
// offset is UTC. Dates before 1970 or after 2199 are refused: they are mistakes
// (0001-01-01 is a common one).
func ParseTime(s string) (time.Time, bool) {
	s = strings.TrimSpace(s)
	if len(s) < 4 || len(s) > 64 {
		return time.Time{}, false
	}
	// What comes first decides which layouts are worth a try.
	numeric := s[0] >= '0' && s[0] <= '9' && (len(s) < 5 || s[4] < 'A')
	for _, layout := range layouts {
		if numeric != (layout[0] == '2' && (len(layout) < 5 || layout[4] < 'A')) {
			continue
		}
		t, err := time.Parse(layout, s)
		if err != nil {
			continue
		}
		if name, offset := t.Zone(); offset == 0 {
			t = t.Add(-time.Duration(zones[name]) * time.Hour)
		}
		if y := t.Year(); y < 1970 || y > 2199 {
			return time.Time{}, false
		}
		return t.UTC(), true
	}
	return time.Time{}, false
}
