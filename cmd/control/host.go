package control

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"crawlbatch.io/crawlbatch/cmd/usage"
	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/jobs/owner"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/jobs/scratch"
	"crawlbatch.io/crawlbatch/jobs/worker"
)

type hostOptions struct {
	Open
	month, output string
	domain, all   bool
	last          int
	stop          string
	stops, resume bool // --stop or --resume is given
}

func newHost(open Open) *cobra.Command {
	o := hostOptions{Open: open}
	cmd := &cobra.Command{
		Use:   "host HOST [--month YYYY-MM]",
		Short: "Answer a site owner: what did the crawl do to this host; stop it",
		Long: `Host lists each request of a crawl to a host, with its time, URL, purpose, status, the rule
of robots.txt that allowed it, the delay in force and the gap since the request before. It
also lists, by reason, the planned URLs and redirect targets that got no request; a reason is,
for example, the rule that denied them. It adds a summary, what is stored, what prune deleted,
and a text to reply with.

HOST may be spelled in any way, also as a URL; a port other than 80 and 443 makes another
host. With --domain, it stands for all hosts of its registered domain.

The text shows the last requests; -o csv writes all of them, to send, and -o json adds the
summary. In an unfinished round, requests since the last checkpoint are missing. If the crawl
does not know the host, host names similar ones and exits 2. Without --month, host asks the
newest crawl of the store; with --all-months, every month.

A last row of -o csv for each killed attempt and each pruned month says that requests may be
missing.

With --stop "REASON", the crawl sends no more requests to HOST. Running tasks, on any machine,
follow within 10 seconds. The URLs of the host that have no outcome yet end as stopped, with the
reason, and later rounds of the crawl do not plan them. A host that the crawl does not know is
stopped, too, with a note. --resume ends such a stop: the next round plans the URLs again. The
store records who stopped and resumed what, when and why.`,
		Example: `  crawlbatch host example.org --month 2026-11
  crawlbatch host example.org --all-months -o csv > requests.csv
  crawlbatch host https://www.example.org/about --month 2026-11 -o csv > requests.csv
  crawlbatch host example.org --domain --month 2026-11 -o json
  crawlbatch host example.org --domain --month 2026-11 --stop "asked by the owner, ticket 17"`,
		SuggestFor: []string{"stop", "resume", "owner"},
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage.Errorf("give one host, or a URL of it, such as `crawlbatch host example.org`; %d were given", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.stops = cmd.Flags().Changed("stop")
			if o.all && (cmd.Flags().Changed("month") || o.stops || o.resume) {
				return usage.Errorf("--all-months cannot be combined with --month, --stop and --resume: a host is stopped in one crawl, and plan.opt_out keeps later ones away")
			}
			if o.stops || o.resume {
				return runStop(cmd.Context(), o, cmd.OutOrStdout(), args[0])
			}
			return runHost(cmd.Context(), o, cmd.OutOrStdout(), args[0])
		},
	}
	usage.NewestMonthFlag(cmd, &o.month, "crawl that sent the requests", "stop", "resume")
	usage.OutputFlag(cmd, &o.output, "text", "csv", "json")
	cmd.Flags().BoolVar(&o.domain, "domain", false, "all hosts of the registered domain of HOST")
	cmd.Flags().BoolVar(&o.all, "all-months", false, "requests of every month of the store")
	cmd.Flags().IntVar(&o.last, "last", 20, "number of requests that the text shows, up to 100000")
	cmd.Flags().StringVar(&o.stop, "stop", "", "send no more requests to HOST, for this reason")
	cmd.Flags().BoolVar(&o.resume, "resume", false, "end an earlier --stop of HOST")
	return cmd
}

func runHost(ctx context.Context, o hostOptions, out io.Writer, host string) error {
	if err := usage.OneOf("output", o.output, "text", "csv", "json"); err != nil {
		return err
	}
	if o.last < 0 || o.last > 100_000 {
		return usage.Errorf("--last %d: it must be 0 to 100000", o.last)
	}
	target, err := owner.Parse(host, o.domain)
	if err != nil {
		return usage.Error(err)
	}
	b, cfg, err := o.Read(ctx, o.month)
	if err != nil {
		return err
	}
	var earlier []string
	if o.all {
		if earlier, err = earlierMonths(ctx, b, o.month); err != nil {
			return err
		}
	}
	dir, remove, err := scratch.New()
	if err != nil {
		return err
	}
	defer remove()
	q := owner.Question{Bucket: b, Crawl: o.month, Earlier: earlier, Config: cfg, Target: target, Scratch: dir}
	switch o.output {
	case "csv":
		err = q.CSV(ctx, out)
	case "json":
		err = q.JSON(ctx, out)
	default:
		err = q.Text(ctx, out, o.last, o.command(host, o.all), o.command(host, false))
	}
	if !errors.Is(err, owner.ErrUnknown) {
		return err
	}
	if !o.all {
		months, more := earlierMonths(ctx, b, o.month)
		if len(months) > 0 {
			err = fmt.Errorf("%w. Earlier months may: `%s`", err, o.command(host, true))
		}
		err = errors.Join(err, more)
	}
	return usage.Error(err)
}

// earlierMonths returns the months of the store before a crawl, oldest first. Of pruned ones only the head knows.
// Reparses send no requests.
func earlierMonths(ctx context.Context, b store.Bucket, crawl string) ([]string, error) {
	months, err := roundstate.Crawls(ctx, b)
	if err != nil {
		return nil, err
	}
	head, _, err := ledger.LoadHead(ctx, b, crawl)
	if err != nil {
		return nil, err
	}
	if head != nil {
		for _, c := range head.Crawls {
			months = append(months, c.Crawl)
		}
	}
	slices.Sort(months)
	return slices.DeleteFunc(slices.Compact(months), func(c string) bool { return layout.IsReparse(c) || c >= crawl }), nil
}

// command returns the command line about a host in one month or all, without the flags of its output.
func (o *hostOptions) command(host string, all bool) string {
	month := " --month " + o.month
	if all {
		month = " --all-months"
	}
	command := "crawlbatch host " + usage.Quote(host) + month + o.Flags()
	if o.domain {
		command += " --domain"
	}
	return command
}

// stopDocument is what --stop and --resume write with -o json.
type stopDocument struct {
	Stopped *ledger.Stop `json:"stopped,omitempty"`      // the stop in force
	Changed bool         `json:"changed"`                // false: this stop was in force already
	Unknown bool         `json:"unknown_host,omitempty"` // true: no round planned or requested a URL of the host
	Resumed *ledger.Stop `json:"resumed,omitempty"`      // the stop that was ended
}

// runStop stops a host, or ends a stop.
func runStop(ctx context.Context, o hostOptions, out io.Writer, host string) error {
	if o.stops && o.resume {
		return usage.Errorf("--stop and --resume cannot be combined")
	}
	if err := usage.OneOf("output", o.output, "text", "json"); err != nil { // -o csv is only for lists of requests
		return err
	}
	target, err := owner.Parse(host, o.domain)
	if err != nil {
		return usage.Error(err)
	}
	reason, err := reasonOf("stop", o.stop)
	if err != nil {
		return err
	}
	if o.stops && reason == "" {
		return usage.Errorf("--stop: give the reason, such as --stop \"asked by the owner, ticket 17\"; the site's rows and the answer to its owner repeat it")
	}
	if layout.IsReparse(o.month) {
		return usage.Errorf("%s is a reparse, which sends no requests", o.month)
	}
	b, cfg, err := o.Write(ctx, o.month)
	if err != nil {
		return err
	}
	s := ledger.Stop{Host: target.Host, Reason: reason, By: operator()}
	if o.domain {
		s.Domain = target.Domain
	}
	if o.resume {
		return o.endStop(ctx, b, out, target, s)
	}
	now, changed, err := o.Ledgers().Stop(ctx, b, o.month, s)
	if err != nil {
		return err
	}
	q := owner.Question{Bucket: b, Crawl: o.month, Config: cfg, Target: target}
	unknown := q.Known(ctx)
	if !errors.Is(unknown, owner.ErrUnknown) { // any other error does not matter here, because the stop is in force
		unknown = nil
	}
	if o.output == "json" {
		return usage.WriteJSON(out, stopDocument{Stopped: &now, Changed: changed, Unknown: unknown != nil})
	}
	return o.stopped(ctx, b, out, host, &now, changed, unknown)
}

// endStop ends a stop of a host or domain.
func (o *hostOptions) endStop(ctx context.Context, b store.Bucket, out io.Writer, target owner.Target, s ledger.Stop) error {
	was, err := o.Ledgers().Resume(ctx, b, o.month, s.Host, s.Domain, s.By)
	switch {
	case err != nil:
		return err
	case was == nil && !o.domain && o.domainStopped(ctx, b, target):
		return usage.Errorf("%s is stopped with its domain: `crawlbatch host %s --month %s%s --domain --resume` ends that stop", target, target.Domain, o.month, o.Flags())
	case was == nil:
		return usage.Errorf("%s is not stopped: `crawlbatch status --month %s%s` lists what is", target, o.month, o.Flags())
	}
	if o.output == "json" {
		return usage.WriteJSON(out, stopDocument{Resumed: was, Changed: true})
	}
	return o.resumed(ctx, b, out, target, was)
}

// stopped writes what follows from a stop of a host. unknown is why the crawl does not know the host, or nil.
func (o *hostOptions) stopped(ctx context.Context, b store.Bucket, out io.Writer, host string, now *ledger.Stop, changed bool, unknown error) error {
	var text strings.Builder
	if unknown != nil { // the name may be mistyped
		fmt.Fprintf(&text, "Check the name: %v.\nThe stop is in force all the same.\n", unknown)
	}
	if newest, err := roundstate.NewestFirst(ctx, b); err == nil && len(newest) > 0 && o.month < newest[0] {
		fmt.Fprintf(&text, "This stops requests of %s only. The newest crawl of the store is %s: give --month %[2]s to stop its requests.\n", o.month, newest[0])
	}
	if !changed {
		text.WriteString("Nothing to do, the stop is in force already.\n")
	}
	fmt.Fprintf(&text, "%s\n", now)
	fmt.Fprintf(&text, "Running tasks of %s follow within %s, on every machine. Requests under way end on their own. Later rounds of %[1]s plan no URL there.\n", o.month, worker.ControlEvery)
	if !o.domain {
		fmt.Fprintf(&text, "Other hosts of %s are still crawled: --domain stops all.\n", domainOf(now.Host))
	}
	fmt.Fprintf(&text, "To undo it:                  %s --resume\n", o.command(host, false))
	if unknown == nil { // there is nothing to tell the owner of a host that the crawl does not know
		fmt.Fprintf(&text, "A text for the owner:        %s\n", o.command(host, false))
	}
	text.WriteString("To keep later months away:   add the host to the list of plan.opt_out\n")
	_, err := io.WriteString(out, text.String())
	return err
}

// resumed writes what follows from the end of a stop. A stop of the host's domain may remain.
func (o *hostOptions) resumed(ctx context.Context, b store.Bucket, out io.Writer, target owner.Target, was *ledger.Stop) error {
	l, err := ledger.Load(ctx, b, o.month)
	if err != nil {
		return err
	}
	var text strings.Builder
	is := "is"
	if o.domain {
		is = "are"
	}
	fmt.Fprintf(&text, "%s %s resumed in %s. The stop was in force since %s, by %s: %s\n", target, is, o.month, ledger.Moment(was.Since), was.By, was.Reason)
	stays := false
	for _, s := range l.StopsInForce() {
		switch {
		case s.Domain == target.Domain && s.Host == "":
			stays = true
			fmt.Fprintf(&text, "It still gets no requests, because another stop is in force:\n%s\nTo end that stop:  crawlbatch host %s --month %s%s --domain --resume\n", &s, s.Domain, o.month, o.Flags())
		case o.domain && s.Host != "" && domainOf(s.Host) == target.Domain:
			fmt.Fprintf(&text, "A host stays stopped: %s\n", &s)
		}
	}
	if !stays {
		fmt.Fprintf(&text, "The next round plans its URLs again, and running tasks may request those that they still hold within %s.\n", worker.ControlEvery)
	}
	_, err = io.WriteString(out, text.String())
	return err
}

// domainStopped reports whether a stop of the target's domain is in force.
func (o *hostOptions) domainStopped(ctx context.Context, b store.Bucket, target owner.Target) bool {
	l, err := ledger.Load(ctx, b, o.month)
	return err == nil && slices.ContainsFunc(l.StopsInForce(), func(s ledger.Stop) bool { return s.Domain == target.Domain && s.Host == "" })
}

// domainOf returns the registered domain of a host that the ledger names.
func domainOf(host string) string {
	t, err := owner.Parse(host, false)
	if err != nil {
		return ""
	}
	return t.Domain
}
