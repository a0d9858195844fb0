package usage

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"crawlbatch.io/crawlbatch/formats/schema"
)

// PrintVersion prints the version of the binary, and how the binary was built.
func PrintVersion(w io.Writer, version string, info *debug.BuildInfo) error {
	from, at := "commit: unknown", ""
	if info != nil {
		if info.Main.Sum != "" { // built by go install MODULE@VERSION, which knows no commit
			from = fmt.Sprintf("module: %s@%s %s", info.Main.Path, info.Main.Version, info.Main.Sum)
		}
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				from = "commit: " + s.Value
			case "vcs.time":
				at = ", " + s.Value
			case "vcs.modified":
				if s.Value == "true" {
					at += ", with uncommitted changes"
				}
			}
		}
	}
	_, err := fmt.Fprintf(w, "crawlbatch %s\n%s%s\nbuilt with: %s for %s/%s\nformat of stored data: %d\n",
		version, from, at, runtime.Version(), runtime.GOOS, runtime.GOARCH, schema.FormatVersion)
	return err
}

// StampedVersion returns the version of the main module that Go stamped into the binary, or "dev".
func StampedVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "dev"
	}
	return info.Main.Version
}
