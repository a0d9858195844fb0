package inspect

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"crawlbatch.io/crawlbatch/formats/visible"
	"crawlbatch.io/crawlbatch/formats/warc"
)

// These errors are returned by WARC.
var (
	ErrDamaged    = errors.New("violation found")
	ErrUnreadable = errors.New("cannot be read")
)

// WARC lists the records of a WARC file as lines of text or JSON. It returns ErrDamaged if a record
// is damaged or contradicts its digests, and ErrUnreadable if the input is not a WARC file.
func WARC(in io.Reader, out io.Writer, name string, lines bool) error {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	unsound, records := 0, 0
	for f, err := range warc.Inspect(in) {
		if err != nil {
			return fmt.Errorf("%q: %w: %w", name, ErrUnreadable, err)
		}
		records++
		if !f.Sound() {
			unsound++
		}
		if lines {
			if err := enc.Encode(f); err != nil {
				return err
			}
			continue
		}
		if f.Damage != "" {
			fmt.Fprintf(out, "%d\t%d\tDAMAGED\t%s\n", f.Offset, f.Length, visible.Text(f.Damage))
			continue
		}
		fmt.Fprintf(out, "%d\t%d\t%s\t%s\t%s\tblock %s, payload %s", f.Offset, f.Length, visible.Text(string(f.Type)), visible.Text(f.TargetURI), visible.Text(f.StartLine), f.Block, f.Payload)
		for _, p := range f.Problems {
			fmt.Fprintf(out, "\t%s", visible.Text(p))
		}
		fmt.Fprintln(out)
	}
	if unsound > 0 {
		return fmt.Errorf("%q: %d of %d records are damaged or contradict their digests: %w", name, unsound, records, ErrDamaged)
	}
	return nil
}
