// Package predecessor reads from a store of another format what a new store takes over from it.
//
// Check takes a store that a command opens, and returns an Error if this program cannot use its format.
// The Error says which commands parse the store's WARC files again into a new store. Carry copies the
// list of takedowns into the new store, so that nothing of it comes back. Stops returns the stops of
// hosts, which a person adds to the opt-out list.
//
// The package never writes to a store of another format. It reads only a few fields of its documents:
// their format, the names of the crawls, takedowns, stops, and where the opt-out list is. It imports
// jobs/ledger and formats.
package predecessor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/takedown"
	"crawlbatch.io/crawlbatch/jobs/ledger"
)

// Error means that a store has another format than this program. It wraps manifest.ErrFormat.
type Error struct {
	Bucket store.Bucket
	Key    string // document that has the other format
	Header manifest.Header
	Month  string // newest month of the store; "" if it is unknown
	// Takedowns reports whether the store has a list of takedowns.
	Takedowns bool
	// OptOut is the opt-out list that the newest month froze, "" if it is unknown or there is none.
	OptOut string
}

// Error implements error.
func (e *Error) Error() string {
	by := ""
	if e.Header.Version != "" {
		by = " (crawlbatch " + e.Header.Version + " wrote it)"
	}
	return fmt.Sprintf("%s: %q has format %d%s: %v", e.Bucket, e.Key, e.Header.Format, by, manifest.ErrFormat)
}

// Unwrap returns manifest.ErrFormat.
func (e *Error) Unwrap() error { return manifest.ErrFormat }

// Places says how a command line names the two stores and the config. All texts are quoted for a shell.
type Places struct {
	Old, Archive, New string // the store, the folder of its WARC files, and a new store
	Flags             string // other flags for both stores, with a leading space
	Config            bool   // whether Flags have --config
}

// Advice returns lines that say what can be done.
func (e *Error) Advice(p Places) []string {
	config, month := p.Flags, e.Month
	needed := !p.Config && (e.Takedowns || e.OptOut != "")
	if needed {
		config = " --config FILE" + config
	}
	if month == "" {
		month = "YYYY-MM"
	}
	lines := []string{
		"Continue it with the crawlbatch that wrote it, or parse its WARC files into a new store. Lost are due times, validators (ETag and Last-Modified), first_seen, and pages whose WARC files were pruned.",
		"First carry over what was taken down, because what was removed must not come back. This also names the stopped hosts:",
		"  crawlbatch takedown --from " + p.Old + " --apply --store " + p.New + config,
		"Then parse the newest response of each URL again:",
		"  crawlbatch reparse --warc-store " + p.Archive + " --as " + month + "r1 --store " + p.New + config,
	}
	switch {
	case needed && e.OptOut != "":
		lines = append(lines, fmt.Sprintf("FILE is a config with the store.takedown_key of the old store, if it has one, and with its opt-out list (plan.opt_out is %q): URLs on the list are left out.", e.OptOut))
	case needed:
		lines = append(lines, "FILE is a config with the store.takedown_key of the old store, and with its opt-out list (plan.opt_out), if it has one: URLs on the list are left out.")
	default:
		lines = append(lines, "The opt-out list is a file beside the store: URLs that plan.opt_out of --config names are left out.")
	}
	return lines
}

// Check returns an Error if a document in the root of the store, or else a crawl.json, has another format than this program.
// It returns nil for a store without documents. It ignores unreadable documents, because the commands that need them report
// them.
func Check(ctx context.Context, b store.Bucket) error {
	for _, d := range []struct {
		key string
		doc manifest.Document
	}{
		{layout.Crawls(), &manifest.Crawls{}}, {layout.Active(), &manifest.Active{}}, {layout.Takedowns(), &manifest.Takedowns{}},
	} {
		h, err := manifest.LoadAnyFormat(ctx, b, d.key, d.doc)
		switch {
		case errors.Is(err, store.ErrNotFound):
			continue
		case errors.Is(err, manifest.ErrCorrupt) || err == nil && h.Format == schema.FormatVersion:
			return nil
		case err != nil:
			return err
		}
		return describe(ctx, b, d.key, h)
	}
	month, err := newestMonth(ctx, b)
	if err != nil || month == "" {
		return err
	}
	key := layout.CrawlManifest(month)
	h, err := manifest.LoadAnyFormat(ctx, b, key, &manifest.Crawl{})
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, manifest.ErrCorrupt) || err == nil && h.Format == schema.FormatVersion {
		return nil
	}
	if err != nil {
		return err
	}
	return describe(ctx, b, key, h)
}

// describe returns the Error for a store in which a document has another format.
func describe(ctx context.Context, b store.Bucket, key string, h manifest.Header) error {
	e := &Error{Bucket: b, Key: key, Header: h}
	var err error
	if e.Takedowns, err = manifest.Exists(ctx, b, layout.Takedowns()); err != nil {
		return err
	}
	if e.Month, err = newestMonth(ctx, b); err != nil || e.Month == "" {
		return errors.Join(e, err)
	}
	var crawl manifest.Crawl
	if _, err := manifest.LoadAnyFormat(ctx, b, layout.CrawlManifest(e.Month), &crawl); err != nil {
		return e // the advice does without the crawl's config
	}
	var frozen struct {
		Plan struct {
			OptOut string `yaml:"opt_out"`
		} `yaml:"plan"`
	}
	if yaml.Unmarshal([]byte(crawl.Config), &frozen) == nil {
		e.OptOut = frozen.Plan.OptOut
	}
	return e
}

// newestMonth returns the newest month of a store, or "" if it has no crawl.
func newestMonth(ctx context.Context, b store.Bucket) (string, error) {
	crawls, err := ledger.Crawls(ctx, b)
	if err != nil || len(crawls) == 0 {
		return "", err
	}
	month, _ := layout.MonthOf(crawls[len(crawls)-1])
	return month, nil
}

// Takedowns returns the list of takedowns of a store of any format, or nil if it has none.
func Takedowns(ctx context.Context, b store.Bucket) (*manifest.Takedowns, error) {
	var list manifest.Takedowns
	_, err := manifest.LoadAnyFormat(ctx, b, layout.Takedowns(), &list)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	return &list, err
}

// Stop is a stop in force in a crawl of a store of another format.
type Stop struct {
	Crawl string
	ledger.Stop
}

// Line returns the line of an opt-out list that refuses what the stop stops.
func (s *Stop) Line() string { return s.Host + s.Domain }

// Stops returns the stops of hosts and domains that no one has resumed, of all crawls of a store of any format. The newest
// stop of each name counts.
func Stops(ctx context.Context, b store.Bucket) ([]Stop, error) {
	crawls, err := ledger.Crawls(ctx, b)
	if err != nil {
		return nil, err
	}
	var all []Stop
	for _, crawl := range crawls {
		var doc manifest.Ledger
		_, err := manifest.LoadAnyFormat(ctx, b, layout.Ledger(crawl), &doc)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, s := range ledger.StopsOf(doc.Entries) {
			named := Stop{crawl, s}
			all = slices.DeleteFunc(all, func(old Stop) bool { return old.Line() == named.Line() })
			if s.Ended == "" {
				all = append(all, named)
			}
		}
	}
	slices.SortFunc(all, func(a, b Stop) int { return strings.Compare(a.Line(), b.Line()) })
	return all, nil
}

// Carry adds the takedowns of the store from to the list of the store to, and returns how many entries were missing there.
// Both lists have the same secret key; otherwise the error wraps takedown.ErrKey. Without apply, Carry only counts.
func Carry(ctx context.Context, to, from store.Bucket, secret string, w ledger.Writer, apply bool) (added, total int, err error) {
	list, err := Takedowns(ctx, from)
	if err != nil || list == nil {
		return 0, 0, err
	}
	key, err := takedown.NewKey(secret)
	if err != nil {
		return 0, 0, err
	}
	added, err = takedown.Carry(ctx, to, key, list, apply)
	if err == nil && apply {
		err = w.NoteTakedowns(ctx, to)
	}
	return added, len(list.Entries), err
}
