package schema

import "time"

// Time is an instant in UTC in microseconds since 1970, the unit of all timestamp columns. Apache
// Iceberg has no milliseconds, and can register such a part as it is. 0 means that the instant is not
// known.
type Time int64

// TimeOf returns t, cut to a whole millisecond as a WARC-Date has it, or 0 for the zero time.Time.
// So an instant that a row and a WARC record state is equal in both.
func TimeOf(t time.Time) Time {
	if t.IsZero() {
		return 0
	}
	return Time(t.UnixMilli() * 1000)
}

// Time returns t as a time.Time in UTC, or the zero time.Time if t is not known.
func (t Time) Time() time.Time {
	if t == 0 {
		return time.Time{}
	}
	return time.UnixMicro(int64(t)).UTC()
}

// Add returns the instant that is d later, or earlier if d is negative.
func (t Time) Add(d time.Duration) Time { return t + Time(d.Microseconds()) }

// Sub returns the duration t − u.
func (t Time) Sub(u Time) time.Duration { return time.Duration(t-u) * time.Microsecond }

// UnixMilli returns t in milliseconds since 1970.
func (t Time) UnixMilli() int64 { return int64(t) / 1000 }

// String returns t as RFC 3339 with milliseconds, as tables and answers print it; "" if t is not known.
func (t Time) String() string {
	if t == 0 {
		return ""
	}
	return t.Time().Format("2006-01-02T15:04:05.000Z")
}
