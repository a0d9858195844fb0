// Package demo serves the synthetic web: for the command simweb on any address, and for the command demo
// on loopback. It also plans the crawl of the demo.
package demo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"crawlbatch.io/crawlbatch/cmd/usage"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/jobs/scratch"
	"crawlbatch.io/crawlbatch/planner/source"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/simweb"
	"crawlbatch.io/crawlbatch/stages/simweb/faults"
)

// Crawl is a month that no real crawl uses.
const Crawl = "2000-01"

// agent is the user agent of the demo's crawl. Begun recognizes the crawl by it.
const agent = "crawlbatch-demo/1.0"

// Web is the served web. The caller closes a Web.
type Web struct {
	Config *config.Config // config of a crawl that reaches the web

	web    *simweb.Web
	stop   context.CancelFunc
	served chan struct{} // closed when the server has ended
}

// Serve serves the web on a free port of loopback until ctx ends.
func Serve(ctx context.Context) (*Web, error) {
	web, err := simweb.New(webConfig())
	if err != nil {
		return nil, err
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen on loopback: %w", err)
	}
	cfg, err := crawlConfig(ln.Addr().String())
	if err != nil {
		return nil, errors.Join(err, ln.Close())
	}
	serving, stop := context.WithCancel(ctx)
	w := &Web{Config: cfg, web: web, stop: stop, served: make(chan struct{})}
	go func() {
		defer close(w.served)
		_ = simweb.NewServer(web, nil).Serve(serving, ln) // an error shows in the crawl, because no host answers
	}()
	return w, nil
}

// Close stops the server.
func (w *Web) Close() {
	w.stop()
	<-w.served
}

// webConfig configures the web of the demo. It has only faults that cost a crawler little time.
func webConfig() simweb.Config {
	w := simweb.Default()
	w.Hosts, w.PagesPerHost = 40, 60
	w.Faults = faults.Quick
	w.CrawlDelay = 40 * time.Millisecond
	return w
}

// crawlConfig is the config of a crawl of the web at addr. The crawl is faster than a crawl of real
// hosts should be.
func crawlConfig(addr string) (*config.Config, error) {
	c := config.Default()
	c.UserAgent = agent
	c.Politeness.Delay = config.Duration(20 * time.Millisecond)
	c.Fetch.Pauses = config.Pauses{
		RateLimited: config.Duration(200 * time.Millisecond), Timeout: config.Duration(200 * time.Millisecond),
		ServerError: config.Duration(100 * time.Millisecond), DNS: config.Duration(100 * time.Millisecond),
		Breaker: config.Duration(200 * time.Millisecond),
	}
	c.Fetch.Retries.Robots = 0 // the demo does not wait for hosts that never serve robots.txt
	c.Plan.PartitionURLs = 500
	c.Fetch.ConnectTo = []string{"::" + addr}
	return c, c.Validate()
}

// listedHosts is the number of hosts whose sitemap and feed are seeds of the demo.
const listedHosts = 3

// addLists appends the sitemaps and feeds of a few hosts to a file of seeds, so that the demo finds
// links of every kind.
func addLists(web *simweb.Web, seeds string) error {
	f, err := os.OpenFile(seeds, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	for host := range listedHosts {
		fmt.Fprintf(f, "http://%s/sitemap.xml\nhttp://%[1]s/feed.xml\n", web.Host(host)) // Close reports write errors
	}
	return f.Close()
}

// Begun reports whether a store has the demo's crawl. If the store has another crawl with the same
// name, Begun returns a usage error.
func Begun(ctx context.Context, b store.Bucket) (bool, error) {
	_, frozen, err := roundstate.OpenCrawl(ctx, b, Crawl, os.LookupEnv)
	switch {
	case errors.Is(err, roundstate.ErrNoCrawl):
		return false, nil
	case err == nil && frozen.UserAgent != agent:
		return false, usage.Errorf("%s holds a crawl %s that is not the demo's: give another --store", b, Crawl)
	}
	return err == nil, err
}

// Plan plans the crawl.
func (w *Web) Plan(ctx context.Context, b store.Bucket, version string) error {
	dir, remove, err := scratch.New()
	if err != nil {
		return err
	}
	defer remove()
	seeds := filepath.Join(dir, "urls.txt")
	if err := w.web.WriteSeeds(ctx, seeds, true); err != nil {
		return err
	}
	if err := addLists(w.web, seeds); err != nil {
		return err
	}
	s, err := source.Files(seeds, nil)
	if err != nil {
		return err
	}
	_, _, err = jobs.Plan(ctx, jobs.PlanRequest{
		Bucket: b, Crawl: Crawl, Sources: []source.Source{s}, Config: w.Config, Clock: stages.SystemClock{}, Version: version, Scratch: dir, Lookup: os.LookupEnv,
	})
	return err
}
