package main

import (
	"fmt"
	"regexp"
	"strings"
)

// again is what a command for the same store and config needs beside --month, with
// a space before it: what this one was given, quoted for a shell.
func (c *common) again() string {
	flags := ""
	if c.store != defaultStore {
		flags += " --store " + shellQuote(c.store)
	}
	if c.config != "" {
		flags += " --config " + shellQuote(c.config)
	}
	if c.oneMachine {
		flags += " --one-machine"
	}
	return flags + c.configAgain(false)
}

// again is what a command needs that is to run tasks where this one does, or tells
// of such: the executor and the cluster too.
func (o *runOptions) again() string {
	flags := o.common.again()
	if o.settings != "" {
		flags += " --settings " + shellQuote(o.settings)
	}
	if o.executor == executorKubernetes {
		flags += " --executor " + executorKubernetes + o.cluster.again() + o.configAgain(true)
	}
	return flags
}

func (o *clusterOptions) again() string {
	flags := ""
	if o.kubeconfig != "" {
		flags += " --kubeconfig " + shellQuote(o.kubeconfig)
	}
	if o.context != "" {
		flags += " --kube-context " + shellQuote(o.context)
	}
	return flags
}

// hint adds to an interruption how to go on, here or in the same cluster.
func (o *runOptions) hint(err error, month string) error {
	flags := o.again()
	if o.rounds > 0 {
		flags = fmt.Sprintf(" --rounds %d", o.rounds) + flags
	}
	return goOn(err, month, flags)
}

func goOn(err error, month, flags string) error {
	if exitCode(err) == exitInterrupted {
		return fmt.Errorf("%w: what was done is kept; go on with `crawlbatch run --month %s%s`", err, month, flags)
	}
	return err
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./~-]+$`)

// shellQuote makes s one word for a POSIX shell.
func shellQuote(s string) string {
	if plainWord.MatchString(s) && s[0] != '~' {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
