package inspect

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"crawlbatch.io/crawlbatch/formats/store"
)

// MaxInput is the largest inspected file or line of JSON, in bytes.
const MaxInput = 64 << 20

// Lines reads one JSON question from each line of the input. For each question, it writes one line
// with a JSON answer to the output, in the same order. If a line is not a JSON object of type Q,
// the answer is {"ok":false,"error":…}, and Lines continues. If the store cannot be read, or the command is
// interrupted, nothing is wrong with the line: Lines ends with the error.
func Lines[Q any](in io.Reader, out io.Writer, answer func(q Q) (any, error)) error {
	r := bufio.NewReaderSize(in, 1<<20)
	w := bufio.NewWriterSize(out, 1<<20)
	defer w.Flush()
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for line := 1; ; line++ {
		text, tooLong, err := readLine(r)
		if err == io.EOF && len(text) == 0 {
			return w.Flush()
		}
		if err != nil && err != io.EOF {
			return fmt.Errorf("stdin: line %d: %w", line, err)
		}
		if len(bytes.TrimSpace(text)) == 0 && !tooLong {
			continue
		}
		a, bad := any(nil), errTooLong
		if !tooLong {
			a, bad = answerLine(text, answer)
		}
		for _, end := range []error{store.ErrUnavailable, store.ErrDenied, context.Canceled, context.DeadlineExceeded} {
			if errors.Is(bad, end) {
				return fmt.Errorf("line %d: %w", line, bad)
			}
		}
		if bad != nil {
			a = failure{Error: fmt.Sprintf("line %d: %v", line, bad)}
		}
		if err := enc.Encode(a); err != nil {
			return err
		}
		if r.Buffered() == 0 { // the caller may wait for this answer before it asks its next question
			if err := w.Flush(); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return w.Flush()
		}
	}
}

var errTooLong = fmt.Errorf("longer than %d bytes", MaxInput)

func answerLine[Q any](text []byte, answer func(q Q) (any, error)) (any, error) {
	var q Q
	if err := json.Unmarshal(text, &q); err != nil {
		return nil, fmt.Errorf("not the expected JSON object: %w", err)
	}
	return answer(q)
}

type failure struct {
	OK    bool   `json:"ok"`
	Error string `json:"error"`
}

// readLine reads a line of at most MaxInput bytes. It skips the rest of a longer line.
func readLine(r *bufio.Reader) (line []byte, tooLong bool, err error) {
	for {
		part, err := r.ReadSlice('\n')
		if len(line)+len(part) > MaxInput {
			tooLong = true
		} else {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, tooLong, err
		}
	}
}
