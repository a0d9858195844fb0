package main

import (
	"context"
	"encoding/json"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"crawlbatch.io/crawlbatch/cmd/usage"
	"crawlbatch.io/crawlbatch/stages"
)

// withOptions makes cmd a command without arguments that runs run with the options that its flags
// have set.
func withOptions[O any](o *O, run func(context.Context, O) error, cmd *cobra.Command) *cobra.Command {
	cmd.Args = cobra.NoArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), *o) }
	return cmd
}

// Flags that several commands have.

func monthFlag(cmd *cobra.Command, month *string, help string) {
	cmd.Flags().StringVar(month, "month", "", help+", such as 2026-11")
}

// outputFlag defines --output, whose default is the first format.
func outputFlag(cmd *cobra.Command, output *string, formats ...string) {
	cmd.Flags().StringVarP(output, "output", "o", formats[0], strings.Join(formats, " or "))
	usage.CompleteFlag(cmd, "output", formats...)
}

func stageFlag(cmd *cobra.Command, stage *string, help string) {
	cmd.Flags().StringVar(stage, "stage", "", help+": "+usage.OrList(stageNames()))
	usage.CompleteFlag(cmd, "stage", stageNames()...)
}

func stageNames() []string {
	names := make([]string, len(stages.Order))
	for i, s := range stages.Order {
		names[i] = string(s)
	}
	return names
}

// writeJSON writes a value over several lines.
func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", " ")
	return enc.Encode(v)
}
