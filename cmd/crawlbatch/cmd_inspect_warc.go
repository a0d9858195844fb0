package main

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"crawlbatch.io/crawlbatch/formats/warc"
)

func newInspectWARC(c *common) *cobra.Command {
	var lines bool
	cmd := &cobra.Command{
		Use:   "warc FILE",
		Short: "List the records of a WARC file and check their digests",
		Long: `Warc lists the records of a WARC file, plain or gzip (- for stdin): offset, length, type,
target, first line and whether the digests match. It reports damaged bytes and reads on
after them; any damage ends with exit 4. With --jsonl: one JSON object a record.`,
		Example: "  crawlbatch inspect warc crawl-data/warc/crawl=2026-11/round=0/2026-11-r0-4f2a8c17d03b65e9-part-00000-e1-00001.warc.gz",
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("give one FILE (- for stdin): see `crawlbatch inspect warc --help`")
			}
			in, err := c.openInput(args[0])
			if err != nil {
				return err
			}
			defer in.Close()
			return inspectWARC(in, c.out, args[0], lines)
		},
	}
	cmd.Flags().BoolVar(&lines, "jsonl", false, "write one JSON object a record")
	return cmd
}

// errViolation: what is stored breaks a promise (exit 4).
var errViolation = fmt.Errorf("violation found")

func inspectWARC(in io.Reader, out io.Writer, name string, lines bool) error {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	unsound, records := 0, 0
	for f, err := range warc.Inspect(in) {
		if err != nil {
			return usagef("%q: %v", name, err)
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
			fmt.Fprintf(out, "%d\t%d\tDAMAGED\t%s\n", f.Offset, f.Length, f.Damage)
			continue
		}
		fmt.Fprintf(out, "%d\t%d\t%s\t%s\t%s\tblock %s, payload %s", f.Offset, f.Length, f.Type, f.TargetURI, f.StartLine, f.Block, f.Payload)
		for _, p := range f.Problems {
			fmt.Fprintf(out, "\t%s", p)
		}
		fmt.Fprintln(out)
	}
	if unsound > 0 {
		return fmt.Errorf("%q: %d of %d records are damaged or contradict their digests: %w", name, unsound, records, errViolation)
	}
	return nil
}
