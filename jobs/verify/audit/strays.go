package audit

import (
	"context"
	"fmt"
	"iter"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zeebo/xxh3"

	"crawlbatch.io/crawlbatch/formats/catalog"
	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/publish"
	"crawlbatch.io/crawlbatch/stages/publish/domains"
)

// noStray checks folders that query engines and readers of WARC files read completely.
var noStray = Check{0, "nothing stray is read", "objects"}

// Stray is an object that nothing in the crawl needs: no seal, result or checkpoint lists it, and no
// running attempt can have made it.
type Stray struct {
	store.Info
	Round int    // number of the round; negative if the object belongs to no round
	Why   string // the reason why the object is a stray
	// Read is true if SQL engines or readers of WARC files read the object together with its
	// folder. Other strays only use space.
	Read bool
}

// Strays loads the documents of a crawl and calls do with each stray, folder by folder. If a document is
// damaged, nobody knows which objects it lists. Strays then reports the damage and does not call do.
func Strays(ctx context.Context, o Options, do func(Stray) error) (*Report, error) {
	a := New(o)
	defer a.close()
	rounds, err := a.Load(ctx)
	if err != nil {
		return nil, err
	}
	r := a.Report()
	r.addRounds(rounds)
	if r.Found() > 0 {
		return r, nil
	}
	for s, err := range a.listStrays(ctx, rounds) {
		if err == nil {
			err = do(s)
		}
		if err != nil {
			return nil, err
		}
	}
	return r, nil
}

// checkStrays reports a stray as a violation if query engines read it. All other strays are counted
// in a note.
func (a *Audit) checkStrays(ctx context.Context, rounds []*Round) error {
	a.Count(noStray, 0)
	first := ""
	if a.Report().Found() > 0 {
		first = "first repair the documents that are lost or damaged, then "
	}
	for s, err := range a.listStrays(ctx, rounds) {
		switch {
		case err != nil:
			return err
		case s.Read:
			a.Wrong(noStray, s.Round, At{Object: s.Key}, "%s, and readers of the folder also read this object: %smove it away with `crawlbatch verify --month %s --quarantine`", s.Why, first, a.Crawl)
		default:
			a.CountNote(fmt.Sprintf("{n} objects are left over, such as {example}: they do no harm; `crawlbatch verify --month %s --quarantine` lists them and moves them away", a.Crawl), s.Key)
		}
	}
	return nil
}

// listStrays lists the crawl's objects in the store, prefix by prefix, and yields the strays. It
// needs 8 bytes of memory for each file that a document lists.
func (a *Audit) listStrays(ctx context.Context, rounds []*Round) iter.Seq2[Stray, error] {
	return func(yield func(Stray, error) bool) {
		l, err := newLister(ctx, a, rounds)
		if err != nil {
			yield(Stray{}, err)
			return
		}
		for _, prefix := range l.prefixes() {
			for o, err := range a.Bucket.List(ctx, prefix) {
				if err != nil {
					yield(Stray{}, fmt.Errorf("list %s: %w", prefix, err))
					return
				}
				if a.wrote(o.Key) {
					continue
				}
				a.Count(noStray, 1)
				s := l.judge(o)
				if s.Why != "" && !yield(s, nil) {
					return
				}
			}
		}
	}
}

// wrote reports whether this audit may have written an object: a document of its tasks, or a config for
// its pods.
func (a *Audit) wrote(key string) bool {
	rest, config := strings.CutPrefix(key, layout.CrawlDir(a.Crawl)+"settings-")
	return config && !strings.Contains(rest, "/") || a.ID != "" && strings.Contains(key, "/"+string(stages.AuditStage(a.ID, "")))
}

// lister decides whether an object is a stray.
type lister struct {
	*Audit
	rounds map[int]*Round
	listed []uint64 // hashes of the keys that documents list, in order
	begun  bool     // true: the listing has seen objects of the round after the last audited round
}

// makerOf names the stage that makes the parts of each dataset.
var makerOf = map[string]stages.Stage{
	stages.FileCaptures: stages.Merge, stages.FileFetches: stages.Merge, stages.FileRequests: stages.Merge,
	stages.FileText: stages.Merge, stages.FileLinks: stages.Merge, stages.FileDuplicates: stages.Dedup,
	stages.FileHosts: stages.Rank, stages.FileURLs: stages.Frontier, stages.FileSkips: stages.Frontier, stages.FilePages: stages.Publish,
	stages.FileDomains: stages.Publish, stages.FileTerms: stages.Rank,
}

func newLister(ctx context.Context, a *Audit, rounds []*Round) (*lister, error) {
	l := &lister{Audit: a, rounds: map[int]*Round{}}
	for _, r := range rounds {
		l.rounds[r.Number] = r
	}
	for f, err := range a.listed(ctx) {
		if err != nil {
			return nil, err
		}
		l.listed = append(l.listed, xxh3.HashString(f.Key))
	}
	slices.Sort(l.listed)
	return l, nil
}

// prefixes returns the folders of the crawl, in the order of keys.
func (l *lister) prefixes() []string {
	var datasets []string
	for _, d := range catalog.Datasets() {
		datasets = append(datasets, d.Name)
	}
	return layout.Folders(l.Crawl, datasets)
}

var roundFolder = regexp.MustCompile(`/round=([^/]*)/`)

// judge describes an object as a Stray. If the object is not a stray, Why is empty.
func (l *lister) judge(o store.Info) Stray {
	s := Stray{Info: o, Round: -1}
	if _, ok := slices.BinarySearch(l.listed, xxh3.HashString(o.Key)); ok {
		return s
	}
	top, _, _ := strings.Cut(o.Key, "/")
	// Engines do not read names such as _SUCCESS and .part.parquet.crc.
	s.Read = (top == "tables" || top == "warc") && !strings.ContainsAny(path.Base(o.Key)[:1], "._")
	if top == "compacted" {
		// Another round's part of the copy in use is not listed if only one round is audited, and the parts
		// of a young copy may be those of a running compact.
		begun, err := layout.RevisionBegun(layout.RevisionOf(o.Key, l.Crawl))
		if used := l.compaction != nil && l.compaction.Revision == layout.RevisionOf(o.Key, l.Crawl); !used && (err != nil || time.Since(begun) > 24*time.Hour) {
			s.Why = "the ledger does not name the compacted copy that it belongs to"
		}
		return s
	}
	m := roundFolder.FindStringSubmatch(o.Key)
	if m == nil {
		s.Why = l.ofCrawl(o.Key)
		return s
	}
	number, err := strconv.Atoi(m[1])
	if err != nil || strconv.Itoa(number) != m[1] || number < 0 {
		s.Why = fmt.Sprintf("%q is not the number of a round", m[1])
		return s
	}
	if s.Round = number; l.Round >= 0 && l.Round != number {
		return s
	}
	r := l.rounds[number]
	switch {
	case r != nil && top == "tables":
		s.Why = l.ofTable(r, o.Key)
	case r != nil && top == "warc":
		s.Why, s.Read = l.ofArchive(r, o.Key, s.Read)
	case r != nil && top == "webgraph":
		if !r.unfinished(stages.Rank, 0) {
			s.Why = "no result lists it"
		}
	case r != nil:
		s.Why = l.ofRound(r, strings.TrimPrefix(o.Key, layout.RoundDir(r.Crawl, number)))
	default:
		s.Why = l.ofNoRound(number, s.Read)
	}
	return s
}

// ofCrawl judges an object that belongs to no round. Like the functions below, it returns why the
// object is a stray, or "" if it is no stray.
func (l *lister) ofCrawl(key string) string {
	name := strings.TrimPrefix(key, layout.CrawlDir(l.Crawl))
	known := []string{"crawl.json", "politeness.json", "ledger.json"}
	if slices.Contains(known, name) || strings.HasPrefix(key, layout.PruneDir(l.Crawl)) && l.pruned[l.Crawl] != nil {
		return ""
	}
	if strings.HasPrefix(key, layout.CompactionDir(l.Crawl)) { // compact removes the lists of older copies
		return ""
	}
	if strings.HasPrefix(key, layout.RemovalDir(l.Crawl)) && l.Ledger != nil && l.Ledger.NamesRemoval(key) {
		return ""
	}
	return "no crawl has an object of this name"
}

// ofNoRound judges an object of a round that has no readable plan. Another process may plan the round
// after the last one during the audit. The objects of that round are no strays. The listing reaches the
// round's folder before its tables, so tables without a folder are strays.
func (l *lister) ofNoRound(number int, read bool) string {
	l.begun = l.begun || number == l.last && !read
	if number < l.last || number == l.last && l.begun {
		return "" // the round's documents are damaged, which other checks report, or another process is making them
	}
	return fmt.Sprintf("the crawl has no round %d", number)
}

// ofTable judges an unlisted part of a dataset. The part is a stray unless a task without a result may
// have made it.
func (l *lister) ofTable(r *Round, key string) string {
	parts := strings.Split(key, "/")
	dataset, name := parts[1], parts[len(parts)-1]
	stage := makerOf[dataset]
	n, err := layout.PartOf(name)
	own := err == nil && key == layout.Table(dataset, r.Crawl, r.Number, n)
	if dataset == stages.FileCaptures && err == nil && len(parts) == 6 {
		own = key == layout.Captures(r.Crawl, strings.TrimPrefix(parts[3], "subset="), r.Number, n)
	}
	sealing := r.Sealed == nil && slices.Contains(publish.Accounts, dataset) && n == 0
	if own && (sealing || r.mayWrite(stage, dataset, n)) {
		return ""
	}
	return "no result or seal lists it"
}

// unfinished reports whether a stage has a task that has no readable result.
func (r *Round) unfinished(stage stages.Stage, n int) bool {
	return n < r.Tasks(stage) && !r.Has(stage, n)
}

// mayWrite reports whether a task that has no readable result may have written part n of a dataset.
// A single task of dedup writes the parts of all buckets. Rank's task of bucket 0 writes the hosts of
// all buckets. One publish task of each bucket writes its domains.
func (r *Round) mayWrite(stage stages.Stage, dataset string, n int) bool {
	switch {
	case stage == stages.Dedup && r.Tasks(stage) == 1:
		return n < r.Plan.Buckets && r.unfinished(stage, 0)
	case stage == stages.Rank && dataset == stages.FileHosts && r.unfinished(stage, 0):
		return n < r.Plan.Buckets
	case dataset == stages.FileDomains:
		writer, ok := domains.Writer(r.Plan, n)
		return ok && r.unfinished(stage, writer)
	}
	return r.unfinished(stage, n)
}

// ofArchive judges an unlisted WARC file or index. If the file has a name of the partition's own files,
// an attempt that died or was too late may have left it.
func (l *lister) ofArchive(r *Round, key string, read bool) (why string, stillRead bool) {
	warc := key
	if base, ok := strings.CutSuffix(key, ".cdxj"); ok {
		warc = base + ".warc.gz"
	}
	_, _, n, ok := layout.ParseWARC(warc)
	if !ok || n >= len(r.Plan.Partitions) {
		return "it is not a file of a fetch task", read
	}
	if r.unfinished(stages.Fetch, n) {
		return "", false
	}
	if strings.HasPrefix(warc, layout.WARCs(r.Crawl, r.Number, r.Plan.ID, n)) && l.Reparse == nil {
		return "an attempt that died wrote it, and no result lists it", false
	}
	return "no result lists it", read
}

// ofRound judges an unlisted object in the folder of a round.
func (l *lister) ofRound(r *Round, rest string) string {
	folder, name, below := strings.Cut(rest, "/")
	if !below {
		if folder == "start.json" || folder == "sealed.json" {
			return ""
		}
		return "no round has an object of this name"
	}
	if id, ok := strings.CutPrefix(folder, "plan-"); ok {
		switch {
		case id == r.Plan.ID && name != "plan.json":
			return "its plan does not list it"
		case id != r.Plan.ID && r.started:
			return fmt.Sprintf("the round follows plan %s", r.Plan.ID)
		}
		return ""
	}
	if folder == layout.FileListDir {
		if r.Sealed == nil {
			return "" // a process may be sealing the round
		}
		return "the seal does not name it"
	}
	stage := stages.Stage(folder)
	if id, ok := stage.Audit(); ok && !l.ended(id) {
		return "" // the audit may still run
	} else if ok {
		return "an audit that was broken off wrote it"
	}
	if !stage.Valid() {
		return "no stage has this name"
	}
	if r.Tasks(stage) == 0 {
		return "the round has no such stage"
	}
	return r.ofStage(stage, name)
}

// ofStage judges an unlisted object in the folder of a stage.
func (r *Round) ofStage(stage stages.Stage, name string) string {
	folder, file, below := strings.Cut(name, "/")
	switch {
	case !below && (name == "inputs.json" || strings.HasPrefix(name, "tasks-")):
		return ""
	case !below || folder == "attempts" || folder == "taken":
		part := strings.TrimSuffix(path.Base(name), path.Ext(name))
		part, _, _ = strings.Cut(part, "-e")
		part, _, _ = strings.Cut(part, "-b")
		return r.ofPart(stage, "", part)
	case folder == "work":
		return r.ofPart(stage, path.Dir(file), strings.TrimSuffix(path.Base(file), path.Ext(file)))
	case stage == stages.Fetch && file == "checkpoint.json":
		return r.ofPart(stage, "", folder)
	case stage == stages.Fetch && strings.HasPrefix(file, "segments/"):
		return r.ofPart(stage, "segments", folder)
	}
	return "no stage has an object of this name"
}

// ofPart judges an object of a task. If no result lists objects of this kind, dataset
// is "".
func (r *Round) ofPart(stage stages.Stage, dataset, part string) string {
	n, err := layout.ParsePart(part)
	switch {
	case err == nil && dataset != "" && r.mayWrite(stage, dataset, n):
	case err != nil || n >= r.Tasks(stage):
		return "no task of the stage has this number"
	case dataset != "":
		return "the result of its task does not list it"
	}
	return ""
}
