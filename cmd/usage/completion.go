package usage

import "github.com/spf13/cobra"

// AddCompletion adds the command completion, for the shells whose scripts are tested.
func AddCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	completion, _, err := root.Find([]string{"completion"})
	if err != nil {
		return // cobra has no completion command
	}
	completion.Short = "Print a script that completes commands and flags in bash, zsh or fish"
	completion.Long = `Completion prints a script with which a shell completes commands, flags and their values:
stages, dialects and, from the store, months, rounds and partitions.`
	completion.Args = KnownCommand
	completion.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	completion.Example = `  source <(crawlbatch completion bash)
  crawlbatch completion zsh > "${fpath[1]}/_crawlbatch"
  crawlbatch completion fish > ~/.config/fish/completions/crawlbatch.fish`
	for _, shell := range completion.Commands() {
		if shell.Name() == "powershell" {
			completion.RemoveCommand(shell)
		}
	}
}

// CompleteFlag lets shells complete the values of a flag.
func CompleteFlag(cmd *cobra.Command, flag string, values ...string) {
	// RegisterFlagCompletionFunc fails only for an unknown flag.
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}
