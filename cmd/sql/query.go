package sql

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"crawlbatch.io/crawlbatch/cmd/usage"
	"crawlbatch.io/crawlbatch/formats/visible"
	"crawlbatch.io/crawlbatch/jobs/scratch"
	"crawlbatch.io/crawlbatch/jobs/show"
)

type queryOptions struct {
	store    *Store
	crawls   crawls
	file     string
	program  string
	output   string
	list     bool
	in       io.Reader
	out, err io.Writer
}

// Query returns the command query.
func Query(s *Store) *cobra.Command {
	o := queryOptions{store: s}
	cmd := &cobra.Command{
		Use:   "query [SQL | NAME [ARGUMENT] | -]",
		Short: "Run SQL over the datasets in DuckDB, or answer a common question by its name",
		Long: `Query loads the views of ` + "`crawlbatch views`" + ` into the program duckdb and runs SQL there.
Without SQL, it opens duckdb's shell on a terminal. - reads the SQL from stdin, --file from a file.

--list prints the questions of the cookbook. Their names may be given in place of SQL. Some
questions are about a URL, a host or a domain, which follows the name in any form.

csv and json write rows as they come. table shows as much as fits on a terminal, and all rows
in a pipe. query needs duckdb on PATH, or --duckdb FILE. It hands over S3 credentials by the
environment only. An error in the SQL exits 2.`,
		Example: `  crawlbatch query "SELECT outcome, count(*) FROM fetches GROUP BY ALL ORDER BY 2 DESC"
  crawlbatch query --list
  crawlbatch query broken-links -o csv > broken.csv
  crawlbatch query why-not-crawled https://example.org/about
  crawlbatch query --all-months - < questions.sql
  crawlbatch query`,
		Args:              cobra.MaximumNArgs(2),
		SuggestFor:        []string{"sql", "why"},
		ValidArgsFunction: completeQuestion,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.in, o.out, o.err = cmd.InOrStdin(), visible.Raw(cmd.OutOrStdout()), cmd.ErrOrStderr() // which may be a terminal for duckdb
			return o.run(cmd.Context(), args)
		},
	}
	o.crawls.flags(cmd)
	usage.OutputFlag(cmd, &o.output, "table", "csv", "json")
	f := cmd.Flags()
	f.StringVar(&o.file, "file", "", "file with the SQL")
	f.StringVar(&o.program, "duckdb", "", "duckdb's program; unset: duckdb on PATH")
	f.BoolVar(&o.list, "list", false, "print the questions of the cookbook with their names")
	_ = cmd.MarkFlagFilename("file", "sql") // these calls fail only for an unknown flag
	_ = cmd.MarkFlagFilename("duckdb")
	return cmd
}

func (o *queryOptions) run(ctx context.Context, args []string) error {
	if err := usage.OneOf("output", o.output, "table", "csv", "json"); err != nil {
		return err
	}
	if err := o.crawls.check(); err != nil {
		return err
	}
	if o.list {
		if len(args) > 0 || o.file != "" {
			return usage.Errorf("--list takes no SQL")
		}
		if o.output != "table" {
			return usage.Errorf("--list prints text only: leave out -o %s", o.output)
		}
		return list(o.out)
	}
	script, asked, err := o.script(args)
	if err != nil {
		return err
	}
	if script != nil {
		defer script.Close()
	}
	program, err := find(o.program)
	if err != nil {
		return err
	}
	b, sealed, note, err := o.store.sealed(ctx, o.crawls, true, o.err)
	if err != nil {
		return err
	}
	if asked != nil {
		if err := asked.fillFor(ctx, b, sealed, append(args, "")[1]); err != nil {
			return err
		}
	}
	views := func(w io.Writer) error { return o.store.duckDB(w, note, sealed) }
	d := duckDB{program: program, in: o.in, out: o.out, err: o.err}
	if f := show.File(o.err); f != nil {
		d.err = f // not folded: duckdb marks the place of an error below its line
	}
	if script == nil && asked == nil {
		return d.shell(ctx, views)
	}
	d.mode = o.mode()
	if o.output == "table" || isTerminal(o.out) { // duckdb lets some controls and all bidi characters through
		d.out = &visible.Writer{W: d.out}
	}
	d.err = &visible.Writer{W: visible.Raw(d.err)}
	if len(args) == 1 && args[0] == "-" || o.file == "-" {
		d.in = nil // stdin holds the SQL, so duckdb gets an empty one
	}
	if asked != nil {
		return o.answer(ctx, d, views, asked)
	}
	return d.run(ctx, views, script)
}

// answer answers a question of the cookbook. If the answer has no row, answer says what this means. To
// count the rows of any output format, duckdb keeps the answer before it writes the first row.
func (o *queryOptions) answer(ctx context.Context, d duckDB, views func(io.Writer) error, q *Question) error {
	dir, remove, err := scratch.New()
	if err != nil {
		return err
	}
	defer remove()
	counted := filepath.Join(dir, "rows")
	script := fmt.Sprintf("CREATE TEMP TABLE crawlbatch_answer AS\n%s;\nCOPY (SELECT count(*) FROM crawlbatch_answer) TO '%s' (FORMAT csv, HEADER false);\n%s\nFROM crawlbatch_answer",
		strings.TrimSuffix(strings.TrimSpace(q.SQL), ";"), strings.ReplaceAll(counted, "'", "''"), d.mode)
	d.mode = ".mode trash"
	if err := d.run(ctx, views, strings.NewReader(script)); err != nil {
		return err
	}
	n, err := os.ReadFile(counted)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // a wrapper of duckdb may run it on another machine: then only the notes are missing
	}
	rows := strings.TrimSpace(string(n))
	if m := limited.FindStringSubmatch(q.SQL); m != nil && m[1] == rows {
		fmt.Fprintf(o.err, "crawlbatch: %s shows at most %s rows, so there may be more\n", q.Name, rows)
	}
	if rows == "0" {
		fmt.Fprintf(o.err, "crawlbatch: %s has no row: %s\n", q.Name, cmp.Or(q.None, "nothing in the opened rounds meets the question"))
	}
	return err
}

// mode returns duckdb's command for --output.
func (o *queryOptions) mode() string {
	switch {
	case o.output == "csv":
		// By default, duckdb ends rows with a carriage return, too, and writes NULL as the text NULL.
		return ".mode csv\n.separator \",\" \"\\n\"\n.nullvalue \"\""
	case o.output == "json":
		return ".mode json"
	case isTerminal(o.out):
		width, rows := sizeOf(o.out) // duckdb writes to a pipe
		return fmt.Sprintf(".highlight off\n.mode duckbox\n.maxwidth %d\n.maxrows %d", width, rows)
	}
	return ".highlight off\n.mode duckbox\n.maxrows -1" // duckdb colours the answer of DESCRIBE, even in a pipe
}

// sizeOf returns the width of a terminal, and how many rows of a table fit on it, at least 5.
func sizeOf(terminal any) (width, rows int) {
	const frame = 13 // the table's borders, header, gap and footer, and the note and the prompt around it
	width, height, err := term.GetSize(int(terminal.(*os.File).Fd()))
	if err != nil {
		width, height = 80, 24
	}
	return width, max(5, height-frame)
}

// script returns the SQL to run, or nil for duckdb's shell. If the user asked a question of the cookbook,
// script returns the question instead.
func (o *queryOptions) script(args []string) (io.ReadCloser, *Question, error) {
	switch {
	case o.file != "" && len(args) > 0:
		return nil, nil, usage.Errorf("give either SQL or --file")
	case o.file != "":
		in, err := usage.Open(o.file, o.in)
		return in, nil, err
	case len(args) == 0 && isTerminal(o.in):
		return nil, nil, nil
	case len(args) == 0:
		return nil, nil, usage.Errorf("give SQL, the name of a question (`crawlbatch query --list`), or - for SQL from stdin; without them, query needs a terminal for duckdb's shell")
	}
	text := args[0]
	if names.MatchString(text) {
		q, err := question(text, args[1:])
		if err != nil {
			return nil, nil, err
		}
		return nil, q, nil
	}
	if len(args) > 1 {
		return nil, nil, usage.Errorf("%q follows SQL: quote the SQL as one word", args[1])
	}
	if text == "-" {
		in, err := usage.Open(text, o.in)
		return in, nil, err
	}
	if strings.TrimSpace(text) == "" {
		return nil, nil, usage.Errorf("the SQL is empty: give SQL, or the name of a question (`crawlbatch query --list`)")
	}
	return io.NopCloser(strings.NewReader(text)), nil, nil
}

// isTerminal reports whether a stream of the command is a terminal.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// list prints the name and the question of each file of the cookbook.
func list(w io.Writer) error {
	all, err := Questions()
	if err != nil {
		return err
	}
	width := 0
	for _, q := range all {
		width = max(width, len(q.usage()))
	}
	for _, q := range all {
		if _, err := fmt.Fprintf(w, "%-*s  %s\n", width, q.usage(), q.Asks); err != nil {
			return err
		}
	}
	return nil
}
