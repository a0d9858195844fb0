package simweb

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLogIsBoundedAndReadBack(t *testing.T) {
	w := newWeb(t, nil)
	var file bytes.Buffer
	log := NewLog(3, &file)
	srv := NewServer(w, log)
	for _, path := range []string{"/robots.txt", "/", "/a?b=<c>", "/d", "/e"} {
		get(srv, "http://"+w.Host(0)+path, "User-Agent", "tester/1.0")
	}
	kept := log.Entries()
	if len(kept) != 3 || kept[0].Path != "/a?b=<c>" || kept[2].Path != "/e" || log.Dropped() != 2 || log.Err() != nil {
		t.Errorf("kept %+v, dropped %d, error %v", kept, log.Dropped(), log.Err())
	}
	file.WriteString(`{"time":"2026-`)
	all, err := ReadLog(&file)
	if err != nil || len(all) != 5 || all[1].Host != w.Host(0) || all[1].UserAgent != "tester/1.0" || all[1].Status != 200 || all[4].Status != 404 {
		t.Fatalf("read %+v, %v", all, err)
	}
	if !all[4].Time.Equal(kept[2].Time) || cmp.Diff(all[4].Path, kept[2].Path) != "" {
		t.Errorf("written %+v, kept %+v", all[4], kept[2])
	}
	if _, err := ReadLog(strings.NewReader("{}\nno json\n")); err == nil || !strings.Contains(err.Error(), "entry 2") {
		t.Errorf("a damaged log: error %v", err)
	}
}

type broken struct{}

var errBroken = errors.New("broken")

func (broken) Write([]byte) (int, error) { return 0, errBroken }

func TestLogKeepsItsFirstError(t *testing.T) {
	log := NewLog(0, broken{})
	get(NewServer(newWeb(t, nil), log), "http://x.test/")
	if !errors.Is(log.Err(), errBroken) || len(log.Entries()) != 0 || log.Dropped() != 1 {
		t.Errorf("error %v, entries %v", log.Err(), log.Entries())
	}
}
