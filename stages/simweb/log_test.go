package simweb

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func TestLogIsKeptOrWritten(t *testing.T) {
	w := newWeb(t, nil)
	var file bytes.Buffer
	kept, written := NewLog(nil), NewLog(&file)
	for _, log := range []*Log{kept, written} {
		srv := NewServer(w, log)
		for _, path := range []string{"/robots.txt", "/", "/a?b=<c>", "/d", "/e"} {
			get(srv, "http://"+w.Host(0)+path, "User-Agent", "tester/1.0")
		}
	}
	entries := kept.Entries()
	if len(entries) != 5 || entries[2].Path != "/a?b=<c>" || entries[4].Path != "/e" || kept.Err() != nil {
		t.Fatalf("kept %+v, error %v", entries, kept.Err())
	}
	if len(written.Entries()) != 0 || written.Err() != nil || strings.Count(file.String(), "\n") != 5 {
		t.Fatalf("kept %+v, error %v, written %q", written.Entries(), written.Err(), file.String())
	}
	dec := json.NewDecoder(&file)
	for _, want := range entries {
		var e Entry
		if err := dec.Decode(&e); err != nil || e.Host != w.Host(0) || e.UserAgent != "tester/1.0" || e.Time.IsZero() {
			t.Errorf("read %+v, %v", e, err)
		}
		if e.Path != want.Path || e.Status != want.Status {
			t.Errorf("written %+v, kept %+v", e, want)
		}
	}
}

type broken struct{}

var errBroken = errors.New("broken")

func (broken) Write([]byte) (int, error) { return 0, errBroken }

func TestLogKeepsItsFirstError(t *testing.T) {
	log := NewLog(broken{})
	get(NewServer(newWeb(t, nil), log), "http://x.test/")
	if !errors.Is(log.Err(), errBroken) || len(log.Entries()) != 0 {
		t.Errorf("error %v, entries %v", log.Err(), log.Entries())
	}
}
