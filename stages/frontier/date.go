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

// urlDate is the date that a URL names.
type urlDate struct {
	day     int  // in days since 1970; of a month, the day in its middle
	monthly bool // the URL names a month
	bare    bool // the URL names nothing after the date; false for /2026/11/21/name
}

// cell returns a number of the month and the day of the week, or only of the month if the URL names no day. The
// pages of a calendar without events may name both.
func (d urlDate) cell() int {
	t := time.Unix(int64(d.day)*24*60*60, 0).UTC()
	if d.monthly {
		return int(t.Month())
	}
	return 100*int(t.Month()) + int(t.Weekday())
}

// dateOf returns the date that a URL names in its path (2026/11, 2026/11/21, 2026-11-21, 20261121) or
// in its query. If there is no valid date, ok is false.
func dateOf(url string) (d urlDate, ok bool) {
	path, query, has := strings.Cut(afterHost(url), "?")
	segments := strings.Split(strings.Trim(path, "/"), "/")
	for i := range segments {
		if d, n, ok := dateIn(segments[i:]); ok {
			d.bare = i+n == len(segments) && !has
			return d, true
		}
	}
	if !has {
		return urlDate{}, false
	}
	return dateInQuery(strings.Split(query, "&"))
}

// dateIn returns the date at the beginning of a path, and the number of segments that it takes.
func dateIn(segments []string) (d urlDate, n int, ok bool) {
	if d, ok := compactDate(segments[0]); ok {
		return d, 1, true
	}
	if len(segments) < 2 {
		return urlDate{}, 0, false
	}
	if len(segments) > 2 && number(segments[2], 1, 2) >= 0 { // 2026/11/40 is no month of a calendar
		d, ok = date(segments[0], segments[1], segments[2])
		return d, 3, ok
	}
	d, ok = date(segments[0], segments[1], "")
	return d, 2, ok
}

// dateInQuery finds a date in one field of a query (date=2026-11-21), or in the fields year, month and
// day.
func dateInQuery(fields []string) (d urlDate, ok bool) {
	var year, month, day string
	used := 0
	for _, f := range fields {
		name, value, _ := strings.Cut(f, "=")
		if d, ok := compactDate(value); ok {
			d.bare = len(fields) == 1
			return d, true
		}
		switch strings.ToLower(name) {
		case "y", "yr", "year":
			year = value
		case "m", "mo", "mon", "month":
			month = value
		case "d", "day":
			day = value
		default:
			continue
		}
		used++
	}
	d, ok = date(year, month, day)
	d.bare = used == len(fields)
	return d, ok
}

// compactDate parses 2026-11-21, 2026-11 and 20261121.
func compactDate(s string) (d urlDate, ok bool) {
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
	return urlDate{}, false
}

// date returns a day, or a month if day is empty.
func date(year, month, day string) (d urlDate, ok bool) {
	y, m, n := number(year, 4, 4), number(month, 1, 2), 15
	if day != "" {
		n = number(day, 1, 2)
	}
	t := time.Date(y, time.Month(m), n, 0, 0, 0, 0, time.UTC)
	if y < 1000 || m < 1 || n < 1 || t.Day() != n || int(t.Month()) != m {
		return urlDate{}, false
	}
	return urlDate{day: int(t.Unix() / (24 * 60 * 60)), monthly: day == ""}, true
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
