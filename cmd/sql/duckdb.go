package sql

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"crawlbatch.io/crawlbatch/cmd/usage"
	"crawlbatch.io/crawlbatch/jobs/scratch"
	"crawlbatch.io/crawlbatch/stages"
)

// grace is the time that duckdb has to end after a signal, before it is killed.
const grace = 10 * time.Second

// find returns the path of duckdb's program.
func find(name string) (string, error) {
	given := name != ""
	if !given {
		name = "duckdb"
	}
	path, err := exec.LookPath(name)
	switch {
	case err == nil:
		return path, nil
	case given:
		return "", usage.Errorf("--duckdb: %w", err)
	}
	return "", usage.Errorf("query needs the program duckdb, and PATH has none: install it with `pip install duckdb-cli` or as https://duckdb.org/install says, or name its file with --duckdb; `crawlbatch views` prints the SQL for other programs")
}

// duckDB runs the program duckdb as a child process with the environment of this process, from
// which it takes credentials for S3. The child reads its SQL from a file in a directory that only
// this user can read. Every user can read a command line, and a command line is too short for the
// views of a large crawl. A pipe is not possible, because pip's duckdb is a script that does not
// pass pipes on.
type duckDB struct {
	program  string
	mode     string // commands that set the output format
	in       io.Reader
	out, err io.Writer
}

// run runs a script over the views. A reader of the output that stops early is no error.
func (d duckDB) run(ctx context.Context, views func(io.Writer) error, script io.Reader) error {
	dir, remove, err := scratch.New()
	if err != nil {
		return err
	}
	defer remove()
	file, err := writeScript(dir, func(w io.Writer) error {
		// CREATE SECRET prints a row, which does not belong to the output. After the command .output, duckdb would
		// not limit the rows of a table on a terminal.
		fmt.Fprintf(w, ".mode trash\nSET temp_directory = '%s';\n", strings.ReplaceAll(dir, "'", "''"))
		if err := views(w); err != nil {
			return err
		}
		fmt.Fprintf(w, "\n%s\n", d.mode)
		if _, err := io.Copy(w, script); err != nil {
			return usage.Error(err)
		}
		_, err := io.WriteString(w, "\n;\n")
		return err
	})
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, d.program, "-no-init", "-batch", "-bail", "-f", file)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	err = d.child(cmd)
	if ctx.Err() != nil {
		return fmt.Errorf("%w: run the same command again", stages.ErrInterrupted)
	}
	return ending(err)
}

// ending explains how duckdb ended.
func ending(err error) error {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return err
	}
	status, _ := exit.Sys().(syscall.WaitStatus)
	switch {
	case status.Signal() == syscall.SIGPIPE, exit.ExitCode() == 128+int(syscall.SIGPIPE), exit.ExitCode() == 256-int(syscall.SIGPIPE):
		return nil // the last two are how shells and Python report the signal of their child
	case status.Signaled():
		return fmt.Errorf("duckdb ended: %w", err)
	}
	return usage.Errorf("duckdb ended with exit %d, its message is above", exit.ExitCode())
}

// shell opens duckdb's shell with the views. Ctrl-C belongs to the shell, where it ends a statement only.
func (d duckDB) shell(ctx context.Context, views func(io.Writer) error) error {
	dir, remove, err := scratch.New()
	if err != nil {
		return err
	}
	defer remove()
	file, err := writeScript(dir, views)
	if err != nil {
		return err
	}
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	defer signal.Stop(interrupts)
	own, stop := signal.NotifyContext(context.WithoutCancel(ctx), syscall.SIGTERM)
	defer stop()
	cmd := exec.CommandContext(own, d.program, "-init", file)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	err = d.child(cmd)
	var exit *exec.ExitError
	switch {
	case own.Err() != nil:
		return stages.ErrInterrupted
	case errors.As(err, &exit) && exit.Exited():
		return nil // the last statement failed, and the shell has printed its error
	}
	return err
}

// writeScript writes a file that only this user can read.
func writeScript(dir string, write func(io.Writer) error) (string, error) {
	f, err := os.OpenFile(filepath.Join(dir, "views.sql"), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return "", err
	}
	return f.Name(), errors.Join(write(f), f.Close())
}

// child runs the child process.
func (d duckDB) child(cmd *exec.Cmd) error {
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = d.in, d.out, d.err, grace
	if err := cmd.Start(); err != nil {
		return usage.Errorf("duckdb: %w", err)
	}
	return cmd.Wait()
}
