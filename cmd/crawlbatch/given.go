package main

import (
	"fmt"

	"crawlbatch.io/crawlbatch/cmd/usage"
)

// given returns the flags, except --month, that another command needs for the same store and
// config. They come from this command, quoted for a shell, each after a space.
func (c *common) given() string {
	flags := storeFlag(c.store) + flagFor("config", c.config)
	if c.oneMachine {
		flags += " --one-machine"
	}
	return flags + c.givenKeys(false)
}

// given adds the flags of the executor and the cluster.
func (o *runOptions) given() string {
	flags := o.common.given() + flagFor("settings", o.settings)
	if o.executor == executorKubernetes {
		flags += flagFor("executor", o.executor) + flagFor("kubeconfig", o.cluster.kubeconfig) + flagFor("kube-context", o.cluster.context) + o.givenKeys(true)
	}
	return flags
}

// storeFlag is the flag for a store that is not the default.
func storeFlag(name string) string {
	if name == defaultStore {
		return ""
	}
	return " --store " + usage.Quote(name)
}

// flagFor is the flag for a value, quoted for a shell, after a space. An empty value has none.
func flagFor(name, value string) string {
	if value == "" {
		return ""
	}
	return " --" + name + " " + usage.Quote(value)
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
