package warc

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Capture is one line of a CDXJ index: a stored response and its position in a WARC file.
type Capture struct {
	// SURT is the sort key of URL (package urlkey). It is the key of the line.
	SURT string
	Date time.Time
	URL  string
	// MIME is the media type that the server declared. Detected is the media type that the content
	// shows. An unknown media type is "".
	MIME, Detected string
	Status         int // HTTP status of the response, 0 if there is none
	Digest         Digest
	Filename       string // name under which readers find the WARC file
	Extent         Extent
	Charset        string
	Languages      string // ISO 639-3 codes of the languages, separated by commas
	Redirect       string // target of a redirect
	Truncated      Truncation
	Revisit        bool // the record is a revisit, whose payload is in another record
}

// capturedFields is the JSON part of an index line. As in the indexes of pywb and Common Crawl, its
// keys have these names and this order, and numbers are strings.
type capturedFields struct {
	URL       string `json:"url"`
	MIME      string `json:"mime,omitempty"`
	Detected  string `json:"mime-detected,omitempty"`
	Status    string `json:"status,omitempty"`
	Digest    string `json:"digest,omitempty"`
	Length    string `json:"length"`
	Offset    string `json:"offset"`
	Filename  string `json:"filename"`
	Charset   string `json:"charset,omitempty"`
	Languages string `json:"languages,omitempty"`
	Redirect  string `json:"redirect,omitempty"`
	Truncated string `json:"truncated,omitempty"`
}

// Index collects the captures of one WARC file and writes them as CDXJ. A line has the SURT, a UTC
// timestamp of 14 digits, and JSON. The lines are sorted by bytes (LC_ALL=C), because pywb searches
// them by bisection. An Index takes a few hundred bytes of memory per capture.
type Index struct {
	lines []string
}

// Add adds a capture to the index.
func (x *Index) Add(c Capture) error {
	status := ""
	if c.Status != 0 {
		status = strconv.Itoa(c.Status)
	}
	mime := c.MIME
	if c.Revisit {
		mime = "warc/revisit"
	}
	fields := capturedFields{
		URL: c.URL, MIME: mime, Detected: c.Detected, Status: status,
		Digest: c.Digest.Value(), Filename: c.Filename,
		Length: strconv.FormatInt(c.Extent.Length, 10), Offset: strconv.FormatInt(c.Extent.Offset, 10),
		Charset: c.Charset, Languages: c.Languages, Redirect: c.Redirect, Truncated: string(c.Truncated),
	}
	var line strings.Builder
	line.WriteString(cdxKey(c.SURT) + " " + c.Date.UTC().Format("20060102150405") + " ")
	enc := json.NewEncoder(&line) // Encode also writes the line feed that ends the line
	enc.SetEscapeHTML(false)
	if err := enc.Encode(fields); err != nil {
		return fmt.Errorf("cdxj: %q: %w", c.URL, err)
	}
	x.lines = append(x.lines, line.String())
	return nil
}

// cdxKey percent-encodes the characters that would end a key or its line.
func cdxKey(surt string) string {
	if strings.IndexFunc(surt, breaksKey) < 0 {
		return surt
	}
	var b strings.Builder
	for _, c := range []byte(surt) {
		if breaksKey(rune(c)) {
			fmt.Fprintf(&b, "%%%02x", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

func breaksKey(r rune) bool { return r <= ' ' || r == 0x7f }

// Len returns the number of captures.
func (x *Index) Len() int { return len(x.lines) }

// WriteTo implements io.WriterTo. It sorts the lines and writes them.
func (x *Index) WriteTo(w io.Writer) (int64, error) {
	slices.Sort(x.lines)
	var written int64
	for _, line := range x.lines {
		n, err := io.WriteString(w, line)
		written += int64(n)
		if err != nil {
			return written, fmt.Errorf("cdxj: %w", err)
		}
	}
	return written, nil
}
