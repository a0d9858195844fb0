// Package control holds the commands that tell a running crawl what to do: host, which answers the
// owner of a host and stops the host, and pause and continue. Each command appends an entry to the
// crawl's ledger, which every process of the crawl reads, on any machine.
package control

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/user"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"crawlbatch.io/crawlbatch/cmd/usage"
	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/jobs/worker"
)

// Open opens crawls as the flags of the command line say.
type Open struct {
	// Read opens a crawl to read it.
	Read func(ctx context.Context, crawl string) (store.Bucket, *config.Config, error)
	// Write opens a crawl to change its ledger.
	Write func(ctx context.Context, crawl string) (store.Bucket, *config.Config, error)
	// Flags returns the flags, except --month, of commands for the same store.
	Flags func() string
	// Ledgers returns a writer of ledgers.
	Ledgers func() ledger.Writer
}

// Commands returns the commands host, pause and continue.
func Commands(open Open) []*cobra.Command {
	return []*cobra.Command{newHost(open), newPause(open), newContinue(open)}
}

func newPause(open Open) *cobra.Command {
	var month, reason string
	cmd := &cobra.Command{
		Use:   "pause --month YYYY-MM",
		Short: "Send no more requests until continue, on all machines",
		Long: `Pause stops the requests of a crawl. Fetch tasks, on any machine, begin no request after 10
seconds. They save their outcomes, release their partitions and wait; stages that send no
requests run on. The pause may last for days: the fetch window does not advance, and nothing
expires. A run that is started meanwhile waits, too. The store records who paused the crawl,
when and why. A second pause changes nothing.`,
		Example:    `  crawlbatch pause --month 2026-11 --reason "the proxy is being replaced"`,
		Args:       usage.NoArgs,
		SuggestFor: []string{"stop", "halt"},
		RunE: func(cmd *cobra.Command, _ []string) error {
			reason, err := reasonOf("reason", reason)
			if err != nil {
				return err
			}
			return open.turn(cmd.Context(), cmd.OutOrStdout(), month, func(w ledger.Writer, b store.Bucket) (*ledger.Ledger, bool, error) {
				return w.Pause(cmd.Context(), b, month, operator(), reason)
			})
		},
	}
	usage.MonthFlag(cmd, &month, "crawl to pause")
	cmd.Flags().StringVar(&reason, "reason", "", "reason for the pause, which status and run show")
	return cmd
}

func newContinue(open Open) *cobra.Command {
	var month string
	cmd := &cobra.Command{
		Use:   "continue --month YYYY-MM",
		Short: "End a pause",
		Long: `Continue ends a pause. Fetch tasks that wait go on within 10 seconds, from their saved outcomes.
If no run and no Job of the crawl is left, start run again.`,
		Example:    "  crawlbatch continue --month 2026-11",
		Args:       usage.NoArgs,
		SuggestFor: []string{"resume", "unpause"},
		RunE: func(cmd *cobra.Command, _ []string) error {
			return open.turn(cmd.Context(), cmd.OutOrStdout(), month, func(w ledger.Writer, b store.Bucket) (*ledger.Ledger, bool, error) {
				return w.Continue(cmd.Context(), b, month, operator())
			})
		},
	}
	usage.MonthFlag(cmd, &month, "crawl to continue")
	return cmd
}

// turn pauses or continues a crawl, and prints whether the crawl is paused now.
func (open Open) turn(ctx context.Context, out io.Writer, month string, do func(ledger.Writer, store.Bucket) (*ledger.Ledger, bool, error)) error {
	if layout.IsReparse(month) {
		return usage.Errorf("%s is a reparse, which sends no requests", month)
	}
	b, _, err := open.Write(ctx, month)
	if err != nil {
		return err
	}
	l, changed, err := do(open.Ledgers(), b)
	if err != nil {
		return err
	}
	paused := l.Paused(open.Flags())
	switch {
	case paused == nil && changed:
		_, err = fmt.Fprintf(out, "%s continues: waiting fetch tasks go on within %s. If none is left, start `crawlbatch run --month %[1]s%[3]s` again.\n", month, worker.ControlEvery, open.Flags())
	case paused == nil:
		_, err = fmt.Fprintf(out, "%s is not paused.\n", month)
	case changed && underWay(l):
		_, err = fmt.Fprintf(out, "%s is %s\nFetch tasks begin no request after %s, save their outcomes and wait.\n", month, paused, worker.ControlEvery)
	case changed:
		_, err = fmt.Fprintf(out, "%s is %s\nAll its rounds are finished, so nothing runs now. A later round will send no requests until then.\n", month, paused)
	default:
		_, err = fmt.Fprintf(out, "Nothing to do: %s is %s\n", month, paused)
	}
	return err
}

// underWay reports whether a round of the crawl is not sealed.
func underWay(l *ledger.Ledger) bool {
	for round := range l.Rounds() {
		if l.Newest(manifest.EntrySealed, round) == nil {
			return true
		}
	}
	return l.Rounds() == 0
}

// mostReason is the largest length of a reason, in bytes, because each row of the host repeats it.
const mostReason = 500

// reasonOf checks a reason that a person gave.
func reasonOf(flag, reason string) (string, error) {
	reason = strings.TrimSpace(reason)
	if len(reason) > mostReason {
		return "", usage.Errorf("--%s: the reason has %d bytes, but at most %d are allowed", flag, len(reason), mostReason)
	}
	if strings.ContainsFunc(reason, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return "", usage.Errorf("--%s: the reason must be one line of printable characters", flag)
	}
	return reason, nil
}

// operator returns the user and the machine of this process, such as ana@laptop.
func operator() string {
	name := os.Getenv("SUDO_USER")
	if who, err := user.Current(); name == "" && err == nil {
		name = who.Username
	}
	machine, _ := os.Hostname() // without a name, the user alone tells who it was
	return strings.TrimSuffix(cmp.Or(name, fmt.Sprintf("uid %d", os.Getuid()))+"@"+machine, "@")
}
