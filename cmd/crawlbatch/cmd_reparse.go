package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"crawlbatch.io/crawlbatch/cmd/usage"
	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/s3store"
	"crawlbatch.io/crawlbatch/jobs"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/jobs/scratch"
	"crawlbatch.io/crawlbatch/jobs/show"
	"crawlbatch.io/crawlbatch/planner/source/external"
	"crawlbatch.io/crawlbatch/stages"
)

type reparseOptions struct {
	runOptions
	as        string
	warcStore string
	external  bool // true: --warc-store was given
	warcPaths string
}

func newReparse(c *common) *cobra.Command {
	o := reparseOptions{runOptions: runOptions{common: c}}
	cmd := &cobra.Command{
		Use:   "reparse (--month YYYY-MM | --warc-store WHERE) --as YYYY-MMrN",
		Short: "Parse stored responses again, without fetching",
		Long: `Reparse makes a new crawl from stored responses with the parser of this crawlbatch. It sends
no requests. crawl.json and every row of pages name the parser's version.

With --month it parses the responses of a crawl. Each finished round gets the same
partitions and outcomes, and new pages, text and links. The duplicates, ranks, hosts, urls
and skips follow from these new rows. Reparse reads the WARC files in place. A page keeps its
old rows with their parser_version if it cannot be parsed again, because its record is damaged
or because it says noarchive, so that the store has no copy.

With --warc-store it parses WARC files of another crawler, such as Common Crawl's, in a
directory or an S3 bucket, which it only reads. --warc-paths names a list of the files, one
per line, such as warc.paths.gz. Without --warc-paths, all WARC and WACZ files in --warc-store
are read; of a whole bucket, the files must be named. Other archives (ARC, zstd) are named and
left out, with the reason. URLs on the list of plan.opt_out are left
out, and what was taken down from --store too. The newest response of each URL is parsed. A
revisit is parsed with the content of the record to which it refers, if one of the files has that
record. A list beside the plan names records that cannot be read, and other revisits.

A --config may change the sections parse, dedup and frontier. After an interruption the
same command continues the work, and so does run --month with the new name. Status, verify,
retry and views also take that name.`,
		Example: `  crawlbatch reparse --month 2026-11 --as 2026-11r1
  crawlbatch reparse --month 2026-11 --as 2026-11r2 --config stricter-dedup.yaml
  crawlbatch reparse --warc-store s3://commoncrawl --warc-paths warc.paths.gz --as 2026-10r1`,
		Args: usage.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.external = cmd.Flags().Changed("warc-store")
			return runReparse(cmd.Context(), o)
		},
	}
	usage.MonthFlag(cmd, &o.month, "crawl whose responses are parsed again")
	cmd.Flags().StringVar(&o.as, "as", "", "name of the new crawl: the month, r and a number, such as 2026-11r1")
	cmd.Flags().StringVar(&o.warcStore, "warc-store", "", "directory or s3://bucket/prefix with WARC files of another crawler")
	cmd.Flags().StringVar(&o.warcPaths, "warc-paths", "", "file (- for stdin) with names of files in --warc-store, one per line, plain or gzip")
	cmd.Flags().BoolVar(&o.detach, "detach", false, "with --executor kubernetes: make the crawl, then run it as a Job")
	o.executorFlags(cmd)
	return cmd
}

// check checks the flags.
func (o *reparseOptions) check() error {
	switch {
	case o.external && o.warcStore == "":
		return usage.Errorf("--warc-store is empty: give the directory or s3://bucket/prefix with the WARC files")
	case o.as == "":
		return usage.Errorf("--as is missing: name the new crawl by month and number, such as --as 2026-11r1")
	case !layout.IsReparse(o.as):
		return usage.Errorf("--as %q: name a reparse by its month, r and a number from 1 on, such as 2026-11r1", o.as)
	case o.external && o.month != "":
		return usage.Errorf("--month and --warc-store cannot be combined: the responses are those of a crawl or of WARC files")
	case !o.external && o.warcPaths != "":
		return usage.Errorf("--warc-paths needs --warc-store: name the store that has those files")
	case o.external && o.warcPaths == "" && wholeBucket(o.warcStore):
		return usage.Errorf("--warc-paths is missing: name the files of %s to parse, or give a prefix in the bucket", o.warcStore)
	case o.external && o.executor == executorKubernetes && !strings.HasPrefix(o.warcStore, s3store.Scheme):
		return usage.Errorf("--warc-store %q: with --executor kubernetes it must be s3://bucket/prefix, which pods can reach too", o.warcStore)
	case o.external:
		return o.checkExecutor()
	}
	if err := usage.CheckMonth(o.month); err != nil {
		return err
	}
	if of, _ := layout.MonthOf(o.as); of != o.month {
		return usage.Errorf("--as %q: a reparse of %s is named %[2]sr1, %[2]sr2 …", o.as, o.month)
	}
	return o.checkExecutor()
}

// wholeBucket reports whether an address is that of a bucket in S3 without a prefix. To list it may take days.
func wholeBucket(address string) bool {
	bucket, s3 := strings.CutPrefix(address, s3store.Scheme)
	return s3 && !strings.Contains(strings.Trim(bucket, "/"), "/")
}

func runReparse(ctx context.Context, o reparseOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	if err := o.createCrawl(ctx); err != nil {
		return storeError(err)
	}
	o.month = o.as
	return runRun(ctx, o.runOptions)
}

// createCrawl creates the crawl of the reparse, unless the crawl exists.
func (o *reparseOptions) createCrawl(ctx context.Context) error {
	b, given, err := o.openNew(ctx)
	if err != nil {
		return err
	}
	for _, crawl := range []string{o.month, o.as} {
		if crawl == "" {
			continue
		}
		if _, err := roundstate.Ready(ctx, b, crawl); err != nil {
			return err
		}
	}
	r := jobs.ReparseRequest{Bucket: b, As: o.as, Of: o.month, Config: given, Open: o.openArchive, Clock: stages.SystemClock{}, Version: version, Lookup: os.LookupEnv}
	if o.month != "" {
		r.Config, err = o.reparsedConfig(ctx, b)
	} else {
		err = o.listArchive(ctx, &r)
	}
	if err != nil {
		return err
	}
	var remove func()
	if r.Scratch, remove, err = scratch.New(); err != nil {
		return err
	}
	defer remove()
	p, err := jobs.Reparse(ctx, r)
	if errors.Is(err, jobs.ErrNotSealed) {
		return fmt.Errorf("%w: finish one with `crawlbatch run --month %s%s`", err, o.month, o.runOptions.givenFlags())
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(o.err, "reparse %s: %s in %s, nothing is fetched\n", p.Crawl, show.Count(p.URLs, "URL"), show.Count(int64(len(p.Partitions)), "partition"))
	for _, c := range p.Refused {
		if o.warcStore != "" {
			fmt.Fprintf(o.err, "  left out: %s %d, see %s\n", c.Name, c.N, layout.PlanRefused(p.Crawl, p.Round, p.ID))
		}
	}
	tellRefused(o.err, r.Files)
	return nil
}

// tellRefused names the files that are web archives, but that crawlbatch does not read, once for each reason.
func tellRefused(w io.Writer, files []string) {
	const named = 3 // files of each reason
	byReason := map[string][]string{}
	for _, key := range files {
		if why := external.Refused(key); why != "" {
			byReason[why] = append(byReason[why], fmt.Sprintf("%.200q", key))
		}
	}
	for _, why := range slices.Sorted(maps.Keys(byReason)) {
		keys := byReason[why]
		more := ""
		if len(keys) > named {
			keys, more = keys[:named], fmt.Sprintf(" and %d more", len(keys)-named)
		}
		fmt.Fprintf(w, "  not read: %s%s: %s\n", strings.Join(keys, ", "), more, why)
	}
}

// reparsedConfig overrides the crawl's frozen config with --config and the flags.
func (o *reparseOptions) reparsedConfig(ctx context.Context, b store.Bucket) (*config.Config, error) {
	_, frozen, err := roundstate.OpenCrawl(ctx, b, o.month, os.LookupEnv)
	if err != nil {
		return nil, err
	}
	later, err := o.configOver(frozen)
	if err != nil {
		return nil, err
	}
	return frozen.Reparsed(later)
}

// listArchive opens the WARC files of another crawler and puts their names into r.Files.
func (o *reparseOptions) listArchive(ctx context.Context, r *jobs.ReparseRequest) (err error) {
	r.ArchiveName = strings.TrimSuffix(o.warcStore, "/")
	if !strings.HasPrefix(o.warcStore, s3store.Scheme) {
		if info, err := os.Stat(o.warcStore); err != nil || !info.IsDir() {
			return usage.Errorf("--warc-store %q: no such directory", o.warcStore)
		}
		if r.ArchiveName, err = filepath.Abs(o.warcStore); err != nil {
			return usage.Errorf("--warc-store %q: %v", o.warcStore, err)
		}
	}
	if r.Archive, err = o.openArchive(ctx, r.ArchiveName); err != nil {
		return err
	}
	if o.warcPaths == "" {
		if r.Files, err = external.Names(ctx, r.Archive); err != nil {
			err = errors.Join(usage.Errorf("--warc-store %s cannot be listed", r.Archive), err)
		}
	} else {
		r.Files, err = o.readPaths(r.ArchiveName)
	}
	switch {
	case err != nil || len(r.Files) > 0:
	case o.warcPaths != "":
		err = usage.Errorf("--warc-paths %s names no file: list the names of WARC files in --warc-store, one per line", o.warcPaths)
	default:
		err = usage.Errorf("--warc-store %s has no WARC file (NAME.warc, NAME.warc.gz or NAME.wacz)", o.warcStore)
	}
	return err
}

// readPaths reads the names in --warc-paths.
func (o *reparseOptions) readPaths(archive string) ([]string, error) {
	in, err := usage.Open(o.warcPaths, o.in)
	if err != nil {
		return nil, usage.Errorf("--warc-paths: %v", err)
	}
	defer in.Close()
	names, err := external.ReadNames(o.warcPaths, in, archive)
	if err != nil {
		return nil, usage.Errorf("--warc-paths %v", err)
	}
	return names, nil
}
