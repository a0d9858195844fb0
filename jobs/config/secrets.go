package config

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Secret is a secret that a config holds as plain text instead of ${VAR}.
type Secret struct {
	Key   string // path of the key, such as fetch.proxy
	Write string // what to write instead, with ${VAR}
	from  string // where the value was set, such as FILE:LINE
	value string
}

// LiteralSecrets returns the secrets that the config holds as plain text.
func (c *Config) LiteralSecrets() ([]Secret, error) {
	file, err := c.stored()
	if err != nil {
		return nil, err
	}
	var found []Secret
	for _, f := range c.fields() {
		if f.instead == nil {
			continue
		}
		note := func(key, name string, value any) {
			if text, _ := value.(string); text != "" {
				if write := f.instead(name, text); write != text {
					found = append(found, Secret{key, write, c.from[f.path], text})
				}
			}
		}
		value, err := storedValue(file, f.path)
		if err != nil {
			return nil, err
		}
		switch v := value.(type) {
		case string:
			note(f.path, "", v)
		case map[string]any:
			for _, name := range sortedKeys(v) {
				note(f.path+"."+name, name, v[name])
			}
		}
	}
	return found, nil
}

// RefuseLiteralSecrets returns an error if the config holds a secret as plain text, because the
// store would keep it. For an existing crawl, frozen is the config that the crawl froze: secrets that
// it holds already are accepted. For a new crawl, frozen is nil.
func (c *Config) RefuseLiteralSecrets(frozen *Config) error {
	found, err := c.LiteralSecrets()
	if err != nil || len(found) == 0 {
		return err
	}
	if frozen != nil {
		known, err := frozen.LiteralSecrets()
		if err != nil {
			return err
		}
		found = slices.DeleteFunc(found, func(s Secret) bool {
			return slices.ContainsFunc(known, func(k Secret) bool { return k.Key == s.Key && k.value == s.value })
		})
		if len(found) == 0 {
			return nil
		}
	}
	s := found[0]
	at := "config"
	if s.from != "" {
		at = s.from
	}
	variable := reference.FindStringSubmatch(s.Write)[1]
	return invalidf("%s: %s holds a secret in plain text, and the store would keep it: write %q, and set %s in the environment of every process that reads the config "+
		"(of pods: with kubernetes.env_from_secrets)", at, s.Key, s.Write, variable)
}

// passwordInstead replaces the password in a URL by ${PROXY_PASSWORD}. User info without a colon
// counts as a password.
func passwordInstead(_, text string) string {
	from, to, ok := userSecret(text)
	if !ok || !isLiteral(text[from:to]) {
		return text
	}
	return text[:from] + "${PROXY_PASSWORD}" + text[to:]
}

// takedownKeyInstead replaces the key of the list of takedowns by ${TAKEDOWN_KEY}.
func takedownKeyInstead(_, text string) string {
	if !isLiteral(text) {
		return text
	}
	return "${TAKEDOWN_KEY}"
}

// secretName matches the names of environment variables that hold secrets. publicName matches names
// of variables that only say where a secret is, such as in a file.
var (
	secretName = regexp.MustCompile(`(?i)(secret|passw|token|credential|authorization|api_?key|private_?key)`)
	publicName = regexp.MustCompile(`(?i)_(file|path|dir|uri|url|arn|name|endpoint)$`)
)

// variableInstead replaces the value of an environment variable that holds a secret.
func variableInstead(name, text string) string {
	if write := passwordInstead("", text); write != text {
		return write
	}
	if !secretName.MatchString(name) || publicName.MatchString(name) || !isLiteral(text) {
		return text
	}
	if write := "${" + name + "}"; reference.MatchString(write) {
		return write
	}
	return "${SECRET}"
}

// isLiteral reports whether a secret is written without a reference to the environment.
func isLiteral(secret string) bool { return secret != "" && !reference.MatchString(secret) }

// userSecret returns the range of the password in a URL. If the user info has no colon, the range
// covers all of the user info. As in net/url, the user info ends at the last @ of the authority.
func userSecret(text string) (from, to int, ok bool) {
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok {
		return 0, 0, false
	}
	begin, end := len(scheme)+len("://"), len(rest)
	if i := strings.IndexAny(rest, "/?#"); i >= 0 && strings.LastIndexByte(rest, '@') < i {
		end = i
	}
	at := strings.LastIndexByte(rest[:end], '@')
	if at < 0 {
		return 0, 0, false
	}
	return begin + 1 + strings.IndexByte(rest[:at], ':'), begin + at, true
}

const masked = "***"

// hideAll returns *** instead of a text, unless the whole text is a reference to the environment.
func hideAll(text string) string {
	if text == "" || reference.FindString(text) == text {
		return text
	}
	return masked
}

// hidePassword hides the password in a URL. If the user info has no colon, hidePassword hides all
// of the user info.
func hidePassword(text string) string {
	from, to, ok := userSecret(text)
	if !ok {
		return text
	}
	return text[:from] + hideAll(text[from:to]) + text[to:]
}

// WarnOfSecrets returns a warning that names the plain-text secrets in c, the config that a crawl
// stored under key. If c has no secrets, WarnOfSecrets returns "".
func (c *Config) WarnOfSecrets(key string) (string, error) {
	found, err := c.LiteralSecrets()
	if err != nil || len(found) == 0 {
		return "", err
	}
	names := make([]string, len(found))
	for i, s := range found {
		names[i] = s.Key
	}
	return fmt.Sprintf("%s holds secrets in plain text (%s), which everybody who can read the store can see: change these secrets, then pass the new ones as %s with --config",
		key, strings.Join(names, ", "), found[0].Write), nil
}
