package planning

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch/robots"
)

// storedLinks returns a function that reports whether the store has the links of a page, for
// planner.Request.HasLinks. Its argument is the key of the WARC file with the page's content. storedLinks lists
// the stored parts instead of reading the seals, because somebody may have deleted parts of earlier months. It
// ignores crawls whose config would find other links on the same page.
func (s *Basis) storedLinks(ctx context.Context) (func(warc string) bool, error) {
	stored, same := map[string]bool{}, map[string]bool{s.Of.Crawl: true}
	for _, one := range s.Earlier {
		if _, known := same[one.Crawl]; !known {
			var err error
			if same[one.Crawl], err = s.sameLinks(ctx, one.Crawl); err != nil {
				return nil, err
			}
		}
		if !same[one.Crawl] {
			continue
		}
		for o, err := range s.Bucket.List(ctx, path.Dir(layout.Table(stages.FileLinks, one.Crawl, one.Round, 0))+"/") {
			if err != nil {
				return nil, err
			}
			stored[o.Key] = true
		}
	}
	return (&linkParts{stored: stored, known: map[string]bool{}}).has, nil
}

// linkParts are the stored parts of links.
type linkParts struct {
	stored map[string]bool // by key
	known  map[string]bool // recent answers of has, by WARC file
}

// maxKnown bounds linkParts.known. The URLs of a domain come one after the other, and few WARC files have their pages.
const maxKnown = 1 << 16

// has reports whether the links of the pages in a WARC file are stored.
func (l *linkParts) has(warc string) bool {
	has, ok := l.known[warc]
	if !ok {
		key, _ := layout.LinksOf(warc)
		has = l.stored[key]
		if len(l.known) >= maxKnown {
			clear(l.known)
		}
		l.known[strings.Clone(warc)] = has
	}
	return has
}

// sameLinks reports whether an earlier crawl finds the same links on a page as a crawl with the
// config of the plan. Both must make targets canonical in the same way, cut documents and lists of links
// at the same lengths, and obey the directives for the same user agent. The versions of their
// parsers may differ and find other links, because otherwise each upgrade would download all pages again. If the crawl's
// config is unreadable, the result is false.
func (s *Basis) sameLinks(ctx context.Context, crawl string) (bool, error) {
	// Links do not depend on secrets, so variables that are not set are empty.
	environment := func(name string) (string, bool) { return os.Getenv(name), true }
	_, before, err := roundstate.OpenCrawl(ctx, s.Bucket, crawl, environment)
	if errors.Is(err, config.ErrInvalid) || errors.Is(err, ledger.ErrLost) || errors.Is(err, ledger.ErrPruned) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	of := func(c *config.Config) string {
		return fmt.Sprintf("%q %+v %d %d %d %q", c.Plan.StripParams, c.Plan.URLRules(), c.Parse.MaxLinks, c.Fetch.MaxBody, c.Fetch.MaxSitemap, robots.ProductToken(c.UserAgent))
	}
	return of(before) == of(s.Config), nil
}
