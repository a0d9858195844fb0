package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"crawlbatch.io/crawlbatch/cmd/compact"
	"crawlbatch.io/crawlbatch/cmd/control"
	"crawlbatch.io/crawlbatch/cmd/demo"
	"crawlbatch.io/crawlbatch/cmd/explain"
	"crawlbatch.io/crawlbatch/cmd/prune"
	"crawlbatch.io/crawlbatch/cmd/sql"
	"crawlbatch.io/crawlbatch/cmd/takedown"
	"crawlbatch.io/crawlbatch/cmd/usage"
	"crawlbatch.io/crawlbatch/formats/room"
	"crawlbatch.io/crawlbatch/formats/store/localfile"
	"crawlbatch.io/crawlbatch/formats/visible"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/jobs/predecessor"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/jobs/show"
	"crawlbatch.io/crawlbatch/k8s"
	"crawlbatch.io/crawlbatch/stages"
)

// common holds the flags of the root command, the standard streams and the log. Every command
// uses these fields.
type common struct {
	store      string
	config     string
	logFormat  string
	flags      config.Config // keys of the config that flags have set; all other keys have the zero value
	oneMachine bool          // true: only this machine uses the store's directory
	settings   string        // store key of a config that a driver stored for this process
	terminated string        // file for one line that says why the command failed; "" if there is none

	args     []string // the command line
	in       io.Reader
	out, err io.Writer
	log      *slog.Logger
	errors   *show.LogOutput // writes the log to stderr, above the progress display if there is one
	beats    usage.Heartbeat
}

// defaultStore is the store of a command without --store.
const defaultStore = "./crawl-data"

// execute runs a command line and returns its exit code.
func execute(ctx context.Context, args []string, in io.Reader, out, errw io.Writer) int {
	out, errw = &visible.Writer{W: out}, &visible.Writer{W: errw} // what a command prints may come from the web
	c := &common{in: in, out: out, err: errw, args: args}
	root := newRoot(c)
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errw)
	ctx, stop := signalContext(ctx)
	defer stop()
	cmd, err := root.ExecuteContextC(ctx)
	c.beats.End()
	if err == nil {
		return exitDone
	}
	if cause := context.Cause(ctx); errors.Is(cause, room.ErrLimit) && (errors.Is(err, stages.ErrInterrupted) || errors.Is(err, context.Canceled)) {
		err = cause // it interrupted the command
	}
	if failed := k8s.WriteTermination(c.terminated, err); failed != nil {
		err = errors.Join(err, failed)
	}
	if readsOnly := []string{"status", "verify", "views", "report", "host", "url", "retry"}; errors.Is(err, ledger.ErrPruned) && !errors.Is(err, stages.ErrPermanent) && slices.Contains(readsOnly, cmd.Name()) {
		fmt.Fprintln(show.Folding(out), show.OneLine(err)) // a month that was pruned on purpose is no failure
		return exitDone
	}
	if other := (*predecessor.Error)(nil); errors.As(err, &other) {
		c.refuse(errw, other)
		return c.exitCode(err)
	}
	err = localfile.NameScratch(usage.NameCrawls(err, c.openToComplete), os.TempDir())
	if missing := (*ledger.NoCrawl)(nil); errors.As(err, &missing) {
		others, failed := roundstate.NewestFirst(ctx, missing.Bucket)
		missing.Others, missing.Looked = others, failed == nil
	}
	fmt.Fprintf(show.Folding(errw), "crawlbatch: %s\n", usage.Advise(show.OneLine(err), storeFlag(c.store)))
	return c.exitCode(err)
}

// exitCode maps err to the process's exit status. In a pod, usage errors get another status, because their
// usual one is also that of a Go crash, after which Kubernetes tries again.
func (c *common) exitCode(err error) int {
	if code := exitCode(err); code != exitUsage || os.Getenv(k8s.PodName) == "" {
		return code
	}
	return k8s.UsageExit(err)
}

func newRoot(c *common) *cobra.Command {
	root := &cobra.Command{
		Use:   "crawlbatch",
		Short: "Crawl the web in batches over object storage",
		Long: `crawlbatch crawls the web in monthly batches: it shards a URL set by domain,
fetches and parses each shard politely, and reduces the outputs to Parquet tables
that DuckDB and Athena query. A directory or an S3 bucket holds all its state.

  crawlbatch demo                                      a whole crawl, offline, in under a minute
  crawlbatch plan --month 2026-11 --source urls.txt    shard a URL set
  crawlbatch run  --month 2026-11 --rounds 2           crawl it
` + exitCodesHelp(),
		Args:                       usage.KnownCommand,
		SilenceErrors:              true,
		SuggestionsMinimumDistance: 2,
		SilenceUsage:               true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			err := c.setup()
			cmd.Root().SetErr(c.err)
			if err == nil {
				err = c.resolveMonth(cmd)
			}
			if silent := []string{"plan", "verify", "report", "feedback", "prune", "takedown", "compact"}; slices.Contains(silent, cmd.Name()) {
				c.startBeats()
			}
			return err
		},
	}
	root.Version = version
	root.SetVersionTemplate("crawlbatch {{.Version}}\n")
	root.Flags().BoolP("version", "v", false, "print the version")
	root.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usage.FlagError(cmd, c.args, err)
	})
	f := root.PersistentFlags()
	f.StringVar(&c.store, "store", defaultStore, "directory, or s3://bucket/prefix, that holds the crawl")
	f.StringVar(&c.config, "config", "", "YAML config file")
	f.StringVar(&c.logFormat, "log-format", "text", "text or json")
	c.configFlags(root, false)
	f.BoolVar(&c.oneMachine, "one-machine", false, "accept a --store directory on NFS or FUSE: you declare that this machine alone uses it")
	root.AddCommand(
		newPlan(c), newRun(c), newStatus(c), newRetry(c), newReparse(c), newVerify(c), sql.Views(c.sqlStore()), sql.Query(c.sqlStore()), newFeedback(c), newFetch(c), newReport(c), explain.Command(c.explainer()),
		newTask(c), newConfig(c), demo.Simweb(), newDemo(c), newK8s(c), newVersion(c), newMan(),
	)
	root.AddCommand(prune.Command(prune.Env{Open: c.openRetention, Flags: c.givenFlags, Version: version, Clock: stages.SystemClock{}}))
	root.AddCommand(takedown.Command(takedown.Env{Open: c.openTakedown, OpenAny: c.openExisting, Flags: c.givenFlags, Version: version, Clock: stages.SystemClock{}}))
	root.AddCommand(compact.Command(compact.Env{Read: c.openCrawl, Write: c.openToChange, Flags: c.givenFlags, Version: version, Clock: stages.SystemClock{}}))
	root.AddCommand(control.Commands(control.Open{Read: c.openCrawl, Write: c.openToChange, Flags: c.givenFlags, Ledgers: ledgers})...)
	root.SetOut(c.out) // the command `completion` writes to it
	usage.AddCompletion(root)
	usage.CompleteFlag(root, "log-format", "text", "json")
	_ = root.MarkPersistentFlagDirname("store") // these calls fail only for an unknown flag
	_ = root.MarkPersistentFlagFilename("config", "yaml", "yml")
	usage.CompleteFromStore(root, c.openToComplete)
	for _, cmd := range root.Commands() {
		usage.Finish(cmd, exitCodesHelp())
	}
	return root
}

// startBeats starts the lines that tell a command which prints nothing from one that hangs.
func (c *common) startBeats() {
	c.beats.Start(stages.SystemClock{}, usage.BeatPrinter(c.errors, c.log, c.logFormat == "json"))
}

func (c *common) explainer() explain.Configs {
	return explain.Configs{New: c.loadConfig, Crawl: c.openCrawl, Archive: c.openArchive}
}

func (c *common) setup() error {
	if c.logFormat == "text" {
		c.err = show.Folding(c.err)
	}
	c.errors = &show.LogOutput{Plain: c.err}
	c.log = c.logFrom(slog.LevelInfo)
	if err := room.Check(); err != nil {
		return usage.Error(err)
	}
	return usage.OneOf("log-format", c.logFormat, "text", "json")
}

// logFrom returns a log that drops messages below a level.
func (c *common) logFrom(level slog.Level) *slog.Logger {
	options := &slog.HandlerOptions{Level: level}
	if c.logFormat == "json" {
		return slog.New(slog.NewJSONHandler(c.errors, options))
	}
	return slog.New(slog.NewTextHandler(c.errors, options))
}
