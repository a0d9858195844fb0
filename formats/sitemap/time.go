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
	"Mon Jan 2 2006 15:04:05", // ECMAScript's
	"2006/01/02 15:04:05",
	"2006/01/02",
	"2006.01.02",
}

// zones are the offsets, in minutes, of the names of time zones: those that RFC 822, 5.1
// defines, and others that have one meaning on the web, or one that outnumbers the
// others by far (BST is Britain's). A name that has several, such as IST, and any that
// is not listed stands for UTC.
var zones = map[string]int{
	"UT": 0, "UTC": 0, "GMT": 0, "Z": 0, "WET": 0,
	"EST": -5 * 60, "EDT": -4 * 60, "CST": -6 * 60, "CDT": -5 * 60, "MST": -7 * 60, "MDT": -6 * 60, "PST": -8 * 60, "PDT": -7 * 60,
	"AKST": -9 * 60, "AKDT": -8 * 60, "HST": -10 * 60, "BRT": -3 * 60,
	"BST": 60, "WEST": 60, "CET": 60, "CEST": 2 * 60, "MEZ": 60, "MESZ": 2 * 60, "MET": 60, "MEST": 2 * 60,
	"EET": 2 * 60, "EEST": 3 * 60, "SAST": 2 * 60, "MSK": 3 * 60, "PKT": 5 * 60, "HKT": 8 * 60, "SGT": 8 * 60, "AWST": 8 * 60,
	"JST": 9 * 60, "KST": 9 * 60, "ACST": 9*60 + 30, "ACDT": 10*60 + 30, "AEST": 10 * 60, "AEDT": 11 * 60, "NZST": 12 * 60, "NZDT": 13 * 60,
}

// maxZone is how long the name of a zone may be, bytes.
const maxZone = 5

// cutZone takes the name of a zone off the end of a date with a time, or from before
// the year at its end (ctime's and asctime's form), and returns the offset that it
// stands for: package time would look names up in the machine's own zone. UTC+2 and
// GMT+02:00 are two hours before 00:00 UTC.
func cutZone(s string) (rest string, offset time.Duration) {
	if i := strings.IndexByte(s, '('); i > 0 && s[len(s)-1] == ')' {
		s = strings.TrimRight(s[:i], " ") // a comment (RFC 822, 3.4.3), which repeats the zone
	}
	if n := len(s) - 5; n > 0 && s[n] == ' ' && strings.Trim(s[n+1:], "0123456789") == "" && strings.IndexByte(s, ':') > 0 {
		if before, offset := cutZone(s[:n]); len(before) < n {
			return before + s[n:], offset
		}
	}
	end := len(s)
	for end > 0 && (s[end-1] >= '0' && s[end-1] <= '9' || s[end-1] == ':') {
		end--
	}
	suffix := ""
	if end > 0 && end < len(s) && (s[end-1] == '+' || s[end-1] == '-') {
		end--
		suffix = s[end:]
	} else {
		end = len(s)
	}
	start := end
	for start > 0 && (s[start-1]|0x20 >= 'a' && s[start-1]|0x20 <= 'z') {
		start--
	}
	name := strings.ToUpper(s[start:end])
	rest = strings.TrimRight(s[:start], " ")
	if len(name) == 0 || len(name) > maxZone || strings.IndexByte(rest, ':') < 0 {
		return s, 0
	}
	minutes, known := zones[name]
	if !known && (len(name) < 3 || name != s[start:end]) {
		return s, 0 // AM, PM, and words
	}
	if suffix != "" {
		more, ok := minutesOf(suffix)
		if !ok || minutes != 0 || !known {
			return s, 0
		}
		minutes = more
	}
	return rest, time.Duration(minutes) * time.Minute
}

// minutesOf reads the offset behind UTC or GMT: +2, +02, +0200, +02:00.
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
// offset is UTC, wherever it is read. Dates before 1970 or after 2199 are refused: they are mistakes
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
	s, offset := cutZone(s)
	if n := len(s) - 2; n > 0 && s[n]|0x20 >= 'a' && strings.EqualFold(s[n+1:], "m") {
		s = s[:n] + strings.ToUpper(s[n:]) // am, pm
	}
	// What comes first decides which layouts are worth a try.
	numeric := s[0] >= '0' && s[0] <= '9' && (len(s) < 5 || s[4] < 'A')
	for _, layout := range layouts {
		if numeric != (layout[0] == '2' && (len(layout) < 5 || layout[4] < 'A')) {
			continue
		}
		t, err := time.ParseInLocation(layout, s, time.UTC)
		if err != nil {
			continue
		}
		t = t.Add(-offset)
		if y := t.Year(); y < 1970 || y > 2199 {
			return time.Time{}, false
		}
		return t.UTC(), true
	}
	return time.Time{}, false
}
