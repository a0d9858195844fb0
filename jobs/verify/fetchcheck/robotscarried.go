package fetchcheck

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/jobs/verify/audit"
	"crawlbatch.io/crawlbatch/stages"
)

// carriedRow is a row of a working file. It names the place of the response to a robots.txt
// request.
type carriedRow struct {
	Origin  string `parquet:"origin"`
	Outcome string `parquet:"outcome"`
	File    string `parquet:"warc_filename"`
	Offset  int32  `parquet:"warc_record_offset"`
}

// fetchTask names a fetch task of the crawl.
type fetchTask struct{ round, partition int }

// loadCarried finds the robots.txt responses that a fetch task took over from earlier rounds. The
// working file only says where to look. A response counts only if the earlier round records it as a
// response to the origin's robots.txt, possibly after redirects.
func (s *robotsFiles) loadCarried(ctx context.Context, n int) error {
	from := map[fetchTask]map[carriedRow]bool{}
	for row, err := range audit.Concat[carriedRow](ctx, s.Audit, audit.Keys(s.round.Results[stages.Fetch][n].FilesOf(stages.FileRobots))) {
		if err != nil {
			return err
		}
		crawl, number, partition, ok := layout.ParseWARC(row.File)
		if !ok || crawl != s.FetchedIn() || row.Outcome != "" || number >= s.round.Number {
			continue // this round's own requests list it
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

// carry looks for the rows among the responses of a task of an earlier round.
func (s *robotsFiles) carry(ctx context.Context, t fetchTask, rows map[carriedRow]bool) error {
	r := s.round
	for r != nil && r.Number > t.round {
		r = r.Before
	}
	if r == nil || r.Number != t.round || t.partition >= len(r.Results[stages.Fetch]) || r.Results[stages.Fetch][t.partition] == nil {
		s.lose(rows) // they were already reported
		return nil
	}
	requests, _ := r.Files(stages.FileRequests, "", t.partition)
	captures, _ := r.Files(stages.FileCaptures, schema.SubsetRobots, t.partition)
	if s.Broken(requests...) || s.Broken(captures...) {
		s.lose(rows)
		return nil
	}
	earlier, err := newRobotsFiles(s.Audit, r)
	if err != nil {
		return err
	}
	defer earlier.close()
	if err := earlier.load(ctx, captures, requests); err != nil {
		return err
	}
	for _, row := range slices.SortedFunc(maps.Keys(rows), func(a, b carriedRow) int {
		return cmp.Or(strings.Compare(a.Origin, b.Origin), strings.Compare(a.File, b.File), cmp.Compare(a.Offset, b.Offset))
	}) {
		responses, err := earlier.all(ctx, row.Origin)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(responses, func(f *robotsResponse) bool { return f.liesAt(row.File, row.Offset) })
		if i < 0 {
			s.Wrong(robotsObeyed, s.round.Number, audit.At{Object: row.File, Row: row.Origin},
				"the round carried over the record at %d as the response to %s/robots.txt, but round %d does not record it as one", row.Offset, row.Origin, t.round)
			s.lost[row.Origin] = true
			continue
		}
		s.carried[row.Origin] = append(s.carried[row.Origin], responses[i])
	}
	return nil
}

func (s *robotsFiles) lose(rows map[carriedRow]bool) {
	for row := range rows {
		s.lost[row.Origin] = true
	}
}
