package domains

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"slices"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/nat64"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/stages"
)

// fetchRow holds the columns of the fetches dataset that this package counts.
type fetchRow struct {
	Domain     string         `parquet:"domain"`
	Outcome    schema.Outcome `parquet:"outcome"`
	HTTPStatus int16          `parquet:"http_status,optional"`
	BlockedBy  string         `parquet:"blocked_by,optional"`
}

// pageRow holds the columns of merge's pages that count.
type pageRow struct {
	HostName      string          `parquet:"url_host_name"`
	PrivateDomain string          `parquet:"url_host_private_domain,optional"`
	Language      string          `parquet:"language,optional"`
	Indexable     bool            `parquet:"indexable"`
	PageHint      schema.PageHint `parquet:"page_hint,optional"`
	ContentBytes  int64           `parquet:"content_bytes"`
	Changed       *bool           `parquet:"changed,optional"`
}

// duplicateRow holds the columns of duplicates that count.
type duplicateRow struct {
	URL  string               `parquet:"url"`
	Kind schema.DuplicateKind `parquet:"kind"`
}

// requestRow holds the columns of requests that count.
type requestRow struct {
	Host          string `parquet:"host"`
	Address       string `parquet:"address,optional"`
	DelayMS       int64  `parquet:"delay_ms"`
	Status        int16  `parquet:"http_status,optional"`
	ErrorClass    string `parquet:"error_class,optional"`
	FirstByteUS   *int64 `parquet:"first_byte_us,optional"`
	TotalMS       int64  `parquet:"total_ms"`
	TotalUS       *int64 `parquet:"total_us,optional"`
	BytesReceived int64  `parquet:"bytes_received"`
}

// collect turns the rows of a bucket into facts, and passes its hosts on.
func collect(ctx context.Context, env *stages.Env, in *stages.Input, bucket int, to *table.Sorter[fact], hosts *table.Sorter[hostRow]) error {
	a := &adder{to: to, sums: map[figure]int64{}}
	for n, p := range in.Plan.Partitions {
		if p.Bucket != bucket {
			continue
		}
		a.partition = int32(n)
		keys := func(dataset string) []string {
			return stages.Keys([]*manifest.Result{in.Results[stages.Merge][n]}, dataset)
		}
		if err := eachRow(ctx, env, a, keys(stages.FileFetches), a.fetch); err != nil {
			return fmt.Errorf("read fetches: %w", err)
		}
		if err := eachRow(ctx, env, a, keys(stages.FilePages), a.page); err != nil {
			return fmt.Errorf("read pages: %w", err)
		}
		of := requestsOf{adder: a}
		if err := eachRow(ctx, env, a, keys(stages.FileRequests), of.request); err != nil {
			return fmt.Errorf("read requests: %w", err)
		}
	}
	if err := eachRow(ctx, env, a, stages.PartKeys(in.Results[stages.Dedup], stages.FileDuplicates, bucket), a.duplicate); err != nil {
		return fmt.Errorf("read duplicates: %w", err)
	}
	if err := eachRow(ctx, env, a, stages.PartKeys(in.Results[stages.Rank], stages.FileHosts, bucket), func(h *hostRow) {
		if h.RobotsDigest != "" {
			a.begin(h.Domain)
			a.addText(robotsFiles, h.RobotsDigest)
		}
		a.err = cmp.Or(a.err, hosts.Add(h))
	}); err != nil {
		return fmt.Errorf("read hosts: %w", err)
	}
	return nil
}

func (a *adder) fetch(f *fetchRow) {
	a.begin(f.Domain)
	outcome := slices.Index(schema.Outcomes, f.Outcome)
	if outcome < 0 {
		a.err = cmp.Or(a.err, fmt.Errorf("unknown outcome %q: %w", f.Outcome, stages.ErrPermanent))
		return
	}
	a.add(outcomes, int32(outcome), 1)
	refused := f.HTTPStatus == http.StatusUnauthorized || f.HTTPStatus == http.StatusForbidden || f.HTTPStatus == http.StatusUnavailableForLegalReasons
	if f.Outcome == schema.Blocked {
		a.addText(blockers, f.BlockedBy)
	}
	a.addIf(refused && f.Outcome == schema.HTTP4xx, counts, forbidden)
}

func (a *adder) page(p *pageRow) {
	a.begin(cmp.Or(p.PrivateDomain, p.HostName))
	a.add(counts, pages, 1)
	a.addIf(p.Changed == nil, counts, newPages)
	a.addIf(p.Changed != nil && *p.Changed, counts, changedPages)
	a.addIf(p.Indexable, counts, indexablePages)
	a.addIf(p.PageHint == schema.HintBlocked, counts, challenges)
	a.add(counts, contentBytes, p.ContentBytes)
	if p.Language != "" {
		a.addText(languages, p.Language)
	}
}

func (a *adder) duplicate(d *duplicateRow) {
	if d.Kind == schema.DupRepresentative {
		return
	}
	k, err := urlkey.KeyOf(d.URL)
	if err != nil {
		a.err = cmp.Or(a.err, fmt.Errorf("duplicate %q: %w: %w", d.URL, err, stages.ErrPermanent))
		return
	}
	a.begin(k.Domain)
	a.addIf(d.Kind == schema.DupExact, counts, exactDuplicates)
	a.addIf(d.Kind == schema.DupNear, counts, nearDuplicates)
}

// requestsOf turns rows of requests into facts. It remembers what the last host and the last address
// gave, because neighbouring requests go to one host.
type requestsOf struct {
	*adder
	host, domain       string
	server             string // address and port of the last request
	address, inNetwork string
}

func (r *requestsOf) request(q *requestRow) {
	if q.Host != r.host {
		k, err := urlkey.KeyOf("http://" + q.Host + "/")
		if err != nil {
			r.err = cmp.Or(r.err, fmt.Errorf("request to host %q: %w: %w", q.Host, err, stages.ErrPermanent))
			return
		}
		r.host, r.domain = q.Host, k.Domain
	}
	r.begin(r.domain)
	r.add(requestCounts, requests, 1)
	r.addIf(q.ErrorClass != "" || q.Status == http.StatusTooManyRequests || q.Status >= 500, requestCounts, failedRequests)
	r.add(requestCounts, receivedBytes, q.BytesReceived)
	r.add(requestCounts, requestMS, q.TotalMS)
	r.add(delays, int32(min(q.DelayMS, maxDelay)), 1)
	if q.Status != 0 {
		if q.FirstByteUS != nil {
			r.add(firstBytes, binOf(*q.FirstByteUS), 1)
		}
		if q.TotalUS != nil {
			r.add(totals, binOf(*q.TotalUS), 1)
		}
	}
	if q.Address != r.server {
		r.server = q.Address
		r.address, r.inNetwork = placeOf(q.Address)
	}
	if r.address != "" {
		r.addText(addresses, r.address)
		r.addText(networks, r.inNetwork)
	}
}

// maxDelay is the longest delay that a fact can hold, milliseconds: 24 days.
const maxDelay = 1<<31 - 1

// placeOf returns the IP address of an address with port, and its network. Both are "" if the request
// got no connection.
func placeOf(server string) (address, network string) {
	s, err := netip.ParseAddrPort(server)
	if err != nil {
		return "", ""
	}
	at := s.Addr().Unmap().WithZone("")
	if v4, ok := nat64.Prefixes(nil).Embedded(at); ok {
		at = v4 // else all hosts that are reached through NAT64 would be in one network
	}
	bits := 48
	if at.Is4() {
		bits = 24
	}
	prefix, err := at.Prefix(bits)
	if err != nil {
		return "", ""
	}
	return at.String(), prefix.String()
}
