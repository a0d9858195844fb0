package jobs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/stages"
)

// ErrMostFailed means that every task succeeded, but most URLs of a round failed (exit code 5).
var ErrMostFailed = errors.New("most URLs failed")

// reason is a reason for which most URLs of a round may fail.
type reason struct {
	outcomes []schema.Outcome
	means    string
	remedy   string
}

// reasons holds each outcome that is a failure once. Outcomes with the same remedy are one reason.
var reasons = []reason{
	{[]schema.Outcome{schema.AddressBlocked}, "crawlbatch connects to public addresses and usual ports only",
		"if you may crawl these private hosts, add --allow-private-networks (fetch.allow_private_networks)"},
	{[]schema.Outcome{schema.DNSError}, "the names of the hosts do not resolve", "check the names and the resolver, or name other resolvers in fetch.resolvers"},
	{[]schema.Outcome{schema.ConnectError, schema.Timeout}, "the hosts do not answer", "check the network, the firewall and fetch.proxy"},
	{[]schema.Outcome{schema.TLSError}, "there is no TLS session with the hosts", "check the clock, and whether a proxy or firewall answers in place of the hosts"},
	{[]schema.Outcome{schema.ProtocolError}, "the answers are not HTTP", "check the schemes and ports of the URLs, and fetch.proxy"},
	{[]schema.Outcome{schema.HTTP4xx}, "the hosts refuse the requests", "check that the list is right, and whether the hosts want a login or refuse the user agent or this machine's address"},
	{[]schema.Outcome{schema.HTTP5xx}, "the hosts answer with errors of their own", "try again later, or at a lower pace (politeness.delay)"},
	{[]schema.Outcome{schema.RateLimited}, "the hosts ask for fewer requests", "raise politeness.delay, or ask the owners of the hosts"},
	{[]schema.Outcome{schema.Blocked}, "services in front of the hosts take crawlbatch for an unwanted robot", "ask the owners of the hosts to allow the user agent (the column blocked_by of fetches names the services)"},
	{[]schema.Outcome{schema.PaymentRequired}, "the hosts want to be paid", "see the column price of fetches, and plan other URLs"},
	{[]schema.Outcome{schema.RobotsUnreachable}, "the robots.txt of the hosts cannot be fetched, so nothing else was requested", "try one of the URLs with `crawlbatch fetch URL`, and check the network and fetch.proxy"},
	{[]schema.Outcome{schema.HostSuspended}, "most requests to the hosts failed, so they got no more", "try one of the URLs with `crawlbatch fetch URL`, and check the network"},
	{[]schema.Outcome{schema.RedirectLimit}, "the redirects of the URLs do not end", "check whether the hosts want a login, and fetch.max_redirects"},
	{[]schema.Outcome{schema.InternalError}, "crawlbatch itself has a fault", "report it with this line"},
}

var (
	// silence is the reason if no host answered anything, whatever the outcomes are: URLs with a later try are deferred.
	silence = reason{nil, "nothing answered", "check the network, the firewall, the resolver (fetch.resolvers) and fetch.proxy"}
	// denial is no failure, because crawlbatch obeys. People want to know all the same.
	denial = reason{[]schema.Outcome{schema.RobotsDenied}, "robots.txt forbids them", "plan other URLs, or ask the owners of the hosts to allow the user agent"}
)

// judgement says of a round why most of its URLs failed.
type judgement struct {
	round       *manifest.Sealed
	why         *reason
	n           int64 // URLs that failed for the reason
	failed, all int64 // URLs that failed, and all URLs of the round
}

// judge looks for a round in which more URLs failed than half of the URLs of the crawl's largest round so far, and
// most of them for one reason. A small follow-up round thus counts for nothing, whatever becomes of its URLs.
type judge struct {
	largest int64 // number of URLs of the largest round so far
	// found is about the newest such round that this command sealed. If there is none, found is about the newest
	// round before that is more than half as large as the largest: another call of the same command says the same,
	// and a later round that went well ends it.
	found *judgement
	own   bool // whether this command sealed the round of found
}

// add judges the next round. own reports whether this command sealed it.
func (j *judge) add(s *manifest.Sealed, own bool) {
	all := countOf(s.Counts, "plan.urls")
	j.largest = max(j.largest, all)
	if 2*all <= j.largest || layout.IsReparse(s.Crawl) {
		return
	}
	if found := judgeRound(s, all, j.largest); found != nil || !j.own {
		j.found, j.own = found, own && found != nil
	}
}

// judgeRound returns nil if at most half of largest URLs failed, or not most of them for one reason.
func judgeRound(s *manifest.Sealed, all, largest int64) *judgement {
	sum := func(outcomes ...schema.Outcome) (n int64) {
		for _, o := range outcomes {
			n += outcomeCount(s, o)
		}
		return n
	}
	out := &judgement{round: s, all: all}
	for i := range reasons {
		n := sum(reasons[i].outcomes...)
		out.failed += n
		if n > out.n {
			out.why, out.n = &reasons[i], n
		}
	}
	silent := countOf(s.Counts, "merge.requests") > 0 && countOf(s.Counts, "merge.captures") == 0
	if silent {
		out.failed += sum(schema.Deferred)
	}
	denied := sum(denial.outcomes...)
	switch {
	case 2*denied > largest:
		out.why, out.n, out.failed = &denial, denied, denied
	case 2*out.failed <= largest:
		return nil
	case 2*out.n > out.failed:
	case silent:
		out.why, out.n = &silence, out.failed
	default:
		return nil
	}
	return out
}

// outcomeCount returns the number of URLs of a round with an outcome.
func outcomeCount(s *manifest.Sealed, o schema.Outcome) int64 {
	return countOf(s.Counts, "merge.outcome."+string(o))
}

// MostFailed returns an error that wraps ErrMostFailed and says why most URLs of a round of the last Run failed, or nil. If
// robots.txt forbids most URLs, MostFailed only warns.
func (d *Driver) MostFailed(ctx context.Context) error {
	j := d.judge.found
	if j == nil {
		return nil
	}
	s := j.round
	which := fmt.Sprintf("round %d of %s: %d of %d URLs", s.Round, s.Crawl, j.failed, j.all)
	if j.why == &denial {
		d.Log.Warn(fmt.Sprintf("%s were not requested: %s: %s", which, j.why.means, j.why.remedy))
		return nil
	}
	which += " failed"
	var with []string
	for _, o := range j.why.outcomes {
		if outcomeCount(s, o) > 0 {
			with = append(with, string(o))
		}
	}
	if len(with) > 0 {
		which += fmt.Sprintf(", %d of them with %s", j.n, strings.Join(with, " or "))
	}
	if text := d.commonestError(ctx, j); text != "" {
		which += fmt.Sprintf(" (%s)", text)
	}
	return &failure{fmt.Sprintf("%s: %s: %s, then plan the URLs again; `crawlbatch report --month %s%s` shows every failure",
		which, j.why.means, j.why.remedy, s.Crawl, d.Flags), []error{ErrMostFailed}}
}

// mostRead is the number of rows in which commonestError looks.
const mostRead = 10_000

// commonestError returns the commonest error, or else HTTP status, of the URLs that failed for the reason of j. Only
// the round's first rows count. The result is "" if they are unreadable: `verify` reports the loss.
func (d *Driver) commonestError(ctx context.Context, j *judgement) (most string) {
	ofFetches := roundstate.Selection{Dataset: func(name string) bool { return name == stages.FileFetches }}
	sealed, err := roundstate.WithFiles(ctx, d.Bucket, []*manifest.Sealed{j.round}, ofFetches)
	if err != nil {
		return ""
	}
	var keys []string
	for _, f := range sealed[0].FilesOf(stages.FileFetches) {
		keys = append(keys, f.Key)
	}
	type row struct {
		Outcome schema.Outcome `parquet:"outcome"`
		Status  int16          `parquet:"http_status,optional"`
		Error   string         `parquet:"error,optional"`
	}
	seen, rows := map[string]int{}, 0
	for r, err := range table.Concat[row](ctx, d.Bucket, keys) {
		if rows++; err != nil || rows > mostRead {
			break
		}
		if len(j.why.outcomes) > 0 && !slices.Contains(j.why.outcomes, r.Outcome) {
			continue
		}
		text := strings.Clone(r.Error)
		if text == "" && r.Status > 0 {
			text = fmt.Sprintf("HTTP %d", r.Status)
		}
		if seen[text]++; text != "" && seen[text] > seen[most] {
			most = text
		}
	}
	return most
}
