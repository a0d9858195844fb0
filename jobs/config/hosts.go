package config

import (
	"fmt"
	"slices"
	"strings"

	"crawlbatch.io/crawlbatch/formats/urlkey"
)

// wrongName is a name or pattern that matches no host.
type wrongName struct{ key, name, why string }

// canonicalHosts spells the host names of the config as canonical URLs do, because they are compared
// with such URLs: in lower case, in Punycode, without a dot at the end. It returns the names that match
// nothing, which are errors.
func (c *Config) canonicalHosts() []wrongName {
	wrong := canonicalNames(c, "politeness.domains", c.Politeness.Domains, func(string) string { return "" })
	budgets := canonicalNames(c, "plan.budgets.domains", c.Plan.Budgets.Domains, func(host string) string {
		if domain := urlkey.Domain(host); domain != host {
			return fmt.Sprintf("which is a host of the domain %s: write %[1]s, or bound the URLs of one host with plan.budgets.patterns", domain)
		}
		return ""
	})
	wrong = append(wrong, budgets...)
	for i, list := range []*[]string{&c.Plan.Scope.Include, &c.Plan.Scope.Exclude, &c.Frontier.Traps.Except} {
		key := []string{"plan.scope.include", "plan.scope.exclude", "frontier.traps.except"}[i]
		*list = slices.Clone(*list) // Config.Clone shares it
		for i, pattern := range *list {
			canonical, ok := canonicalPattern(pattern)
			if !ok {
				wrong = append(wrong, wrongName{key, pattern, "which is no host: write a host such as example.org, or a URL with * for any characters such as example.org/docs/*"})
			}
			(*list)[i] = canonical
		}
	}
	return wrong
}

// canonicalNames gives the names in a map of the given key their canonical form. check says why a host
// must not be in the map, or "".
func canonicalNames[V any](c *Config, key string, names map[string]V, check func(host string) string) (wrong []wrongName) {
	for _, name := range sortedKeys(names) {
		host, err := canonicalHost(name)
		_, twice := names[host]
		why := check(host)
		switch {
		case err != nil:
			why = "which is no domain: write a name such as example.org, without scheme, port, path or star"
		case why == "" && host == name:
		case why == "" && twice:
			why = fmt.Sprintf("which is the same name as %q: remove one of them", host)
		case why == "":
			names[host] = names[name]
			delete(names, name)
			c.renameReferences("$."+key+".", name, host)
		}
		if why != "" {
			wrong = append(wrong, wrongName{key, name, why})
		}
	}
	return wrong
}

// renameReferences makes noteReferences find each ${VAR} below a name that changed. A YAML path quotes
// some names.
func (c *Config) renameReferences(section, from, to string) {
	for i := range c.references {
		path := c.references[i].path + "."
		for _, name := range []string{from, "'" + from + "'"} {
			if below, ok := strings.CutPrefix(path, section+name+"."); ok {
				c.references[i].path = strings.TrimSuffix(section+"'"+to+"'."+below, ".")
			}
		}
	}
}

// canonicalHost returns the canonical form of a host name or an address, without port.
func canonicalHost(name string) (string, error) {
	if strings.Contains(name, ":") && !strings.HasPrefix(name, "[") {
		return "", urlkey.ErrHost // HostName ignores a default port
	}
	return urlkey.HostName(name)
}

// canonicalPattern gives the host of a pattern of plan.scope its canonical form. A star before the first
// slash may stand for a part of the path, so such a pattern stays as it is. The result is not ok if the
// pattern has neither slash nor star and is no host.
func canonicalPattern(pattern string) (canonical string, ok bool) {
	from := strings.Index(pattern, "://")
	if from >= 0 {
		from += len("://")
	}
	from = max(from, 0)
	end := len(pattern)
	if i := strings.IndexByte(pattern[from:], '/'); i >= 0 {
		end = from + i
	}
	if strings.Contains(pattern[:end], "*") {
		return pattern, true
	}
	if i := strings.LastIndexByte(pattern[from:end], ':'); i >= 0 && pattern[end-1] != ']' { // a port
		end = from + i
	}
	host, err := canonicalHost(pattern[from:end])
	if err != nil {
		return pattern, strings.Contains(pattern, "/")
	}
	return pattern[:from] + host + pattern[end:], true
}
