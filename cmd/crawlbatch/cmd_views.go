package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"crawlbatch.io/crawlbatch/cmd/usage"
	"crawlbatch.io/crawlbatch/formats/catalog"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/jobs/show"
)

type viewsOptions struct {
	*common
	month      string
	allMonths  bool
	dialect    string
	database   string
	location   string
	projection bool
	split      string
	force      bool
}

// dialects are the values of --dialect.
var dialects = []string{"duckdb", "athena", "trino", "spark", "markdown"}

func newViews(c *common) *cobra.Command {
	o := viewsOptions{common: c}
	cmd := usage.WithOptions(&o, runViews, &cobra.Command{
		Use:   "views --dialect duckdb|athena|trino|spark",
		Short: "Print SQL that opens the datasets",
		Long: `Views prints SQL that opens every dataset over the parts of finished rounds: views for
DuckDB and Trino, tables for Athena, temporary views for Spark. With --dialect markdown it
prints the meaning of every column.

Without --month it opens the newest crawl that has a finished round, and names it: the
month itself, not a reparse of it such as 2026-11r1. --all-months opens every crawl of
the store, reparses included.`,
		Example: `  crawlbatch views --dialect duckdb > views.sql
  duckdb -init views.sql -c "SELECT outcome, count(*) FROM fetches GROUP BY ALL"
  crawlbatch views --dialect trino --database hive.crawl --store s3://bucket/prefix > views.sql
  crawlbatch views --dialect athena --split ddl --store s3://bucket/prefix`,
	})
	f := cmd.Flags()
	f.StringVar(&o.dialect, "dialect", "duckdb", usage.OrList(dialects))
	usage.CompleteFlag(cmd, "dialect", dialects...)
	usage.MonthFlag(cmd, &o.month, "crawl to open, the newest if it is not given")
	f.BoolVar(&o.allMonths, "all-months", false, "every crawl of the store, reparses included")
	f.StringVar(&o.database, "database", "crawlbatch", "database in Athena; in Trino the schema, or catalog.schema")
	f.StringVar(&o.location, "location", "", "URL of the store as Trino or Spark reaches it; unset: s3:// (Spark: s3a://), local:// or file://")
	f.BoolVar(&o.projection, "partition-projection", false, "let Athena compute the partitions; it then reads unfinished rounds, too")
	f.StringVar(&o.split, "split", "", "directory for files with one statement of Athena, Trino or Spark each")
	f.BoolVar(&o.force, "force", false, "with --split: replace the statements in a directory that is not empty")
	return cmd
}

// check checks the flags.
func (o *viewsOptions) check() error {
	if err := usage.OneOf("dialect", o.dialect, dialects...); err != nil {
		return err
	}
	sql := o.dialect == "athena" || o.dialect == "trino" || o.dialect == "spark"
	switch {
	case o.dialect == "athena" && !strings.HasPrefix(o.store, "s3://"):
		return usage.Errorf("--dialect athena needs a store in S3, and --store is %q: give s3://bucket/prefix", o.store)
	case o.projection && o.dialect != "athena":
		return usage.Errorf("--partition-projection is only for --dialect athena")
	case o.split != "" && !sql:
		return usage.Errorf("--split is for athena, trino and spark: DuckDB reads a whole script")
	case o.force && o.split == "":
		return usage.Errorf("--force goes with --split DIR")
	case o.location != "" && o.dialect != "trino" && o.dialect != "spark":
		return usage.Errorf("--location is for --dialect trino and spark: the others read from --store")
	case o.location != "" && !strings.Contains(o.location, "://"):
		return usage.Errorf("--location %q is not a URL: write it as s3://bucket/prefix, file:///directory or local:///directory", o.location)
	case o.dialect == "athena" || o.dialect == "trino":
		if err := catalog.CheckDatabase(o.database); err != nil {
			return usage.Errorf("--database: %w", err)
		}
	}
	switch {
	case o.month != "" && o.allMonths:
		return usage.Errorf("--month and --all-months cannot be combined")
	case o.month != "":
		return usage.CheckCrawl(o.month)
	}
	return nil
}

// asUsageError turns catalog.ErrUnsafe into a usage error. ErrUnsafe means that the store's address cannot
// be written in SQL.
func asUsageError(s *catalog.Script, err error) (*catalog.Script, error) {
	if errors.Is(err, catalog.ErrUnsafe) {
		err = usage.Error(err)
	}
	return s, err
}

func runViews(ctx context.Context, o viewsOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	if o.dialect == "markdown" {
		return catalog.Markdown(o.out)
	}
	b, _, err := o.openNew(ctx)
	if err != nil {
		return addAccessAdvice(err)
	}
	sealed, note, err := roundstate.ToOpen(ctx, b, o.month, o.allMonths, os.LookupEnv)
	if err != nil {
		return err
	}
	for _, s := range sealed {
		if s.Round == 0 {
			if _, err := o.noteOlder(ctx, b, s.Crawl); err != nil {
				return err
			}
		}
	}
	if note != "" {
		fmt.Fprintf(o.err, "crawlbatch: %s\n", note)
	}
	if o.dialect == "duckdb" {
		s3 := catalog.S3{Endpoint: os.Getenv("AWS_ENDPOINT_URL_S3"), Region: os.Getenv("AWS_REGION")}
		return catalog.DuckDB(o.out, o.store, s3, note, sealed)
	}
	script, err := asUsageError(o.script(ctx, b, sealed))
	if err != nil {
		return err
	}
	if note != "" {
		script.Head = append(script.Head, note)
	}
	if o.split != "" {
		if err := script.Split(o.split, o.force); errors.Is(err, catalog.ErrNotEmpty) {
			return usage.Errorf("--split %w, or replace its statements with --force", err)
		} else if err != nil {
			return usage.Error(err)
		}
		fmt.Fprintf(o.err, "crawlbatch: wrote %d statements into %s: run them in the order of their names\n", len(script.Statements), o.split)
		return nil
	}
	return script.Write(o.out)
}

func (o *viewsOptions) script(ctx context.Context, b store.Bucket, sealed []*manifest.Sealed) (*catalog.Script, error) {
	if o.dialect == "athena" {
		return catalog.Athena(o.store, catalog.AthenaOptions{Database: o.database, Projection: o.projection}, sealed)
	}
	location := o.location
	if location == "" {
		var err error
		if location, err = catalog.Location(o.store, o.dialect == "spark"); err != nil {
			return nil, usage.Error(err)
		}
	}
	if o.dialect == "trino" {
		return catalog.Trino(location, o.database, sealed)
	}
	older, err := roundstate.OlderParts(ctx, b, sealed)
	if err != nil {
		return nil, err
	}
	if len(older) > 0 {
		fmt.Fprintf(o.err, "crawlbatch: Spark 3.5.3 to 4.0.0 misreads parts of %s that an older crawlbatch wrote (SPARK-52240): the SQL switches Spark's vectorized reader off, which avoids it\n", show.Count(int64(len(older)), "round"))
	}
	return catalog.Spark(location, sealed, older)
}
