package main

import (
	"github.com/spf13/cobra"
)

// complete names the values that a flag of a command may have, for shells to complete.
func complete(cmd *cobra.Command, flag string, values ...string) {
	// It fails only for a flag that the command does not have, which a test would find.
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}
