package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// ErrInvalid means that the user must correct the config.
var ErrInvalid = errors.New("invalid config")

// invalid is an error with a one-line message. errors.Is finds ErrInvalid in it.
type invalid struct{ text string }

func (e *invalid) Error() string        { return e.text }
func (e *invalid) Is(target error) bool { return target == ErrInvalid }

func invalidf(format string, args ...any) error { return &invalid{fmt.Sprintf(format, args...)} }

// maxFile is the size of the largest config file, in bytes.
const maxFile = 4 << 20

// LoadOver reads a config file, applies its keys to a copy of base, and checks the result. Keys
// that the file does not set keep the values that they have in base. The exception is the section
// politeness: if the file has it, its missing keys get their defaults. If path is empty, LoadOver
// returns a copy of base.
func LoadOver(base *Config, path string, lookup func(string) (string, bool)) (*Config, error) {
	if path == "" {
		return base.Clone(), nil
	}
	body, err := os.ReadFile(path)
	if err != nil {
		return nil, invalidf("config: cannot read %q: %v", path, errors.Unwrap(err))
	}
	return readOver(base, path, body, lookup)
}

// Read applies the keys of a YAML file to the defaults, expands each ${VAR} in the values with
// lookup, and checks the result. Error messages refer to the file by the given name.
func Read(name string, body []byte, lookup func(string) (string, bool)) (*Config, error) {
	return readOver(Default(), name, body, lookup)
}

// ReadFrozen reads the config in crawl.json, or another stored config, in the way that Read reads a
// file.
func ReadFrozen(name string, body []byte, lookup func(string) (string, bool)) (*Config, error) {
	c, err := readOver(Default(), name, body, lookup)
	if err != nil {
		return nil, err
	}
	for _, f := range c.fields() {
		if f.change == frozen {
			c.note(f.path, "frozen in "+name)
		} else {
			c.note(f.path, name)
		}
	}
	return c, nil
}

func readOver(base *Config, name string, body []byte, lookup func(string) (string, bool)) (*Config, error) {
	if len(body) > maxFile {
		return nil, invalidf("%s: larger than %d bytes: this is not a crawlbatch config", name, maxFile)
	}
	if i := bytes.IndexByte(body, 0); i >= 0 {
		return nil, invalidf("%s: NUL at byte %d: this is not a YAML file", name, i)
	}
	c := base.Clone()
	file, err := parser.ParseBytes(body, 0)
	if err != nil {
		return nil, located(name, file, err)
	}
	if len(file.Docs) > 1 {
		return nil, invalidf("%s: %d YAML documents in one file: keep one", name, len(file.Docs))
	}
	if len(file.Docs) == 1 && file.Docs[0].Body != nil {
		root := file.Docs[0].Body
		e := &expander{lookup: lookup}
		ast.Walk(e, root)
		if e.err != nil {
			return nil, located(name, file, e.err)
		}
		var sections map[string]any
		if yaml.NodeToValue(root, &sections) == nil {
			if _, ok := sections["politeness"]; ok {
				p := Default().Politeness
				p.Stops = c.Politeness.Stops
				c.SetPoliteness(p, "")
			}
		}
		c.references = append(c.references, e.found...)
		before := c.Clone()
		if err := yaml.NodeToValue(root, c, yaml.Strict()); err != nil {
			return nil, located(name, file, err)
		}
		c.noteSources(name, file, before)
		classes := Default().Politeness.Classes
		maps.Copy(classes, c.Politeness.Classes)
		c.Politeness.Classes = classes
		if wrong := c.canonicalHosts(); len(wrong) > 0 {
			w := wrong[0]
			line := cmp.Or(lineAt(file, w.key+".'"+w.name+"'"), lineOf(file, w.key))
			return nil, located(name, file, &lineError{line, fmt.Sprintf("%s holds %q, %s", w.key, w.name, w.why)})
		}
	}
	if err := c.noteReferences(); err != nil {
		return nil, err
	}
	err = c.readFocus(c.Frontier.Focus.Model != base.Frontier.Focus.Model)
	if err == nil {
		err = c.Validate()
	}
	if err != nil {
		var f *fieldError
		if errors.As(err, &f) {
			if line := lineOf(file, f.field); line > 0 {
				return nil, invalidf("%s:%d: %s", name, line, f)
			}
		}
		return nil, invalidf("%s: %v", name, err)
	}
	return c, nil
}

// noteSources records where the file sets each key.
func (c *Config) noteSources(name string, file *ast.File, before *Config) {
	earlier := before.fields()
	for i, f := range c.fields() {
		if line := lineAt(file, f.path); line > 0 {
			c.note(f.path, fmt.Sprintf("%s:%d", name, line))
		} else if !f.equal(earlier[i]) { // an alias or a merge key sets the value
			c.note(f.path, name)
		}
	}
}

// YAML renders the config for crawl.json, with every key. It does not expand ${VAR}, so that no
// secret from the environment gets into the store.
func (c *Config) YAML() (string, error) {
	text, file, err := c.render()
	if err != nil || len(c.references) == 0 {
		return text, err
	}
	for _, r := range c.references {
		if value, err := valueAt(file, r.path); err != nil {
			return "", err
		} else if value != r.value { // a flag or another file has replaced the value
			continue
		}
		p, err := yaml.PathString(r.path)
		if err == nil {
			err = p.ReplaceWithReader(file, strings.NewReader(strconv.Quote(r.text)))
		}
		if err != nil {
			return "", fmt.Errorf("render config: %s: %w", r.path, err)
		}
	}
	return file.String(), nil
}

func (c *Config) render() (text string, file *ast.File, err error) {
	b, err := yaml.Marshal(c)
	if err == nil {
		file, err = parser.ParseBytes(b, 0)
	}
	if err != nil {
		return "", nil, fmt.Errorf("render config: %w", err)
	}
	return string(b), file, nil
}

// noteReferences records the values of new references, and removes references that are no longer in
// the config.
func (c *Config) noteReferences() error {
	if len(c.references) == 0 {
		return nil
	}
	_, file, err := c.render()
	if err != nil {
		return err
	}
	var kept []unexpanded
	for _, r := range c.references {
		value, err := valueAt(file, r.path)
		if err != nil {
			return err
		}
		if value != "" && (r.value == "" || r.value == value) {
			r.value = value
			kept = append(kept, r)
		}
	}
	c.references = kept
	return nil
}

// nodeAt returns the node at a path such as $.fetch.proxy, or nil if there is none.
func nodeAt(file *ast.File, path string) (ast.Node, error) {
	p, err := yaml.PathString(path)
	if err != nil {
		return nil, err
	}
	n, err := p.FilterFile(file)
	if yaml.IsNotFoundNodeError(err) {
		return nil, nil
	}
	return n, err
}

// valueAt returns the text of the value at a path, or "" if there is none. The error means that no
// YAML path can name the place of a ${VAR}. Then ${VAR} could not be put back, and crawl.json would
// hold the secret itself.
func valueAt(file *ast.File, path string) (string, error) {
	n, err := nodeAt(file, path)
	if err != nil {
		return "", invalidf("%s: ${VAR} cannot be used below a key that is empty or contains a quote (%v)", strings.TrimPrefix(path, "$."), err)
	}
	if n == nil {
		return "", nil
	}
	return n.String(), nil
}

// ReadPoliteness does the same as Read, but returns an error if the file sets a key outside the
// section politeness, because such a key would have no effect.
func ReadPoliteness(name string, body []byte, lookup func(string) (string, bool)) (*Config, error) {
	c, err := Read(name, body, lookup)
	if err != nil {
		return nil, err
	}
	defaults := Default().fields()
	for i, f := range c.fields() {
		if !strings.HasPrefix(f.path, "politeness.") && !f.equal(defaults[i]) {
			return c, invalidf("%s: %s is set, but only politeness is read from this file", name, f.path)
		}
	}
	return c, nil
}

var politenessSection = regexp.MustCompile(`(?m)^politeness[ \t]*:`)

// StatesPoliteness reports whether a config file has a section politeness.
func StatesPoliteness(path string) bool {
	body, err := os.ReadFile(path)
	return err == nil && politenessSection.Match(body)
}

// YAML renders the section as a separate config file.
func (p Politeness) YAML() (string, error) {
	b, err := yaml.Marshal(struct {
		Politeness Politeness `yaml:"politeness"`
	}{p})
	if err != nil {
		return "", fmt.Errorf("config: encode politeness: %w", err)
	}
	return string(b), nil
}

// Clone returns a deep copy.
func (c *Config) Clone() *Config {
	d := *c
	d.Politeness.Classes = maps.Clone(c.Politeness.Classes)
	d.Politeness.Domains = maps.Clone(c.Politeness.Domains)
	d.Plan.Budgets.Domains = maps.Clone(c.Plan.Budgets.Domains)
	d.Fetch.Types.Store, d.Fetch.Types.Skip = slices.Clone(c.Fetch.Types.Store), slices.Clone(c.Fetch.Types.Skip)
	d.references = slices.Clone(c.references)
	d.from = maps.Clone(c.from)
	return &d
}

// located turns a YAML error into a one-line error that names the file, the line number, the key
// and the allowed values.
func located(name string, file *ast.File, err error) error {
	var l *lineError
	if errors.As(err, &l) {
		return invalidf("%s:%d: %s", name, l.line, l.text)
	}
	var y yaml.Error
	if !errors.As(err, &y) {
		return invalidf("%s: %s", name, strings.ReplaceAll(err.Error(), "\n", " "))
	}
	text := strings.ReplaceAll(y.GetMessage(), "\n", " ")
	var unknown *yaml.UnknownFieldError
	switch {
	case errors.As(err, &unknown):
		text += suggest(text)
	case typeError.MatchString(text):
		text = keyOf(file, y.GetToken()) + typeMessage(text)
	}
	if t := y.GetToken(); t != nil && t.Position != nil {
		return invalidf("%s:%d: %s", name, t.Position.Line, text)
	}
	return invalidf("%s: %s", name, text)
}

// keyFinder finds the key of the value that starts at a token.
type keyFinder struct {
	token *token.Token
	path  string
}

func (k *keyFinder) Visit(n ast.Node) ast.Visitor {
	if n.GetToken() == k.token {
		k.path = n.GetPath()
	}
	return k
}

// keyOf returns the key of the value that starts at a token, with a colon and a space, for the
// beginning of a message. It returns "" if no value starts at the token.
func keyOf(file *ast.File, t *token.Token) string {
	k := &keyFinder{token: t}
	if t != nil && len(file.Docs) > 0 {
		ast.Walk(k, file.Docs[0].Body)
	}
	return keyText(k.path)
}

// keyText formats a YAML path as the start of a message.
func keyText(path string) string {
	if path = strings.TrimPrefix(path, "$."); path == "" || path == "$" {
		return ""
	}
	return path + ": "
}

var typeError = regexp.MustCompile(`cannot unmarshal (\S+) into Go (?:struct field \S+|value) of type (\S+)|^(\S+) was used where (\S+) is expected$`)

func typeMessage(text string) string {
	m := typeError.FindStringSubmatch(text)
	found, want := cmp.Or(m[1], m[3]), cmp.Or(m[2], m[4])
	expected := map[string]string{"int": "a whole number", "bool": "true or false", "string": "a text", "sequence": "a list such as [a, b]", "mapping": "a section of keys"}[want]
	return fmt.Sprintf("found a %s where %s is expected", found, cmp.Or(expected, want))
}

var reference = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// unexpanded is a value with references to the environment.
type unexpanded struct {
	path, text string
	value      string // the value in the rendered config, with the references expanded
}

// expander replaces ${VAR} in the values of string scalars.
type expander struct {
	lookup func(string) (string, bool)
	found  []unexpanded
	err    error
}

func (e *expander) Visit(n ast.Node) ast.Visitor {
	if copied := copies(n); copied != nil && e.err == nil {
		var inside expander
		inside.lookup = func(string) (string, bool) { return "", true }
		ast.Walk(&inside, copied)
		if len(inside.found) > 0 {
			e.err = &lineError{n.GetToken().Position.Line, "${VAR} is used in a value with an anchor or under <<, and YAML would copy the secret: write ${VAR} in each place"}
		}
	}
	if s, ok := n.(*ast.StringNode); ok && reference.MatchString(s.Value) {
		e.found = append(e.found, unexpanded{path: s.GetPath(), text: s.Value})
		s.Value = reference.ReplaceAllStringFunc(s.Value, func(ref string) string {
			v, ok := e.lookup(ref[2 : len(ref)-1])
			if !ok && e.err == nil {
				e.err = &lineError{s.GetToken().Position.Line, keyText(s.GetPath()) + fmt.Sprintf("%s is not set in the environment: set it or remove it", ref)}
			}
			return v
		})
	}
	return e
}

// copies returns the part of a node that YAML also inserts in another place: the value of an anchor
// or of a merge key. For other nodes, copies returns nil.
func copies(n ast.Node) ast.Node {
	switch n := n.(type) {
	case *ast.AnchorNode:
		return n.Value
	case *ast.MappingValueNode:
		if n.Key.IsMergeKey() {
			return n.Value
		}
	}
	return nil
}

// lineOf returns the line of a key such as fetch.timeout.total. If the file lacks the key, it
// returns the line of the nearest enclosing section, or 0 if there is none.
func lineOf(file *ast.File, key string) int {
	for key != "" {
		if line := lineAt(file, key); line > 0 {
			return line
		}
		key = key[:max(0, strings.LastIndexByte(key, '.'))]
	}
	return 0
}

// lineAt returns the line of a key's value, or 0 if there is none.
func lineAt(file *ast.File, key string) int {
	if n, err := nodeAt(file, "$."+key); err == nil && n != nil {
		return n.GetToken().Position.Line
	}
	return 0
}

// suggest returns a text that names the known key most similar to an unknown one.
func suggest(message string) string {
	name := strings.Trim(strings.TrimPrefix(message, "unknown field "), `"`)
	best, bestName, bestDistance := "", "", min(4, len(name)/2+1)
	walk(reflect.ValueOf(Config{}), "", func(path, key string, _ reflect.Value) {
		if d := EditDistance(name, key); d < bestDistance {
			best, bestName, bestDistance = path, key, d
		}
	})
	switch {
	case bestName == "":
		return ": `crawlbatch config` prints all keys"
	case bestDistance == 0:
		return fmt.Sprintf(" here: it is %s", best)
	}
	return fmt.Sprintf(": did you mean %q (%s)?", bestName, best)
}

// EditDistance returns the Levenshtein distance of two names in bytes. Its time grows with the product
// of their lengths.
func EditDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
