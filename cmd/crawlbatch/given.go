package main

import (
	"fmt"

	"crawlbatch.io/crawlbatch/cmd/usage"
)

// given returns the flags, except --month, that another command needs for the same store and
// config. They come from this command, quoted for a shell, each after a space.
func (c *common) given() string {
	flags := ""
	if c.store != defaultStore {
		flags += " --store " + usage.Quote(c.store)
	}
	if c.config != "" {
		flags += " --config " + usage.Quote(c.config)
	}
	if c.oneMachine {
		flags += " --one-machine"
	}
	return flags + c.givenKeys(false)
}

// given adds the flags of the executor and the cluster.
func (o *runOptions) given() string {
	flags := o.common.given()
	if o.settings != "" {
		flags += " --settings " + usage.Quote(o.settings)
	}
	if o.executor == executorKubernetes {
		flags += " --executor " + executorKubernetes + o.cluster.given() + o.givenKeys(true)
	}
	return flags
}

func (o *clusterOptions) given() string {
	flags := ""
	if o.kubeconfig != "" {
		flags += " --kubeconfig " + usage.Quote(o.kubeconfig)
	}
	if o.context != "" {
		flags += " --kube-context " + usage.Quote(o.context)
	}
	return flags
}

// hint adds to an interruption the command that continues the work, here or in the same
// cluster.
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
