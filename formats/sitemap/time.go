package sitemap

import (
	"strconv"
	"strings"
	"time"
)

// layouts holds the layouts of dates that ParseTime tries, in this order. They are variants of W3C's
// profile of ISO 8601 (NOTE-datetime), of RFC 822 and RFC 1123 as in feeds, and other common forms.
var layouts = []string{
	time.RFC3339,
	"2006-01-02T15:04:05Z0700",
	"2006-01-02T15:04:05",
	"2006-01-02T15:04:05Z07",
	"2006-01-02T15:04Z07:00",
	"2006-01-02T15:04Z07",
	"2006-01-02T15:04Z0700",
	"2006-01-02T15:04",
	"2006-01-02",
	"2006-1-2",
	"2006-01-02T15:04:05 Z07:00",
	"2006-01-02 15:04:05Z07:00",
	"2006-01-02 15:04:05Z07",
	"2006-01-02 15:04:05 Z0700",
	"2006-01-02 15:04:05",
	"2006-01-02 15:04",
	"2006-01",
	"2006",
	"20060102T150405Z0700",
	"20060102",
	"Mon, 2 Jan 2006 15:04:05 Z0700",
	"Mon, 2 Jan 2006 15:04:05",
	"Mon, 2 Jan 2006 15:04 Z0700",
	"Mon, 2 Jan 2006 15:04",
	"Mon, 2 Jan 06 15:04:05 Z0700",
	"Mon, 2 Jan 06 15:04:05",
	"Mon, 2 Jan 2006",
	"2 Jan 2006 15:04:05 Z0700",
	"2 Jan 2006 15:04 Z0700",
	"2 Jan 2006 15:04",
	"2 Jan 06 15:04:05 Z0700",
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
	"Mon Jan 2 15:04:05 2006",
	"Mon Jan 2 2006 15:04:05", // ECMAScript's date format
	"2006/01/02 15:04:05",
	"2006/01/02",
	"2006.01.02",
}

// zones maps the names of time zones to their offsets from UTC, in minutes. It has the names of RFC
// 822, 5.1, and names that mostly have one meaning on the web, such as BST for Britain. Other names,
// such as IST with its several meanings, are read as UTC.
var zones = map[string]int{
	"UT": 0, "UTC": 0, "GMT": 0, "Z": 0, "WET": 0,
	"EST": -5 * 60, "EDT": -4 * 60, "CST": -6 * 60, "CDT": -5 * 60, "MST": -7 * 60, "MDT": -6 * 60, "PST": -8 * 60, "PDT": -7 * 60,
	"AKST": -9 * 60, "AKDT": -8 * 60, "HST": -10 * 60, "BRT": -3 * 60,
	"BST": 60, "WEST": 60, "CET": 60, "CEST": 2 * 60, "MEZ": 60, "MESZ": 2 * 60, "MET": 60, "MEST": 2 * 60,
	"EET": 2 * 60, "EEST": 3 * 60, "SAST": 2 * 60, "MSK": 3 * 60, "PKT": 5 * 60, "HKT": 8 * 60, "SGT": 8 * 60, "AWST": 8 * 60,
	"JST": 9 * 60, "KST": 9 * 60, "ACST": 9*60 + 30, "ACDT": 10*60 + 30, "AEST": 10 * 60, "AEDT": 11 * 60, "NZST": 12 * 60, "NZDT": 13 * 60,
}

// maxZone is the length of the longest accepted zone name, in bytes.
const maxZone = 5

// cutZone removes the name of a time zone from a date with a time, and returns the zone's offset from
// UTC. (Package time knows only the names of the machine's own zone.) UTC+2 and GMT+02:00 mean two
// hours ahead of UTC.
func cutZone(s string) (rest string, offset time.Duration) {
	if i := strings.IndexByte(s, '('); i > 0 && s[len(s)-1] == ')' {
		s = strings.TrimRight(s[:i], " ") // a comment (RFC 822, 3.4.3) repeats the zone
	}
	if n := len(s) - 5; n > 0 && s[n] == ' ' && strings.Trim(s[n+1:], "0123456789") == "" && strings.IndexByte(s, ':') > 0 {
		// In the formats of ctime and asctime, the zone precedes the year.
		if before, offset, ok := cutLastZone(s[:n]); ok {
			return before + s[n:], offset
		}
	}
	if before, offset, ok := cutLastZone(s); ok {
		return before, offset
	}
	return s, 0
}

// cutLastZone removes the name of a time zone from the end of a date. ok is false if there is none.
func cutLastZone(s string) (rest string, offset time.Duration, ok bool) {
	zoned := strings.TrimRight(s, "0123456789:")
	suffix := s[len(zoned):]
	if n := len(zoned) - 1; suffix != "" && n >= 0 && (zoned[n] == '+' || zoned[n] == '-') {
		suffix = s[n:]
		zoned = zoned[:n]
	} else {
		zoned, suffix = s, ""
	}
	before := strings.TrimRightFunc(zoned, func(r rune) bool { return r|0x20 >= 'a' && r|0x20 <= 'z' })
	name := strings.ToUpper(zoned[len(before):])
	rest = strings.TrimRight(before, " ")
	if len(name) == 0 || len(name) > maxZone || strings.IndexByte(rest, ':') < 0 {
		return "", 0, false
	}
	minutes, known := zones[name]
	switch {
	case suffix != "":
		if !known || minutes != 0 {
			return "", 0, false
		}
		if minutes, ok = minutesOf(suffix); !ok {
			return "", 0, false
		}
	case !known && (len(name) < 3 || name != zoned[len(before):]):
		return "", 0, false // the word is too short or not in upper case, so it is no zone: PM, or May
	}
	return rest, time.Duration(minutes) * time.Minute, true
}

// minutesOf returns an offset after UTC or GMT, such as +2, +02, +0200 or +02:00, in minutes.
func minutesOf(s string) (int, bool) {
	digits := strings.Replace(s[1:], ":", "", 1)
	n, err := strconv.ParseUint(digits, 10, 16)
	if err != nil || len(digits) > 4 {
		return 0, false
	}
	if len(digits) <= 2 {
		n *= 100
	}
	minutes := int(n/100*60 + n%100)
	if n%100 > 59 || minutes > 15*60 {
		return 0, false
	}
	if s[0] == '-' {
		minutes = -minutes
	}
	return minutes, true
}

// timeOf is like ParseTime, and faster for the common forms. It returns false for the first instant of
// 1970, which stands for a missing date.
func timeOf(p []byte) (time.Time, bool) {
	t, ok := parseCommon(p)
	if !ok {
		t, ok = ParseTime(string(p[:min(len(p), maxTime+1)]))
	}
	return t, ok && t.Unix() != 0
}

// maxTime is the length of the longest accepted date, in bytes.
const maxTime = 64

// parseCommon reads the two forms of dates that most sitemaps have, without allocating memory:
// 2006-01-02, and 2006-01-02T15:04:05 with Z or an offset.
func parseCommon(p []byte) (t time.Time, ok bool) {
	var whole [20]byte
	switch len(p) {
	case 10:
		p = append(append(whole[:0], p...), "T00:00:00Z"...)
	case 20, 25:
	default:
		return t, false
	}
	if p[10] != 'T' || t.UnmarshalText(p) != nil {
		return t, false
	}
	return t, inRange(t)
}

// inRange returns false for implausible dates, such as 0001-01-01, a common mistake.
func inRange(t time.Time) bool {
	return t.Year() >= 1970 && t.Year() <= 2199
}

// ParseTime reads a date in any form that sitemaps, feeds and pages use. A date without a zone is in
// UTC. ParseTime returns false for other text, and for dates before 1970 or after 2199.
func ParseTime(s string) (time.Time, bool) {
	s = strings.TrimSpace(s)
	if len(s) < 4 || len(s) > maxTime {
		return time.Time{}, false
	}
	if t, ok := sinceEpoch(s); ok {
		return t, t.UnixMilli() > 0 && inRange(t)
	}
	s, offset := cutZone(s)
	if n := len(s) - 2; n > 0 && s[n]|0x20 >= 'a' && strings.EqualFold(s[n+1:], "m") {
		s = s[:n] + strings.ToUpper(s[n:]) // package time requires AM and PM in upper case
	}
	for _, layout := range layouts {
		if isNumeric(s) != isNumeric(layout) {
			continue
		}
		if t, err := time.ParseInLocation(layout, s, time.UTC); err == nil {
			if t = t.Add(-offset); !inRange(t) {
				return time.Time{}, false
			}
			return t.UTC(), true
		}
	}
	return time.Time{}, false
}

// sinceEpoch reads a number as a time since 1970: ten digits are seconds, thirteen are milliseconds.
func sinceEpoch(s string) (time.Time, bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	switch {
	case err != nil:
	case len(s) == 10:
		return time.Unix(n, 0).UTC(), true
	case len(s) == 13:
		return time.UnixMilli(n).UTC(), true
	}
	return time.Time{}, false
}

// isNumeric reports whether a date, or a layout of dates, begins with a number and has no name of a
// month after this number.
func isNumeric(s string) bool { return s[0] >= '0' && s[0] <= '9' && (len(s) < 5 || s[4] < 'A') }
