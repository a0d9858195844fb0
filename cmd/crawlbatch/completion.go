package main

import (
	"github.com/spf13/cobra"

	"crawlbatch.io/crawlbatch/stages"
)

// addCompletion adds the command completion, for the shells whose scripts are tested.
func addCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	completion, _, err := root.Find([]string{"completion"})
	if err != nil {
		return // the library has none
	}
	completion.Short = "Print a script that completes commands and flags in bash, zsh or fish"
	completion.Long = `Completion prints a script for a shell that completes commands, flags, stages and dialects.`
	completion.Args = knownCommand
	completion.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	completion.Example = `  source <(crawlbatch completion bash)
  crawlbatch completion zsh > "${fpath[1]}/_crawlbatch"
  crawlbatch completion fish > ~/.config/fish/completions/crawlbatch.fish`
	for _, shell := range completion.Commands() {
		if shell.Name() == "powershell" {
			completion.RemoveCommand(shell)
		}
	}
	completeFlag(root, "log-format", "text", "json")
	if err := root.MarkPersistentFlagDirname("store"); err == nil {
		_ = root.MarkPersistentFlagFilename("config", "yaml", "yml") // it exists as store does
	}
	stageNames := make([]string, len(stages.Order))
	for i, s := range stages.Order {
		stageNames[i] = string(s)
	}
	for _, cmd := range append(root.Commands(), childrenOf(root)...) {
		completeFlag(cmd, "stage", stageNames...)
		completeFlag(cmd, "dialect", dialects...)
		completeFlag(cmd, "executor", executorLocal, executorKubernetes)
		completeFlag(cmd, "output", "table", "json")
		completeFlag(cmd, "fault-classes", "quick", "retried", "slow")
		if cmd.Name() == "task" {
			cmd.ValidArgs = stageNames
		}
	}
}

func childrenOf(root *cobra.Command) (out []*cobra.Command) {
	for _, cmd := range root.Commands() {
		out = append(out, cmd.Commands()...)
	}
	return out
}

// completeFlag names the values of a flag for shells to complete, where cmd has that flag.
func completeFlag(cmd *cobra.Command, flag string, values ...string) {
	if cmd.LocalFlags().Lookup(flag) == nil {
		return
	}
	// It fails only for a flag that does not exist.
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}
