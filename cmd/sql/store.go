// Package sql holds the commands views and query, which open the datasets of a store in SQL engines.
//
// views prints SQL. query runs a statement over the views in the program duckdb. The package also
// holds the cookbook: questions that people ask, as SQL for DuckDB, Trino and Spark.
package sql

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"crawlbatch.io/crawlbatch/cmd/usage"
	"crawlbatch.io/crawlbatch/formats/catalog"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
)

// Store opens the store of the command line.
type Store struct {
	Address func() string                                   // value of --store
	Open    func(ctx context.Context) (store.Bucket, error) // opens the store
}

// crawls are the flags that select crawls.
type crawls struct {
	month    string
	all      bool
	original bool
}

func (c *crawls) flags(cmd *cobra.Command) {
	usage.MonthFlag(cmd, &c.month, "crawl to open, the newest if it is not given")
	cmd.Flags().BoolVar(&c.all, "all-months", false, "every crawl of the store, reparses included")
	cmd.Flags().BoolVar(&c.original, "published", false, "read the parts that the rounds published, even where a compacted copy exists")
}

func (c *crawls) check() error {
	switch {
	case c.month != "" && c.all:
		return usage.Errorf("--month and --all-months cannot be combined")
	case c.month != "":
		return usage.CheckCrawl(c.month)
	}
	return nil
}

// sealed returns the finished rounds of the selected crawls, and a note about the selection, which it also
// writes to w. If copies is true and c allows it, the rounds name the parts of compacted copies where these
// exist.
func (s *Store) sealed(ctx context.Context, c crawls, copies bool, w io.Writer) (store.Bucket, []*manifest.Sealed, string, error) {
	b, err := s.Open(ctx)
	if err != nil {
		return nil, nil, "", err
	}
	sealed, note, err := roundstate.ToOpen(ctx, b, c.month, c.all, os.LookupEnv)
	if err != nil {
		return nil, nil, "", err
	}
	if note != "" {
		fmt.Fprintf(w, "crawlbatch: %s\n", note)
	}
	if copies && !c.original {
		if sealed, err = compacted(ctx, b, sealed, w); err != nil {
			return nil, nil, "", err
		}
	}
	return b, sealed, note, nil
}

// compacted returns the rounds with the parts of compacted copies, and writes to w which copies it leaves out.
func compacted(ctx context.Context, b store.Bucket, sealed []*manifest.Sealed, w io.Writer) ([]*manifest.Sealed, error) {
	sealed, notes, err := roundstate.WithCompacted(ctx, b, sealed)
	for _, n := range notes {
		fmt.Fprintf(w, "crawlbatch: %s\n", n)
	}
	return sealed, err
}

// duckDB writes the views for DuckDB.
func (s *Store) duckDB(w io.Writer, note string, sealed []*manifest.Sealed) error {
	s3 := catalog.S3{Endpoint: os.Getenv("AWS_ENDPOINT_URL_S3"), Region: os.Getenv("AWS_REGION")}
	return catalog.DuckDB(w, s.Address(), s3, note, sealed)
}
