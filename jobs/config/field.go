package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// field is a row of the table: one key of the file.
type field struct {
	path    string        // path of the key, such as fetch.timeout.total
	at      reflect.Value // struct field that holds the value
	initial any           // the default value
	change  mutability
	doc     string
	allowed string              // allowed values, for the reference; empty if all are allowed
	check   func(report report) // reports a value that is not allowed

	flag, help string              // name and help of the flag that sets the key; empty if there is none
	hide       func(string) string // replaces secrets in printed values; nil if values hold no secrets
	// instead returns the text to write in place of a literal secret. For a map, name is the key of
	// the entry that holds text.
	instead func(name, text string) string
}

// mutability says whether --config may change a key of a crawl that is already planned. A live key
// may change. Live keys change neither the set of crawled URLs nor the results. All other keys are
// frozen.
type mutability bool

const (
	frozen mutability = false
	live   mutability = true
)

// A report records a problem with the value of a key. The text describes the problem. If the value
// is a map, entry is the name of the wrong entry.
type report func(entry, text string)

// rule says which values a key may have.
type rule[T any] struct {
	allowed string
	check   func(v T, report report)
}

// key makes the row of a struct field. A nil rule allows every value of its type.
func key[T any](at *T, initial T, r *rule[T], change mutability, doc string) field {
	f := field{at: reflect.ValueOf(at).Elem(), initial: initial, change: change, doc: doc}
	if r != nil {
		f.allowed, f.check = r.allowed, func(report report) { r.check(*at, report) }
	}
	return f
}

func (f field) withFlag(name, help string) field {
	f.flag, f.help = name, help
	return f
}

func (f field) hidden(hide func(string) string, instead func(name, text string) string) field {
	f.hide, f.instead = hide, instead
	return f
}

// set stores a value. It converts v to the type of the struct field, which must be of v's kind.
func (f field) set(v any) { f.at.Set(reflect.ValueOf(v).Convert(f.at.Type())) }

// equal reports whether two rows of the same key hold the same value. An unset list or map equals
// an empty one.
func (f field) equal(other field) bool {
	if k := f.at.Kind(); (k == reflect.Map || k == reflect.Slice) && f.at.Len()+other.at.Len() == 0 {
		return true
	}
	return reflect.DeepEqual(f.at.Interface(), other.at.Interface())
}

// fields returns the table, with the path of each key.
func (c *Config) fields() []field {
	paths := map[any]string{}
	walk(reflect.ValueOf(c).Elem(), "", func(path, _ string, v reflect.Value) { paths[v.Addr().Interface()] = path })
	table := c.table()
	for i := range table {
		table[i].path = paths[table[i].at.Addr().Interface()]
	}
	return table
}

// walk visits the sections and keys below a struct in order.
func walk(v reflect.Value, prefix string, visit func(path, name string, v reflect.Value)) {
	if v.Kind() != reflect.Struct {
		return
	}
	for i := range v.NumField() {
		if name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ","); name != "" && name != "-" {
			visit(prefix+name, name, v.Field(i))
			walk(v.Field(i), prefix+name+".", visit)
		}
	}
}

// Default returns the config of an empty file.
func Default() *Config {
	c := &Config{}
	for _, f := range c.table() {
		if f.initial != nil {
			f.set(f.initial)
		}
	}
	return c
}

// fieldError names a wrong key and its allowed values.
type fieldError struct {
	field, text string
}

func (e *fieldError) Error() string        { return e.field + " " + e.text }
func (e *fieldError) Is(target error) bool { return target == ErrInvalid }

// Validate checks every key. The error names the first wrong key and the allowed values.
func (c *Config) Validate() error {
	var first error
	for _, f := range c.fields() {
		if f.check == nil || first != nil {
			continue
		}
		f.check(func(entry, text string) {
			path := f.path
			if entry != "" {
				path += "." + entry
			}
			if first == nil {
				first = &fieldError{path, text}
			}
		})
	}
	return first
}

// Flag is a command-line flag that sets a key.
type Flag struct {
	Key, Name, Help string
	At              any // *string, *[]string or *bool
}

// Flags returns the flags that set keys of c.
func (c *Config) Flags() []Flag {
	var flags []Flag
	for _, f := range c.fields() {
		if f.flag != "" {
			flags = append(flags, Flag{f.path, f.flag, f.help, f.at.Addr().Interface()})
		}
	}
	return flags
}

// Overlay sets the keys whose flags were given on the command line. flags holds the values of these
// flags; a zero value means that the flag was not given.
func (c *Config) Overlay(flags *Config) {
	given := flags.fields()
	for i, f := range c.fields() {
		if f.flag != "" && !given[i].at.IsZero() {
			f.at.Set(given[i].at)
			c.note(f.path, "--"+f.flag)
		}
	}
}

// note records the source of a key's value.
func (c *Config) note(path, from string) {
	if c.from == nil {
		c.from = map[string]string{}
	}
	c.from[path] = from
}

// SetPoliteness replaces the politeness section. from names the source of the section, such as a
// file.
func (c *Config) SetPoliteness(p Politeness, from string) {
	c.Politeness = p
	for _, f := range c.fields() {
		if strings.HasPrefix(f.path, "politeness.") {
			c.note(f.path, from)
		}
	}
}

// minMax makes a rule that allows the values between the two arguments, inclusive.
func minMax[T int | Duration | Bytes](least, most T) *rule[T] {
	allowed := fmt.Sprintf("%v to %v", least, most)
	return &rule[T]{allowed, func(v T, report report) {
		if v < least || v > most {
			report("", fmt.Sprintf("is %v: it must be %s", v, allowed))
		}
	}}
}

// points is the rule for parts of a priority.
var points = minMax(-1000, 1000)

func oneOf(values ...string) *rule[string] {
	allowed := strings.Join(values, ", ")
	return &rule[string]{allowed, func(v string, report report) {
		if !slices.Contains(values, v) {
			report("", fmt.Sprintf("is %q: it must be %s", v, allowed))
		}
	}}
}

// eachEntry makes a rule for a list whose entries must all be valid. what names an entry, and hint
// describes a valid one.
func eachEntry(what, hint string, valid func(string) bool) *rule[[]string] {
	return &rule[[]string]{"each " + hint, func(list []string, report report) {
		for _, v := range list {
			if !valid(v) {
				report("", fmt.Sprintf("holds %q, which is no %s: write %s", v, what, hint))
			}
		}
	}}
}

// eachValue makes a rule that applies r to every value of a map.
func eachValue[V any](r *rule[V]) *rule[map[string]V] {
	return &rule[map[string]V]{"each " + r.allowed, func(m map[string]V, report report) {
		for _, name := range sortedKeys(m) {
			r.check(m[name], func(_, text string) { report(name, text) })
		}
	}}
}

// orEmpty makes a rule that allows an empty text and every text that r allows.
func orEmpty(r *rule[string]) *rule[string] {
	return &rule[string]{r.allowed + ", or empty", func(v string, report report) {
		if v != "" {
			r.check(v, report)
		}
	}}
}

// orUnset makes a rule that allows an unset value and every value that r allows.
func orUnset[T any](r *rule[T]) *rule[*T] {
	return &rule[*T]{r.allowed, func(v *T, report report) {
		if v != nil {
			r.check(*v, report)
		}
	}}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
