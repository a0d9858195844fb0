// Package usage reads what a user writes on a command line, and describes mistakes in it.
package usage

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Err marks errors about the command line and its inputs. Such errors wrap Err.
var Err = errors.New("usage")

// mistake is an error whose one-line text says what is wrong and what to do.
type mistake struct{ error }

func (mistake) Is(target error) bool { return target == Err }
func (m mistake) Unwrap() error      { return m.error }

// Error returns an error with the text of err. The returned error wraps both err and Err.
func Error(err error) error { return mistake{err} }

// ErrorUnless is like Error, but returns an error that wraps target as it is.
func ErrorUnless(err, target error) error {
	if errors.Is(err, target) {
		return err
	}
	return Error(err)
}

// Errorf formats an error as fmt.Errorf does. The error also wraps Err. The text should say what is
// wrong and what to write instead.
func Errorf(format string, args ...any) error { return Error(fmt.Errorf(format, args...)) }

// OneOf refuses a flag value that is not allowed.
func OneOf(flag, value string, allowed ...string) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	return Errorf("--%s %q: it must be %s", flag, value, OrList(allowed))
}

// OrList writes a list as a, b or c.
func OrList(values []string) string {
	last := len(values) - 1
	if last < 1 {
		return strings.Join(values, "")
	}
	return strings.Join(values[:last], ", ") + " or " + values[last]
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./~-]+$`)

// Quote quotes s so that a POSIX shell reads it as one word.
func Quote(s string) string {
	if plainWord.MatchString(s) && s[0] != '~' {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
