package usage

import (
	"regexp"
	"strings"
)

// adviceForm matches a command of this program in a message. Its groups are the command up to the month,
// and the rest of the command.
var adviceForm = regexp.MustCompile("(`crawlbatch (?:[a-z]+ --month [^ `]+|prune --apply))([^`]*)`")

// Advise adds flags to each command that a text advises, unless the command already has them. This is
// necessary because the lower packages that write such texts do not know the flags of the command line.
func Advise(text, flags string) string {
	return adviceForm.ReplaceAllStringFunc(text, func(command string) string {
		if m := adviceForm.FindStringSubmatch(command); !strings.Contains(m[2], flags) {
			return m[1] + flags + m[2] + "`"
		}
		return command
	})
}

// Flag returns a space and the flag with its value, quoted for a shell. For an empty value, Flag
// returns "".
func Flag(name, value string) string {
	if value == "" {
		return ""
	}
	return " --" + name + " " + Quote(value)
}
