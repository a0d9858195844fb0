package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"crawlbatch.io/crawlbatch/formats/priority"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/takedown"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/formats/visible"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/jobs/lookup"
	"crawlbatch.io/crawlbatch/jobs/worker"
	"crawlbatch.io/crawlbatch/planner"
	"crawlbatch.io/crawlbatch/planner/scope"
	"crawlbatch.io/crawlbatch/planner/source"
)

// URLQuestion asks about a URL, which may be relative to Base.
type URLQuestion struct {
	URL  string `json:"url"`
	Base string `json:"base"`
}

// URLAnswer says what a crawl does with a URL. A field is empty if the URL lacks that part.
type URLAnswer struct {
	OK        bool   `json:"ok"` // whether the WHATWG URL parser accepts the URL
	WHATWG    string `json:"whatwg"`
	Canonical string `json:"canonical"`
	SURT      string `json:"surt"`
	Domain    string `json:"domain"`
	Host      string `json:"host"`
	Skip      string `json:"skip"` // why the URL would not be planned
	// Takedown says why nobody can tell whether the URL was taken down.
	Takedown string `json:"takedown,omitempty"`
	// Sent is the URL that a crawl sends if it is given or linked so, unless it is the canonical URL.
	Sent string `json:"sent,omitempty"`
	// Steps are the changes from the given URL to the canonical one, if rules of the config made any.
	Steps []urlkey.Step `json:"steps,omitempty"`

	Known *lookup.Found `json:"known,omitempty"` // what the crawl's store knows about the URL
	// Plain is the canonical URL without the config's rules, if the store knows it. The store may
	// know it from a redirect, to which rules do not apply, or from an earlier month with other rules.
	Plain      string        `json:"plain,omitempty"`
	KnownPlain *lookup.Found `json:"known_plain,omitempty"`
}

// URL answers questions about URLs.
type URL struct {
	canonical *urlkey.Canonicalizer
	plan      planner.Config
	crawl     *lookup.Crawl // crawl in which to look up URLs; nil if no store is read
	takedown  string        // why takedowns are unknown; "" if they are known, or if no store is read
}

// NewURL returns a URL whose answers follow cfg and the opt-out list, which may be nil. If crawl is
// not nil, the answers also contain what the crawl's store knows.
func NewURL(cfg *config.Config, optOut *scope.OptOut, crawl *lookup.Crawl) (*URL, error) {
	c, err := cfg.Plan.Canonicalizer()
	plan := worker.PlanConfig(cfg)
	plan.OptOut = optOut
	return &URL{canonical: c, plan: plan, crawl: crawl}, err
}

// ReadTakedowns makes the answers say which URLs were taken down in a store. Without the key of the store's list,
// the answers say that it is needed.
func (u *URL) ReadTakedowns(ctx context.Context, b store.Bucket, cfg *config.Config) (err error) {
	u.plan.Gone, err = worker.TakenDown(ctx, b, cfg, nil)
	if errors.Is(err, takedown.ErrKey) || errors.Is(err, ledger.ErrLost) {
		u.takedown, err = err.Error(), nil
	}
	return err
}

// Answer answers one question. The error is not nil only if the crawl's store cannot be read.
func (u *URL) Answer(ctx context.Context, q URLQuestion) (URLAnswer, error) {
	var a URLAnswer
	if href, err := urlkey.WHATWG(q.URL, q.Base); err == nil {
		a.OK, a.WHATWG = true, href
	}
	if steps, _ := u.canonical.Steps(q.URL, q.Base); slices.ContainsFunc(steps, func(s urlkey.Step) bool { return s.Rule != urlkey.Standard }) {
		a.Steps = steps
	}
	if key, sent, err := u.canonical.Sent(q.URL, q.Base); err == nil {
		a.Sent = sent
		a.Canonical, a.SURT, a.Domain, a.Host = key.URL, key.SURT, key.Domain, key.Host
		if u.crawl != nil {
			found, err := u.crawl.Find(ctx, key)
			if err != nil {
				return a, err
			}
			a.Known = &found
			if plain, err := u.canonical.Plain().Canonical(q.URL, q.Base); err == nil && plain.URL != key.URL {
				found, err := u.crawl.Find(ctx, plain)
				if err != nil {
					return a, err
				}
				if found != (lookup.Found{}) {
					a.Plain, a.KnownPlain = plain.URL, &found
				}
			}
		}
	}
	_, reason, detail, err := planner.Judge(u.plan, q.URL, q.Base)
	switch {
	case err != nil:
		a.Skip = err.Error()
	case reason != "" && detail != "":
		a.Skip = fmt.Sprintf("%s: %s", reason, detail)
	default:
		a.Skip = string(reason)
	}
	if a.Takedown = u.takedown; scope.TakenDown(u.plan.Gone, u.canonical, &source.Entry{URL: cmp.Or(a.WHATWG, q.URL)}, a.Canonical, err) {
		a.Skip = "taken_down: no crawl of the store plans or fetches it"
	}
	return a, nil
}

// Print writes the answer to a question about url as lines of text.
func (a *URLAnswer) Print(w io.Writer, url string) {
	fmt.Fprintf(w, "url        %s\nwhatwg     %s\n", visible.Text(url), dash(a.WHATWG))
	for _, s := range a.Steps {
		fmt.Fprintf(w, "step       %s: %s → %s\n", s.Rule, visible.Text(s.From), visible.Text(s.To))
	}
	fmt.Fprintf(w, "canonical  %s\nsurt       %s\ndomain     %s\nhost       %s\nskip       %s\n",
		dash(a.Canonical), dash(a.SURT), dash(a.Domain), dash(a.Host), dash(a.Skip))
	if a.Takedown != "" {
		fmt.Fprintf(w, "takedown   unknown: %s\n", visible.Text(a.Takedown))
	}
	if a.Sent != "" {
		fmt.Fprintf(w, "sent       %s\n", visible.Text(a.Sent))
	}
	if a.Known != nil {
		printKnown(w, a.Known)
	}
	if a.KnownPlain != nil {
		fmt.Fprintf(w, "\nplain      %s\n", visible.Text(a.Plain))
		printKnown(w, a.KnownPlain)
	}
}

// dash returns a text on one line, or a dash for none.
func dash(s string) string { return cmp.Or(visible.Text(s), "-") }

// printKnown writes what a crawl's store knows about a URL as lines of text.
func printKnown(w io.Writer, k *lookup.Found) {
	if k.State == nil && k.Skip == nil && k.Planned == nil {
		fmt.Fprintln(w, "known      no: neither a sealed round nor the newest plan has it")
		return
	}
	if s := k.State; s != nil {
		due := s.NextDue
		if s.DueReason != "" {
			due += " (" + string(s.DueReason) + ")"
		}
		fmt.Fprintf(w, "state      %s since round %s\noutcome    %s\nfirst seen %s\nnext due   %s\n",
			s.State, s.Round, dash(string(s.Outcome)), s.FirstSeen, due)
		if s.Sent != "" {
			fmt.Fprintf(w, "asked as   %s%s\n", visible.Text(s.Sent), givenBy[s.SentFrom])
		}
		printPriority(w, &s.Priority)
	}
	if s := k.Skip; s != nil {
		why := string(s.Reason)
		if s.Detail != "" {
			why += ": " + s.Detail
		}
		fmt.Fprintf(w, "skipped    %s in round %s\n", visible.Text(why), s.Round)
	}
	if p := k.Planned; p != nil {
		fmt.Fprintf(w, "planned    partition %d of round %s\n", p.Partition, p.Round)
	}
	switch { // the plan's listings include those of the earlier state
	case k.Planned != nil && k.Planned.First != nil:
		printListings(w, k.Planned.Listings)
	case k.State != nil:
		printListings(w, k.State.Listings)
	}
}

// givenBy says who gave the form in which a URL is asked for.
var givenBy = map[schema.SentFrom]string{
	schema.SentBySource: ", as a source has it", schema.SentAnswered: ", as it last answered", schema.SentByDomain: ", as its own domain links it",
	schema.SentByStranger: ", as another domain links it",
}

// printPriority writes a priority as the sum of its parts.
func printPriority(w io.Writer, p *lookup.Priority) {
	fmt.Fprintf(w, "priority   %d%s\n", p.Stored, sumOf(p.Parts))
	if p.Parts == nil {
		fmt.Fprintln(w, "           (the parts are unknown, because the round's working files are gone)")
	}
	if p.AtPlan == nil {
		fmt.Fprintln(w, "           not due: the frontier does not offer it now; a list plans it all the same, unless plan.skip_within refuses it")
	} else {
		fmt.Fprintf(w, "           %d%s in a plan that is made now\n", p.Next, sumOf(p.AtPlan))
	}
}

// sumOf writes parts as a sum, such as " = 500 base + 150 host_rank − 100 directory".
func sumOf(parts []priority.Part) string {
	var text strings.Builder
	for i, p := range parts {
		sign := " +"
		switch {
		case i == 0:
			sign = " ="
		case p.Points < 0:
			sign = " -"
		}
		fmt.Fprintf(&text, "%s %s %s", sign, strconv.FormatFloat(math.Abs(math.Round(p.Points*10)/10), 'f', -1, 64), p.Name)
	}
	return text.String()
}

// printListings writes which sources listed a URL.
func printListings(w io.Writer, l lookup.Listings) {
	if l.First == nil {
		fmt.Fprintln(w, "listed     -")
		return
	}
	fmt.Fprintf(w, "listed     first by %s at %s, in round %s\n", visible.Text(l.First.Source), l.First.At, l.First.Round)
	if *l.Last != *l.First {
		fmt.Fprintf(w, "           last by %s at %s, in round %s\n", visible.Text(l.Last.Source), l.Last.At, l.Last.Round)
	}
}
