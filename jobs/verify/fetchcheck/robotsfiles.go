package fetchcheck

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/formats/warc"
	"crawlbatch.io/crawlbatch/jobs/verify/audit"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch/response"
	"crawlbatch.io/crawlbatch/stages/fetch/robots"
	"crawlbatch.io/crawlbatch/stages/fetch/wire"
)

// robotsCapture holds the columns of the captures dataset that invariant 2 needs.
type robotsCapture struct {
	URL       string      `parquet:"url"`
	FetchTime schema.Time `parquet:"fetch_time,timestamp(microsecond)"`
	Status    int16       `parquet:"fetch_status"`
	Truncated string      `parquet:"content_truncated"`
	Digest    string      `parquet:"content_digest"`
	File      string      `parquet:"warc_filename"`
	Offset    int32       `parquet:"warc_record_offset"`
	Length    int32       `parquet:"warc_record_length"`
}

// sent identifies a request of a partition and the response to the request.
type sent struct {
	url   string
	start schema.Time
}

// robotsResponse is the response to a robots.txt request.
type robotsResponse struct {
	requestRow
	capture *robotsCapture // nil if the response is not stored
	class   robots.Class
	target  *string // target of the redirect, "" if it has none; nil before the first use, because it is in the stored response
	// removed marks a redirect that leads to what a takedown removed. A response applied after it, but nobody knows
	// which.
	removed bool
}

// digest returns the digest of the file in the response, or "" if the response has no file.
func (f *robotsResponse) digest() string {
	if f.class != robots.Rules || f.capture == nil {
		return ""
	}
	return f.capture.Digest
}

// place identifies the response's record.
func (f *robotsResponse) place() string {
	return fmt.Sprintf("%s@%d", f.capture.File, f.capture.Offset)
}

// liesAt reports whether the response's record is at the given file and offset. An empty file stands
// for a response that is not stored.
func (f *robotsResponse) liesAt(file string, offset int32) bool {
	if f.capture == nil {
		return file == ""
	}
	return f.capture.File == file && f.capture.Offset == offset
}

func (f *robotsResponse) String() string {
	if f.capture == nil {
		return fmt.Sprintf("%s (status %d)", f.URL, f.Status)
	}
	return fmt.Sprintf("%s (status %d, %s at %d)", f.URL, f.Status, f.capture.File, f.capture.Offset)
}

// robotsFiles holds the responses to the robots.txt requests of a partition. The files themselves
// stay in the store, so robotsFiles needs only a few hundred bytes of memory for each origin.
type robotsFiles struct {
	*audit.Audit
	round *audit.Round
	canon *urlkey.Canonicalizer
	byURL map[string][]*robotsResponse // responses by URL, in the order of arrival
	// chains holds the responses by the URL of the robots.txt for which they were requested, in the order of
	// arrival: those to this URL, and those to the targets of its redirects.
	chains map[string][]*robotsResponse
	// carried holds, by origin, the responses that this round took over from earlier rounds, also those that a
	// takedown removed. lost holds
	// the origins for which such a response is unreadable. The check reports each unreadable response
	// once, and skips requests to these origins.
	carried map[string][]*robotsResponse
	lost    map[string]bool

	key    string // key of the open WARC file
	open   store.Object
	reader *warc.Reader
}

func newRobotsFiles(a *audit.Audit, r *audit.Round) (*robotsFiles, error) {
	canon, err := urlkey.New(a.Config.Plan.StripParams)
	if err != nil {
		return nil, err
	}
	return &robotsFiles{Audit: a, round: r, canon: canon, byURL: map[string][]*robotsResponse{}, chains: map[string][]*robotsResponse{}, carried: map[string][]*robotsResponse{}, lost: map[string]bool{},
		reader: warc.NewReader(nil, warc.ReaderOptions{})}, nil
}

func (s *robotsFiles) close() {
	if s.open != nil {
		_ = s.open.Close() // closing a file that was only read cannot lose data
	}
}

// epochOf finds the epoch in the key of a WARC file.
var epochOf = regexp.MustCompile(`-e([0-9]+)-[0-9]{5}\.`)

// load reads the robots.txt requests and their responses.
func (s *robotsFiles) load(ctx context.Context, captures, requests []string) error {
	stored := map[sent][]*robotsCapture{}
	for c, err := range audit.Concat[robotsCapture](ctx, s.Audit, captures) {
		if err != nil {
			return err
		}
		at := sent{c.URL, c.FetchTime}
		stored[at] = append(stored[at], &c)
	}
	for q, err := range audit.Concat[requestRow](ctx, s.Audit, requests) {
		if err != nil {
			return err
		}
		if q.Purpose != string(schema.ForRobots) {
			continue
		}
		f := &robotsResponse{requestRow: q}
		for _, c := range stored[sent{q.URL, q.Start}] {
			if m := epochOf.FindStringSubmatch(c.File); m != nil && m[1] == fmt.Sprint(q.Epoch) {
				f.capture = c
			}
		}
		f.class = f.classify()
		s.add(f)
	}
	s.sort()
	return nil
}

// sort puts the responses into the order of arrival.
func (s *robotsFiles) sort() {
	for _, lists := range []map[string][]*robotsResponse{s.byURL, s.chains} {
		for _, all := range lists {
			slices.SortStableFunc(all, func(a, b *robotsResponse) int {
				return cmp.Or(a.compareTime(b), cmp.Compare(a.RobotsFor, b.RobotsFor)) // a target may be requested in the same millisecond
			})
		}
	}
}

// compareTime compares the times of two requests. A request of a higher epoch is later, whatever the clocks say.
func (f *robotsResponse) compareTime(other *robotsResponse) int {
	return cmp.Or(cmp.Compare(f.Epoch, other.Epoch), cmp.Compare(f.Start, other.Start))
}

// add adds the response to a request.
func (s *robotsFiles) add(f *robotsResponse) {
	s.byURL[f.URL] = append(s.byURL[f.URL], f)
	of := cmp.Or(f.RobotsFor, f.URL)
	s.chains[of] = append(s.chains[of], f)
}

// classify returns what the response itself means, without following a redirect. A
// response that lacks a part of the rules or is not stored allows nothing.
func (f *robotsResponse) classify() robots.Class {
	var failed error
	if f.Error != "" {
		failed = errors.New(f.Error)
	}
	if c := f.capture; c != nil && (c.Truncated == schema.TruncatedTime || c.Truncated == schema.TruncatedDisconnect) && robots.CutOffFails(int(f.Status)) {
		failed = errors.New(c.Truncated)
	}
	class := robots.FetchClass(int(f.Status), failed)
	if class == robots.Rules && f.capture == nil {
		return robots.Unreachable
	}
	return class
}

// responsesBefore lists the conclusive responses for an origin's robots.txt that came before a request
// with the given epoch and start time, newest first. A response of a higher epoch is later than one of
// a lower epoch, even if the machines' clocks disagree. Responses from an earlier round are older than
// those of all epochs. The list also has redirects that lead to what a takedown removed.
func (s *robotsFiles) responsesBefore(ctx context.Context, origin string, epoch int32, start schema.Time) ([]*robotsResponse, error) {
	var out []*robotsResponse
	chain := s.chains[origin+"/robots.txt"]
	for i, f := range slices.Backward(chain) {
		if f.RobotsFor != "" || f.Epoch > epoch || f.Epoch == epoch && f.Start > start {
			continue
		}
		last, err := s.followRedirects(ctx, chain[i:])
		if err != nil {
			return nil, err
		}
		if last != nil {
			out = append(out, last)
		}
	}
	return append(out, s.carried[origin]...), nil
}

// allResponses lists all conclusive responses to an origin's robots.txt, as responsesBefore does.
func (s *robotsFiles) allResponses(ctx context.Context, origin string) ([]*robotsResponse, error) {
	const end = 1<<63 - 1
	return s.responsesBefore(ctx, origin, 1<<31-1, end)
}

// followRedirects follows the redirects of the first response in chain, and returns the conclusive response at
// their end, or nil if there is none. The others in chain are the later responses of the same robots.txt. Responses
// that were requested for another one do not count, even if both redirect to the same URL.
//
// A takedown removes all requests for a URL, and takedowns wait until the round is sealed. So if no request for a
// target is left in a round with a takedown, the result is the first redirect, marked as removed. A target that was
// never requested looks the same: such a violation is not found in these rounds. A target whose requests are
// there, but brought nothing conclusive, was not removed.
func (s *robotsFiles) followRedirects(ctx context.Context, chain []*robotsResponse) (*robotsResponse, error) {
	first := chain[0]
	f, rest := first, chain[1:]
	if i := slices.IndexFunc(rest, func(t *robotsResponse) bool { return t.RobotsFor == "" }); i >= 0 {
		rest = rest[:i] // the robots.txt was requested again
	}
	for hops := 0; f.Status >= 300 && f.Status < 400 && f.Error == "" && hops < robots.MaxRedirects; hops++ {
		if f.target == nil {
			target, err := s.target(ctx, f)
			if err != nil {
				return nil, err
			}
			f.target = &target // each row about the origin follows the redirect, but the response is read only once
		}
		target := *f.target
		if target == "" {
			break // a redirect without a target leads to no file
		}
		// What counts is the target's first conclusive response after the redirect. It may have a later
		// epoch: if the task was resumed, the next attempt requested the target.
		i := nextOf(rest, f, target)
		if i < 0 && len(s.byURL[target]) == 0 && s.round.Forgot {
			return &robotsResponse{requestRow: first.requestRow, removed: true}, nil
		}
		if i < 0 {
			return nil, nil
		}
		f, rest = rest[i], slices.Delete(slices.Clone(rest), i, i+1)
	}
	if f.class == robots.Unreachable {
		return nil, nil
	}
	return f, nil
}

// nextOf returns the index of the first conclusive response of target that does not come before f, or -1. If a file was
// requested again, because it could not be decoded, nextOf returns the last.
func nextOf(rest []*robotsResponse, f *robotsResponse, target string) int {
	next := -1
	for i, t := range rest {
		if t.URL == target && t.class != robots.Unreachable && t.compareTime(f) >= 0 && (next < 0 || rest[next].class == robots.Rules) {
			next = i
		}
	}
	return next
}

// target returns the target of a stored redirect, or "" if the redirect has no target.
func (s *robotsFiles) target(ctx context.Context, f *robotsResponse) (string, error) {
	if f.capture == nil {
		return "", nil
	}
	x, ok, err := s.read(ctx, f)
	if err != nil || !ok {
		return "", err
	}
	defer x.Release()
	k, _, err := response.Location(s.canon, x, cmp.Or(f.Sent, f.URL))
	if err != nil {
		return "", nil //nolint:nilerr // a response that cannot be parsed has no target
	}
	return strings.Clone(k.URL), nil
}

// read reads the stored response, or reports an unreadable record.
func (s *robotsFiles) read(ctx context.Context, f *robotsResponse) (*wire.Exchange, bool, error) {
	if s.Broken(f.capture.File) {
		return nil, false, nil
	}
	if s.key != f.capture.File {
		s.close()
		s.key, s.open = "", nil
		obj, err := s.Bucket.Open(ctx, f.capture.File)
		if err != nil {
			return nil, false, s.Fault(err, robotsObeyed, s.round.Number, f.capture.File)
		}
		s.key, s.open = f.capture.File, obj
	}
	raw, err := s.readRecord(f.capture)
	if err != nil && !audit.IsFault(err) {
		return nil, false, err
	}
	var x *wire.Exchange
	if err == nil {
		x, err = wire.Replay(raw, strings.HasPrefix(f.URL, "https:"), wire.Limits{MaxBody: int64(s.Config.Fetch.MaxBody)})
	}
	if err != nil {
		s.WrongOnce(robotsObeyed, f.place(), s.round.Number, audit.At{Object: f.capture.File, Row: fmt.Sprintf("%s at %d", f.URL, f.capture.Offset)},
			"this robots.txt cannot be read, so its verdicts cannot be checked: %v", err)
		return nil, false, nil
	}
	return x, true, nil
}

// maxRecord limits the size of a record's block in memory, in bytes.
const maxRecord = 64 << 20

func (s *robotsFiles) readRecord(c *robotsCapture) ([]byte, error) {
	e, err := s.reader.ReadAt(s.open, warc.Extent{Offset: int64(c.Offset), Length: int64(c.Length)})
	if err != nil {
		return nil, err
	}
	if e.Length > maxRecord {
		return nil, fmt.Errorf("its block has %d bytes: %w", e.Length, store.ErrTooLarge)
	}
	return io.ReadAll(e)
}

// carriedRow is a row of the working file that lists where robots.txt responses are stored.
type carriedRow struct {
	Origin  string `parquet:"origin"`
	Outcome string `parquet:"outcome"`
	File    string `parquet:"warc_filename"`
	Offset  int32  `parquet:"warc_record_offset"`

	FetchedAt schema.Time `parquet:"fetched_at,optional,timestamp(microsecond)"` // 0 in keys of maps
}

// fetchTask names a fetch task of the crawl.
type fetchTask struct{ round, partition int }

// loadCarried finds the robots.txt responses that a fetch task took over from earlier rounds. keys are
// those of working files, which say where these responses are stored, but prove nothing. loadCarried
// therefore reads the rows of the earlier round. It accepts a response only if that round requested the
// origin's robots.txt and got this response, directly or after redirects. In a round with a takedown, a row that
// names no response is one whose response was removed.
func (s *robotsFiles) loadCarried(ctx context.Context, keys []string) error {
	from := map[fetchTask]map[carriedRow]bool{}
	for row, err := range audit.Concat[carriedRow](ctx, s.Audit, keys) {
		if err != nil {
			return err
		}
		if row.File == "" && row.Outcome == "" && s.round.Forgot {
			s.carryRemoved(&row)
			continue
		}
		crawl, number, partition, ok := layout.ParseWARC(row.File)
		if !ok || crawl != s.FetchedIn() || row.Outcome != "" || number >= s.round.Number {
			continue // not from an earlier round, or the robots.txt could not be fetched
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
	for _, t := range slices.Backward(order) { // newer tasks come first
		if err := s.findCarried(ctx, t, from[t]); err != nil {
			return err
		}
	}
	return nil
}

// carryRemoved notes that a response that the round took over was removed. The rows of responses that the round itself
// got are alike, but have a request of the round before them.
func (s *robotsFiles) carryRemoved(row *carriedRow) {
	own := slices.ContainsFunc(s.byURL[row.Origin+"/robots.txt"], func(f *robotsResponse) bool { return f.Start <= row.FetchedAt })
	if !own {
		origin := strings.Clone(row.Origin)
		s.carried[origin] = append(s.carried[origin], &robotsResponse{requestRow: requestRow{Start: row.FetchedAt}, removed: true})
	}
}

// findCarried looks for the responses in rows among those that a task of an earlier round got.
func (s *robotsFiles) findCarried(ctx context.Context, t fetchTask, rows map[carriedRow]bool) error {
	r := s.round
	for r != nil && r.Number > t.round {
		r = r.Before
	}
	var p audit.Partition
	if r != nil && r.Number == t.round {
		var err error
		if p, err = r.Partition(ctx, t.partition); err != nil {
			return err
		}
	}
	if p.Fetched == nil {
		s.lose(rows) // the audit has reported that the task's result is unreadable
		return nil
	}
	requests, _ := p.Files(stages.FileRequests, "")
	captures, _ := p.Files(stages.FileCaptures, schema.SubsetRobots)
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
		responses, err := earlier.allResponses(ctx, row.Origin)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(responses, func(f *robotsResponse) bool { return !f.removed && f.liesAt(row.File, row.Offset) })
		if i < 0 { // the redirects to the response may have been removed, and the row may be older than the takedown
			i = slices.IndexFunc(responses, func(f *robotsResponse) bool { return f.removed })
		}
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
