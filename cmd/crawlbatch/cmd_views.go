package main

import (
	"context"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"crawlbatch.io/crawlbatch/formats/catalog"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/jobs/worker"
)

type viewsOptions struct {
	*common
	month    string
	dialect  string
	database string
}

func newViews(c *common) *cobra.Command {
	o := viewsOptions{common: c}
	cmd := &cobra.Command{
		Use:   "views --dialect duckdb|athena",
		Short: "SQL that opens the datasets",
		Long: `Views prints SQL that opens every dataset: views for DuckDB, tables for Athena, over the
parts that finished rounds list, of one month or of all. With --dialect markdown it
prints what every column means.`,
		Example: `  crawlbatch views --dialect duckdb > views.sql
  duckdb -init views.sql -c "SELECT outcome, count(*) FROM fetches GROUP BY ALL"`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runViews(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVar(&o.dialect, "dialect", "duckdb", "duckdb, athena or markdown")
	cmd.Flags().StringVar(&o.month, "month", "", "this crawl only, as 2026-11")
	cmd.Flags().StringVar(&o.database, "database", "crawlbatch", "of Athena")
	return cmd
}

func runViews(ctx context.Context, o viewsOptions) error {
	switch o.dialect {
	case "duckdb":
	case "athena":
		if !strings.HasPrefix(o.store, "s3://") {
			return usagef("--dialect athena needs a store in S3: --store %q is none", o.store)
		}
	case "markdown":
		return catalog.Markdown(o.out)
	default:
		return usagef("--dialect %q: it may be duckdb, athena or markdown", o.dialect)
	}
	cfg, err := o.loadConfig()
	if err != nil {
		return err
	}
	b, err := o.openStore(ctx, cfg)
	if err != nil {
		return reached(err)
	}
	var sealed []*manifest.Sealed
	if o.month != "" {
		if err := crawlName(o.month); err != nil {
			return err
		}
		if _, _, err := worker.OpenCrawl(ctx, b, o.month, os.LookupEnv); err != nil {
			return err
		}
		sealed, err = worker.Sealed(ctx, b, o.month)
	} else {
		sealed, err = worker.AllSealed(ctx, b)
	}
	if err != nil {
		return err
	}
	if o.dialect == "athena" {
		return catalog.Athena(o.out, o.store, o.database, sealed)
	}
	s3 := catalog.S3{Endpoint: os.Getenv("AWS_ENDPOINT_URL_S3"), Region: os.Getenv("AWS_REGION")}
	return catalog.DuckDB(o.out, o.store, s3, sealed)
}
