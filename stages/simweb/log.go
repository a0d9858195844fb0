package simweb

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"
)

// Entry is a request as the server saw it.
type Entry struct {
	Time      time.Time `json:"time"` // when the request arrived; if the kernel does not tell, when its head had been read
	Host      string    `json:"host"` // in lower case, with the port unless it is 80
	Path      string    `json:"path"` // path and query, unchanged
	UserAgent string    `json:"user_agent"`
	Status    int       `json:"status"` // status of the response; 0 if none was sent
}

// Log records the requests to a Server, in the order in which their responses began. It is safe for
// concurrent use.
type Log struct {
	mu      sync.Mutex
	entries []Entry
	enc     *json.Encoder // nil if entries are kept in memory
	err     error
}

// NewLog returns a log that writes each entry to w as a line of JSON. If w is nil, the log keeps
// the entries in memory.
func NewLog(w io.Writer) *Log {
	l := new(Log)
	if w != nil {
		l.enc = json.NewEncoder(w)
		l.enc.SetEscapeHTML(false)
	}
	return l
}

func (l *Log) add(e Entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.enc == nil {
		l.entries = append(l.entries, e)
	} else if l.err == nil {
		if err := l.enc.Encode(e); err != nil {
			l.err = fmt.Errorf("simweb: write request log: %w", err)
		}
	}
}

// Entries returns a copy of the kept entries, oldest first.
func (l *Log) Entries() []Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.entries)
}

// Err returns the first error of writing the log, after which no more entries are written.
func (l *Log) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}
