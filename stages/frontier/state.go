package frontier

import (
	"cmp"
	"time"

	"crawlbatch.io/crawlbatch/formats/recrawl"
	"crawlbatch.io/crawlbatch/formats/schema"
)

// outcome holds the columns that the frontier reads from a row of fetches.
type outcome struct {
	SURT           string         `parquet:"url_surtkey"`
	URL            string         `parquet:"url"`
	Host           string         `parquet:"host"`
	Domain         string         `parquet:"domain"`
	Outcome        schema.Outcome `parquet:"outcome"`
	HTTPStatus     int16          `parquet:"http_status,optional"`
	Priority       int32          `parquet:"priority"`
	Depth          int32          `parquet:"depth"`
	FetchedAt      schema.Time    `parquet:"fetched_at,optional,timestamp(microsecond)"`
	RecordedAt     schema.Time    `parquet:"recorded_at,timestamp(microsecond)"`
	ContentDigest  string         `parquet:"content_digest,optional"`
	RedirectTarget string         `parquet:"redirect_target,optional"`
	FinalURL       string         `parquet:"final_url,optional"`
	ETag           string         `parquet:"etag,optional"`
	LastModified   string         `parquet:"last_modified,optional"`
	Truncated      string         `parquet:"content_truncated,optional"`
	Revisit        schema.Revisit `parquet:"revisit,optional"`
	WARCFilename   string         `parquet:"warc_filename,optional"`
	WARCRecordOff  int32          `parquet:"warc_record_offset,optional"`
	WARCRecordLen  int32          `parquet:"warc_record_length,optional"`
	schema.Form
	schema.Listing
}

// recordAfter returns the record of a URL after an outcome. prior is the record before the round, or
// zero if there is none. r is the record of decider.record: prior, updated with this round's links. rule
// says when the URL is due again.
func (c *Config) recordAfter(r schema.URLRecord, prior *schema.URLRecord, o *outcome, moved bool, rule recrawl.Rule) schema.URLRecord {
	r.State, r.Outcome, r.RedirectTo = schema.StateAfter(o.Outcome, o.HTTPStatus, moved), o.Outcome, ""
	if r.State == schema.StateRedirected {
		r.RedirectTo = o.RedirectTarget
		if moved {
			r.RedirectTo = o.FinalURL
		}
	}
	switch at := answered(o); r.State {
	case schema.StateFetched, schema.StateRedirected:
		r.Failures = 0
		c.fetched(&r, prior, o, at, rule)
		if brokenOff(o) && r.State == schema.StateFetched { // the rest of the page may come soon
			r.Failures = prior.Failures + 1
			if due := c.retryAt(&r, at); due < r.NextDue {
				r.NextDue, r.DueReason = due, schema.DueRetry
			}
		}
	case schema.StateFailed:
		r.Failures++
		r.NextDue, r.DueReason = c.retryAt(&r, at), schema.DueRetry
	case schema.StateDenied, schema.StateGone:
		r.Failures++
		r.NextDue, r.DueReason = 0, ""
	case schema.StateDeferred:
		r.NextDue, r.DueReason = 0, ""
	}
	return r
}

// retryAt returns when a URL is due after its last failure. The wait doubles with each failure in a row.
func (c *Config) retryAt(r *schema.URLRecord, at schema.Time) schema.Time {
	wait := c.RetryAfter
	for n := int32(1); n < r.Failures && wait < c.MaxInterval; n++ {
		wait *= 2
	}
	return at.Add(min(wait, c.MaxInterval))
}

// brokenOff reports whether the network cut the end of a document.
func brokenOff(o *outcome) bool {
	return o.Truncated == schema.TruncatedTime || o.Truncated == schema.TruncatedDisconnect
}

// answered returns the time of a request.
func answered(o *outcome) schema.Time { return cmp.Or(o.FetchedAt, o.RecordedAt) }

// fetched records whether the content has changed since the last fetch, and sets the next interval. If an
// announcement caused an early fetch and the content has not changed, the announcement was a false
// alarm.
func (c *Config) fetched(r, prior *schema.URLRecord, o *outcome, at schema.Time, rule recrawl.Rule) {
	learned := prior.LastFetched.Add(c.revisit(prior))
	// A URL that is due for a retry was not announced.
	announced := prior.State == schema.StateFetched && prior.DueReason != schema.DueRetry && prior.LastFetched > 0 && prior.NextDue > prior.LastFetched && prior.NextDue < learned
	compared, changed := compare(prior, o, r.State, r.Sent)
	switch {
	case changed:
		r.Changes++
		r.FalseAlarms = 0
	case compared && announced:
		r.FalseAlarms++
	}
	h, least := c.history(prior), c.revisit(prior)
	if prior.LastFetched == 0 {
		least = 0
	}
	if compared {
		h = recrawl.Observe(h, at.Sub(prior.LastFetched).Milliseconds(), changed)
	}
	switch {
	case changed:
		least = 0
	case compared && (!announced || at >= learned):
		least = recrawl.Steady(h, least)
	}
	r.ChangeHistory = h
	wait, reason := rule.Interval(h, least)
	r.DueReason = reason
	r.Fetches++
	r.LastFetched = at
	wait = min(max(wait, c.MinInterval), c.MaxInterval).Truncate(time.Millisecond)
	r.RevisitMS, r.NextDue = wait.Milliseconds(), at.Add(wait)
	if o.ContentDigest != "" && r.State == schema.StateFetched {
		r.ContentDigest = o.ContentDigest
	}
	if r.State == schema.StateFetched {
		recordContent(r, prior, o)
	}
}

// compare reports whether a request that left a URL in the given state could be compared with the fetch
// before, and whether it found another content. sent is the URL as it was sent. If the content before came from another
// form, only equal contents say something: servers may answer two forms differently.
func compare(prior *schema.URLRecord, o *outcome, state schema.URLState, sent string) (compared, changed bool) {
	compared = prior.Fetches > 0 && prior.ContentDigest != "" && state == schema.StateFetched && !brokenOff(o)
	changed = compared && o.Outcome == schema.OK && o.ContentDigest != prior.ContentDigest
	other := sent != prior.Sent
	switch prior.SentFrom {
	case schema.SentBySource, schema.SentByDomain, schema.SentByStranger: // it replaced the form that gave the content
		other = true
	}
	if changed && other {
		return false, false
	}
	return compared, changed
}

// history returns the history of a URL's changes. A URL whose fetches could not be compared, such as one
// that redirects, has none. The learned interval then stands for all intervals between its fetches.
func (c *Config) history(r *schema.URLRecord) schema.ChangeHistory {
	if r.ChangeHistory == (schema.ChangeHistory{}) {
		return recrawl.Assume(r.Fetches, r.Changes, c.revisit(r).Milliseconds())
	}
	return r.ChangeHistory
}

func (c *Config) rule() recrawl.Rule {
	return recrawl.Rule{First: c.Interval, Min: c.MinInterval, Max: c.MaxInterval}
}

// revisit returns the learned interval between two fetches of a URL, or Interval if the URL was not
// fetched.
func (c *Config) revisit(r *schema.URLRecord) time.Duration {
	if r.RevisitMS > 0 {
		return time.Duration(r.RevisitMS) * time.Millisecond
	}
	return c.Interval
}

// announced updates r for a change at the time lastmod that a sitemap or feed of the host states. If
// lastmod is after the last fetch, the URL becomes due at lastmod, but at least MinInterval after the
// last fetch. This minimum doubles with each false alarm since the last change, because many sitemaps
// always state the current time. The learned interval stays. announced reports whether the URL is due
// earlier than before.
func (c *Config) announced(r *schema.URLRecord, lastmod schema.Time) bool {
	if r.State != schema.StateFetched || r.LastFetched == 0 || lastmod <= r.LastFetched {
		return false
	}
	wait := c.MinInterval
	for n := int32(0); n < r.FalseAlarms && wait < c.MaxInterval; n++ {
		wait *= 2
	}
	due := max(lastmod, r.LastFetched.Add(wait))
	if due >= r.NextDue {
		return false
	}
	r.NextDue, r.DueReason = due, schema.DueAnnounced
	return true
}

// recordContent records where the content is stored, and its ETag and Last-Modified for the next
// conditional request. A 304 to that request means that the stored content is still current.
func recordContent(r, prior *schema.URLRecord, o *outcome) {
	switch {
	case o.Outcome == schema.NotModified:
		// The headers of a 304 replace the stored headers (RFC 9111, 3.2).
		r.ETag, r.LastModified = cmp.Or(o.ETag, r.ETag), cmp.Or(o.LastModified, r.LastModified)
	case brokenOff(o):
		// The next fetch is unconditional, because the stored content is incomplete.
		r.ETag, r.LastModified = "", ""
		r.ContentAt, r.WARCFilename, r.WARCRecordOff, r.WARCRecordLen = 0, "", 0, 0
	case o.Truncated == schema.TruncatedUnspecified:
		// A page with noarchive has no stored content.
		r.ETag, r.LastModified = o.ETag, o.LastModified
		r.ContentAt, r.WARCFilename, r.WARCRecordOff, r.WARCRecordLen = 0, "", 0, 0
	case o.Revisit == "":
		r.ETag, r.LastModified = o.ETag, o.LastModified
		r.ContentAt, r.WARCFilename, r.WARCRecordOff, r.WARCRecordLen = o.FetchedAt, o.WARCFilename, o.WARCRecordOff, o.WARCRecordLen
	default:
		r.ETag, r.LastModified = o.ETag, o.LastModified
		if o.ContentDigest != prior.ContentDigest {
			// The content is stored only under another URL. The next fetch stores it under this URL, too.
			r.ContentAt, r.WARCFilename, r.WARCRecordOff, r.WARCRecordLen = 0, "", 0, 0
		}
	}
}
