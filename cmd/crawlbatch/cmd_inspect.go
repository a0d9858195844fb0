package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
)

// maxInspect bounds a file or a JSON line that inspect reads, bytes.
const maxInspect = 64 << 20

func newInspect(c *common) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "inspect url|robots|page|warc",
		Short: "What would it do with this, and why",
		Long: `Inspect shows what crawlbatch makes of a URL, a robots.txt, a page or a WARC file:
the same code that crawls, with its reasons. With --jsonl each reads one JSON object
a line on stdin and writes one a line, in order.`,
		Args: knownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newInspectURL(c), newInspectRobots(c), newInspectPage(c), newInspectWARC(c))
	return cmd
}

// jsonl answers each line of in with one line of out. A line that is no JSON
// object of the right shape is answered with {"ok":false,"error":…}: the lines
// after it still count.
func jsonl[Q any](in io.Reader, out io.Writer, answer func(q Q) (any, error)) error {
	r := bufio.NewReaderSize(in, 1<<20)
	w := bufio.NewWriterSize(out, 1<<20)
	defer w.Flush()
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for line := 1; ; line++ {
		text, tooLong, err := readLine(r, maxInspect)
		if err == io.EOF && len(text) == 0 {
			return w.Flush()
		}
		if err != nil && err != io.EOF {
			return fmt.Errorf("stdin: line %d: %w", line, err)
		}
		if len(bytes.TrimSpace(text)) == 0 && !tooLong {
			continue
		}
		var a any
		var q Q
		if tooLong {
			a = failure{Error: fmt.Sprintf("line %d: longer than %d bytes", line, maxInspect)}
		} else if bad := json.Unmarshal(text, &q); bad != nil {
			a = failure{Error: fmt.Sprintf("line %d: not the JSON object that is expected: %v", line, bad)}
		} else if a, bad = answer(q); bad != nil {
			a = failure{Error: fmt.Sprintf("line %d: %v", line, bad)}
		}
		if err := enc.Encode(a); err != nil {
			return err
		}
		// An answer is due when the asker waits for it: nothing more to read.
		if r.Buffered() == 0 {
			if err := w.Flush(); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return w.Flush()
		}
	}
}

type failure struct {
	OK    bool   `json:"ok"`
	Error string `json:"error"`
}

// readLine reads a line of at most limit bytes; the rest of a longer one is passed over.
func readLine(r *bufio.Reader, limit int) (line []byte, tooLong bool, err error) {
	for {
		part, err := r.ReadSlice('\n')
		if len(line)+len(part) > limit {
			tooLong = true
		} else {
			line = append(line, part...)
		}
		if err == nil {
			return line, tooLong, nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, tooLong, err
		}
	}
}

// readFile reads a file, or stdin for "-".
func (c *common) readFile(name string) ([]byte, error) {
	in := c.in
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, usagef("%v", err)
		}
		defer f.Close()
		in = f
	}
	body, err := io.ReadAll(io.LimitReader(in, maxInspect+1))
	if err != nil {
		return nil, usagef("%q: %v", name, err)
	}
	if len(body) > maxInspect {
		return nil, usagef("%q is larger than %d bytes", name, maxInspect)
	}
	return body, nil
}

// indent writes a JSON value over several lines.
func indent(w io.Writer, compact []byte) error {
	var buf bytes.Buffer
	if err := json.Indent(&buf, compact, "", "  "); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w, buf.String())
	return err
}
