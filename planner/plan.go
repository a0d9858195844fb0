package planner

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/planner/source"
)

// Request is a plan to make.
type Request struct {
	Crawl   string
	Round   int
	Sources []source.Source // in the order in which they count
	Scratch string          // an empty local directory, for about twice the sources' size; the caller removes it
	Version string          // crawlbatch version, for plan.json
	DryRun  bool            // only predict: the plan has no ID and no files, and cannot be committed
}

// Plan is a plan in scratch space.
type Plan struct {
	manifest manifest.Plan
	parts    []table.Local // empty after a dry run
	spelled  []table.Local // by partition; without a path where there is none
	refused  table.Local
}

// Manifest is plan.json: the ID, totals, the prediction for each partition, the
// counts of what was refused. After a dry run it has no ID and names no files.
func (p *Plan) Manifest() *manifest.Plan { return &p.manifest }

// Make makes a plan in scratch space. Errors wrap ErrConfig, ErrNothing, or those of
// package source: all of them are for the user to mend.
func Make(ctx context.Context, cfg Config, req Request) (_ *Plan, err error) {
	r, err := cfg.rules()
	if err != nil {
		return nil, err
	}
	records, refused := &runs{dir: req.Scratch}, &runs{dir: req.Scratch}
	defer func() { err = errors.Join(err, records.close(), refused.close()) }()
	lines, counts, err := ingest(ctx, r, req.Sources, records, refused)
	if err != nil {
		return nil, err
	}
	picked, err := pick(ctx, r, req, records, refused)
	defer func() { err = errors.Join(err, picked.close()) }()
	if err != nil {
		return nil, err
	}
	list := picked.list
	for reason, n := range picked.counts {
		counts[reason] += n
	}
	p := &Plan{manifest: manifest.Plan{Crawl: req.Crawl, Round: req.Round, SourceLines: lines, Refused: manifest.SortedCounts(counts)}}
	for _, s := range req.Sources {
		p.manifest.Sources = append(p.manifest.Sources, s.Name())
	}
	if len(list.groups) == 0 {
		return nil, nothing(ctx, p, refused)
	}
	partitions := p.predict(r, list.groups)
	if req.DryRun {
		return p, nil
	}
	if err := p.writeParts(ctx, r, req, picked, partitions); err != nil {
		return nil, err
	}
	if p.refused, err = writeRefused(ctx, req.Scratch, refused); err != nil {
		return nil, err
	}
	return p, p.name(req)
}

// picked is what the budgets allow.
type picked struct {
	list   *chosenList
	left   []*chosenList // what is known by several spellings and is not planned
	counts map[schema.SkipReason]int64
}

func (p *picked) close() (err error) {
	for _, l := range append(p.left, p.list) {
		if l != nil {
			err = errors.Join(err, l.close())
		}
	}
	return err
}

// pick keeps what the budgets allow. It also counts the refusals that this costs. The
// caller closes what it returns, with an error too.
func pick(ctx context.Context, r *rules, req Request, records, refused *runs) (*picked, error) {
	p := &picked{}
	begin := func(name string) (*chosenWriter, error) {
		w, err := newChosenWriter(r, req.Scratch, name)
		if err == nil {
			p.left = append(p.left, w.list)
		}
		return w, err
	}
	left, err := begin("left")
	if err != nil {
		return p, err
	}
	out, err := newChosenWriter(r, req.Scratch, "chosen")
	if err != nil {
		return p, err
	}
	p.list = out.list
	c := &chooser{
		rules: r, out: out, left: left, refused: newRefusals(refused, r.Memory/6),
		files: func(s seq) string { return excerpt(req.Sources[s.source()].Name()) },
	}
	if err := c.choose(ctx, records); err != nil {
		return p, err
	}
	for _, w := range []*chosenWriter{out, left} {
		if _, err := w.close(); err != nil {
			return p, err
		}
	}
	if limit, detail := c.limit(); limit >= 0 {
		if left, err = begin("left-cut"); err != nil {
			return p, err
		}
		shorter, err := p.list.cut(ctx, r, req.Scratch, limit, &c.priorities, func(u *chosen) error {
			return refuseBudget(c.refused, left, c.files, u, detail)
		})
		if err != nil {
			return p, err
		}
		long := p.list
		p.list = shorter
		if err := long.close(); err != nil {
			return p, err
		}
		if _, err := left.close(); err != nil {
			return p, err
		}
	}
	c.refused.out.done()
	p.counts = c.refused.counts
	if c.duplicates > 0 {
		p.counts[schema.SkipDuplicate] += c.duplicates
	}
	return p, nil
}

// limit is how many new URLs the round may have, and why; -1 if all that were chosen.
func (c *chooser) limit() (limit int64, detail string) {
	chosen := int64(0)
	for _, n := range c.priorities {
		chosen += n
	}
	limit = -1
	if c.CrawlURLs > 0 && chosen > max(c.CrawlURLs-c.spent, 0) {
		limit, detail = max(c.CrawlURLs-c.spent, 0), fmt.Sprintf("%d URLs a crawl", c.CrawlURLs)
	}
	if c.RoundURLs > 0 && chosen > c.RoundURLs && (limit < 0 || c.RoundURLs < limit) {
		limit, detail = c.RoundURLs, fmt.Sprintf("%d URLs a round", c.RoundURLs)
	}
	return limit, detail
}

// nothing says why a plan is empty.
func nothing(ctx context.Context, p *Plan, refused *runs) error {
	m := &p.manifest
	if len(m.Refused) == 0 {
		return fmt.Errorf("plan %s.%d: %w: no known URL is due", m.Crawl, m.Round, ErrNothing)
	}
	var why []string
	advice := "give absolute http or https URLs in scope, one a line"
	for _, c := range m.Refused {
		why = append(why, fmt.Sprintf("%d %s", c.N, c.Name))
		if c.Name == string(schema.SkipBadRecord) {
			first, err := firstBroken(ctx, refused)
			if err != nil {
				return err
			}
			advice = "its WARC files hold no response that can be parsed: " + first
		}
	}
	return fmt.Errorf("plan %s.%d: %w: every entry of %s was refused (%s): %s",
		m.Crawl, m.Round, ErrNothing, strings.Join(m.Sources, ", "), strings.Join(why, ", "), advice)
}

// toldBroken is how many records are told of where none can be read.
const toldBroken = 3

// firstBroken says of the first records that cannot be read where they are, and why.
func firstBroken(ctx context.Context, refused *runs) (string, error) {
	var told []string
	for rec, err := range refused.sorted(ctx) {
		if err != nil {
			return "", err
		}
		row, err := parseRefused(string(rec[1]))
		if err != nil {
			return "", err
		}
		if row.Reason != schema.SkipBadRecord {
			continue
		}
		if told = append(told, fmt.Sprintf("%s, record %d (%s): %s", row.Source, row.Line, row.URL, row.Detail)); len(told) == toldBroken {
			break
		}
	}
	return strings.Join(told, "; "), nil
}

// predict makes the partitions and their part of the manifest.
func (p *Plan) predict(r *rules, groups []group) []partition {
	m := &p.manifest
	for _, g := range groups {
		m.URLs += g.urls
		m.Domains += int64(g.domains)
		m.Hosts += int64(g.hosts)
	}
	m.Buckets = r.buckets(m.URLs)
	m.EstimatedBytes = m.URLs * r.PageBytes
	partitions := r.assign(groups, m.Buckets)
	for i := range partitions {
		q := &partitions[i]
		seconds := r.seconds(q.urls, q.longest)
		m.EstimatedSeconds = max(m.EstimatedSeconds, seconds)
		m.Partitions = append(m.Partitions, manifest.PlanPartition{
			Partition: i, Bucket: q.bucket, URLs: q.urls, Domains: q.domains, Hosts: q.hosts, EstimatedSeconds: seconds,
		})
	}
	return partitions
}

// comparePlanned is the order of a partition file.
func comparePlanned(a, b *schema.PlannedURL) int {
	if c := strings.Compare(a.Host, b.Host); c != 0 {
		return c
	}
	if a.Priority != b.Priority {
		return int(b.Priority - a.Priority)
	}
	return strings.Compare(a.URL, b.URL)
}

// writeParts writes the partition files to scratch space, several at a time.
func (p *Plan) writeParts(ctx context.Context, r *rules, req Request, from *picked, partitions []partition) error {
	p.parts, p.spelled = make([]table.Local, len(partitions)), make([]table.Local, len(partitions))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(r.Workers)
	for i := range partitions {
		g.Go(func() error {
			err := p.writePart(ctx, r, req, from, &partitions[i], i)
			if err != nil {
				return fmt.Errorf("partition %d: %w", i, err)
			}
			return nil
		})
	}
	return g.Wait()
}

// writePart writes the URLs of a partition, and the known ones of its domains that are
// not planned and have spellings.
func (p *Plan) writePart(ctx context.Context, r *rules, req Request, from *picked, part *partition, number int) (err error) {
	memory := r.Memory / int64(2*r.Workers)
	p.parts[number], err = writeRows(ctx, req.Scratch, layout.Part(number), memory, func(visit visitChosen) error {
		return part.runs(from.list.groups, func(groups []group) error { return from.list.read(ctx, groups, visit) })
	})
	if err != nil {
		return err
	}
	left := func(visit visitChosen) error {
		return part.runs(from.list.groups, func(groups []group) error {
			for _, l := range from.left {
				if err := l.of(groups, func(known []group) error { return l.read(ctx, known, visit) }); err != nil {
					return err
				}
			}
			return nil
		})
	}
	some := errors.New("there are some")
	if err := left(func(*group, *chosen) error { return some }); !errors.Is(err, some) {
		return err
	}
	p.spelled[number], err = writeRows(ctx, req.Scratch, "spellings-"+layout.Part(number), memory, left)
	return err
}

// visitChosen is called with each URL of some groups.
type visitChosen = func(*group, *chosen) error

// writeRows writes URLs, in the order of a partition file.
func writeRows(ctx context.Context, scratch, name string, memory int64, each func(visitChosen) error) (_ table.Local, err error) {
	sorter, err := table.NewSorter(scratch, comparePlanned, memory)
	if err != nil {
		return table.Local{}, err
	}
	defer func() { err = errors.Join(err, sorter.Close()) }()
	err = each(func(_ *group, u *chosen) error {
		var rec record
		if err := rec.parse(u.url, u.value); err != nil {
			return err
		}
		row, err := rec.planned()
		if err != nil {
			return err
		}
		return sorter.Add(&row)
	})
	if err != nil {
		return table.Local{}, err
	}
	w, err := table.NewWriter[schema.PlannedURL](filepath.Join(scratch, name+".parquet"))
	if err != nil {
		return table.Local{}, err
	}
	defer w.Abort()
	for row, err := range sorter.Sorted(ctx) {
		if err != nil {
			return table.Local{}, err
		}
		if err := w.Append(&row); err != nil {
			return table.Local{}, err
		}
	}
	return w.Close()
}

// name gives the plan its ID, the digest of all that it holds, and names its files.
func (p *Plan) name(req Request) error {
	m := &p.manifest
	file := func(dataset string, l table.Local) manifest.File {
		return manifest.File{Dataset: dataset, Bytes: l.Bytes, Rows: l.Rows, SHA256: l.SHA256}
	}
	for i, l := range p.parts {
		m.Partitions[i].File = file(fileUrls, l)
		if s := p.spelled[i]; s.Path != "" {
			spellings := file(fileSpellings, s)
			m.Partitions[i].Spellings = &spellings
		}
	}
	refused := file(fileRefused, p.refused)
	m.RefusedFile = &refused
	return identify(m, req.Version)
}

// identify gives a plan, whose files have no keys yet, its ID and them theirs.
func identify(m *manifest.Plan, version string) error {
	body, err := manifest.Encode(m)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(body)
	m.ID = hex.EncodeToString(sum[:8])
	for i := range m.Partitions {
		m.Partitions[i].File.Key = layout.PlanPart(m.Crawl, m.Round, m.ID, i)
		if f := m.Partitions[i].Spellings; f != nil {
			f.Key = layout.PlanSpellings(m.Crawl, m.Round, m.ID, i)
		}
	}
	if m.RefusedFile != nil {
		m.RefusedFile.Key = layout.PlanRefused(m.Crawl, m.Round, m.ID)
	}
	m.Version = version
	return nil
}

// What plan.json calls the files.
const (
	fileUrls      = "plan"
	fileSpellings = "spellings"
	fileRefused   = "refused"
)

// Commit stores the plan: its files, then plan.json, which names them. Without
// plan.json there is no plan; a Commit that was interrupted, or one of the same plan
// by somebody else, can be repeated.
func (p *Plan) Commit(ctx context.Context, b store.Bucket) error {
	m := &p.manifest
	if m.ID == "" {
		return fmt.Errorf("commit plan %s.%d: %w: it was a dry run", m.Crawl, m.Round, ErrConfig)
	}
	task := fmt.Sprintf("commit plan %s.%d", m.Crawl, m.Round)
	for i, l := range p.parts {
		if err := upload(ctx, b, l, &m.Partitions[i].File); err != nil {
			return fmt.Errorf("%s: %w", task, err)
		}
		if f := m.Partitions[i].Spellings; f != nil {
			if err := upload(ctx, b, p.spelled[i], f); err != nil {
				return fmt.Errorf("%s: %w", task, err)
			}
		}
	}
	if err := upload(ctx, b, p.refused, m.RefusedFile); err != nil {
		return fmt.Errorf("%s: %w", task, err)
	}
	_, err := manifest.Create(ctx, b, layout.PlanManifest(m.Crawl, m.Round, m.ID), m)
	if errors.Is(err, store.ErrExists) {
		// The ID is a digest: it is this plan, stored by another version of the program.
		var same manifest.Plan
		if _, _, lerr := manifest.Load(ctx, b, layout.PlanManifest(m.Crawl, m.Round, m.ID), &same); lerr == nil {
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", task, err)
	}
	return nil
}

// upload commits a file, once: a repeated Commit finds it gone from scratch space.
func upload(ctx context.Context, b store.Bucket, l table.Local, f *manifest.File) error {
	if _, err := os.Stat(l.Path); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	_, err := table.Commit(ctx, b, l, f.Dataset, f.Key)
	return err
}
