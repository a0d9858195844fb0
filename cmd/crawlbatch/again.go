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

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./~-]+$`)

// shellQuote makes s one word for a POSIX shell.
func shellQuote(s string) string {
	if plainWord.MatchString(s) && s[0] != '~' {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
