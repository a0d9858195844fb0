package main

import (
	"encoding/json"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"crawlbatch.io/crawlbatch/stages"
)

// Flags that several commands have.

func monthFlag(cmd *cobra.Command, month *string, help string) {
	cmd.Flags().StringVar(month, "month", "", help+", as 2026-11")
}

// outputFlag defines --output, whose default is the first format.
func outputFlag(cmd *cobra.Command, output *string, formats ...string) {
	cmd.Flags().StringVarP(output, "output", "o", formats[0], strings.Join(formats, " or "))
	completeFlag(cmd, "output", formats...)
}

func stageFlag(cmd *cobra.Command, stage *string, help string) {
	cmd.Flags().StringVar(stage, "stage", "", help+": "+orList(stageNames()))
	completeFlag(cmd, "stage", stageNames()...)
}

func stageNames() []string {
	names := make([]string, len(stages.Order))
	for i, s := range stages.Order {
		names[i] = string(s)
	}
	return names
}

// oneOf refuses a flag value that is not allowed.
func oneOf(flag, value string, allowed ...string) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	return usagef("--%s %q: it must be %s", flag, value, orList(allowed))
}

// orList writes a list as a, b or c.
func orList(values []string) string {
	last := len(values) - 1
	if last < 1 {
		return strings.Join(values, "")
	}
	return strings.Join(values[:last], ", ") + " or " + values[last]
}

// writeJSON writes a value over several lines.
func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", " ")
	return enc.Encode(v)
}
