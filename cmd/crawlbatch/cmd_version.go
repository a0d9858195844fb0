package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"crawlbatch.io/crawlbatch/formats/schema"
)

func newVersion(c *common) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version and how this binary was built",
		Long: `Version prints the version, as --version does, then the commit, Go release and platform
of the build, and the newest format of stored data that it can read.`,
		Example: "  crawlbatch version",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			info, _ := debug.ReadBuildInfo()
			return printVersion(c.out, info)
		},
	}
}

func printVersion(w io.Writer, info *debug.BuildInfo) error {
	commit, at := "unknown", ""
	if info != nil {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				commit = s.Value
			case "vcs.time":
				at = ", " + s.Value
			case "vcs.modified":
				if s.Value == "true" {
					at += ", with uncommitted changes"
				}
			}
		}
	}
	_, err := fmt.Fprintf(w, "crawlbatch %s\ncommit: %s%s\nbuilt with: %s for %s/%s\nformat of stored data: %d\n",
		version, commit, at, runtime.Version(), runtime.GOOS, runtime.GOARCH, schema.FormatVersion)
	return err
}

// stampedVersion is the version of the main module that Go stamped into the binary, or "dev".
func stampedVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "dev"
	}
	return info.Main.Version
}
