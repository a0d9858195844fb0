package response

import (
	"net/http"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/http1"
	"crawlbatch.io/crawlbatch/stages/fetch/wire"
)

// A condition that is always true, or never, would hide each change of a page.
func TestValidators(t *testing.T) {
	now := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	date := func(d time.Duration) string { return now.Add(d).Format(http.TimeFormat) }
	for _, c := range []struct {
		name, value string
		kept        bool
	}{
		{"ETag", `"a"`, true},
		{"ETag", `W/"a"`, true},
		{"ETag", `a*b`, true},
		{"ETag", `"*"`, true},
		{"ETag", `*`, false},
		{"ETag", ` * `, false},
		{"ETag", `W/*`, false},
		{"ETag", `"a", *`, false},
		{"Last-Modified", date(-time.Hour), true},
		{"Last-Modified", date(0), true},
		{"Last-Modified", date(time.Minute), true},
		{"Last-Modified", date(time.Hour), false},
		{"Last-Modified", "Friday, 01-Jan-38 00:00:00 GMT", false},
		{"Last-Modified", now.Add(48 * time.Hour).Format(time.ANSIC), false},
		{"Last-Modified", "yesterday", true},
	} {
		x := &wire.Exchange{}
		x.Header = http1.Header{{Name: c.name, Value: c.value}}
		etag, modified := Validators(x, now)
		if got := etag + modified; got != "" != c.kept || c.kept && got != c.value {
			t.Errorf("%s: %s gives %q", c.name, c.value, got)
		}
	}
}
