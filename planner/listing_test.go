package planner

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table/tabletest"
	"crawlbatch.io/crawlbatch/planner/source"
)

// listedIn returns a source whose texts are "FILE LINE URL", or "FILE key=KEY URL".
func listedIn(name string, texts ...string) list {
	l := list{name: name}
	for _, text := range texts {
		fields := strings.Fields(text)
		e := source.Entry{URL: fields[2], File: fields[0], Due: true, Listed: true, Priority: source.DefaultPriority}
		if key, ok := strings.CutPrefix(fields[1], "key="); ok {
			e.Key, e.Line = key, 99
		} else if _, err := fmt.Sscan(fields[1], &e.Line); err != nil {
			panic(err)
		}
		l.entries = append(l.entries, e)
	}
	return l
}

func shown(l schema.Listing) string {
	return fmt.Sprintf("%s:%s@%s %s:%s@%s", l.ListedFirstSource, l.ListedFirstAt, l.ListedFirstRound, l.ListedLastSource, l.ListedLastAt, l.ListedLastRound)
}

func listings(t *testing.T, p *Plan) (out []string) {
	t.Helper()
	b := bucket(t)
	m, _, refused := commitAndRead(t, b, p)
	for _, part := range m.Partitions {
		for _, row := range tabletest.Read[schema.PlannedRow](t, b, part.File.Key) {
			out = append(out, strings.TrimPrefix(row.URL, "http://")+" "+shown(row.Listing))
		}
	}
	for _, row := range refused {
		if row.ListedFirstRound != "" {
			out = append(out, string(row.Reason)+" "+strings.TrimPrefix(row.URL, "http://")+" "+shown(row.Listing))
		}
	}
	slices.Sort(out)
	return out
}

func TestAPlanSaysWhichEntriesListAURLFirstAndLast(t *testing.T) {
	old := &schema.Listing{ListedFirstSource: "old.txt", ListedFirstAt: "7", ListedFirstRound: "2026-09.0", ListedLastSource: "mid.txt", ListedLastAt: "8", ListedLastRound: "2026-10.0"}
	cfg := Default()
	cfg.DomainBudgets = map[string]int{"tight.example": 1}
	cfg.Exclude = []string{"*/private"}
	sources := []source.Source{
		listedIn("lists/", "lists/a.txt 1 http://a.example/both", "lists/a.txt 3 http://a.example/twice", "lists/b.csv 2 http://a.example/other",
			"lists/b.csv 9 http://A.example/twice", "lists/b.csv 10 http://a.example/private", "lists/b.csv 11 http://tight.example/1", "lists/b.csv 12 http://tight.example/2"),
		listedIn("postgres://db.example/crawl?table=q", "postgres://user:hunter2@db.example/crawl?table=q key=17 http://a.example/both",
			"postgres://user:hunter2@db.example/crawl?table=q key=18 http://a.example/known"),
	}
	history := known(
		source.Entry{URL: "http://a.example/due", Due: true, Listing: old}, source.Entry{URL: "http://a.example/found", Due: true},
		source.Entry{URL: "http://a.example/known", History: true, Listing: old},
	)
	const db = "postgres://db.example/crawl?table=q"
	want := []string{
		"a.example/both lists/a.txt:1@2026-11.0 " + db + ":17@2026-11.0",
		"a.example/due old.txt:7@2026-09.0 mid.txt:8@2026-10.0",
		"a.example/found :@ :@",
		"a.example/known old.txt:7@2026-09.0 " + db + ":18@2026-11.0",
		"a.example/other lists/b.csv:2@2026-11.0 lists/b.csv:2@2026-11.0",
		"a.example/twice lists/a.txt:3@2026-11.0 lists/b.csv:9@2026-11.0",
		"budget tight.example/2 lists/b.csv:12@2026-11.0 lists/b.csv:12@2026-11.0",
		"tight.example/1 lists/b.csv:11@2026-11.0 lists/b.csv:11@2026-11.0",
	}
	id := ""
	for _, shape := range []struct {
		workers int
		memory  int64
	}{{1, Default().Memory}, {5, 1 << 20}} {
		cfg.Workers, cfg.Memory = shape.workers, shape.memory
		p := plan(t, cfg, slices.Concat(sources, []source.Source{history})...)
		if id != "" && p.Manifest().ID != id {
			t.Errorf("with %d workers the plan is %s, before %s", shape.workers, p.Manifest().ID, id)
		}
		id = p.Manifest().ID
		if d := cmp.Diff(want, listings(t, p)); d != "" {
			t.Errorf("%d workers (-want +got):\n%s", shape.workers, d)
		}
	}
}
