package usage

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// OutputFlag defines --output, whose default is the first format.
func OutputFlag(cmd *cobra.Command, output *string, formats ...string) {
	cmd.Flags().StringVarP(output, "output", "o", formats[0], strings.Join(formats, " or "))
	CompleteFlag(cmd, "output", formats...)
}

// WriteJSON writes a value over several lines.
func WriteJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", " ")
	return enc.Encode(v)
}

// Indent writes a JSON text over several lines.
func Indent(w io.Writer, compact []byte) error {
	var buf bytes.Buffer
	if err := json.Indent(&buf, compact, "", "  "); err != nil {
		return err
	}
	buf.WriteByte('\n')
	_, err := buf.WriteTo(w)
	return err
}

// CheckFile reports whether WriteFile can write a file, for a command that works for long before it
// writes.
func CheckFile(name string) error {
	if i, err := os.Stat(name); err == nil && !i.Mode().IsRegular() {
		return Errorf("%q exists and is no regular file: give another name", name)
	}
	if i, err := os.Stat(filepath.Dir(name)); err != nil || !i.IsDir() {
		return Errorf("%q: there is no directory %q", name, filepath.Dir(name))
	}
	return nil
}

// WriteFile replaces a file that the user names, or creates it. A reader sees the old content or the
// new, never a part of the new.
func WriteFile(name string, body []byte) (err error) {
	if err := CheckFile(name); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+"-*")
	if err != nil {
		return Error(err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	_, err = f.Write(body)
	if err := errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}
