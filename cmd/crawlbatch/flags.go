package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"crawlbatch.io/crawlbatch/cmd/usage"
	"crawlbatch.io/crawlbatch/stages"
)

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

// givenFlags returns the flags of this command line that another command needs for the same store and
// config, except --month. Each flag is quoted for a shell and has a space before it.
func (c *common) givenFlags() string {
	flags := storeFlag(c.store) + usage.Flag("config", c.config)
	if c.oneMachine {
		flags += " --one-machine"
	}
	return flags + c.givenKeys(false)
}

// givenFlags adds the flags of the executor and the cluster to the flags of common.givenFlags.
func (o *runOptions) givenFlags() string {
	flags := o.common.givenFlags() + usage.Flag("settings", o.settings)
	if o.executor == executorKubernetes {
		flags += usage.Flag("executor", o.executor) + usage.Flag("kubeconfig", o.cluster.kubeconfig) + usage.Flag("kube-context", o.cluster.context) + o.givenKeys(true)
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

// hint appends to the error of an interruption the command that continues the work. It returns other
// errors unchanged.
func (o *runOptions) hint(err error, month string) error {
	flags := o.givenFlags()
	if o.rounds > 0 {
		flags = fmt.Sprintf(" --rounds %d", o.rounds) + flags
	}
	if exitCode(err) == exitInterrupted {
		return fmt.Errorf("%w: what was done is kept; go on with `crawlbatch run --month %s%s`", err, month, flags)
	}
	return err
}
