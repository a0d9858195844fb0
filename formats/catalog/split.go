package catalog

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// ErrNotEmpty means that the directory for Split already holds files.
var ErrNotEmpty = errors.New("is not empty: name a new directory")

// statementFile matches the names of the files that Split writes.
var statementFile = regexp.MustCompile(`^\d{3}-[a-z_0-9-]+\.sql$`)

// Split writes each statement to a file of its own in dir. The names of the files begin with the
// number of the statement. The files contain no semicolon, because clients that take one statement
// per call refuse it. If dir is not empty and replace is false, the error wraps ErrNotEmpty. If
// replace is true, Split first removes the files that an earlier Split has written.
func (s *Script) Split(dir string, replace bool) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	present, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	if len(present) > 0 && !replace {
		return fmt.Errorf("%q %w", dir, ErrNotEmpty)
	}
	for _, entry := range present {
		if statementFile.MatchString(entry.Name()) {
			if err := os.Remove(filepath.Join(dir, entry.Name())); err != nil {
				return err
			}
		}
	}
	for i, st := range s.Statements {
		name := filepath.Join(dir, fmt.Sprintf("%03d-%s.sql", i+1, st.Name))
		if err := os.WriteFile(name, []byte(s.Comment()+st.SQL+"\n"), 0o666); err != nil {
			return err
		}
	}
	return nil
}

// Location returns the URL at which Trino or Spark reaches a store. store is a directory or
// s3://bucket/prefix.
func Location(store string, spark bool) (string, error) {
	scheme := "local://"
	if spark {
		scheme = "file://"
	}
	if rest, ok := strings.CutPrefix(store, "s3://"); ok {
		if spark {
			return "s3a://" + rest, nil
		}
		return store, nil
	}
	dir, err := filepath.Abs(store)
	return scheme + dir, err
}
