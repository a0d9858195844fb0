package fetch

import (
	"context"
	"time"

	"crawlbatch.io/crawlbatch/formats/manifest"
)

// gate tells a fetcher when it may begin a request, and when it may write it. It is safe for concurrent use. An error
// from a method ends the fetcher.
type gate interface {
	// admit waits until the fetcher may begin a request.
	admit(ctx context.Context) error
	// mayWrite reports whether the fetcher may write a request now.
	mayWrite(now time.Time) bool
	// serial reports whether the fetcher must use one grant at a time.
	serial() bool
	// begin is called before a grant sends a request. what is the URL, robots.txt or sitemap.
	begin(ctx context.Context, what manifest.Trying) error
	// done is called after each grant.
	done(ctx context.Context) error
}

// openGate is a gate that allows everything.
type openGate struct{}

func (openGate) admit(ctx context.Context) error              { return ctx.Err() }
func (openGate) mayWrite(time.Time) bool                      { return true }
func (openGate) serial() bool                                 { return false }
func (openGate) begin(context.Context, manifest.Trying) error { return nil }
func (openGate) done(context.Context) error                   { return nil }
