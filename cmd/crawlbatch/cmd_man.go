package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// newMan returns the command that `make release` runs. It is hidden, because installed pages are of
// more use than the command.
func newMan() *cobra.Command {
	return &cobra.Command{
		Use:   "man DIR",
		Short: "Write a man page of each command into a directory",
		Long: `Man writes a man page of each command into a directory that exists. The pages bear the date of
SOURCE_DATE_EPOCH, or today's.`,
		Example: "  crawlbatch man /usr/local/share/man/man1",
		Args:    cobra.ExactArgs(1),
		Hidden:  true,
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			root.DisableAutoGenTag = true
			return doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "crawlbatch", Manual: "crawlbatch"}, args[0])
		},
	}
}
