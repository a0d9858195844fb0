package simweb

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// WriteSeeds writes the seeds, one per line, to the file, pipe or device called name. A file
// appears under its name only after all seeds have been written. A file with other content is
// replaced only if replace is set. If a pipe has no reader, WriteSeeds blocks until ctx ends, and
// then returns nil.
func (w *Web) WriteSeeds(ctx context.Context, name string, replace bool) error {
	if info, err := os.Stat(name); err != nil || info.Mode().IsRegular() {
		return w.writeSeedFile(name, replace)
	}
	ended := make(chan error, 1)
	go func() { ended <- w.streamSeeds(name) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return nil
	}
}

// streamSeeds writes all seeds, or stops early if the reader closes the pipe.
func (w *Web) streamSeeds(name string) error {
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(f)
	for u := range w.Seeds() {
		if _, err = fmt.Fprintln(out, u); err != nil {
			break
		}
	}
	if err = errors.Join(err, out.Flush(), f.Close()); err != nil && !errors.Is(err, syscall.EPIPE) {
		return fmt.Errorf("write seeds: %w", err)
	}
	return nil
}

func (w *Web) writeSeedFile(name string, replace bool) error {
	var seeds bytes.Buffer
	for u := range w.Seeds() {
		fmt.Fprintln(&seeds, u)
	}
	present, err := os.ReadFile(name)
	switch {
	case err == nil && bytes.Equal(present, seeds.Bytes()):
		return nil
	case err == nil && !replace:
		return fmt.Errorf("--seeds %q exists with other content: name another file, or replace this file with --force", name)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(name), ".seeds-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(seeds.Bytes())
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err != nil {
		return fmt.Errorf("write seeds: %w", err)
	}
	return os.Rename(f.Name(), name)
}
