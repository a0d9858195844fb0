package fetchcheck

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"strings"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/jobs/verify/audit"
	"crawlbatch.io/crawlbatch/stages"
	stored "crawlbatch.io/crawlbatch/stages/fetch/records"
	"crawlbatch.io/crawlbatch/stages/fetch/response"
	"crawlbatch.io/crawlbatch/stages/fetch/wire"
)

// partitionSpellings holds the non-canonical spellings of a partition's URLs, because robots.txt
// must have allowed each spelling. The plan lists the spellings of planned URLs and of other known
// URLs. The spellings in redirects come from the stored responses. Memory holds the spellings of
// planned URLs and of redirect targets, and about 150 bytes for each followed redirect.
type partitionSpellings struct {
	planned map[string][]string // spellings of planned URLs, and of redirect targets that the plan lists
	chains  map[string][]hop    // redirects by planned URL, in the order of responses
}

// hop is one redirect in the chain of redirects that begins at a planned URL.
type hop struct {
	epoch    int32
	start    schema.Time
	url      string // the URL that redirects
	target   string // canonical URL of the redirect's target
	spelling string // spelling of the target in the redirect; empty if the spelling equals target
}

// cameBefore reports whether the redirect came before the request q.
func (h *hop) cameBefore(q *requestRow) bool {
	if h.epoch != q.Epoch {
		return h.epoch < q.Epoch
	}
	return h.start < q.Start || h.start == q.Start && h.url != q.URL
}

// spellingsOf returns the spellings of a request's URL.
func (s *partitionSpellings) spellingsOf(q *requestRow) []string {
	all := s.planned[q.URL]
	for _, h := range slices.Backward(s.chains[q.PlannedURL]) {
		if !h.cameBefore(q) {
			continue
		}
		if h.target == q.URL && h.spelling != "" && !slices.Contains(all, h.spelling) {
			all = append(slices.Clip(all), h.spelling)
		}
		break
	}
	return all
}

// tooMany reports whether a URL has more spellings than a crawl checks against robots.txt.
func (s *partitionSpellings) tooMany(url string) bool {
	return schema.Spellings(s.planned[url]).Overflow()
}

// spelledRow holds the columns of a plan's row that the check of spellings needs.
type spelledRow struct {
	URL       string   `parquet:"url"`
	Spellings []string `parquet:"spellings,list"`
}

// loadSpellings reads the spellings of a partition's URLs.
func loadSpellings(ctx context.Context, a *audit.Audit, r *audit.Round, n int, p *audit.Partition, canon *urlkey.Canonicalizer) (*partitionSpellings, error) {
	s := &partitionSpellings{planned: map[string][]string{}, chains: map[string][]hop{}}
	part := &r.Plan.Partitions[n]
	requests, _ := p.Files(stages.FileRequests, "")
	fetches, _ := p.Files(stages.FileFetches, "")
	for row, err := range audit.Concat[spelledRow](ctx, a, []string{part.File.Key}) {
		if err != nil {
			return nil, err
		}
		if len(row.Spellings) > 0 {
			s.planned[strings.Clone(row.URL)] = row.Spellings
		}
	}
	targets := map[string]bool{} // URLs that were not planned, but were requested, or denied after redirects
	for q, err := range audit.Concat[requestRow](ctx, a, requests) {
		if err != nil {
			return nil, err
		}
		if q.PlannedURL != "" && q.URL != q.PlannedURL {
			s.chains[strings.Clone(q.PlannedURL)] = nil
			targets[strings.Clone(q.URL)] = true
		}
		if q.PlannedURL == "" && q.Purpose != string(schema.ForRobots) { // a request for a sitemap that robots.txt names
			targets[strings.Clone(q.URL)] = true
		}
	}
	if part.Spellings != nil && !a.Broken(part.Spellings.Key) {
		if err := s.loadKnown(ctx, a, part.Spellings.Key, targets, fetches, canon); err != nil {
			return nil, err
		}
	}
	if len(s.chains) == 0 {
		return s, nil
	}
	responses := map[sent]redirectOf{}
	for q, err := range audit.Concat[requestRow](ctx, a, requests) {
		if err != nil {
			return nil, err
		}
		if chain, ok := s.chains[q.PlannedURL]; ok && q.Status >= 300 && q.Status < 400 {
			url, planned := strings.Clone(q.URL), strings.Clone(q.PlannedURL)
			responses[sent{url, q.Start}] = redirectOf{planned, len(chain)}
			s.chains[planned] = append(chain, hop{epoch: q.Epoch, start: q.Start, url: url})
		}
	}
	captures, _ := p.Files(stages.FileCaptures, schema.SubsetDiagnostics)
	if a.Broken(captures...) {
		return s, nil
	}
	if err := s.readRedirects(ctx, a, responses, captures, canon); err != nil {
		return nil, err
	}
	for _, chain := range s.chains {
		slices.SortFunc(chain, func(a, b hop) int { return cmp.Or(cmp.Compare(a.epoch, b.epoch), cmp.Compare(a.start, b.start)) })
	}
	return s, nil
}

// loadKnown reads the spellings of the redirect targets that were not planned: those in targets, and
// those that robots.txt denied, which it first adds to targets.
func (s *partitionSpellings) loadKnown(ctx context.Context, a *audit.Audit, known string, targets map[string]bool, fetches []string, canon *urlkey.Canonicalizer) error {
	if a.Broken(fetches...) {
		fetches = nil
	}
	for f, err := range audit.Concat[fetchRow](ctx, a, fetches) {
		if err != nil {
			return err
		}
		if f.Outcome != string(schema.RobotsDenied) || f.Allowed == nil || !*f.Allowed {
			continue
		}
		if target, _, ok := schema.DeniedRedirect(f.Error, f.Detail); ok {
			if key, _, err := canon.Spelled(target, ""); err == nil {
				targets[strings.Clone(key.URL)] = true
			}
		}
	}
	if len(targets) == 0 {
		return nil
	}
	return audit.Each(ctx, a, []string{known}, func(_ string, row *spelledRow) error {
		if targets[row.URL] {
			s.planned[strings.Clone(row.URL)] = row.Spellings
		}
		return nil
	})
}

// redirectOf is the place of a response in a chain of redirects.
type redirectOf struct {
	planned string
	hop     int
}

// redirectRecord is a stored redirect, as stored.Each reads it.
type redirectRecord struct {
	robotsCapture
	of redirectOf
	to urlkey.Key
	as string // spelling of the redirect's target
}

// readRedirects reads the targets of redirects from the stored responses. An unreadable response
// has no target, and the check recordsAreWhereRowsSay reports it.
func (s *partitionSpellings) readRedirects(ctx context.Context, a *audit.Audit, responses map[sent]redirectOf, captures []string, canon *urlkey.Canonicalizer) error {
	archive := stored.NewArchive(a.Bucket, maxRedirectRecord)
	defer archive.Close()
	rows := func(yield func(*redirectRecord, error) bool) {
		for c, err := range audit.Concat[robotsCapture](ctx, a, captures) {
			of, ok := responses[sent{c.URL, c.FetchTime}]
			if (ok || err != nil) && !yield(&redirectRecord{robotsCapture: c, of: of}, err) {
				return
			}
		}
	}
	err := stored.Each(ctx, archive, iter.Seq2[*redirectRecord, error](rows), stored.Steps[redirectRecord]{
		Places: func(d *redirectRecord) []stored.Place {
			return []stored.Place{{File: d.File, Offset: int64(d.Offset), Length: int64(d.Length)}}
		},
		Work: func(dec *stored.Decoder, d *redirectRecord, raws []stored.Raw) error {
			rec, err := dec.Record(&raws[0], maxRedirectRecord)
			if err != nil {
				return nil //nolint:nilerr // recordsAreWhereRowsSay reports the damaged response
			}
			x, err := wire.Replay(rec.Block, strings.HasPrefix(d.URL, "https:"), wire.Limits{MaxBody: maxRedirectRecord})
			if err != nil {
				return nil //nolint:nilerr // recordsAreWhereRowsSay reports the damaged response
			}
			defer x.Release()
			if d.to, d.as, err = response.Location(canon, x, d.URL); err != nil {
				d.to = urlkey.Key{}
			}
			return nil
		},
		Emit: func(d *redirectRecord) error {
			h := &s.chains[d.of.planned][d.of.hop]
			h.target, h.spelling = strings.Clone(d.to.URL), strings.Clone(d.as)
			return nil
		},
	})
	if errors.Is(err, stored.ErrNoFile) {
		return nil // recordsAreWhereRowsSay reports the unreadable response
	}
	return err
}

// maxRedirectRecord is the largest number of bytes of a redirect's record that the check reads. This is
// enough for the head of any response.
const maxRedirectRecord = 1 << 20
