package usage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
)

// Annotations of a flag --month that need not be given. takesSealed limits the choice to crawls with a
// finished round. changes holds the names of the flags with which the command changes something, so that
// it needs --month.
const (
	takes       = "takes"
	takesNewest = "newest"
	takesSealed = "sealed"
	changes     = "changes"
)

// MonthFlag defines --month. help says what the crawl is for.
func MonthFlag(cmd *cobra.Command, month *string, help string) {
	cmd.Flags().StringVar(month, "month", "", help+", such as 2026-11")
}

// NewestMonthFlag defines --month for a command that only reads: without the flag, the command reads
// the newest crawl. With a flag that changing names, the command changes something and needs --month.
func NewestMonthFlag(cmd *cobra.Command, month *string, help string, changing ...string) {
	MonthFlag(cmd, month, help+", the newest if it is not given")
	annotate(cmd, takesNewest, changing)
}

// NewestSealedMonthFlag is NewestMonthFlag for a command that reads finished rounds: it takes the newest
// crawl that has one.
func NewestSealedMonthFlag(cmd *cobra.Command, month *string, help string, changing ...string) {
	MonthFlag(cmd, month, help+", the newest with a finished round if it is not given")
	annotate(cmd, takesSealed, changing)
}

func annotate(cmd *cobra.Command, taken string, changing []string) {
	flags := cmd.Flags()
	_ = flags.SetAnnotation("month", takes, []string{taken}) // these calls fail only for an unknown flag
	_ = flags.SetAnnotation("month", changes, changing)
}

// FillMonth sets --month to the newest crawl if the user did not give the flag and cmd only reads, and
// writes to w which crawl it took. open opens the store.
func FillMonth(cmd *cobra.Command, w io.Writer, open func(context.Context) (store.Bucket, error)) error {
	f := cmd.Flags().Lookup("month")
	if f == nil || f.Changed || f.Annotations[takes] == nil || slices.ContainsFunc(f.Annotations[changes], cmd.Flags().Changed) {
		return nil
	}
	b, err := open(cmd.Context())
	if err != nil {
		return err
	}
	crawl, all, err := newest(cmd.Context(), b, f)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return &ledger.NoCrawl{Bucket: b}
	}
	every := cmd.Flags().Lookup("all-months")
	switch {
	case every != nil && every.Changed: // the command takes the others, too
	case len(all) == 1:
		fmt.Fprintf(w, "crawlbatch: took %s, the only crawl in %s\n", crawl, b)
	case crawl != all[0]:
		fmt.Fprintf(w, "crawlbatch: took %s, the newest of %d crawls in %s with a finished round: --month names another\n", crawl, len(all), b)
	default:
		fmt.Fprintf(w, "crawlbatch: took %s, the newest of %d crawls in %s: --month names another\n", crawl, len(all), b)
	}
	return f.Value.Set(crawl)
}

// newest returns the crawl that the flag --month stands for if it is not given, and all crawls.
func newest(ctx context.Context, b store.Bucket, f *pflag.Flag) (string, []string, error) {
	all, err := roundstate.NewestFirst(ctx, b)
	if err != nil || len(all) == 0 {
		return "", nil, err
	}
	if slices.Equal(f.Annotations[takes], []string{takesSealed}) {
		crawl, _, err := roundstate.NewestSealed(ctx, b, all)
		if crawl != "" && errors.Is(err, ledger.ErrLost) { // the command says what is lost, and verify reports it as a violation
			err = nil
		}
		return crawl, all, err
	}
	return all[0], all, nil
}

// CheckMonth checks the --month of a command that makes a crawl.
func CheckMonth(s string) error {
	if layout.IsReparse(s) {
		of, _ := layout.MonthOf(s)
		return Errorf("--month %s is the name of a reparse: give the month %s; to make a reparse, run `crawlbatch reparse --month %[2]s --as %[1]s`", s, of)
	}
	return CheckCrawl(s)
}

// errNoMonth is the error of a command that needs --month.
var errNoMonth = Errorf("--month is missing: name the crawl as YYYY-MM, such as --month 2026-11")

// NameCrawls adds the names of the store's crawls to an error about a missing --month, if the store
// answers in time. It returns other errors unchanged.
func NameCrawls(err error, open func(context.Context) (store.Bucket, error)) error {
	if !errors.Is(err, errNoMonth) {
		return err
	}
	if crawls := ask(nil, open, months); len(crawls) > 0 {
		return Errorf("--month is missing: name the crawl as YYYY-MM: crawls in this store, the newest first: %s", ledger.Names(crawls))
	}
	return err
}

// CheckCrawl checks the --month of a command that reads a crawl. The value is a month, or the name
// of a reparse of a month.
func CheckCrawl(s string) error {
	if s == "" {
		return errNoMonth
	}
	if layout.IsReparse(s) {
		return nil
	}
	if _, err := layout.ParseMonth(s); err != nil {
		return Errorf("--%v", err)
	}
	return nil
}
