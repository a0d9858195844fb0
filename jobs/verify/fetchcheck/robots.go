package fetchcheck

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/zeebo/xxh3"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/jobs/verify/audit"
	"crawlbatch.io/crawlbatch/jobs/worker"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch/response"
	"crawlbatch.io/crawlbatch/stages/fetch/robots"
	"crawlbatch.io/crawlbatch/stages/fetch/robotscache"
)

// requestRow holds the columns of the requests dataset that invariant 2 needs.
type requestRow struct {
	Host    string      `parquet:"host"`
	Start   schema.Time `parquet:"start,timestamp(microsecond)"`
	URL     string      `parquet:"url"`
	Sent    string      `parquet:"sent"`
	Epoch   int32       `parquet:"epoch"`
	Purpose string      `parquet:"purpose"`
	Status  int16       `parquet:"http_status"`
	Error   string      `parquet:"error"`
	DelayMS int64       `parquet:"delay_ms"`
	Rule    string      `parquet:"robots_rule"`
	Digest  string      `parquet:"robots_digest"`

	PlannedURL string `parquet:"planned_url"`
	RobotsFor  string `parquet:"robots_for"`

	// File and Offset are the place of the response whose robots.txt applied to the request.
	File   string `parquet:"robots_warc_filename"` // "" if the response is not stored
	Offset int32  `parquet:"robots_warc_record_offset"`
}

func askedKey(k table.Key, r *requestRow) table.Key {
	return k.Text(r.Host).Int(int64(r.Start)).Text(r.URL).Int(int64(r.Epoch))
}

// fetchRow holds the columns of the fetches dataset that invariant 2 needs.
type fetchRow struct {
	URL     string `parquet:"url"`
	Sent    string `parquet:"sent"`
	Outcome string `parquet:"outcome"`
	Error   string `parquet:"error"`
	Detail  string `parquet:"error_detail"`
	Allowed *bool  `parquet:"robots_allowed"`
	Rule    string `parquet:"robots_rule"`
}

// robotsTxtIsObeyed uses the stored robots.txt files to repeat each verdict of a partition, and to check
// that each request was allowed.
func robotsTxtIsObeyed(ctx context.Context, a *audit.Audit, r *audit.Round, n int) error {
	if a.Config == nil {
		return nil // the product token is unknown
	}
	p, err := r.Partition(ctx, n)
	if err != nil {
		return err
	}
	requests, sorted := p.Files(stages.FileRequests, "")
	captures, _ := p.Files(stages.FileCaptures, schema.SubsetRobots)
	fetches, _ := p.Files(stages.FileFetches, "")
	if p.Fetched == nil || len(requests) == 0 || a.Broken(requests...) || a.Broken(captures...) {
		return nil
	}
	files, err := newRobotsFiles(a, r)
	if err != nil {
		return err
	}
	defer files.close()
	if err := files.load(ctx, captures, requests); err != nil {
		return err
	}
	if err := files.loadCarried(ctx, audit.Keys(p.Fetched.FilesOf(stages.FileRobots))); err != nil {
		return err
	}
	j := judge{Audit: a, round: r, files: files, agent: robots.ProductToken(worker.UserAgent(a.Config, "")), object: requests[0]}
	if j.planned, err = plannedForms(ctx, a, r, n); err != nil {
		return err
	}
	if err := a.Skip(j.requests(ctx, audit.InOrder(ctx, a, requests, sorted, askedKey)), robotsObeyed, r); err != nil {
		return err
	}
	if len(fetches) == 0 || a.Broken(fetches...) {
		return nil
	}
	j.object = fetches[0]
	return a.Skip(j.fetches(ctx, audit.Concat[fetchRow](ctx, a, fetches)), robotsVerdicts, r)
}

// plannedForm holds the columns of a plan's row that the check of forms needs.
type plannedForm struct {
	URL  string `parquet:"url"`
	Sent string `parquet:"sent,optional"`
}

// plannedForms returns the forms in which the plan asks for a partition's URLs, without the canonical ones. It returns nil if
// the plan's file is unreadable.
func plannedForms(ctx context.Context, a *audit.Audit, r *audit.Round, n int) (map[uint64]uint64, error) {
	key := r.Plan.Partitions[n].File.Key
	if a.Broken(key) {
		return nil, nil
	}
	forms := map[uint64]uint64{}
	return forms, audit.Each(ctx, a, []string{key}, func(_ string, row *plannedForm) error {
		if row.Sent != "" {
			forms[xxh3.HashString(row.URL)] = xxh3.HashString(row.Sent)
		}
		return nil
	})
}

// asPlanned reports whether the plan asks for a URL in a form, which is "" for the canonical one.
func (j *judge) asPlanned(url, sent string) bool {
	want, own := j.planned[xxh3.HashString(url)]
	return j.planned == nil || own == (sent != "") && (!own || want == xxh3.HashString(sent))
}

// judge compares rows with the rules of robots.txt files.
type judge struct {
	*audit.Audit
	round   *audit.Round
	files   *robotsFiles
	agent   string            // product token of the crawler
	planned map[uint64]uint64 // forms of the planned URLs, if they are not canonical, by hash; nil if the plan is unreadable
	object  string            // key of the file with the rows

	host  string                   // name and port in the origins of the rules; rows are ordered by host, but their schemes may alternate
	rules map[string]*robots.Group // rules of the crawler, by the place of the robots.txt's record
}

func (j *judge) wrong(check audit.Check, url, format string, args ...any) {
	j.Wrong(check, j.round.Number, audit.URL(j.object, url), format, args...)
}

// originOf returns the scheme, name and port of a canonical URL.
func originOf(url string) string {
	scheme, rest, _ := strings.Cut(url, "://")
	authority, _, _ := strings.Cut(rest, "/")
	if i := strings.IndexAny(authority, "?#"); i >= 0 {
		authority = authority[:i]
	}
	return scheme + "://" + authority
}

// requests judges all requests of a partition except those for robots.txt, which are always
// allowed.
func (j *judge) requests(ctx context.Context, rows iter.Seq2[requestRow, error]) error {
	var looked, delays int64
	for q, err := range rows {
		if err != nil {
			return err
		}
		if q.Purpose == string(schema.ForRobots) {
			continue
		}
		looked++
		asked := cmp.Or(q.Sent, q.URL)
		switch url, sent, err := j.files.canon.SentURL(asked, ""); {
		case err != nil || url != q.URL:
			j.wrong(robotsObeyed, q.URL, "it was requested as %s, which is another URL", asked)
		case sent != q.Sent:
			j.wrong(robotsObeyed, q.URL, "it was requested as %s, which is not the form in which a crawl sends such a URL", asked)
		}
		if q.Purpose == string(schema.ForPage) && !j.asPlanned(q.URL, q.Sent) {
			j.wrong(robotsObeyed, q.URL, "it was requested as %s, but the plan asks for it in another form", cmp.Or(q.Sent, q.URL))
		}
		limited, err := j.request(ctx, &q)
		if err != nil {
			return err
		}
		if limited {
			delays++
		}
	}
	j.Count(robotsObeyed, looked)
	j.Count(crawlDelayKept, delays)
	return nil
}

// request judges a request. limited is true if robots.txt sets a delay for it.
func (j *judge) request(ctx context.Context, q *requestRow) (limited bool, err error) {
	origin := originOf(q.URL)
	file, ok, err := j.robotsFor(ctx, origin, q)
	if err != nil || !ok {
		return false, err
	}
	rules, ok, err := j.rulesOf(ctx, origin, file)
	if err != nil || !ok {
		return false, err
	}
	if rules == nil {
		j.wrong(robotsObeyed, q.URL, "it was requested though %s cannot be decoded", file)
		return false, nil
	}
	switch v := rules.Verdict(cmp.Or(q.Sent, q.URL)); {
	case !v.Allowed && q.Sent != "":
		j.wrong(robotsObeyed, q.URL, "it was requested as %s, though %s denied that: %q in line %d", q.Sent, file, v.Rule, v.Line)
	case !v.Allowed:
		j.wrong(robotsObeyed, q.URL, "it was requested though %s denied it: %q in line %d", file, v.Rule, v.Line)
	case v.Rule != q.Rule:
		j.wrong(robotsObeyed, q.URL, "its row says that %q allowed it, %s says %q", q.Rule, file, v.Rule)
	}
	d, limited := rules.Delay()
	if limited && q.DelayMS < d.Milliseconds() {
		j.wrong(crawlDelayKept, q.URL, "a delay of %d ms was in force, %s asks for %v", q.DelayMS, file, d)
	}
	return limited, nil
}

// staleSlack is the largest accepted difference between the clocks of two machines.
const staleSlack = 2 * time.Minute

// removedFile adds a note about a row that nobody can check, because a takedown removed the robots.txt to which that
// of the row's origin redirected.
func (j *judge) removedFile(check audit.Check, url string) {
	j.CountNote(fmt.Sprintf("round %d, %s: not checked, because the robots.txt redirects to what a takedown removed: {n}, such as {example}", j.round.Number, check.Name), strings.Clone(url))
}

// robotsFor finds the robots.txt that applied to a request. It reports a request before which no
// robots.txt was read, and a row that names another robots.txt.
func (j *judge) robotsFor(ctx context.Context, origin string, q *requestRow) (*robotsResponse, bool, error) {
	responses, err := j.files.responsesBefore(ctx, origin, q.Epoch, q.Start)
	if err != nil {
		return nil, false, err
	}
	if len(responses) == 0 {
		if !j.files.lost[origin] {
			j.wrong(robotsObeyed, q.URL, "it was requested before a 2xx or 4xx response to %s/robots.txt is recorded", origin)
		}
		return nil, false, nil
	}
	// If the crawler fetched robots.txt again just before the request, the previous robots.txt may have
	// been the one that applied.
	grace := j.Config.Fetch.Timeout.Total.Std()
	newest, removed := responses[0], false
	for i, f := range responses {
		if i > 0 && q.Start.Sub(newest.Start) > grace && !j.round.Forgot {
			break // a takedown removes which robots.txt redirected to a response, so the newest may have come for another origin
		}
		removed = removed || f.removed
		if f.removed || f.digest() != q.Digest {
			continue
		}
		switch {
		case !f.liesAt(q.File, q.Offset):
			continue // the row may name an earlier response with the same bytes
		case j.RobotsTTL > 0 && q.Start.Sub(f.Start) > j.RobotsTTL+staleSlack+2*grace && !j.isStale(origin, q, f):
			j.wrong(robotsObeyed, q.URL, "it was requested %v after %s, robots.txt holds for %v", q.Start.Sub(f.Start), f, j.RobotsTTL)
			return nil, false, nil
		}
		return f, true, nil
	}
	switch {
	case j.files.lost[origin]:
	case removed:
		j.removedFile(robotsObeyed, q.URL)
	case newest.digest() == q.Digest:
		j.wrong(robotsObeyed, q.URL, "its row names the record at %d of %q as evidence, but %s was in force", q.Offset, q.File, newest)
	case q.Digest == "":
		j.wrong(robotsObeyed, q.URL, "its row says that there was no robots.txt, but %s was in force", newest)
	case newest.digest() == "":
		j.wrong(robotsObeyed, q.URL, "its row names the robots.txt %s, but %s/robots.txt answered with status %d", q.Digest, origin, newest.Status)
	default:
		j.wrong(robotsObeyed, q.URL, "its row names the robots.txt %s, but %s was in force", q.Digest, newest)
	}
	return nil, false, nil
}

// isStale reports whether a robots.txt that had expired applied to a request because it could not be fetched again.
func (j *judge) isStale(origin string, q *requestRow, f *robotsResponse) bool {
	if f.digest() == "" || q.Start.Sub(f.Start) > robotscache.MaxStale+staleSlack {
		return false
	}
	return slices.ContainsFunc(j.files.byURL[origin+robotscache.Path], func(tried *robotsResponse) bool {
		return tried.Start > f.Start && tried.Start <= q.Start && q.Start.Sub(tried.Start) <= j.RobotsTTL+staleSlack
	})
}

// rulesOf reads the crawler's rules in a robots.txt, and caches the rules of the origins of one host. The rules are
// nil if the file cannot be decoded.
func (j *judge) rulesOf(ctx context.Context, origin string, f *robotsResponse) (*robots.Group, bool, error) {
	if f.digest() == "" {
		return robots.AllowAll(), true, nil
	}
	if _, host, _ := strings.Cut(origin, "://"); host != j.host || j.rules == nil {
		j.host, j.rules = strings.Clone(host), map[string]*robots.Group{}
	}
	g, known := j.rules[f.place()]
	if known {
		return g, true, nil
	}
	x, ok, err := j.files.read(ctx, f)
	if err != nil || !ok {
		return nil, false, err
	}
	defer x.Release()
	text, err := response.RobotsText(x)
	if err != nil {
		g = nil // nothing is known to be allowed
	} else {
		g = robots.Parse(text).GroupFor(j.agent)
	}
	j.rules[f.place()] = g
	return g, true, nil
}

// fetches checks that each verdict in the fetches dataset follows from some stored robots.txt of
// the origin. A row does not say which robots.txt applied.
func (j *judge) fetches(ctx context.Context, rows iter.Seq2[fetchRow, error]) error {
	var looked int64
	for f, err := range rows {
		if err != nil {
			return err
		}
		if !j.asPlanned(f.URL, f.Sent) {
			j.wrong(robotsVerdicts, f.URL, "its row says that the plan asks for it as %s, but the plan asks for it in another form", cmp.Or(f.Sent, f.URL))
		}
		denied := f.Outcome == string(schema.RobotsDenied)
		if f.Allowed == nil && !denied {
			continue
		}
		looked++
		if f.Allowed == nil {
			j.wrong(robotsVerdicts, f.URL, "its outcome is %s, but it has no verdict", f.Outcome)
			continue
		}
		if denied == *f.Allowed && !denied {
			j.wrong(robotsVerdicts, f.URL, "robots.txt denied it, but its outcome is %s", f.Outcome)
			continue
		}
		if err := j.findVerdict(ctx, f.URL, cmp.Or(f.Sent, f.URL), *f.Allowed, f.Rule); err != nil {
			return err
		}
		if !denied || !*f.Allowed {
			continue
		}
		// The planned URL was allowed, but redirected to a URL that robots.txt denied.
		if target, rule, ok := schema.DeniedRedirect(f.Error, f.Detail); ok {
			if err := j.findVerdict(ctx, f.URL, target, false, rule); err != nil {
				return err
			}
		}
	}
	j.Count(robotsVerdicts, looked)
	return nil
}

// findVerdict looks for a robots.txt of the origin of a URL, as it is sent, that gives the same verdict as the row, and
// reports a violation if there is none.
func (j *judge) findVerdict(ctx context.Context, row, url string, allowed bool, rule string) error {
	origin := originOf(url)
	responses, err := j.files.allResponses(ctx, origin)
	if err != nil {
		return err
	}
	var said []string
	removed := false
	for _, f := range responses {
		if f.removed {
			removed = true
			continue
		}
		rules, ok, err := j.rulesOf(ctx, origin, f)
		if err != nil || !ok {
			return err
		}
		if rules == nil {
			continue // it gave no verdict
		}
		v := rules.Verdict(url)
		if v.Allowed == allowed && v.Rule == rule {
			return nil
		}
		said = append(said, fmt.Sprintf("%s says allowed=%t by %q", f, v.Allowed, v.Rule))
	}
	if removed {
		j.removedFile(robotsVerdicts, url)
	}
	if removed || j.files.lost[origin] {
		return nil
	}
	if len(said) == 0 {
		said = []string{"no response of " + origin + " is stored"}
	}
	j.wrong(robotsVerdicts, row, "the verdict on %s is allowed=%t by %q, but by its robots.txt %s", url, allowed, rule, strings.Join(said, ", "))
	return nil
}
