package main

import (
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
	return flags
}

// again of a command with an executor names that too, and the cluster.
func (o *runOptions) again() string {
	flags := o.common.again()
	if o.executor != executorKubernetes {
		return flags
	}
	flags += " --executor " + executorKubernetes
	for _, f := range []struct{ name, value string }{
		{"kubeconfig", o.cluster.kubeconfig}, {"kube-context", o.cluster.context}, {"namespace", o.cluster.namespace}, {"image", o.cluster.image},
	} {
		if f.value != "" {
			flags += " --" + f.name + " " + shellQuote(f.value)
		}
	}
	return flags
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./~-]+$`)

// shellQuote makes s one word for a POSIX shell.
func shellQuote(s string) string {
	if plainWord.MatchString(s) && s[0] != '~' {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
