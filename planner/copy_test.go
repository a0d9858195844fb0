package planner

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table/tabletest"
	"crawlbatch.io/crawlbatch/planner/planfile"
	"crawlbatch.io/crawlbatch/planner/source"
	"crawlbatch.io/crawlbatch/planner/source/external"
)

func TestACopyOfAPlanHasTheSameRowsUnderAnIDOfItsOwn(t *testing.T) {
	b := bucket(t)
	cfg := Default()
	cfg.PartitionURLs = 2
	from, rows, refused := commitAndRead(t, b, plan(t, cfg, lines("http://a.test/1", "http://b.test/1?", "http://c.test/1", "no url", "http://a.test/2")))
	m, err := planfile.Copy(context.Background(), b, from, "2026-11r1", "another")
	if err != nil {
		t.Fatal(err)
	}
	if m.ID == from.ID || m.Crawl != "2026-11r1" || m.Round != from.Round || len(m.Partitions) != len(from.Partitions) || len(m.Partitions) < 2 {
		t.Errorf("%+v is a copy of %+v", m, from)
	}
	if diff := cmp.Diff([]string{"plan " + from.ID + " of 2026-11.0"}, m.Sources); diff != "" {
		t.Error(diff)
	}
	for n, part := range m.Partitions {
		if part.File.Key != layout.PlanPart("2026-11r1", 0, m.ID, n) || part.File.SHA256 != from.Partitions[n].File.SHA256 {
			t.Errorf("partition %d is %+v", n, part.File)
		}
		got := tabletest.Read[schema.PlannedURL](t, b, part.File.Key)
		if diff := cmp.Diff(rows[n], got); diff != "" {
			t.Errorf("partition %d:\n%s", n, diff)
		}
	}
	if diff := cmp.Diff(refused, tabletest.Read[schema.Refused](t, b, m.RefusedFile.Key)); diff != "" {
		t.Errorf("refused:\n%s", diff)
	}
	again, err := planfile.Copy(context.Background(), b, from, "2026-11r1", "a third")
	if err != nil || again.ID != m.ID {
		t.Errorf("copied again: %v, %v", again, err)
	}
	if err := b.Delete(context.Background(), from.Partitions[0].File.Key); err != nil {
		t.Fatal(err)
	}
	if _, err := planfile.Copy(context.Background(), b, from, "2026-11r2", "test"); err == nil {
		t.Error("a plan with a missing file was copied")
	}
}

// TestOfSeveralCapturesOfAURLTheNewestIsPlanned plans a URL that has several captures in an
// external archive.
func TestOfSeveralCapturesOfAURLTheNewestIsPlanned(t *testing.T) {
	at := func(file string, offset int32, at schema.Time) source.Entry {
		return source.Entry{URL: "http://a.test/1", File: file, Line: 1, Due: true, Listed: true, Content: source.Content{At: at, Filename: file, Offset: offset, Length: 10}}
	}
	broken := source.Entry{URL: "http://a.test/broken", File: "c", Line: 7, Due: true, Listed: true, Broken: "the member ends"}
	b := bucket(t)
	m, rows, refused := commitAndRead(t, b, plan(t, Default(), known(at("a", 5, 100), at("b", 6, 300), broken, at("b", 9, 300), at("c", 7, 200))))
	if len(rows) != 1 || len(rows[0]) != 1 || rows[0][0].WARCFilename != "b" || rows[0][0].WARCRecordOff != 6 || rows[0][0].ContentAt != 300 {
		t.Errorf("planned %+v", rows)
	}
	if len(refused) != 1 || refused[0].Detail != broken.Broken || refused[0].Line != 7 {
		t.Errorf("refused %+v", refused)
	}
	counts := map[string]int64{}
	for _, c := range m.Refused {
		counts[c.Name] = c.N
	}
	if diff := cmp.Diff(map[string]int64{"duplicate": 3, "bad_record": 1}, counts); diff != "" {
		t.Error(diff)
	}
}

func TestWhereNoRecordCanBeReadTheFirstAreTold(t *testing.T) {
	b := bucket(t)
	if _, err := store.CreateBytes(t.Context(), b, "a.warc", []byte("WARC/1.0\r\nwhat this is nobody knows\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	_, err := Make(t.Context(), Default(), Request{Crawl: "2026-11r1", Sources: []source.Source{external.WARC(b, "archive", []string{"a.warc"}, external.Options{})}, Scratch: t.TempDir()})
	if !errors.Is(err, ErrNothing) || !strings.Contains(err.Error(), "1 bad_record") || !strings.Contains(err.Error(), "a.warc, record 1") || strings.Contains(err.Error(), "absolute") {
		t.Errorf("%v", err)
	}
}
