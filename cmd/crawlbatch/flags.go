package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"crawlbatch.io/crawlbatch/cmd/usage"
	"crawlbatch.io/crawlbatch/stages"
)

// withOptions makes the command cmd refuse arguments and call the function run. The function run
// gets the options that the flags have set.
func withOptions[O any](o *O, run func(context.Context, O) error, cmd *cobra.Command) *cobra.Command {
	cmd.Args = cobra.NoArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), *o) }
	return cmd
}

// The functions in this file define flags that several commands have.

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

// The method given returns those flags of this command line that another command needs for the same
// store and config. The method omits --month, quotes each flag for a shell, and puts a space before
// each flag.
func (c *common) given() string {
	flags := storeFlag(c.store) + flagFor("config", c.config)
	if c.oneMachine {
		flags += " --one-machine"
	}
	return flags + c.givenKeys(false)
}

// The method given adds the flags of the executor and the cluster to the flags of common.given.
func (o *runOptions) given() string {
	flags := o.common.given() + flagFor("settings", o.settings)
	if o.executor == executorKubernetes {
		flags += flagFor("executor", o.executor) + flagFor("kubeconfig", o.cluster.kubeconfig) + flagFor("kube-context", o.cluster.context) + o.givenKeys(true)
	}
	return flags
}

// storeFlag returns the flag --store, or "" for the default store.
func storeFlag(name string) string {
	if name == defaultStore {
		return ""
	}
	return " --store " + usage.Quote(name)
}

// adviceForm matches a command of this program in a message. The groups of adviceForm are
// the command up to its month, and the rest of the command.
var adviceForm = regexp.MustCompile("(`crawlbatch [a-z]+ --month [^ `]+)([^`]*)`")

// The function advised adds flags to each command that a text advises, unless the command already
// has the flags. The packages below cmd, which write such texts, do not know the flags of the
// command line.
func advised(text, flags string) string {
	return adviceForm.ReplaceAllStringFunc(text, func(command string) string {
		if m := adviceForm.FindStringSubmatch(command); !strings.Contains(m[2], flags) {
			return m[1] + flags + m[2] + "`"
		}
		return command
	})
}

// flagFor returns a space and the flag with its value, quoted for a shell. For an empty value,
// flagFor returns "".
func flagFor(name, value string) string {
	if value == "" {
		return ""
	}
	return " --" + name + " " + usage.Quote(value)
}

// If the error means an interruption, hint adds the command that continues the work to the error.
func (o *runOptions) hint(err error, month string) error {
	flags := o.given()
	if o.rounds > 0 {
		flags = fmt.Sprintf(" --rounds %d", o.rounds) + flags
	}
	if exitCode(err) == exitInterrupted {
		return fmt.Errorf("%w: what was done is kept; go on with `crawlbatch run --month %s%s`", err, month, flags)
	}
	return err
}
