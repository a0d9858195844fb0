package config

import (
	"slices"
	"strings"
)

// Adopt returns an error if a later config changes a key that is frozen in c. The error names the
// first such key.
func (c *Config) Adopt(later *Config) error {
	if changed := c.frozenIn(later); changed != "" {
		return invalidf("config: %s differs from what the crawl was planned with: it decides which URLs are crawled or how "+
			"results are made, so it is frozen; undo the change, or plan another month with it", changed)
	}
	return nil
}

// AdoptReparsed does the same as Adopt for a reparse that froze the config c.
func (c *Config) AdoptReparsed(later *Config) error {
	if changed := c.frozenIn(later); changed != "" {
		return invalidf("config: %s differs from what the reparse was begun with: undo the change, or choose another name with --as, "+
			"where parse, dedup and frontier may change, and nothing else", changed)
	}
	return nil
}

// frozenIn returns the first frozen key whose value differs in a later config, or "" if none
// differs.
func (c *Config) frozenIn(later *Config) string {
	laters := later.fields()
	for i, f := range c.fields() {
		if f.change == frozen && !f.equal(laters[i]) {
			return f.path
		}
	}
	return ""
}

// RequireContact returns an error if the crawl may reach public hosts but its user agent names no
// contact.
func (c *Config) RequireContact() error {
	if !c.Public() {
		return nil
	}
	if c.UserAgent == "" {
		return invalidf(`config: user_agent is empty: a crawl of public hosts must say who crawls and how to reach them; ` +
			`set --user-agent or user_agent: "examplebot/1.0 (+https://example.org/bot)"`)
	}
	if !strings.Contains(c.UserAgent, "://") && !strings.Contains(c.UserAgent, "@") {
		return invalidf("config: user_agent %q does not say how to reach you: add the address of a page or a mailbox, such as (+https://example.org/bot)", c.UserAgent)
	}
	return nil
}

// Reparsed returns the config for parsing again a crawl with the config c. The sections parse, dedup
// and frontier come from later, all other sections from c. A reparse cannot change which URLs were
// fetched, so Reparsed returns an error if a frozen key of the other sections differs in later.
func (c *Config) Reparsed(later *Config) (*Config, error) {
	r := c.Clone()
	secrets, err := c.LiteralSecrets()
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(secrets, func(s Secret) bool { return s.Key == "fetch.proxy" }) {
		r.Fetch.Proxy = "" // a reparse sends no requests, and its crawl.json would hold the proxy's password
	}
	r.Parse, r.Dedup, r.Frontier = later.Parse, later.Dedup, later.Frontier
	if changed := r.frozenIn(later); changed != "" {
		return nil, invalidf("config: %s differs from what the crawl was fetched with: a reparse may change parse, dedup and frontier only; undo the change", changed)
	}
	return r, nil
}
