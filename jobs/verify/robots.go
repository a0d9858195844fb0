package verify

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/jobs/worker"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch/robots"
)

// The checks of invariant 2.
const (
	obeyed   = "robots.txt is obeyed"
	verdicts = "robots.txt verdicts"
)

// asked is what invariant 2 reads of requests.
type asked struct {
	Host    string `parquet:"host"`
	Start   int64  `parquet:"start"`
	URL     string `parquet:"url"`
	Epoch   int32  `parquet:"epoch"`
	Purpose string `parquet:"purpose"`
	Status  int16  `parquet:"http_status"`
	Error   string `parquet:"error"`
	DelayMS int64  `parquet:"delay_ms"`
	Rule    string `parquet:"robots_rule"`
	Digest  string `parquet:"robots_digest"`

	PlannedURL string `parquet:"planned_url"`

	// where the answer that says what is in force lies
	File   string `parquet:"robots_warc_filename"`
	Offset int32  `parquet:"robots_warc_record_offset"`
}

func compareAsked(a, b *asked) int {
	return cmp.Or(strings.Compare(a.Host, b.Host), cmp.Compare(a.Start, b.Start), strings.Compare(a.URL, b.URL), cmp.Compare(a.Epoch, b.Epoch))
}

// judged is what invariant 2 reads of fetches.
type judged struct {
	URL     string `parquet:"url"`
	Outcome string `parquet:"outcome"`
	Error   string `parquet:"error"`
	Detail  string `parquet:"error_detail"`
	Allowed *bool  `parquet:"robots_allowed"`
	Rule    string `parquet:"robots_rule"`
}

// checkRobots asks the stored robots.txt files again about each request and each
// verdict of a partition.
func (a *audit) checkRobots(ctx context.Context, r *round, n int) error {
	if a.Config == nil {
		return nil // the product token is not known
	}
	requests, sorted := r.files(stages.FileRequests, "", n)
	captures, _ := r.files(stages.FileCaptures, schema.SubsetRobots, n)
	fetches, _ := r.files(stages.FileFetches, "", n)
	if r.results[stages.Fetch][n] == nil || len(requests) == 0 || a.isBroken(keysOf(requests)...) || a.isBroken(keysOf(captures)...) {
		return nil
	}
	files, err := newRobotsFiles(a, r)
	if err != nil {
		return err
	}
	defer files.close()
	keys := keysOf(requests)
	if err := files.load(ctx, keysOf(captures), keys); err != nil {
		return a.skip(err, 2, obeyed, r)
	}
	if err := files.loadCarried(ctx, n); err != nil {
		return a.skip(err, 2, obeyed, r)
	}
	rows := concat[asked](ctx, a, keys)
	if !sorted {
		s, err := sortRows(ctx, a, keys, compareAsked)
		if err != nil {
			return a.skip(err, 2, obeyed, r)
		}
		defer s.Close() //nolint:errcheck // scratch
		rows = s.Sorted(ctx)
	}
	j := judge{audit: a, round: r, files: files, agent: robots.ProductToken(worker.UserAgent(a.Config, ""))}
	j.object = keys[0]
	if j.spellings, err = a.loadSpellings(ctx, r, n, keys, keysOf(fetches), files.canon); err != nil {
		return a.skip(err, 2, obeyed, r)
	}
	if err := a.skip(j.requests(ctx, rows), 2, obeyed, r); err != nil {
		return err
	}
	if len(fetches) == 0 || a.isBroken(keysOf(fetches)...) {
		return nil
	}
	j.object = fetches[0].Key
	return a.skip(j.fetches(ctx, concat[judged](ctx, a, keysOf(fetches))), 2, verdicts, r)
}

// judge compares rows with what robots.txt files say.
type judge struct {
	*audit
	round     *round
	files     *robotsFiles
	agent     string     // product token
	spellings *spellings // nil: none are asked for
	object    string     // that the rows are of

	origin string                   // that rules are kept of: rows come by host
	rules  map[string]*robots.Group // by where the record lies
}

func (j *judge) wrong(check, url, format string, args ...any) {
	j.report(Violation{
		Invariant: 2, Check: check, Round: j.round.number, Object: j.object, Row: url, Problem: fmt.Sprintf(format, args...), Where: urlIs(url),
	})
}

// originOf is the scheme, name and port of a canonical URL.
func originOf(url string) string {
	scheme, rest, _ := strings.Cut(url, "://")
	authority, _, _ := strings.Cut(rest, "/")
	if i := strings.IndexAny(authority, "?#"); i >= 0 {
		authority = authority[:i]
	}
	return scheme + "://" + authority
}

// requests judges all requests but those for robots.txt, which may always be asked for.
func (j *judge) requests(ctx context.Context, rows iter.Seq2[asked, error]) error {
	var looked, delays int64
	for q, err := range rows {
		if err != nil {
			return err
		}
		if q.Purpose == string(schema.ForRobots) {
			continue
		}
		looked++
		limited, err := j.request(ctx, &q)
		if err != nil {
			return err
		}
		if limited {
			delays++
		}
	}
	j.note(2, obeyed, "requests", looked)
	j.note(3, crawlDelay, "requests", delays)
	return nil
}

// request judges a request; limited says that robots.txt asks for a delay.
func (j *judge) request(ctx context.Context, q *asked) (limited bool, err error) {
	origin := originOf(q.URL)
	file, ok, err := j.inForce(ctx, origin, q)
	if err != nil || !ok {
		return false, err
	}
	rules, ok, err := j.rulesOf(ctx, origin, file)
	if err != nil || !ok {
		return false, err
	}
	all := j.spellings.of(q)
	switch v := rules.Verdict(j.round.reading, q.URL, all...); {
	case j.round.reading == robots.Every && j.spellings.tooMany(q.URL):
		j.wrong(obeyed, q.URL, "it was requested though more than %d spellings of it were known, such as %s", schema.MaxSpellings, all[0])
	case !v.Allowed && v.Spelling != "":
		j.wrong(obeyed, q.URL, "it was requested though %s denied it as %s: %q in line %d", file, v.Spelling, v.Rule, v.Line)
	case !v.Allowed:
		j.wrong(obeyed, q.URL, "it was requested though %s denied it: %q in line %d", file, v.Rule, v.Line)
	case v.Rule != q.Rule:
		j.wrong(obeyed, q.URL, "its row says that %q allowed it, %s says %q", q.Rule, file, v.Rule)
	}
	if j.round.reading != robots.Every {
		if now := rules.Verdict(robots.Every, q.URL, all...); !now.Allowed {
			j.deniedNow(j.round.number, q.URL, now.Rule)
		}
	}
	d, limited := rules.Delay()
	if limited && q.DelayMS < d.Milliseconds() {
		j.report(Violation{
			Invariant: 3, Check: crawlDelay, Round: j.round.number, Object: j.object, Row: q.URL, Where: urlIs(q.URL),
			Problem: fmt.Sprintf("a delay of %d ms was in force, %s asks for %v", q.DelayMS, file, d),
		})
	}
	return limited, nil
}

// deniedNow notes a request that only today's reading of robots.txt denies.
func (a *audit) deniedNow(round int, url, rule string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	d := a.denied[round]
	if d == nil {
		d = &deniedNow{url: strings.Clone(url), rule: rule}
		a.denied[round] = d
	}
	d.requests++
	if url < d.url {
		d.url, d.rule = strings.Clone(url), rule
	}
}

// staleSlack is by how much the clocks of two machines may differ.
const staleSlack = 2 * time.Minute

// inForce finds the answer to robots.txt that was in force for a request, and
// reports where there is none or the row names another.
func (j *judge) inForce(ctx context.Context, origin string, q *asked) (*robotsAnswer, bool, error) {
	answers, err := j.files.before(ctx, origin, q.Epoch, q.Start)
	if err != nil {
		return nil, false, err
	}
	if len(answers) == 0 && !j.files.lost[origin] {
		j.wrong(obeyed, q.URL, "it was requested before %s/robots.txt was answered in a way that allows it: no 2xx and no 4xx is recorded before", origin)
	}
	if len(answers) == 0 {
		return nil, false, nil
	}
	// A request that was about to be written when the file was asked for again
	// was judged by the one before.
	grace := j.Config.Fetch.Timeout.Total.Std() / time.Millisecond
	newest := answers[0]
	for i, f := range answers {
		if i > 0 && q.Start-newest.Start > int64(grace) {
			break
		}
		if f.digest() != q.Digest {
			continue
		}
		switch {
		case !f.liesAt(q.File, q.Offset):
			continue // an answer alike
		case j.robotsTTL > 0 && q.Start-f.Start > (j.robotsTTL+staleSlack).Milliseconds()+int64(2*grace):
			j.wrong(obeyed, q.URL, "it was requested %v after %s, robots.txt holds for %v", time.Duration(q.Start-f.Start)*time.Millisecond, f, j.robotsTTL)
			return nil, false, nil
		}
		return f, true, nil
	}
	switch {
	case j.files.lost[origin]:
	case newest.digest() == q.Digest:
		j.wrong(obeyed, q.URL, "its row names the record at %d of %q as evidence, but %s was in force", q.Offset, q.File, newest)
	case q.Digest == "":
		j.wrong(obeyed, q.URL, "its row says that there was no robots.txt, but %s was in force", newest)
	case newest.digest() == "":
		j.wrong(obeyed, q.URL, "its row names the robots.txt %s, but %s/robots.txt answered with status %d", q.Digest, origin, newest.Status)
	default:
		j.wrong(obeyed, q.URL, "its row names the robots.txt %s, but %s was in force", q.Digest, newest)
	}
	return nil, false, nil
}

// rulesOf reads what an answer asks of the crawler. It keeps those of one origin.
func (j *judge) rulesOf(ctx context.Context, origin string, f *robotsAnswer) (*robots.Group, bool, error) {
	if f.digest() == "" {
		return robots.AllowAll(), true, nil
	}
	if origin != j.origin {
		j.origin, j.rules = strings.Clone(origin), map[string]*robots.Group{}
	}
	g := j.rules[f.place()]
	if g != nil {
		return g, true, nil
	}
	x, ok, err := j.files.read(ctx, f)
	if err != nil || !ok {
		return nil, false, err
	}
	defer x.Release()
	g = robots.Parse(x.Body).For(j.agent)
	j.rules[f.place()] = g
	return g, true, nil
}

// fetches compares the verdicts of fetches with all robots.txt of the origin: the
// rows do not say which was in force.
func (j *judge) fetches(ctx context.Context, rows iter.Seq2[judged, error]) error {
	var looked int64
	for f, err := range rows {
		if err != nil {
			return err
		}
		denied := f.Outcome == string(schema.RobotsDenied)
		if f.Allowed == nil && !denied {
			continue
		}
		looked++
		if f.Allowed == nil {
			j.wrong(verdicts, f.URL, "its outcome is %s, but it has no verdict", f.Outcome)
			continue
		}
		if denied == *f.Allowed && !denied {
			j.wrong(verdicts, f.URL, "robots.txt denied it, but its outcome is %s", f.Outcome)
			continue
		}
		if err := j.verdict(ctx, f.URL, f.URL, "", *f.Allowed, f.Rule); err != nil {
			return err
		}
		if !denied || !*f.Allowed {
			continue
		}
		// The planned URL was allowed, and a redirect led to one that is not.
		if target, rule, ok := deniedRedirect(f.Error, f.Detail); ok {
			key, spelling, err := j.files.canon.Spelled(target, "")
			if err != nil {
				key.URL = target
			}
			if err := j.verdict(ctx, f.URL, key.URL, spelling, false, rule); err != nil {
				return err
			}
		}
	}
	j.note(2, verdicts, "rows of fetches", looked)
	return nil
}

// deniedRedirect reads, from error_detail, where a redirect led that robots.txt denied,
// and the rule. Rows of format 1 have both in error. Text that was cut is not read.
func deniedRedirect(phrase, detail string) (target, rule string, ok bool) {
	if phrase != "redirect to a URL that robots.txt denies" {
		if detail, ok = strings.CutPrefix(phrase, "redirect to "); !ok {
			return "", "", false
		}
	}
	if len(detail) >= 480 {
		return "", "", false
	}
	return strings.Cut(detail, ": ")
}

// verdict looks for a robots.txt of the URL's origin that gives this verdict. spelling
// is that of a redirect to it; "": as url.
func (j *judge) verdict(ctx context.Context, row, url, spelling string, allowed bool, rule string) error {
	var all []string
	if j.spellings != nil {
		all = j.spellings.planned[url]
	}
	if spelling != "" {
		all = append(slices.Clip(all), spelling)
	}
	origin := originOf(url)
	answers, err := j.files.all(ctx, origin)
	if err != nil {
		return err
	}
	var said []string
	for _, f := range answers {
		rules, ok, err := j.rulesOf(ctx, origin, f)
		if err != nil || !ok {
			return err
		}
		v := rules.Verdict(j.round.reading, url, all...)
		if v.Allowed == allowed && v.Rule == rule {
			return nil
		}
		said = append(said, fmt.Sprintf("%s says allowed=%t by %q", f, v.Allowed, v.Rule))
	}
	if j.files.lost[origin] {
		return nil
	}
	if len(said) == 0 {
		said = []string{"none of " + origin + " is stored"}
	}
	j.wrong(verdicts, row, "the verdict on %s is allowed=%t by %q, but of its robots.txt %s", url, allowed, rule, strings.Join(said, ", "))
	return nil
}
