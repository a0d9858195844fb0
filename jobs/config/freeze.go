package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// changeable are the sections and fields that a --config given after plan may
// change: nothing in them alters which URLs are crawled or how results are made.
var changeable = []string{
	"politeness", "fetch.slots", "fetch.timeout", "fetch.pauses", "fetch.window", "fetch.crawl_window", "fetch.proxy", "fetch.resolvers",
	"fetch.checkpoint", "fetch.connect_to", "fetch.allow_private_networks", "store", "kubernetes",
}

// Adopt checks that later differs from the frozen config c only where a running
// crawl may change, and names the first field that does not. What is only known since
// the crawl was planned does not differ where later leaves it at its default.
func (c *Config) Adopt(later *Config) error {
	if changed := c.frozenIn(later); changed != "" {
		return invalidf("config: %s differs from what the crawl was planned with: it decides which URLs are crawled or how "+
			"results are made, so it is frozen; undo the change, or plan another month with it", changed)
	}
	return nil
}

// AdoptReparsed is Adopt for a reparse that was begun with the config c.
func (c *Config) AdoptReparsed(later *Config) error {
	if changed := c.frozenIn(later); changed != "" {
		return invalidf("config: %s differs from what the reparse was begun with: give it that, or choose another name with --as, "+
			"where parse, dedup and frontier may change, and nothing else", changed)
	}
	return nil
}

// frozenIn names the first field that may not change and does in later; "" if none does.
func (c *Config) frozenIn(later *Config) (changed string) {
	added := map[string]bool{} // since c was frozen, and left unset in later
	for _, field := range c.older {
		added[field] = true
	}
	compare(reflect.ValueOf(*Default()), reflect.ValueOf(*later), "", func(field string) { delete(added, field) })
	compare(reflect.ValueOf(*c), reflect.ValueOf(*later), "", func(field string) {
		free := slices.ContainsFunc(changeable, func(p string) bool { return field == p || strings.HasPrefix(field, p+".") })
		if !free && !added[field] && changed == "" {
			changed = field
		}
	})
	return changed
}

func compare(a, b reflect.Value, prefix string, differs func(field string)) {
	for i := range a.NumField() {
		f := a.Type().Field(i)
		if !f.IsExported() {
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		x, y := a.Field(i), b.Field(i)
		switch {
		case x.Kind() == reflect.Struct:
			compare(x, y, prefix+name+".", differs)
		case x.Kind() == reflect.Pointer:
			if !reflect.DeepEqual(x.Interface(), y.Interface()) {
				differs(prefix + name)
			}
		case x.Kind() == reflect.Map || x.Kind() == reflect.Slice:
			if x.Len()+y.Len() > 0 && !reflect.DeepEqual(x.Interface(), y.Interface()) {
				differs(prefix + name)
			}
		case !x.Equal(y):
			differs(prefix + name)
		}
	}
}

// RequireContact refuses a crawl of other people's hosts without a user agent
// that says whom to ask.
func (c *Config) RequireContact() error {
	if !c.Public() {
		return nil
	}
	if c.UserAgent == "" {
		return invalidf(`config: user_agent is empty: a crawl of public hosts must say who crawls and how to reach them; ` +
			`set --user-agent or user_agent: "examplebot/1.0 (+https://example.org/bot)"`)
	}
	if !strings.Contains(c.UserAgent, "://") && !strings.Contains(c.UserAgent, "@") {
		return invalidf("config: user_agent %q names no contact: add an address of a page or a mailbox, such as (+https://example.org/bot)", c.UserAgent)
	}
	return nil
}

// Describe is the config in a line, for logs.
func (c *Config) Describe() string {
	return fmt.Sprintf("agent %q, delay %s, %d slots, follow %s", c.UserAgent, c.Politeness.Delay.Std(), c.Fetch.Slots, c.Frontier.Follow)
}

// Reparsed is the config of a reparse of a crawl with this one: that of later where
// it decides how documents are parsed and what is made of them (parse, dedup,
// frontier), else this. What differs beyond that and what any later config may
// change is refused, as it says how the crawl was fetched.
func (c *Config) Reparsed(later *Config) (*Config, error) {
	r := c.Clone()
	r.Parse, r.Dedup, r.Frontier = later.Parse, later.Dedup, later.Frontier
	if changed := r.frozenIn(later); changed != "" {
		return nil, invalidf("config: %s differs from what the crawl was fetched with: a reparse may change parse, dedup and frontier only; undo the change", changed)
	}
	return r, nil
}
