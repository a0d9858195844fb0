package sql

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"crawlbatch.io/crawlbatch/cmd/usage"
	"crawlbatch.io/crawlbatch/formats/catalog"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/visible"
)

type viewsOptions struct {
	store      *Store
	crawls     crawls
	out, err   io.Writer
	dialect    string
	database   string
	location   string
	projection bool
	split      string
	force      bool
}

// dialects are the values of --dialect.
var dialects = []string{"duckdb", "athena", "trino", "spark", "markdown"}

// Views returns the command views.
func Views(s *Store) *cobra.Command {
	o := viewsOptions{store: s}
	cmd := &cobra.Command{
		Use:   "views --dialect duckdb|athena|trino|spark",
		Short: "Print SQL that opens the datasets",
		Long: `Views prints SQL that opens every dataset over the parts of finished rounds: views for
DuckDB and Trino, tables for Athena, temporary views for Spark. They read a compacted copy where
there is one; for Athena, it is a table of its own, NAME_copy_MONTH. With --dialect markdown it
prints the meaning of every column.

Without --month it opens the newest crawl that has a finished round, and names it: the
month itself, not a reparse of it such as 2026-11r1. --all-months opens every crawl of
the store, reparses included.`,
		Example: `  crawlbatch views --dialect duckdb > views.sql
  duckdb -init views.sql -c "SELECT outcome, count(*) FROM fetches GROUP BY ALL"
  crawlbatch views --dialect trino --database hive.crawl --store s3://bucket/prefix > views.sql
  crawlbatch views --dialect athena --split ddl --store s3://bucket/prefix`,
		Args: usage.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.out, o.err = visible.Raw(cmd.OutOrStdout()), cmd.ErrOrStderr() // SQL has the names of folders as they are
			return o.run(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.dialect, "dialect", "duckdb", usage.OrList(dialects))
	usage.CompleteFlag(cmd, "dialect", dialects...)
	o.crawls.flags(cmd)
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
	case o.dialect == "athena" && !strings.HasPrefix(o.store.Address(), "s3://"):
		return usage.Errorf("--dialect athena needs a store in S3, and --store is %q: give s3://bucket/prefix", o.store.Address())
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
	return o.crawls.check()
}

// asUsageError turns catalog.ErrUnsafe into a usage error. ErrUnsafe means that the store's address cannot
// be written in SQL.
func asUsageError(s *catalog.Script, err error) (*catalog.Script, error) {
	if errors.Is(err, catalog.ErrUnsafe) {
		err = usage.Error(err)
	}
	return s, err
}

func (o *viewsOptions) run(ctx context.Context) error {
	if err := o.check(); err != nil {
		return err
	}
	if o.dialect == "markdown" {
		return catalog.Markdown(o.out)
	}
	b, sealed, note, err := o.store.sealed(ctx, o.crawls, o.dialect != "athena", o.err)
	if err != nil {
		return err
	}
	if o.dialect == "duckdb" {
		return o.store.duckDB(o.out, note, sealed)
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
		var copied []*manifest.Sealed
		if !o.crawls.original {
			var err error
			if copied, err = compacted(ctx, b, sealed, o.err); err != nil {
				return nil, err
			}
		}
		return catalog.Athena(o.store.Address(), catalog.AthenaOptions{Database: o.database, Projection: o.projection, Compacted: copied}, sealed)
	}
	location := o.location
	if location == "" {
		var err error
		if location, err = catalog.Location(o.store.Address(), o.dialect == "spark"); err != nil {
			return nil, usage.Error(err)
		}
	}
	if o.dialect == "trino" {
		return catalog.Trino(location, o.database, sealed)
	}
	return catalog.Spark(location, sealed)
}
