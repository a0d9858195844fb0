package main

import (
	"runtime/debug"

	"github.com/spf13/cobra"

	"crawlbatch.io/crawlbatch/cmd/usage"
)

func newVersion(c *common) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version and how this binary was built",
		Long: `Version prints the version, as --version does, then the commit, Go release and platform
of the build, and the newest format of stored data that it can read.`,
		Example: "  crawlbatch version",
		Args:    usage.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			info, _ := debug.ReadBuildInfo()
			return usage.PrintVersion(c.out, version, info)
		},
	}
}
