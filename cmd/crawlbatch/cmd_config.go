package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"crawlbatch.io/crawlbatch/cmd/usage"
	"crawlbatch.io/crawlbatch/jobs/config"
)

func newConfig(c *common) *cobra.Command {
	var month, output string
	cmd := &cobra.Command{
		Use:   "config [--month YYYY-MM]",
		Short: "Print the config that applies, and where each value comes from",
		Long: `Config prints every key with its value. With --month, these are the values with which run
would continue that crawl; without --month, plan would freeze them. The comment of a line
says where the value comes from: the default, the line of the file, a flag, the frozen
config of the crawl, or the newest politeness.
${VAR} is printed as it is, and *** replaces secrets. The output is a config file.`,
		Example: `  crawlbatch config --config crawlbatch.yaml
  crawlbatch config --month 2026-11 -o json`,
		Args: usage.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runConfig(cmd.Context(), c, month, output) },
	}
	usage.MonthFlag(cmd, &month, "crawl whose frozen config and newest politeness apply")
	usage.OutputFlag(cmd, &output, "yaml", "json")
	c.configFlags(cmd, true)
	return cmd
}

func runConfig(ctx context.Context, c *common, month, output string) error {
	if err := usage.OneOf("output", output, "yaml", "json"); err != nil {
		return err
	}
	var cfg *config.Config
	var err error
	if month == "" {
		cfg, err = c.loadConfig()
	} else {
		_, cfg, err = c.openCrawl(ctx, month)
	}
	if err != nil {
		return err
	}
	settings, err := cfg.Settings()
	if err != nil {
		return err
	}
	if output == "json" {
		return usage.WriteJSON(c.out, settings)
	}
	return config.WriteYAML(c.out, settings)
}

// configFlags defines the flags that set keys of the config. If kubernetes is true, these are the flags
// for the section kubernetes, and only cmd gets them. Otherwise they are all other flags, and cmd and
// its subcommands get them.
func (c *common) configFlags(cmd *cobra.Command, kubernetes bool) {
	flags := cmd.Flags()
	if !kubernetes {
		flags = cmd.PersistentFlags()
	}
	for _, f := range c.flags.Flags() {
		if strings.HasPrefix(f.Key, "kubernetes.") != kubernetes {
			continue
		}
		switch at := f.At.(type) {
		case *string:
			flags.StringVar(at, f.Name, "", f.Help)
		case *[]string:
			flags.StringArrayVar(at, f.Name, nil, f.Help)
		case *bool:
			flags.BoolVar(at, f.Name, false, f.Help)
		}
	}
}

// givenKeys returns those flags of configFlags that the user gave, quoted for a shell.
func (c *common) givenKeys(kubernetes bool) string {
	flags := ""
	for _, f := range c.flags.Flags() {
		if strings.HasPrefix(f.Key, "kubernetes.") != kubernetes {
			continue
		}
		switch at := f.At.(type) {
		case *string:
			flags += usage.Flag(f.Name, *at)
		case *[]string:
			for _, value := range *at {
				flags += usage.Flag(f.Name, value)
			}
		case *bool:
			if *at {
				flags += " --" + f.Name
			}
		}
	}
	return flags
}
