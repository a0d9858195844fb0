package frontier

import (
	"slices"

	"crawlbatch.io/crawlbatch/formats/schema"
)

// page holds the columns of a page that are compared with the URL's last capture.
type page struct {
	SURT          string            `parquet:"url_surtkey"`
	URL           string            `parquet:"url"`
	Sent          string            `parquet:"sent,optional"`
	ContentDigest string            `parquet:"content_digest,optional"`
	TextDigest    string            `parquet:"text_digest,optional"`
	SimHash       int64             `parquet:"simhash"`
	Title         string            `parquet:"title,optional"`
	LinkSketch    schema.LinkSketch `parquet:"link_sketch,optional"`
	PageHint      schema.PageHint   `parquet:"page_hint,optional"`
	likeness
}

// compare records in r how the URL's answer in the round differs from the last capture. prior is the
// record before the round. If the answer is a capture, r holds its facts afterwards. An answer that says
// nothing about the page, such as a time-out, changes nothing.
func (g *group) compare(r, prior *schema.URLRecord, round string) {
	last := lastCapture(prior)
	r.CaptureDigest = ""
	if last != nil && r.ContentDigest != last.ContentDigest { // this round may have replaced content_digest
		r.CaptureDigest = last.ContentDigest
	}
	switch {
	case g.page != nil && g.page.PageHint != schema.HintSoft404:
		r.Change, r.ChangeDistance, r.TitleChanged, r.LinksAdded, r.LinksRemoved = "", nil, nil, nil, nil
		now := schema.CaptureFacts{
			ContentDigest: g.page.ContentDigest, TextDigest: g.page.TextDigest, SimHash: g.page.SimHash, TitleHash: schema.TitleHash(g.page.Title), LinkSketch: g.page.LinkSketch,
		}
		switch {
		case last != nil:
			change, distance, title := now.Compare(last)
			r.Change, r.ChangeDistance, r.TitleChanged = change, &distance, &title
			r.LinksAdded, r.LinksRemoved = now.LinkSketch.Compare(last.LinkSketch)
		case prior.ContentDigest == "":
			r.Change = schema.ChangeNew
		case prior.ContentDigest == now.ContentDigest:
			r.Change = schema.ChangeNone
		}
		if r.Change == schema.ChangeNone { // equal payloads have equal links
			r.LinksAdded, r.LinksRemoved = new(int32), new(int32)
		}
		r.CapturedIn, r.TextDigest, r.SimHash, r.TitleHash, r.LinkSketch, r.CaptureDigest = round, now.TextDigest, now.SimHash, now.TitleHash, now.LinkSketch, ""
		r.WordCount, r.TextShape = g.page.evidence()
		if now.ContentDigest != r.ContentDigest {
			r.CaptureDigest = now.ContentDigest
		}
	case g.page != nil || g.answered(schema.HTTP4xx, 404, 410):
		r.Change, r.ChangeDistance, r.TitleChanged, r.LinksAdded, r.LinksRemoved = "", nil, nil, nil, nil
		if last != nil {
			r.Change = schema.ChangeGone
		}
	case g.answered(schema.NotModified, 304):
		r.Change, r.ChangeDistance, r.TitleChanged, r.LinksAdded, r.LinksRemoved = schema.ChangeNone, nil, nil, nil, nil
	}
}

// lastCapture returns the last capture of a URL, or nil if it has none.
func lastCapture(r *schema.URLRecord) *schema.CaptureFacts {
	if r.CapturedIn == "" {
		return nil
	}
	c := &schema.CaptureFacts{ContentDigest: r.CaptureDigest, TextDigest: r.TextDigest, SimHash: r.SimHash, TitleHash: r.TitleHash, LinkSketch: r.LinkSketch}
	if c.ContentDigest == "" {
		c.ContentDigest = r.ContentDigest
	}
	return c
}

// answered reports whether the URL itself, and not the target of a redirect, gave an answer with the
// outcome and one of the statuses.
func (g *group) answered(want schema.Outcome, statuses ...int16) bool {
	is := func(o *outcome) bool { return o.Outcome == want && slices.Contains(statuses, o.HTTPStatus) }
	return g.outcome != nil && !moved(g.outcome) && is(g.outcome) || g.response != nil && is((*outcome)(g.response))
}
