package usage

import (
	"context"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
)

// patience limits how long a shell waits for values from the store.
const patience = 2 * time.Second

// CompleteFromStore lets shells complete --month, --round and --partition of all commands below
// root with the values in the store. If the store does not answer within two seconds, a shell
// completes nothing.
func CompleteFromStore(root *cobra.Command, open func(context.Context) (store.Bucket, error)) {
	for _, cmd := range root.Commands() {
		CompleteFromStore(cmd, open)
	}
	for flag, values := range map[string]func(context.Context, store.Bucket, *cobra.Command) []string{
		"month": months, "round": rounds, "partition": partitions,
	} {
		if root.LocalFlags().Lookup(flag) == nil {
			continue
		}
		// RegisterFlagCompletionFunc fails only for an unknown flag.
		_ = root.RegisterFlagCompletionFunc(flag, func(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return ask(cmd, open, values), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
		})
	}
}

// ask returns values from the store, or nil if the store does not answer in time. A directory on a file
// system that hangs does not obey a context, so ask does not wait for the answer.
func ask(cmd *cobra.Command, open func(context.Context) (store.Bucket, error), values func(context.Context, store.Bucket, *cobra.Command) []string) []string {
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	answer := make(chan []string, 1)
	go func() {
		b, err := open(ctx)
		if err != nil {
			answer <- nil
			return
		}
		answer <- values(ctx, b, cmd)
	}()
	select {
	case found := <-answer:
		return found
	case <-ctx.Done():
		return nil
	}
}

// months returns the crawls of the store, the newest first.
func months(ctx context.Context, b store.Bucket, _ *cobra.Command) []string {
	crawls, err := roundstate.NewestFirst(ctx, b)
	if err != nil {
		return nil
	}
	return crawls
}

// monthOf returns the crawl that --month names, or that the command takes without --month. It returns ""
// if there is no such crawl.
func monthOf(ctx context.Context, b store.Bucket, cmd *cobra.Command) string {
	f := cmd.Flags().Lookup("month")
	switch {
	case f == nil:
		return ""
	case f.Value.String() != "" || f.Annotations[takes] == nil:
		return f.Value.String()
	}
	crawl, _, err := newest(ctx, b, f)
	if err != nil {
		return ""
	}
	return crawl
}

// rounds returns the rounds of the crawl that --month names, the newest first.
func rounds(ctx context.Context, b store.Bucket, cmd *cobra.Command) (found []string) {
	for round := newestRound(ctx, b, cmd); round >= 0; round-- {
		found = append(found, strconv.Itoa(round))
	}
	return found
}

// newestRound returns the number of the crawl's newest planned round, or -1 if it is unknown.
func newestRound(ctx context.Context, b store.Bucket, cmd *cobra.Command) int {
	crawl := monthOf(ctx, b, cmd)
	if crawl == "" {
		return -1
	}
	sealed, err := roundstate.Sealed(ctx, b, crawl)
	if err != nil {
		return -1
	}
	if p, _, err := roundstate.FindPlan(ctx, b, crawl, len(sealed)); err != nil || p == nil {
		return len(sealed) - 1
	}
	return len(sealed)
}

// partitions returns the partitions of the round that --round names, or of the newest round.
func partitions(ctx context.Context, b store.Bucket, cmd *cobra.Command) (found []string) {
	round := newestRound(ctx, b, cmd)
	if f := cmd.Flags().Lookup("round"); f != nil && f.Changed {
		if n, err := strconv.Atoi(f.Value.String()); err == nil && n >= 0 {
			round = n
		}
	}
	if round < 0 {
		return nil
	}
	p, _, err := roundstate.FindPlan(ctx, b, monthOf(ctx, b, cmd), round)
	if err != nil || p == nil {
		return nil
	}
	for i := range p.Partitions {
		found = append(found, strconv.Itoa(i))
	}
	return found
}
