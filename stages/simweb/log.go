package simweb

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// Entry is a request as the server saw it.
type Entry struct {
	Time      time.Time `json:"time"` // of arrival; if unknown, when its head had been read
	Host      string    `json:"host"` // lower case, with the port unless it is 80
	Path      string    `json:"path"` // with its query, as sent
	UserAgent string    `json:"user_agent"`
	Status    int       `json:"status"` // of the response; 0 if none was sent
}

// Log keeps the requests to a Server, in the order in which their responses began. Several
// goroutines may use it at the same time.
type Log struct {
	mu      sync.Mutex
	entries []Entry
	next    int // index of the next entry once entries is full
	max     int
	dropped int64
	enc     *json.Encoder
	err     error
}

// NewLog returns a log that keeps the last max entries in memory and writes each as a
// line of JSON to w, if not nil.
func NewLog(max int, w io.Writer) *Log {
	l := &Log{max: max}
	if w != nil {
		l.enc = json.NewEncoder(w)
		l.enc.SetEscapeHTML(false)
	}
	return l
}

func (l *Log) add(e Entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case len(l.entries) < l.max:
		l.entries = append(l.entries, e)
	case l.max > 0:
		l.entries[l.next] = e
		l.next = (l.next + 1) % l.max
		l.dropped++
	default:
		l.dropped++
	}
	if l.enc != nil && l.err == nil {
		if err := l.enc.Encode(e); err != nil {
			l.err = fmt.Errorf("simweb: write request log: %w", err)
		}
	}
}

// Entries returns a copy of the kept entries, oldest first.
func (l *Log) Entries() []Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append(append(make([]Entry, 0, len(l.entries)), l.entries[l.next:]...), l.entries[:l.next]...)
}

// Dropped returns the number of entries that are no longer kept.
func (l *Log) Dropped() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dropped
}

// Err returns the first error of writing the log. After it the Log writes nothing.
func (l *Log) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// ReadLog reads the output of a Log. It drops a last line that a crash cut short.
func ReadLog(r io.Reader) ([]Entry, error) {
	var entries []Entry
	dec := json.NewDecoder(bufio.NewReader(r))
	for {
		var e Entry
		switch err := dec.Decode(&e); {
		case err == nil:
			entries = append(entries, e)
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return entries, nil
		default:
			return entries, fmt.Errorf("simweb: request log, entry %d: %w", len(entries)+1, err)
		}
	}
}
