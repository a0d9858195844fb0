package ledger

import (
	"fmt"
	"strings"

	"crawlbatch.io/crawlbatch/formats/store"
)

// NoCrawl is the error about a crawl that a store never had. errors.Is(err, ErrNoCrawl) holds for it.
type NoCrawl struct {
	Bucket store.Bucket
	Crawl  string // "" if any crawl would do
	// Others are the crawls that the store holds, the newest first. They count only if Looked is true,
	// because most callers test for a crawl and need no list.
	Others []string
	Looked bool
}

// othersShown is the largest number of crawls that a message names.
const othersShown = 5

// Error implements error.
func (e *NoCrawl) Error() string {
	create := CreatingCommand(e.Crawl, "")
	switch {
	case e.Crawl == "":
		return fmt.Sprintf("%s holds no crawl: is --store right? `crawlbatch plan --month YYYY-MM --source FILE` makes a crawl", e.Bucket)
	case !e.Looked:
		return fmt.Sprintf("%s holds no crawl %s: make it with `%s`", e.Bucket, e.Crawl, create)
	case len(e.Others) == 0:
		return fmt.Sprintf("%s holds no crawl %s, and no other crawl: is --store right? `%s` makes %[2]s", e.Bucket, e.Crawl, create)
	}
	return fmt.Sprintf("%s holds no crawl %s: crawls in this store, the newest first: %s: give one of them, or make %[2]s with `%[4]s`", e.Bucket, e.Crawl, Names(e.Others), create)
}

// Is makes NoCrawl an ErrNoCrawl.
func (e *NoCrawl) Is(target error) bool { return target == ErrNoCrawl }

// Names lists crawls for a message, which are given with the newest first. Of many crawls it names the
// newest.
func Names(crawls []string) string {
	if older := len(crawls) - othersShown; older > 0 {
		return fmt.Sprintf("%s and %d older", strings.Join(crawls[:othersShown], ", "), older)
	}
	return strings.Join(crawls, ", ")
}
