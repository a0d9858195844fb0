package polite

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// retryDates are forms of dates that servers send in Retry-After besides those of RFC 9110.
var retryDates = []string{
	"Mon, 2 Jan 2006 15:04:05 MST", "Mon, 2 Jan 2006 15:04:05 -0700", "2 Jan 2006 15:04:05 MST", "2 Jan 2006 15:04:05 -0700",
	"Mon, 2-Jan-2006 15:04:05 MST", time.RFC3339, "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05 MST", "2006-01-02 15:04:05",
}

// leastUnixTime is the least number that is not taken for seconds to wait but for a time in seconds since 1970.
const leastUnixTime = 1 << 30

// ParseRetryAfter parses a Retry-After header, which holds seconds or a date (RFC 9110, section
// 10.2.3). It also reads what servers send instead: fractions and units of seconds, dates in UTC or with an offset,
// and seconds since 1970. It returns how long to wait from now: at most a day, and 0 for a past date. It returns
// false if the value is none of these.
func ParseRetryAfter(value string, now time.Time) (time.Duration, bool) {
	value = strings.TrimSpace(value)
	if n, ok := seconds(value); ok {
		if at := n - float64(now.Unix()); n >= leastUnixTime && at <= maxDelay.Seconds() {
			n = max(at, 0)
		}
		return time.Duration(math.Ceil(min(n, maxDelay.Seconds()))) * time.Second, true
	}
	t, err := http.ParseTime(value)
	for i := 0; err != nil && i < len(retryDates); i++ {
		t, err = time.Parse(retryDates[i], value)
		if zone, offset := t.Zone(); err == nil && offset == 0 && !utc[zone] {
			return 0, false // time.Parse gives zones that it does not know an offset of zero
		}
	}
	if err != nil {
		return 0, false
	}
	return min(max(t.Sub(now), 0), maxDelay), true
}

var utc = map[string]bool{"UTC": true, "GMT": true, "Z": true, "UT": true, "": true}

// seconds parses digits, perhaps with a fraction and a unit.
func seconds(value string) (float64, bool) {
	unit := strings.TrimLeft(value, "0123456789.")
	switch strings.ToLower(strings.TrimSpace(unit)) {
	case "", "s", "sec", "secs", "second", "seconds":
	default:
		return 0, false
	}
	n, err := strconv.ParseFloat(strings.TrimSuffix(value, unit), 64)
	return n, err == nil || math.IsInf(n, 1)
}
