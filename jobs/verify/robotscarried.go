package verify

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/stages"
)

// carriedRow is what a working file says of a robots.txt: where the answer lies.
type carriedRow struct {
	Origin  string `parquet:"origin"`
	Outcome string `parquet:"outcome"`
	File    string `parquet:"warc_filename"`
	Offset  int32  `parquet:"warc_record_offset"`
}

// fetchTask names a fetch task of the crawl.
type fetchTask struct{ round, partition int }

// loadCarried looks for what a fetch task took over of robots.txt files from rounds
// before. The working file only says where to look: an answer counts if that round
// stores it as one to the origin's robots.txt, redirects followed.
func (s *robotsFiles) loadCarried(ctx context.Context, n int) error {
	from := map[fetchTask]map[carriedRow]bool{}
	for row, err := range concat[carriedRow](ctx, s.audit, keysOf(s.round.results[stages.Fetch][n].FilesOf(stages.FileRobots))) {
		if err != nil {
			return err
		}
		crawl, number, partition, ok := layout.ParseWARC(row.File)
		if !ok || crawl != s.fetchedIn() || row.Outcome != "" || number >= s.round.number {
			continue // of this round: its requests tell
		}
		t := fetchTask{number, partition}
		if from[t] == nil {
			from[t] = map[carriedRow]bool{}
		}
		from[t][carriedRow{Origin: strings.Clone(row.Origin), File: strings.Clone(row.File), Offset: row.Offset}] = true
	}
	order := slices.SortedFunc(maps.Keys(from), func(a, b fetchTask) int {
		return cmp.Or(cmp.Compare(a.round, b.round), cmp.Compare(a.partition, b.partition))
	})
	for _, t := range slices.Backward(order) { // the newest first
		if err := s.carry(ctx, t, from[t]); err != nil {
			return err
		}
	}
	return nil
}

// carry looks for answers among those of a task of a round before.
func (s *robotsFiles) carry(ctx context.Context, t fetchTask, rows map[carriedRow]bool) error {
	r := s.round
	for r != nil && r.number > t.round {
		r = r.before
	}
	if r == nil || r.number != t.round || t.partition >= len(r.results[stages.Fetch]) || r.results[stages.Fetch][t.partition] == nil {
		s.lose(rows) // what cannot be read was reported
		return nil
	}
	requests, _ := r.files(stages.FileRequests, "", t.partition)
	captures, _ := r.files(stages.FileCaptures, schema.SubsetRobots, t.partition)
	if s.isBroken(keysOf(requests)...) || s.isBroken(keysOf(captures)...) {
		s.lose(rows)
		return nil
	}
	earlier, err := newRobotsFiles(s.audit, r)
	if err != nil {
		return err
	}
	defer earlier.close()
	if err := earlier.load(ctx, keysOf(captures), keysOf(requests)); err != nil {
		return err
	}
	for _, row := range slices.SortedFunc(maps.Keys(rows), func(a, b carriedRow) int {
		return cmp.Or(strings.Compare(a.Origin, b.Origin), strings.Compare(a.File, b.File), cmp.Compare(a.Offset, b.Offset))
	}) {
		answers, err := earlier.all(ctx, row.Origin)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(answers, func(f *robotsAnswer) bool { return f.liesAt(row.File, row.Offset) })
		if i < 0 {
			s.report(Violation{
				Invariant: 2, Check: obeyed, Round: s.round.number, Object: row.File, Row: row.Origin,
				Problem: fmt.Sprintf("the record at %d is said to be the answer to %s/robots.txt that was carried over, but round %d does not record it as one", row.Offset, row.Origin, t.round),
			})
			s.lost[row.Origin] = true
			continue
		}
		s.carried[row.Origin] = append(s.carried[row.Origin], answers[i])
	}
	return nil
}

func (s *robotsFiles) lose(rows map[carriedRow]bool) {
	for row := range rows {
		s.lost[row.Origin] = true
	}
}
