package catalog

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
)

// ErrUnsafe means that a SQL client could misread a name or an address.
var ErrUnsafe = errors.New("is not safe in SQL")

// subsets are the values of the partition column subset.
var subsets = []string{"warc", "crawldiagnostics", "robotstxt"}

// CheckDatabase returns an error that wraps ErrUnsafe if a SQL client could read the name of a
// database or schema as something else than a name.
func CheckDatabase(name string) error {
	if name == "" || strings.ContainsAny(name, "`\"'\\;$") || strings.Contains(name, "--") || hasControl(name) {
		return fmt.Errorf("the database %q %w: use only letters, digits and _", name, ErrUnsafe)
	}
	return nil
}

// CheckAddress returns an error that wraps ErrUnsafe if a SQL client could read the address of a store
// as something else than text. Some clients split statements at semicolons inside strings. Spark and
// Athena replace ${…}.
func CheckAddress(root string) error {
	if strings.Contains(root, ";") || strings.Contains(root, "${") || hasControl(root) {
		return fmt.Errorf("the address %q %w: use an address without ; and ${ and control characters", root, ErrUnsafe)
	}
	return nil
}

func hasControl(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' })
}

// checkSealed returns an error if a seal has a name of a crawl, a round or a part that crawlbatch never
// writes. With such a name, the SQL might read other files or run other statements.
func checkSealed(sealed []*manifest.Sealed) error {
	for _, s := range sealed {
		if !layout.ValidCrawl(s.Crawl) || s.Round < 0 {
			return fmt.Errorf("a seal names crawl %q and round %d, which is not a valid pair: %w", s.Crawl, s.Round, manifest.ErrCorrupt)
		}
		for _, d := range Datasets() {
			for _, f := range s.FilesOf(d.Name) {
				if isTable(f.Key) && !isPart(f.Key, d.Name, s) {
					return fmt.Errorf("%q lists %q, which is not a part of %s: %w", layout.Sealed(s.Crawl, s.Round), f.Key, d.Name, manifest.ErrCorrupt)
				}
			}
		}
	}
	return nil
}

// isTable reports whether key is the key of a published part, or of a part of a compacted copy.
func isTable(key string) bool {
	return strings.HasPrefix(key, "tables/") || strings.HasPrefix(key, "compacted/")
}

// isPart reports whether key is the key of a part of a dataset: published by a sealed round, or of a
// compacted copy of its crawl.
func isPart(key, dataset string, s *manifest.Sealed) bool {
	n, err := layout.PartOf(key)
	if err != nil {
		return false
	}
	if revision := layout.RevisionOf(key, s.Crawl); revision != "" {
		return key == layout.Compacted(s.Crawl, revision, dataset, n)
	}
	return key == layout.Table(dataset, s.Crawl, s.Round, n) || dataset == "captures" &&
		slices.ContainsFunc(subsets, func(subset string) bool { return key == layout.Captures(s.Crawl, subset, s.Round, n) })
}
