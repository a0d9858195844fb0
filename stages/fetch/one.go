package fetch

import (
	"context"
	"sync"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/formats/warc"
	"crawlbatch.io/crawlbatch/stages"
)

// Rows are what fetching one URL recorded.
type Rows struct {
	Fetch    schema.Fetch
	Requests []schema.Request
	Captures []SubsetCapture
	Page     *schema.Page // nil where there is no document
	Text     *schema.Text
	Links    []schema.Link
}

// SubsetCapture is a row of captures and the subset that it belongs to.
type SubsetCapture struct {
	Subset  string
	Capture schema.Capture
}

// One takes one URL as a map task would: robots.txt first, redirects, retries and
// all, but without a store; captures point into no file. Of env, Bucket is not
// used. The URL is made canonical first, and robots.txt asked for rawURL's spelling too;
// the error says why one is no URL.
func One(ctx context.Context, env *stages.Env, cfg Config, parser Parser, rawURL string) (*Rows, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	canon, err := urlkey.New(cfg.StripParams)
	if err != nil {
		return nil, err
	}
	key, spelled, err := canon.Spelled(rawURL, "")
	if err != nil {
		return nil, err
	}
	cfg.Retries.Robots = 0 // somebody waits
	row := schema.PlannedURL{URL: key.URL, SURT: key.SURT, Host: key.Host, Domain: key.Domain}
	if spelled != "" {
		row.Spellings = []string{spelled}
	}
	p, err := onePlanned(env.Scratch, &row)
	if err != nil {
		return nil, err
	}
	defer p.Close() //nolint:errcheck // scratch
	out := &memory{}
	c, err := newCrawl(env, cfg, parser, p, out)
	if err != nil {
		return nil, err
	}
	defer c.close()
	if err := c.sched.Add(key.Host, newQueue(p.hosts[0].ranges, nil)); err != nil {
		return nil, err
	}
	if err := c.loop(ctx, func() context.Context { return ctx }); err != nil {
		if ctx.Err() != nil {
			return nil, stages.ErrInterrupted
		}
		return nil, err
	}
	return &out.rows, nil
}

// memory is a sink that keeps rows and lets responses go.
type memory struct {
	mu   sync.Mutex
	rows Rows
}

func (m *memory) archive([]byte, int, *warc.Capture) error { return nil }

func (m *memory) emit(b *bundle) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if b.settle != nil {
		b.settle()
	}
	r := &m.rows
	r.Requests = append(r.Requests, b.requests...)
	for _, cp := range b.captures {
		r.Captures = append(r.Captures, SubsetCapture{cp.subset, cp.Capture})
	}
	r.Links = append(r.Links, b.links...)
	if b.fetch != nil {
		r.Fetch, r.Page, r.Text = *b.fetch, b.page, b.text
	}
	return nil
}
