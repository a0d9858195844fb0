package frontier

import (
	"fmt"
	"strings"

	"crawlbatch.io/crawlbatch/formats/urlkey"
)

// trap returns why the form of a URL makes it a trap, or "" if the URL is none.
func (c *Config) trap(k *urlkey.Key) string {
	if len(k.URL) > c.MaxLength {
		return fmt.Sprintf("%d octets", len(k.URL))
	}
	_, rest, _ := strings.Cut(k.URL, "://")
	path := rest[strings.IndexByte(rest, '/'):]
	path, _, _ = strings.Cut(path, "?")
	var room [64]string
	segments := room[:0]
	for s := range strings.SplitSeq(strings.Trim(path, "/"), "/") {
		segments = append(segments, s)
		if len(segments) > c.MaxSegments {
			return fmt.Sprintf("more than %d path segments", c.MaxSegments)
		}
	}
	for period := 1; period <= 3; period++ {
		same := 0 // number of segments in a row that equal the segment period positions before them
		for i := period; i < len(segments); i++ {
			if segments[i] != segments[i-period] {
				same = 0
				continue
			}
			if same++; same >= period*c.MaxRepeats {
				return fmt.Sprintf("path repeats %q", strings.Join(segments[i-period+1:i+1], "/"))
			}
		}
	}
	return ""
}
