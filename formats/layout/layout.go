// Package layout makes and parses every key of the store. No key names both an object and a folder.
//
// The input is names and numbers, such as those of a crawl, round, stage and partition. The output
// is keys. Package layout imports the standard library only.
package layout

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ParseMonth returns the first moment, in UTC, of a month such as 2026-11.
func ParseMonth(s string) (time.Time, error) {
	t, err := time.Parse("2006-01", s)
	if err != nil || t.Year() < 1990 || t.Year() > 2099 {
		return time.Time{}, fmt.Errorf("month %q is not a month: write it as YYYY-MM, such as 2026-11", s)
	}
	return t, nil
}

var crawlName = regexp.MustCompile(`^\d{4}-(0[1-9]|1[0-2])(r[1-9]\d*)?$`)

// MonthOf returns the month at the beginning of a crawl's name: 2026-11 for 2026-11r1. ok is false
// if crawl is not a valid crawl name.
func MonthOf(crawl string) (month string, ok bool) {
	month, _, _ = strings.Cut(crawl, "r")
	_, err := ParseMonth(month)
	return month, err == nil && ValidCrawl(crawl)
}

// IsReparse reports whether crawl is the name of a reparse, such as 2026-11r1.
func IsReparse(crawl string) bool {
	month, ok := MonthOf(crawl)
	return ok && month != crawl
}

// ValidCrawl reports whether s is a valid name of a crawl: a month such as 2026-11, or a reparse
// such as 2026-11r1.
func ValidCrawl(s string) bool { return crawlName.MatchString(s) }

// Part returns the name of a partition, such as part-00017.
func Part(n int) string { return fmt.Sprintf("part-%05d", n) }

// ParsePart is the inverse of Part.
func ParsePart(s string) (int, error) {
	digits, ok := strings.CutPrefix(s, "part-")
	n, err := strconv.Atoi(digits)
	if !ok || err != nil || n < 0 || Part(n) != s {
		return 0, fmt.Errorf("%q is not the name of a partition, such as part-00000", s)
	}
	return n, nil
}

// PartOf returns the number of the part in the last element of a key, such as 17 for
// tables/pages/crawl=2026-11/round=0/part-00017.parquet.
func PartOf(key string) (int, error) {
	return ParsePart(strings.TrimSuffix(path.Base(key), path.Ext(key)))
}

// CrawlDir returns the folder of a crawl, with a final slash.
func CrawlDir(crawl string) string { return "crawl=" + crawl + "/" }

// CrawlManifest returns the key of the crawl's frozen config.
func CrawlManifest(crawl string) string { return CrawlDir(crawl) + "crawl.json" }

// Ledger returns the key of a crawl's ledger.
func Ledger(crawl string) string { return CrawlDir(crawl) + "ledger.json" }

// Crawls returns the key of the list of the store's crawls.
func Crawls() string { return "crawls.json" }

// Takedowns returns the key of the list of what was taken down in the store.
func Takedowns() string { return "takedowns.json" }

// TakedownDir is the folder of an unfinished takedown: the new content of objects, and the object
// Takedown. It has no keys with names.
const TakedownDir = "takedown/"

// Takedown returns the key of the object that exists from the moment when the new content of a
// takedown is complete until all objects have it.
func Takedown() string { return TakedownDir + "takedown.json" }

// Staged returns the key of the n-th new content of a takedown.
func Staged(id string, n int) string { return fmt.Sprintf("%s%s/%08d", TakedownDir, id, n) }

// Removal returns the key of the list of a crawl's objects that a takedown changed. The key contains
// the first 16 characters of digest, the digest of the list.
func Removal(crawl, digest string) string {
	return fmt.Sprintf("%s%.16s.json", RemovalDir(crawl), digest)
}

// RemovalDir returns the prefix of the keys that Removal returns.
func RemovalDir(crawl string) string { return CrawlDir(crawl) + "takedown-" }

// Politeness returns the key of the newest revision of the politeness section of a crawl's config.
func Politeness(crawl string) string { return CrawlDir(crawl) + "politeness.json" }

// PruneDir returns the prefix of the keys of a crawl's lists of pruned crawls' files that stay (see
// manifest.Prune).
func PruneDir(crawl string) string { return CrawlDir(crawl) + "prune-" }

// Prune returns the key of a list of WARC files that stay when a crawl is pruned. The key contains
// the first 16 characters of digest, the digest of the list.
func Prune(crawl, digest string) string { return fmt.Sprintf("%s%.16s.json", PruneDir(crawl), digest) }

// Folders returns the folders that hold all objects of a crawl, with a final slash. datasets are the
// names of the published datasets.
func Folders(crawl string, datasets []string) []string {
	all := []string{CrawlDir(crawl)}
	for _, d := range datasets {
		all = append(all, "tables/"+d+"/"+CrawlDir(crawl))
	}
	slices.Sort(all)
	return append(all, "warc/"+CrawlDir(crawl), "webgraph/"+CrawlDir(crawl), CompactedDir(crawl))
}

// CompactedDir returns the folder of the compacted copies of a crawl's tables, with a final slash.
func CompactedDir(crawl string) string { return "compacted/" + CrawlDir(crawl) }

// Compacted returns the key of a part of a compacted dataset. The revision names the copy: each run of
// compact makes its own. The key has no values of columns, because the files have all columns.
func Compacted(crawl, revision, dataset string, part int) string {
	return fmt.Sprintf("%s%s/%s/%s.parquet", CompactedDir(crawl), revision, dataset, Part(part))
}

var revision = regexp.MustCompile(`^\d{8}T\d{6}Z-[0-9a-f]{8}$`)

// RevisionOf returns the revision in the key of an object in CompactedDir, or "".
func RevisionOf(key, crawl string) string {
	rest, ok := strings.CutPrefix(key, CompactedDir(crawl))
	name, _, found := strings.Cut(rest, "/")
	if !ok || !found || !revision.MatchString(name) {
		return ""
	}
	return name
}

// Revision returns the name of a copy that is begun at the given time. nonce tells it from the copies
// of other processes.
func Revision(begun time.Time, nonce uint32) string {
	return begun.UTC().Format(revisionTime) + fmt.Sprintf("-%08x", nonce)
}

const revisionTime = "20060102T150405Z"

// RevisionBegun returns when a copy was begun.
func RevisionBegun(revision string) (time.Time, error) {
	at, _, _ := strings.Cut(revision, "-")
	return time.Parse(revisionTime, at)
}

// Compaction returns the key of the list of a compacted copy's parts. The key contains the first 16
// characters of digest, the digest of the list.
func Compaction(crawl, digest string) string {
	return fmt.Sprintf("%s%.16s.json", CompactionDir(crawl), digest)
}

// CompactionDir returns the prefix of the keys that Compaction returns.
func CompactionDir(crawl string) string { return CrawlDir(crawl) + "compaction-" }

var crawlOf = regexp.MustCompile(`^(?:warc/|webgraph/|compacted/|tables/[^/]+/)?crawl=([^/]+)/`)

// CrawlOf returns the crawl to which an object belongs, or "" if the object belongs to no crawl.
func CrawlOf(key string) string {
	m := crawlOf.FindStringSubmatch(key)
	if m == nil {
		return ""
	}
	return m[1]
}

// Settings returns the key of the config for tasks on other machines. The key contains digest, the
// digest of the config's text.
func Settings(crawl, digest string) string { return CrawlDir(crawl) + "settings-" + digest + ".json" }

// Active returns the key of the object that names the crawl and round whose fetch stage runs in
// this store.
func Active() string { return "active.json" }

// Quarantined returns the key to which a damaged or stray object is moved. n is 1 for the first
// object that had the given key, 2 for the second. No command reads quarantined objects.
func Quarantined(key string, n int) string {
	if n > 1 {
		return fmt.Sprintf("quarantine/%d/%s", n, key)
	}
	return "quarantine/" + key
}

// RoundDir returns the folder of a round, with a final slash.
func RoundDir(crawl string, round int) string {
	return fmt.Sprintf("%sround=%d/", CrawlDir(crawl), round)
}

// Sealed returns the key of a finished round's seal.
func Sealed(crawl string, round int) string { return RoundDir(crawl, round) + "sealed.json" }

// FileListDir is the folder of a round's manifests, without a slash.
const FileListDir = "manifests"

// FileList returns the key of the n-th manifest of a round's seal. The key contains the first 16
// characters of the manifest's digest, so processes that make different bytes write different keys.
func FileList(crawl string, round, n int, digest string) string {
	return fmt.Sprintf("%s%s/%05d-%.16s.parquet", RoundDir(crawl, round), FileListDir, n, digest)
}

// PlanDir returns the folder of a plan, with a final slash.
func PlanDir(crawl string, round int, plan string) string {
	return RoundDir(crawl, round) + "plan-" + plan + "/"
}

// PlanManifest returns the key of a plan's manifest. The planner writes the manifest last, so a
// plan without a manifest is incomplete and is ignored.
func PlanManifest(crawl string, round int, plan string) string {
	return PlanDir(crawl, round, plan) + "plan.json"
}

// PlanPart returns the key of the planned URLs of a partition.
func PlanPart(crawl string, round int, plan string, partition int) string {
	return PlanDir(crawl, round, plan) + Part(partition) + ".parquet"
}

// PlanRefused returns the key of the list of URLs and source lines that the plan refused.
func PlanRefused(crawl string, round int, plan string) string {
	return PlanDir(crawl, round, plan) + "refused.parquet"
}

// PlanOptOut returns the key of the opt-out list as the plan read it.
func PlanOptOut(crawl string, round int, plan string) string {
	return PlanDir(crawl, round, plan) + "opt-out.parquet"
}

// StageDir returns the folder of a stage, with a final slash.
func StageDir(crawl string, round int, stage string) string {
	return RoundDir(crawl, round) + stage + "/"
}

// Inputs returns the key of the frozen list of results that a stage reads.
func Inputs(crawl string, round int, stage string) string {
	return StageDir(crawl, round, stage) + "inputs.json"
}

// TaskList returns the key of a list of tasks that other machines run. The key contains digest, the
// digest of the list.
func TaskList(crawl string, round int, stage, digest string) string {
	return StageDir(crawl, round, stage) + "tasks-" + digest + ".json"
}

// Result returns the key of a committed task's result.
func Result(crawl string, round int, stage string, partition int) string {
	return StageDir(crawl, round, stage) + Part(partition) + ".json"
}

// AttemptsDir returns the folder of a stage's attempts, with a final slash.
func AttemptsDir(crawl string, round int, stage string) string {
	return StageDir(crawl, round, stage) + "attempts/"
}

// Attempt returns the key of the record of an ended attempt.
func Attempt(crawl string, round int, stage string, partition, attempt int) string {
	return fmt.Sprintf("%s-e%d.json", AttemptsDir(crawl, round, stage)+Part(partition), attempt)
}

// Begun returns the key of the record that an attempt began. n numbers these records of a task from
// 1. It may differ from the number of the attempt, which is given when the attempt ends.
func Begun(crawl string, round int, stage string, partition, n int) string {
	return fmt.Sprintf("%s-b%d.json", AttemptsDir(crawl, round, stage)+Part(partition), n)
}

// ParseAttempt returns the partition and the number of the attempt in key. dir is the result of
// AttemptsDir.
func ParseAttempt(dir, key string) (partition, attempt int, ok bool) {
	return parseAttempt(dir, key, "-e")
}

// ParseBegun is the inverse of Begun, as ParseAttempt is that of Attempt.
func ParseBegun(dir, key string) (partition, n int, ok bool) { return parseAttempt(dir, key, "-b") }

func parseAttempt(dir, key, mark string) (partition, attempt int, ok bool) {
	name, ok := strings.CutPrefix(key, dir)
	name, isJSON := strings.CutSuffix(name, ".json")
	part, number, dashed := strings.Cut(name, mark)
	partition, err := ParsePart(part)
	if !ok || !isJSON || !dashed || err != nil {
		return 0, 0, false
	}
	attempt, err = strconv.Atoi(number)
	if err != nil || attempt < 1 || strconv.Itoa(attempt) != number {
		return 0, 0, false
	}
	return partition, attempt, true
}

// Attempts returns the prefix of the keys of a partition's ended attempts.
func Attempts(crawl string, round int, stage string, partition int) string {
	return AttemptsDir(crawl, round, stage) + Part(partition) + "-e"
}

// Results returns the prefix of the keys of a stage's results. In the stage fetch, other objects of the
// tasks also have keys with this prefix (see FetchDir).
func Results(crawl string, round int, stage string) string {
	return StageDir(crawl, round, stage) + "part-"
}

// Working returns the key of a working file of a reduce task.
func Working(crawl string, round int, stage, name string, partition int) string {
	return fmt.Sprintf("%swork/%s/%s.parquet", StageDir(crawl, round, stage), name, Part(partition))
}

// Run returns the key of a task's run. A run is a working file that consists of several Parquet
// files, one for each bucket with rows (see manifest.Section).
func Run(crawl string, round int, stage, name string, partition int) string {
	return fmt.Sprintf("%swork/%s/%s.run", StageDir(crawl, round, stage), name, Part(partition))
}

// URLFilter returns the key of the Bloom filter of the URLs in a bucket's parts of the datasets urls
// and skips. The filter is a working file that later rounds read too.
func URLFilter(crawl string, round, bucket int) string {
	return fmt.Sprintf("%swork/known/%s.bloom", StageDir(crawl, round, "frontier"), Part(bucket))
}

// FetchDir returns the folder of a fetch task's working data, with a final slash.
func FetchDir(crawl string, round, partition int) string {
	return StageDir(crawl, round, "fetch") + Part(partition) + "/"
}

// Checkpoint returns the key of a partition's checkpoint.
func Checkpoint(crawl string, round, partition int) string {
	return FetchDir(crawl, round, partition) + "checkpoint.json"
}

// TakenDir returns the folder of the objects whose keys Taken returns, with a final slash.
func TakenDir(crawl string, round int) string { return StageDir(crawl, round, "fetch") + "taken/" }

// Taken returns the key of the object that shows that a partition has had a checkpoint.
func Taken(crawl string, round, partition int) string {
	return TakenDir(crawl, round) + Part(partition) + ".json"
}

// Segment returns the key of a segment's file for one dataset: the rows that an attempt recorded
// between two checkpoints. Plan, partition, epoch and number together make the key unique.
func Segment(crawl string, round int, plan string, partition, epoch, number int, dataset string) string {
	return fmt.Sprintf("%ssegments/%s-e%d-%05d-%s.parquet", FetchDir(crawl, round, partition), plan, epoch, number, dataset)
}

// WARC returns the key of a WARC file. Archive tools identify files by base name, so the base name
// alone is unique: 2026-11-r0-4f2a…-part-00017-e1-00003.warc.gz.
func WARC(crawl string, round int, plan string, partition, epoch, number int) string {
	return fmt.Sprintf("%s%d-%05d.warc.gz", WARCs(crawl, round, plan, partition), epoch, number)
}

// WARCDir returns the directory of a crawl's WARC files and their indexes.
func WARCDir(crawl string) string { return "warc/crawl=" + crawl + "/" }

// WARCs returns the prefix of the keys of a task's WARC files, up to the epoch.
func WARCs(crawl string, round int, plan string, partition int) string {
	return fmt.Sprintf("%sround=%d/%s-r%d-%s-%s-e", WARCDir(crawl), round, crawl, round, plan, Part(partition))
}

var warcKey = regexp.MustCompile(`^warc/crawl=([^/]+)/round=([0-9]+)/[^/]+-r[0-9]+-[^/]+-part-([0-9]+)-e[0-9]+-[0-9]+\.warc\.gz$`)

// ParseWARC returns the task that wrote a WARC file.
func ParseWARC(key string) (crawl string, round, partition int, ok bool) {
	m := warcKey.FindStringSubmatch(key)
	if m == nil {
		return "", 0, 0, false
	}
	round, err := strconv.Atoi(m[2])
	if err == nil {
		partition, err = strconv.Atoi(m[3])
	}
	return m[1], round, partition, err == nil
}

// LinksOf returns the key of the part of the links dataset that has the links of the pages in a WARC
// file. The argument is the key of the WARC file. ok is false if it is not such a key.
func LinksOf(warc string) (key string, ok bool) {
	crawl, round, partition, ok := ParseWARC(warc)
	return Table("links", crawl, round, partition), ok
}

// CDXJ returns the key of the index beside a WARC file.
func CDXJ(warcKey string) string { return strings.TrimSuffix(warcKey, ".warc.gz") + ".cdxj" }

// Table returns the key of a part of a published dataset.
func Table(dataset, crawl string, round, partition int) string {
	return fmt.Sprintf("tables/%s/crawl=%s/round=%d/%s.parquet", dataset, crawl, round, Part(partition))
}

// WebGraphDir returns the folder of a round's web graphs, with a final slash.
func WebGraphDir(crawl string, round int) string {
	return fmt.Sprintf("webgraph/%sround=%d/", CrawlDir(crawl), round)
}

// WebGraph returns the key of a text file of a web graph, such as host-edges.
func WebGraph(crawl string, round int, name string) string {
	return WebGraphDir(crawl, round) + name + ".txt.gz"
}

// Captures returns the key of a part of the captures dataset. The key includes Common Crawl's
// partition column subset.
func Captures(crawl, subset string, round, partition int) string {
	return fmt.Sprintf("tables/captures/crawl=%s/subset=%s/round=%d/%s.parquet", crawl, subset, round, Part(partition))
}
