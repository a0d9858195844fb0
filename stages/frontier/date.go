package frontier

import (
	"strings"
	"time"

	"crawlbatch.io/crawlbatch/formats/schema"
)

// plausibleYears is the largest distance of a date in a URL from the crawl, in years. Numbers beyond it are
// more likely those of threads, pages and objects.
const plausibleYears = 10

// days returns the number of days since 1970.
func days(t schema.Time) int { return int(time.Duration(t) * time.Microsecond / (24 * time.Hour)) }

// dateOf returns the date that a URL names in its path (2026/11, 2026/11/21, 2026-11-21, 20261121) or
// in its query, in days since 1970. bare reports whether the URL names nothing after the date. So
// bare is false for /2026/11/21/name. If there is no valid date, ok is false.
func dateOf(url string) (day int, bare, ok bool) {
	_, rest, _ := strings.Cut(url, "://")
	_, rest, _ = strings.Cut(rest, "/")
	path, query, has := strings.Cut(rest, "?")
	segments := strings.Split(strings.Trim(path, "/"), "/")
	for i := range segments {
		if day, n, ok := dateIn(segments[i:]); ok {
			return day, i+n == len(segments) && !has, true
		}
	}
	if !has {
		return 0, false, false
	}
	return dateInQuery(strings.Split(query, "&"))
}

// dateIn returns the date at the beginning of a path, and the number of segments that it takes.
func dateIn(segments []string) (day, n int, ok bool) {
	if day, ok := compactDate(segments[0]); ok {
		return day, 1, true
	}
	if len(segments) < 2 {
		return 0, 0, false
	}
	if len(segments) > 2 {
		if day, ok := date(segments[0], segments[1], segments[2]); ok {
			return day, 3, true
		}
	}
	if len(segments) > 2 && number(segments[2], 1, 2) >= 0 {
		return 0, 0, false // 2026/11/40 is no month of a calendar
	}
	day, ok = date(segments[0], segments[1], "")
	return day, 2, ok
}

// dateInQuery finds a date in one field of a query (date=2026-11-21), or in the fields year, month and
// day.
func dateInQuery(fields []string) (day int, bare, ok bool) {
	var year, month, dayOfMonth string
	used := 0
	for _, f := range fields {
		name, value, _ := strings.Cut(f, "=")
		if day, ok := compactDate(value); ok {
			return day, len(fields) == 1, true
		}
		switch strings.ToLower(name) {
		case "y", "yr", "year":
			year = value
		case "m", "mo", "mon", "month":
			month = value
		case "d", "day":
			dayOfMonth = value
		default:
			continue
		}
		used++
	}
	day, ok = date(year, month, dayOfMonth)
	return day, used == len(fields), ok
}

// compactDate parses 2026-11-21, 2026-11 and 20261121.
func compactDate(s string) (day int, ok bool) {
	if len(s) == 8 && number(s, 8, 8) >= 0 {
		return date(s[:4], s[4:6], s[6:])
	}
	parts := strings.Split(s, "-")
	switch len(parts) {
	case 2:
		return date(parts[0], parts[1], "")
	case 3:
		return date(parts[0], parts[1], parts[2])
	}
	return 0, false
}

// date returns a day, or the middle of a month if dayOfMonth is empty.
func date(year, month, dayOfMonth string) (day int, ok bool) {
	y, m, d := number(year, 4, 4), number(month, 1, 2), 15
	if dayOfMonth != "" {
		d = number(dayOfMonth, 1, 2)
	}
	t := time.Date(y, time.Month(m), d, 0, 0, 0, 0, time.UTC)
	if y < 1000 || m < 1 || d < 1 || t.Day() != d || int(t.Month()) != m {
		return 0, false
	}
	return int(t.Unix() / (24 * 60 * 60)), true
}

// number parses a number of least to most digits. It returns -1 for other texts.
func number(s string, least, most int) int {
	if len(s) < least || len(s) > most {
		return -1
	}
	n := 0
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return -1
		}
		n = 10*n + int(s[i]-'0')
	}
	return n
}
