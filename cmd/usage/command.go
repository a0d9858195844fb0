package usage

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"crawlbatch.io/crawlbatch/jobs/config"
)

// Group makes a command that only holds other commands.
func Group(cmd *cobra.Command, children ...*cobra.Command) *cobra.Command {
	cmd.Args = KnownCommand
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.AddCommand(children...)
	return cmd
}

// WithOptions makes cmd refuse arguments and call run(ctx, *o), after the flags have set the options o.
func WithOptions[O any](o *O, run func(context.Context, O) error, cmd *cobra.Command) *cobra.Command {
	cmd.Args = NoArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), *o) }
	return cmd
}

// NoArgs refuses arguments.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return Errorf("%q: `%s` takes no arguments, only flags: see `%[2]s --help`", args[0], cmd.CommandPath())
}

// KnownCommand refuses the name of a command that a group does not have.
func KnownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		for i, name := range near {
			near[i] = fmt.Sprintf("`%s %s`", cmd.CommandPath(), name)
		}
		return Errorf("unknown command %q: did you mean %s?", args[0], OrList(near[:min(len(near), 3)]))
	}
	return Errorf("unknown command %q: see `%s --help`", args[0], cmd.CommandPath())
}

// mistyped returns an error if args name an unknown command of a group. cobra itself would only complain
// about the flags of the mistyped command, because the group does not know them.
func mistyped(cmd *cobra.Command, args []string) error {
	if !cmd.HasSubCommands() {
		return nil
	}
	above := strings.Count(cmd.CommandPath(), " ") // number of group names that must come before the command
	for i := 0; i < len(args) && args[i] != "--"; i++ {
		name, isFlag := strings.CutPrefix(args[i], "--")
		switch {
		case isFlag:
			if f := cmd.Flags().Lookup(name); f == nil && !strings.Contains(name, "=") {
				return nil // unclear: after an unknown flag, the next word may be the flag's value or a command
			} else if f != nil && f.NoOptDefVal == "" {
				i++
			}
		case strings.HasPrefix(args[i], "-"):
			return nil
		case above > 0:
			above--
		default:
			return KnownCommand(cmd, args[i:])
		}
	}
	return nil
}

// FlagError turns an error about a flag of a command line into a usage error.
func FlagError(cmd *cobra.Command, args []string, err error) error {
	if err := mistyped(cmd, args); err != nil {
		return err
	}
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() == "" {
		if near := similar(cmd, unknown.GetSpecifiedName()); near != "" {
			return Errorf("%v: did you mean --%s?", err, near)
		}
	}
	return seeHelp(cmd, err)
}

// similar returns the flag of a command whose name differs least from name, or "" if all names differ by more
// than two letters. The beginning of a name differs by nothing.
func similar(cmd *cobra.Command, name string) (near string) {
	least := min(3, len(name))
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		d := config.EditDistance(name, f.Name)
		if strings.HasPrefix(f.Name, name) {
			d = 0
		}
		if d < least && !f.Hidden {
			near, least = f.Name, d
		}
	})
	return near
}

// Finish turns errors about the arguments of a command and its children into usage errors. Finish
// also appends end to the help of these commands.
func Finish(cmd *cobra.Command, end string) {
	cmd.Long = strings.TrimSpace(cmd.Long) + "\n" + end
	cmd.SuggestionsMinimumDistance = 2
	if args := cmd.Args; args != nil {
		cmd.Args = func(cmd *cobra.Command, a []string) error {
			err := args(cmd, a)
			if err == nil || errors.Is(err, Err) {
				return err
			}
			return seeHelp(cmd, err)
		}
	}
	for _, child := range cmd.Commands() {
		Finish(child, end)
	}
}

// parsing matches the part of a message in which package strconv describes the wrong value of a flag.
var parsing = regexp.MustCompile(`strconv\.\w+: parsing "(?:[^"\\]|\\.)*": (.*)$`)

// seeHelp turns an error about flags or arguments into a usage error that names --help.
func seeHelp(cmd *cobra.Command, err error) error {
	return Errorf("%s: see `%s --help`", parsing.ReplaceAllString(err.Error(), "$1"), cmd.CommandPath())
}
