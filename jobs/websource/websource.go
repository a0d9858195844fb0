// Package websource reads sitemaps and feeds by URL, as sources of a plan.
//
// Its input is a name such as sitemap:https://example.com/sitemap.xml and the config of the crawl.
// Its output is the entries of that file and, if it is a sitemap index, of the files that it names.
// The package requests the files as a fetch task would: it obeys robots.txt, and uses the user
// agent, the delays, the limits and the address guard of the crawl. If several sources of a plan
// name one host, they share the delay between requests to this host. The package stores nothing, so
// a repeated plan requests the files again.
//
// # Which entries count
//
// A sitemap may list only URLs of its own registered domain, and an index may name only sitemaps of
// its own registered domain. The plan refuses other entries, because the crawl also ignores them in
// the sitemaps that robots.txt names. The entries of a feed may belong to any host.
// fetch.sitemap_limits bounds the files, entries and bytes of each source. If entries or files are
// left out, the output has an entry that says why, so that the plan counts it.
//
// # Secrets
//
// Only requests hold the values of query parameters with secret names (see secretWords). Names of
// sources and files, reasons and errors have *** in their place. URLs of entries are kept as they are.
//
// # What ends a plan
//
// If the file that the user names cannot be read, the error wraps ErrRefused, or
// source.ErrUnavailable if a later plan may succeed. If an index names a file that its host
// refuses, this file is left out. If a host does not answer, the plan ends with an error. Otherwise
// it would silently lack the URLs of a file.
package websource

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"strings"

	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/worker"
	"crawlbatch.io/crawlbatch/planner/source"
	"crawlbatch.io/crawlbatch/planner/source/secret"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch"
)

// These errors say why a source cannot be planned. The user can correct the cause of each error.
var (
	// ErrName means that the name of a source names no sitemap or feed.
	ErrName = errors.New("give a sitemap or feed as sitemap:https://HOST/PATH")
	// ErrRefused means that the file cannot be read, or is neither a sitemap nor a feed. Another try
	// would not help.
	ErrRefused = errors.New("check its URL, or plan without this source")
)

// Openers returns the openers of sitemaps and feeds, for source.Options.Schemes. The schemes sitemap
// and feed mean the same, because the content of a file tells its format. The openers of http and
// https only return an error that names the right form.
func Openers() map[string]source.Opener {
	return map[string]source.Opener{"sitemap": open, "feed": open, "http": open, "https": open}
}

func open(_ context.Context, name string, _ source.Options) (source.Source, error) {
	scheme, url, _ := strings.Cut(name, ":")
	if urlkey.WithoutCredentials(url) != url || urlkey.WithoutCredentials(name) != name {
		return nil, fmt.Errorf("source %s:…: its URL has a password, which would be stored and shown: %w", scheme, ErrName)
	}
	name = secret.Hide(name)
	if s := strings.ToLower(scheme); s != "sitemap" && s != "feed" {
		return nil, fmt.Errorf("source %.200q: is it a sitemap or a feed? Then write sitemap:%.200s; download another list first: %w", name, name, ErrName)
	}
	url = strings.TrimSpace(url) // users copy "Sitemap: https://…" from robots.txt files, with the space
	if strings.HasPrefix(url, "//") {
		url = "https:" + url
	}
	if strings.Contains(url, "#") {
		return nil, fmt.Errorf("source %.200q: a sitemap or feed has no options, and its URL no #: %w", name, ErrName)
	}
	canon, err := urlkey.New(nil)
	if err != nil {
		return nil, err
	}
	key, err := canon.Canonical(url, "")
	if err != nil {
		return nil, fmt.Errorf("source %.200q: %s: %w", name, secret.Hide(err.Error()), ErrName)
	}
	return &Source{name: name, url: url, key: key, canon: canon}, nil
}

// Source is a sitemap or feed with the files that it names.
type Source struct {
	name   string // without secrets
	url    string // as the user wrote it
	key    urlkey.Key
	canon  *urlkey.Canonicalizer
	client *webClient // nil before Prepare
}

// Name implements source.Source.
func (s *Source) Name() string { return s.name }

// webClient holds what the sources of a plan share: the session that sends requests, and limits.
type webClient struct {
	session *fetch.Session
	got     *spool // the last file
	limits  config.SitemapLimits
	most    int64 // largest length of a file, decoded, in bytes
	barred  func(url, sent string) (entry string, ok bool)
	tell    func(stages.Wait)
}

// Options configures Prepare.
type Options struct {
	Config  *config.Config // config of the crawl, with the newest politeness
	Version string
	Clock   stages.Clock
	Log     *slog.Logger                                   // nil discards messages
	Scratch string                                         // an existing local directory
	Barred  func(url, sent string) (entry string, ok bool) // returns the entry of the opt-out list that covers a canonical URL, or that URL as it is sent
	Tell    func(stages.Wait)                              // called for each wait, and for progress; may be nil
}

// Prepare lets the sitemaps and feeds among sources send requests. The caller calls done after it has
// read the sources. The error may say that the config names no contact, which public hosts need.
func Prepare(sources []source.Source, o Options) (done func(), err error) {
	var ours []*Source
	for _, s := range sources {
		if s, ok := s.(*Source); ok {
			ours = append(ours, s)
		}
	}
	if len(ours) == 0 {
		return func() {}, nil
	}
	if err := o.Config.RequireContact(); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(o.Scratch, "web-")
	if err != nil {
		return nil, fmt.Errorf("scratch directory: %w", err)
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Tell == nil {
		o.Tell = func(stages.Wait) {}
	}
	cfg := worker.FetchConfig(o.Config, o.Version)
	stripped, err := urlkey.New(cfg.StripParams)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	cfg.Tolerant = false  // a list, whose URL may hold a secret, comes from the server that the user named
	cfg.StripParams = nil // because a parameter that the crawl strips may select the sitemap
	// The opt-out list names the form without these parameters, and must also bar the form with them.
	bars := func(url, sent string) (entry string, ok bool) {
		if entry, ok = o.Barred(url, sent); !ok {
			if key, err := stripped.Canonical(url, ""); err == nil {
				entry, ok = o.Barred(key.URL, "")
			}
		}
		return entry, ok
	}
	m := &webClient{
		got: &spool{dir: dir}, limits: o.Config.Fetch.SitemapLimits, most: cfg.Longest(), barred: bars, tell: o.Tell,
	}
	env := &stages.Env{Scratch: dir, Clock: o.Clock, Log: o.Log, Progress: stages.NoProgress{}, Version: o.Version}
	barred := func(url, sent string) bool { _, ok := bars(url, sent); return ok }
	if m.session, err = fetch.NewSession(env, cfg, m.got, barred, o.Tell); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	for _, s := range ours {
		s.client = m
	}
	return func() {
		m.session.Close()
		_ = os.RemoveAll(dir) // scratch
	}, nil
}

// Entries implements source.Source. Prepare must have been called.
func (s *Source) Entries(ctx context.Context) iter.Seq2[source.Entry, error] {
	return func(yield func(source.Entry, error) bool) {
		r := reading{Source: s, webClient: s.client, yield: yield, seen: map[string]bool{s.key.URL: true}}
		if err := r.run(ctx); err != nil && !r.stopped {
			yield(source.Entry{}, fmt.Errorf("source %q: %w", s.name, err))
		}
	}
}
