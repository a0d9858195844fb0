package config

import (
	"fmt"
	"io"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
)

// Setting is a key of a config, with its value and where that comes from.
type Setting struct {
	Key   string `json:"key"`
	Value any    `json:"value"` // ${VAR} is not expanded, and secrets are replaced by ***
	From  string `json:"from"`  // default, FILE:LINE, --FLAG, or what froze it
}

// Settings lists every key with its value.
func (c *Config) Settings() ([]Setting, error) {
	text, err := c.YAML()
	if err != nil {
		return nil, err
	}
	var tree map[string]any
	if err := yaml.Unmarshal([]byte(text), &tree); err != nil {
		return nil, fmt.Errorf("render config: %w", err)
	}
	var settings []Setting
	for _, f := range c.fields() {
		s := Setting{Key: f.path, Value: lookUp(tree, f.path), From: c.from[f.path]}
		if s.From == "" {
			s.From = "default"
		}
		if slices.ContainsFunc(c.references, func(r unexpanded) bool { return strings.HasPrefix(r.path+".", "$."+f.path+".") }) {
			s.From += ", environment"
		}
		if s.Value == nil { // an empty value, which YAML leaves out
			s.Value = empty(f.at)
		}
		if f.hide != nil {
			s.Value = hideIn(s.Value, f.hide)
		}
		settings = append(settings, s)
	}
	return settings, nil
}

func lookUp(tree map[string]any, path string) any {
	first, rest, deeper := strings.Cut(path, ".")
	if below, ok := tree[first].(map[string]any); ok && deeper {
		return lookUp(below, rest)
	}
	return tree[first]
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

const masked = "***"

// hideIn hides the secrets in a text, or in the values of a map.
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

// hideAll replaces a text, unless it is a reference to the environment.
func hideAll(text string) string {
	if text == "" || reference.FindString(text) == text {
		return text
	}
	return masked
}

var password = regexp.MustCompile(`://([^:/@]*):([^/]*)@`)

// hidePassword replaces the password in a URL.
func hidePassword(text string) string {
	return password.ReplaceAllStringFunc(text, func(user string) string {
		m := password.FindStringSubmatch(user)
		return "://" + m[1] + ":" + hideAll(m[2]) + "@"
	})
}

// WriteYAML writes settings as a config file. The comment of each line says where the value
// comes from.
func WriteYAML(w io.Writer, settings []Setting) error {
	var text strings.Builder
	var open []string // sections that the last line is in
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

// inline is the YAML of a value on one line.
func inline(value any) (string, error) {
	text, err := yaml.MarshalWithOptions(value, yaml.Flow(true))
	return strings.TrimSpace(string(text)), err
}
