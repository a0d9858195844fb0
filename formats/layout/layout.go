// Package layout makes and parses every key of the store. No key is also the folder of another.
//
// In: crawl, round, stage, partition. Out: keys. It imports the standard library only.
package layout

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// ParseMonth checks that a crawl's name is a calendar month, such as 2026-11.
func ParseMonth(s string) (time.Time, error) {
	t, err := time.Parse("2006-01", s)
	if err != nil || t.Year() < 1990 || t.Year() > 2099 {
		return time.Time{}, fmt.Errorf("month %q is not a month: write it as YYYY-MM, such as 2026-11", s)
	}
	return t, nil
}

var crawlName = regexp.MustCompile(`^\d{4}-(0[1-9]|1[0-2])(r[1-9]\d*)?$`)

// MonthOf returns the month at the beginning of a crawl's name: 2026-11 for 2026-11r1. ok
// reports whether crawl is a valid crawl name.
func MonthOf(crawl string) (month string, ok bool) {
	month, _, _ = strings.Cut(crawl, "r")
	_, err := ParseMonth(month)
	return month, err == nil && ValidCrawl(crawl)
}

// IsReparse reports whether a crawl's name names a reparse, such as 2026-11r1.
func IsReparse(crawl string) bool {
	month, ok := MonthOf(crawl)
	return ok && month != crawl
}

// ValidCrawl reports whether s may name a crawl: a month, or a reparse of one, such as
// 2026-11r1.
func ValidCrawl(s string) bool { return crawlName.MatchString(s) }

// Part returns the name of a partition, such as part-00017.
func Part(n int) string { return fmt.Sprintf("part-%05d", n) }

// ParsePart is the inverse of Part.
func ParsePart(s string) (int, error) {
	digits, ok := strings.CutPrefix(s, "part-")
	n, err := strconv.Atoi(digits)
	if !ok || err != nil || n < 0 || Part(n) != s {
		return 0, fmt.Errorf("%q names no partition: expected part-00000", s)
	}
	return n, nil
}

// CrawlDir returns the folder of a crawl, with its slash.
func CrawlDir(crawl string) string { return "crawl=" + crawl + "/" }

// CrawlManifest holds the crawl's frozen config.
func CrawlManifest(crawl string) string { return CrawlDir(crawl) + "crawl.json" }

// Ledger records what was begun, decided and sealed in a crawl.
func Ledger(crawl string) string { return CrawlDir(crawl) + "ledger.json" }

// Crawls names the store's crawls.
func Crawls() string { return "crawls.json" }

// Politeness holds the newest revision of the crawl's politeness.
func Politeness(crawl string) string { return CrawlDir(crawl) + "politeness.json" }

// Settings holds the config of tasks on other machines. digest is the digest of its text.
func Settings(crawl, digest string) string { return CrawlDir(crawl) + "settings-" + digest + ".json" }

// Active names the crawl and round whose fetch stage runs in this store.
func Active() string { return "active.json" }

// Quarantined is the key of the n-th object that was moved away from a key. No engine and no
// command reads it.
func Quarantined(key string, n int) string {
	if n > 1 {
		return fmt.Sprintf("quarantine/%d/%s", n, key)
	}
	return "quarantine/" + key
}

// RoundDir returns the folder of a round, with its slash.
func RoundDir(crawl string, round int) string {
	return fmt.Sprintf("%sround=%d/", CrawlDir(crawl), round)
}

// Start names the plan that a round of format 1 or 2 follows.
func Start(crawl string, round int) string { return RoundDir(crawl, round) + "start.json" }

// Sealed lists every part of every dataset of a finished round.
func Sealed(crawl string, round int) string { return RoundDir(crawl, round) + "sealed.json" }

// PlanDir returns the folder of a plan, with its slash.
func PlanDir(crawl string, round int, plan string) string {
	return RoundDir(crawl, round) + "plan-" + plan + "/"
}

// PlanManifest is written last. A plan without it does not exist.
func PlanManifest(crawl string, round int, plan string) string {
	return PlanDir(crawl, round, plan) + "plan.json"
}

// PlanPart holds the URLs of a partition.
func PlanPart(crawl string, round int, plan string, partition int) string {
	return PlanDir(crawl, round, plan) + Part(partition) + ".parquet"
}

// PlanSpellings holds the spellings of URLs that are known but not planned, from a
// partition's domains.
func PlanSpellings(crawl string, round int, plan string, partition int) string {
	return PlanDir(crawl, round, plan) + fmt.Sprintf("spellings-%05d.parquet", partition)
}

// PlanRefused lists what the plan refused, with line numbers.
func PlanRefused(crawl string, round int, plan string) string {
	return PlanDir(crawl, round, plan) + "refused.parquet"
}

// StageDir returns the folder of a stage, with its slash.
func StageDir(crawl string, round int, stage string) string {
	return RoundDir(crawl, round) + stage + "/"
}

// Inputs freezes the results that a stage reads.
func Inputs(crawl string, round int, stage string) string {
	return StageDir(crawl, round, stage) + "inputs.json"
}

// TaskList lists tasks of a stage for other machines. digest is the digest of the list.
func TaskList(crawl string, round int, stage, digest string) string {
	return StageDir(crawl, round, stage) + "tasks-" + digest + ".json"
}

// Result is the result of a committed task.
func Result(crawl string, round int, stage string, partition int) string {
	return StageDir(crawl, round, stage) + Part(partition) + ".json"
}

// AttemptsDir returns the folder of a stage's attempts, with its slash.
func AttemptsDir(crawl string, round int, stage string) string {
	return StageDir(crawl, round, stage) + "attempts/"
}

// Attempt records how an attempt ended.
func Attempt(crawl string, round int, stage string, partition, attempt int) string {
	return fmt.Sprintf("%s-e%d.json", AttemptsDir(crawl, round, stage)+Part(partition), attempt)
}

// ParseAttempt returns the partition and number of an attempt's key in dir.
func ParseAttempt(dir, key string) (partition, attempt int, ok bool) {
	name, ok := strings.CutPrefix(key, dir)
	name, isJSON := strings.CutSuffix(name, ".json")
	part, number, dashed := strings.Cut(name, "-e")
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

// Attempts returns the prefix of a partition's attempts.
func Attempts(crawl string, round int, stage string, partition int) string {
	return AttemptsDir(crawl, round, stage) + Part(partition) + "-e"
}

// Results returns the prefix of a stage's results. For fetch it is also the prefix of the
// tasks' folders.
func Results(crawl string, round int, stage string) string {
	return StageDir(crawl, round, stage) + "part-"
}

// Working is a working file of a reduce task. Only later stages of the round read it. It
// is created once and has a fixed name.
func Working(crawl string, round int, stage, name string, partition int) string {
	return fmt.Sprintf("%swork/%s/%s.parquet", StageDir(crawl, round, stage), name, Part(partition))
}

// URLFilter is the Bloom filter of the URLs in a bucket's parts of urls and skips. It is a
// working file that outlives its round.
func URLFilter(crawl string, round, bucket int) string {
	return fmt.Sprintf("%swork/known/%s.bloom", StageDir(crawl, round, "frontier"), Part(bucket))
}

// FetchDir returns the folder of a fetch task's working data, with its slash.
func FetchDir(crawl string, round, partition int) string {
	return StageDir(crawl, round, "fetch") + Part(partition) + "/"
}

// Checkpoint holds the authoritative state of a partition: the holder of the lease and the
// committed outcomes.
func Checkpoint(crawl string, round, partition int) string {
	return FetchDir(crawl, round, partition) + "checkpoint.json"
}

// Taken shows that a partition has had a checkpoint.
func Taken(crawl string, round, partition int) string {
	return StageDir(crawl, round, "fetch") + "taken/" + Part(partition) + ".json"
}

// Segment holds the rows of one dataset between two checkpoints. Its key contains plan,
// partition, epoch and number, so it is never reused.
func Segment(crawl string, round int, plan string, partition, epoch, number int, dataset string) string {
	return fmt.Sprintf("%ssegments/%s-e%d-%05d-%s.parquet", FetchDir(crawl, round, partition), plan, epoch, number, dataset)
}

// WARC is a file of raw responses. Archive tools identify files by their base name, so it
// is unique: 2026-11-r0-4f2a…-part-00017-e1-00003.warc.gz.
func WARC(crawl string, round int, plan string, partition, epoch, number int) string {
	return fmt.Sprintf("%s%d-%05d.warc.gz", WARCs(crawl, round, plan, partition)[0], epoch, number)
}

// WARCs returns the two prefixes of a task's WARC files, up to the epoch. The second is
// for older files, whose names lack crawl, round and plan.
func WARCs(crawl string, round int, plan string, partition int) [2]string {
	dir, part := fmt.Sprintf("warc/crawl=%s/round=%d/", crawl, round), Part(partition)
	return [2]string{fmt.Sprintf("%s%s-r%d-%s-%s-e", dir, crawl, round, plan, part), dir + part + "-e"}
}

var warcKey = regexp.MustCompile(`^warc/crawl=([^/]+)/round=([0-9]+)/(?:[^/]+-r[0-9]+-[^/]+-)?part-([0-9]+)-e[0-9]+-[0-9]+\.warc\.gz$`)

// ParseWARC returns the task that wrote a WARC file. It accepts both kinds of names.
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

// CDXJ is the index beside a WARC file.
func CDXJ(warcKey string) string { return strings.TrimSuffix(warcKey, ".warc.gz") + ".cdxj" }

// Table is a part of a published dataset.
func Table(dataset, crawl string, round, partition int) string {
	return fmt.Sprintf("tables/%s/crawl=%s/round=%d/%s.parquet", dataset, crawl, round, Part(partition))
}

// Captures is a part of captures, which keeps Common Crawl's subset partition.
func Captures(crawl, subset string, round, partition int) string {
	return fmt.Sprintf("tables/captures/crawl=%s/subset=%s/round=%d/%s.parquet", crawl, subset, round, Part(partition))
}
