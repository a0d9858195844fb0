package config

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// Setting is one key of a config, with its value and the source of the value.
type Setting struct {
	Key   string `json:"key"`
	Value any    `json:"value"` // with ${VAR} not expanded and *** for secrets
	From  string `json:"from"`  // source of the value: "default", FILE:LINE, --FLAG, or the document that froze the value
}

// Settings lists every key with its value.
func (c *Config) Settings() ([]Setting, error) {
	file, err := c.stored()
	if err != nil {
		return nil, err
	}
	var settings []Setting
	for _, f := range c.fields() {
		s := Setting{Key: f.path, From: cmp.Or(c.from[f.path], "default")}
		if slices.ContainsFunc(c.references, func(r unexpanded) bool { return strings.HasPrefix(r.path+".", "$."+f.path+".") }) {
			s.From += ", environment"
		}
		if s.Value, err = storedValue(file, f.path); err != nil {
			return nil, err
		}
		if s.Value == nil { // YAML omits an empty value
			s.Value = empty(f.at)
		}
		if f.hide != nil {
			s.Value = hideIn(s.Value, f.hide)
		}
		settings = append(settings, s)
	}
	return settings, nil
}

// stored renders the config as crawl.json stores it, with ${VAR} unexpanded, and parses this YAML.
func (c *Config) stored() (*ast.File, error) {
	text, err := c.YAML()
	if err != nil {
		return nil, err
	}
	file, err := parser.ParseBytes([]byte(text), 0)
	if err != nil {
		return nil, fmt.Errorf("render config: %w", err)
	}
	return file, nil
}

// storedValue returns the value of a key in the file returned by stored, or nil if there is none.
func storedValue(file *ast.File, path string) (value any, err error) {
	node, err := nodeAt(file, "$."+path)
	if err == nil && node != nil {
		err = yaml.NodeToValue(node, &value)
	}
	if err != nil {
		return nil, fmt.Errorf("render config: %s: %w", path, err)
	}
	return value, nil
}

func empty(v reflect.Value) any {
	switch v.Kind() {
	case reflect.Slice:
		return []any{}
	case reflect.Map:
		return map[string]any{}
	case reflect.Pointer:
		return nil
	}
	return v.Interface()
}

// hideIn hides the secrets in a string or in the values of a map.
func hideIn(value any, hide func(string) string) any {
	switch v := value.(type) {
	case string:
		return hide(v)
	case map[string]any:
		v = maps.Clone(v)
		for name := range v {
			v[name] = hide(fmt.Sprint(v[name]))
		}
		return v
	}
	return value
}

// WriteYAML writes settings as a config file, with the source of each value in a comment.
func WriteYAML(w io.Writer, settings []Setting) error {
	var text strings.Builder
	var open []string // sections that enclose the last key written
	for _, s := range settings {
		value, err := inline(s.Value)
		if err != nil {
			return fmt.Errorf("render %s: %w", s.Key, err)
		}
		sections := strings.Split(s.Key, ".")
		name := sections[len(sections)-1]
		sections = sections[:len(sections)-1]
		for i, section := range sections {
			if i >= len(open) || section != open[i] {
				fmt.Fprintf(&text, "%s%s:\n", indent(i), section)
				open = nil
			}
		}
		open = sections
		fmt.Fprintf(&text, "%-38s # %s\n", indent(len(sections))+name+": "+value, s.From)
	}
	_, err := io.WriteString(w, text.String())
	return err
}

func indent(depth int) string { return strings.Repeat("  ", depth) }

// inline returns the YAML of a value on one line. YAML would break a text with control characters
// into several lines. Such a text therefore becomes JSON, which is valid YAML.
func inline(value any) (string, error) {
	if hasControls(value) {
		text, err := json.Marshal(value)
		return string(text), err
	}
	text, err := yaml.MarshalWithOptions(value, yaml.Flow(true))
	return strings.TrimSpace(string(text)), err
}

// hasControls reports whether a value contains control characters in any of its strings.
func hasControls(value any) bool {
	switch v := value.(type) {
	case string:
		return strings.ContainsFunc(v, unicode.IsControl)
	case []any:
		return slices.ContainsFunc(v, hasControls)
	case map[string]any:
		for name, below := range v {
			if hasControls(name) || hasControls(below) {
				return true
			}
		}
	}
	return false
}
