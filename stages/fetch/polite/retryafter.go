package polite

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// ParseRetryAfter parses a Retry-After header, which holds seconds or a date (RFC 9110, section
// 10.2.3). It returns how long to wait from now: at most a day, and 0 for a past date. It returns
// false if the value is neither seconds nor a date.
func ParseRetryAfter(value string, now time.Time) (time.Duration, bool) {
	value = strings.TrimSpace(value)
	if n, err := strconv.ParseUint(value, 10, 63); err == nil {
		return time.Duration(min(n, uint64(maxDelay/time.Second))) * time.Second, true
	}
	if value != "" && strings.Trim(value, "0123456789") == "" {
		return maxDelay, true // more digits than an int64 holds
	}
	t, err := http.ParseTime(value)
	if err != nil {
		return 0, false
	}
	return min(max(t.Sub(now), 0), maxDelay), true
}
