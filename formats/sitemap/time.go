package sitemap

import (
	"strconv"
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
	"2006-1-2",
	"2006-01-02T15:04:05 Z07:00",
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

// millis is ParseTime for bytes, in milliseconds.
func millis(p []byte) (int64, bool) {
	if t, ok := common(p); ok {
		return t.UnixMilli(), true
	}
	t, ok := ParseTime(string(p[:min(len(p), maxTime+1)]))
	return t.UnixMilli(), ok
}

// maxTime bounds the text of a date, bytes.
const maxTime = 64

// common reads the two forms that most sitemaps have, 2006-01-02 and
// 2006-01-02T15:04:05 with Z or an offset, at a tenth of the price.
func common(p []byte) (time.Time, bool) {
	if len(p) != 10 && len(p) != 20 && len(p) != 25 || p[4] != '-' || p[7] != '-' {
		return time.Time{}, false
	}
	bad := false
	two := func(i int) int {
		a, b := p[i]-'0', p[i+1]-'0'
		bad = bad || a > 9 || b > 9
		return int(a)*10 + int(b)
	}
	year, month, day := two(0)*100+two(2), two(5), two(8)
	var hour, minute, second, offset int
	if len(p) > 10 {
		hour, minute, second = two(11), two(14), two(17)
		bad = bad || p[10] != 'T' || p[13] != ':' || p[16] != ':'
		switch sign := p[19]; {
		case len(p) == 20:
			bad = bad || sign != 'Z'
		case sign == '+' || sign == '-':
			hours, minutes := two(20), two(23)
			bad = bad || p[22] != ':' || hours > 23 || minutes > 59
			if offset = hours*3600 + minutes*60; sign == '-' {
				offset = -offset
			}
		default:
			bad = true
		}
	}
	if bad || year < 1971 || year > 2198 || month < 1 || month > 12 || day < 1 || hour > 23 || minute > 59 || second > 59 {
		return time.Time{}, false
	}
	t := time.Date(year, time.Month(month), day, hour, minute, second, 0, time.UTC)
	return t.Add(-time.Duration(offset) * time.Second), t.Day() == day
}

// ParseTime reads a date as sitemaps, feeds and pages write it. A date without an
// offset is UTC. Dates before 1970 or after 2199 are refused: they are mistakes
// (0001-01-01 is a common one).
func ParseTime(s string) (time.Time, bool) {
	s = strings.TrimSpace(s)
	if len(s) < 4 || len(s) > maxTime {
		return time.Time{}, false
	}
	if n, err := strconv.ParseInt(s, 10, 64); err == nil && (len(s) == 10 || len(s) == 13) {
		if len(s) == 10 {
			n *= 1000 // seconds since 1970; thirteen digits are milliseconds
		}
		t := time.UnixMilli(n).UTC()
		return t, n > 0 && t.Year() <= 2199
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
