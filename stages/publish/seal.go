package publish

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/stages"
)

// Sealing collects the results of a round for its seal. It keeps only the files that the seal lists
// (see lasts), in about 300 bytes each.
type Sealing struct {
	plan   *manifest.Plan
	totals map[string]int64
	added  map[stages.Stage]int
	files  []sealedFile
	names  map[string]string // equal names of datasets and subsets share memory
}

// sealedFile is a file of a sealed round, with its reduce bucket.
type sealedFile struct {
	manifest.File
	bucket int
	mapped bool // whether the task that made the file works on a partition; such files come last in manifests
}

// NewSealing returns a Sealing for the round of a plan.
func NewSealing(p *manifest.Plan) *Sealing {
	s := &Sealing{plan: p, added: map[stages.Stage]int{}, names: map[string]string{}, totals: map[string]int64{
		"plan.urls": p.URLs, "plan.domains": p.Domains, "plan.hosts": p.Hosts, "plan.partitions": int64(len(p.Partitions)),
	}}
	for _, c := range p.Merged {
		s.totals["plan."+stages.CountMerged+c.Name] = c.N
	}
	return s
}

// Add adds the result of task n of a stage. The order of calls does not matter. Only files that tasks of
// later rounds read keep the digests of their blocks.
func (s *Sealing) Add(from stages.Stage, n int, r *manifest.Result) {
	s.added[from]++
	for _, c := range r.Counts {
		s.totals[string(from)+"."+c.Name] += c.N
	}
	for _, f := range r.Files {
		if !lasts(from, f) {
			continue
		}
		if !stages.ReadLater(f) {
			f.Blocks = ""
		}
		f.Dataset, f.Subset = s.name(f.Dataset), s.name(f.Subset)
		bucket, mapped := bucketOf(s.plan, from, n, f)
		s.files = append(s.files, sealedFile{f, bucket, mapped})
	}
}

// name returns a string equal to n. For equal names it returns the same string, which saves memory.
func (s *Sealing) name(n string) string {
	if _, ok := s.names[n]; !ok {
		s.names[n] = n
	}
	return s.names[n]
}

// Accounts lists the datasets that say how long a round took and what it cost. No task writes them: the
// process that seals the round does, from the records of attempts.
var Accounts = []string{stages.FileRuns, stages.FileStages}

// AccountKey returns the key of a round's only part of a dataset of Accounts.
func AccountKey(p *manifest.Plan, dataset string) string {
	return layout.Table(dataset, p.Crawl, p.Round, 0)
}

// AddAccounts adds the parts of the datasets in Accounts, because no result lists them.
func (s *Sealing) AddAccounts(files []manifest.File) {
	for _, f := range files {
		s.files = append(s.files, sealedFile{f, manifest.NoBucket, false})
	}
}

// Counts returns the counts that the seal will have.
func (s *Sealing) Counts() []manifest.Count { return manifest.SortedCounts(s.totals) }

// Listed returns the seal with all its files in one list, in key order, instead of manifests. The caller
// must have added the results of all tasks. The counts are sums over the tasks, with names of the form
// STAGE.NAME.
func (s *Sealing) Listed() (*manifest.Sealed, error) {
	sealed, err := s.head()
	if err != nil {
		return nil, err
	}
	slices.SortFunc(s.files, func(a, b sealedFile) int {
		return cmp.Or(strings.Compare(a.Key, b.Key), strings.Compare(a.SHA256, b.SHA256)) // only forged results list a key twice
	})
	for _, f := range s.files {
		sealed.Files = append(sealed.Files, f.File)
	}
	return sealed, nil
}

// Seal returns the seal in the form in which it is stored: it names manifests. Seal calls put with each
// manifest, in order, to store it.
func (s *Sealing) Seal(put func(f manifest.File, body []byte) error) (*manifest.Sealed, error) {
	sealed, err := s.head()
	if err != nil {
		return nil, err
	}
	slices.SortFunc(s.files, compareFiles)
	for rest := s.files; len(rest) > 0; {
		n := cutManifest(rest)
		l, body, err := encodeManifest(s.plan, len(sealed.Manifests), rest[:n])
		if err == nil {
			err = put(l.File, body)
		}
		if err != nil {
			return nil, err
		}
		sealed.Manifests = append(sealed.Manifests, l)
		rest = rest[n:]
	}
	return sealed, nil
}

// head returns the seal without its files.
func (s *Sealing) head() (*manifest.Sealed, error) {
	p := s.plan
	for _, from := range stages.Of(p) {
		if s.added[from] != from.Tasks(p) {
			return nil, fmt.Errorf("seal %s.%d: %s has %d of %d results", p.Crawl, p.Round, from, s.added[from], from.Tasks(p))
		}
	}
	return &manifest.Sealed{Crawl: p.Crawl, Round: p.Round, Plan: p.ID, Buckets: p.Buckets, Counts: s.Counts()}, nil
}

// lasts reports whether a seal lists a file: people or later rounds need it after the round. These are
// parts of datasets, WARC files, web graphs, and the working files of dedup and frontier.
func lasts(stage stages.Stage, f manifest.File) bool {
	return strings.HasPrefix(f.Key, "tables/") || strings.HasPrefix(f.Key, "warc/") || f.Dataset == stages.FileWebGraph || stage == stages.Dedup || stage == stages.Frontier
}

// bucketOf returns the reduce bucket of the file f, which task n of the stage made, and whether the
// tasks of the stage work on partitions. A partition's files have the partition's bucket. In dedup,
// rank and frontier, and for the domains dataset, the name of a part states its bucket. Other files
// of these stages have no bucket.
func bucketOf(p *manifest.Plan, from stages.Stage, n int, f manifest.File) (bucket int, mapped bool) {
	switch from {
	case stages.Fetch, stages.Merge, stages.Publish:
		if f.Dataset != stages.FileDomains {
			return p.Partitions[n].Bucket, true
		}
	}
	bucket, err := layout.PartOf(f.Key)
	if err != nil {
		return manifest.NoBucket, false
	}
	return bucket, false
}
