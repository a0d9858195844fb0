package config

import (
	"fmt"
	"net/netip"
	"net/url"
	"path"
	"reflect"
	"slices"
	"strings"
	"time"

	"crawlbatch.io/crawlbatch/formats/mediatype"
	"crawlbatch.io/crawlbatch/formats/schema"
)

// fieldError says which field is wrong and what is allowed.
type fieldError struct {
	field, text string
}

func (e *fieldError) Error() string { return e.field + " " + e.text }

// Validate checks every field; the error names the first that is wrong, and what
// is allowed.
func (c *Config) Validate() error {
	check := &checker{}
	check.positive("politeness.in_flight_per_host", c.Politeness.InFlightPerHost, 1, 64)
	check.duration("politeness.delay", c.Politeness.Delay, 0, 24*time.Hour)
	if d := c.Politeness.PerAddressDelay; d != nil {
		check.duration("politeness.per_address_delay", *d, 0, 24*time.Hour)
	}
	if f := c.Politeness.SlowFactor; !(f >= 0 && f <= 10) { // NaN is refused too
		check.fail("politeness.slow_factor", fmt.Sprintf("is %v: it may be 0 (slow hosts are treated as others) to 10", f))
	}
	check.duration("politeness.robots_ttl", c.Politeness.RobotsTTL, time.Minute, 24*time.Hour)
	for _, class := range sortedKeys(c.Politeness.Classes) {
		check.duration("politeness.classes."+class, c.Politeness.Classes[class], 0, 24*time.Hour)
	}
	for _, name := range sortedKeys(c.Politeness.Domains) {
		d := c.Politeness.Domains[name]
		field := "politeness.domains." + name
		if d.Class != "" {
			if _, ok := c.Politeness.Classes[d.Class]; !ok {
				check.fail(field, fmt.Sprintf("names the class %q, which politeness.classes does not have: it has %s",
					d.Class, strings.Join(sortedKeys(c.Politeness.Classes), ", ")))
			}
		}
		if d.Delay != nil {
			check.duration(field, *d.Delay, 0, 24*time.Hour)
		}
		check.positive(field+".in_flight_per_host", d.InFlightPerHost, 0, 64)
	}
	check.positive("fetch.slots", c.Fetch.Slots, 1, 10000)
	check.duration("fetch.timeout.connect", c.Fetch.Timeout.Connect, time.Millisecond, time.Hour)
	check.duration("fetch.timeout.first_byte", c.Fetch.Timeout.FirstByte, time.Millisecond, time.Hour)
	check.duration("fetch.timeout.total", c.Fetch.Timeout.Total, time.Millisecond, time.Hour)
	check.duration("fetch.timeout.robots", c.Fetch.Timeout.Robots, time.Millisecond, time.Hour)
	check.size("fetch.max_body", c.Fetch.MaxBody, 1<<10, 1<<30)
	check.size("fetch.max_sitemap", c.Fetch.MaxSitemap, 0, 1<<30)
	check.positive("fetch.max_redirects", c.Fetch.MaxRedirects, 0, 20)
	check.types(c.Fetch.Types)
	check.positive("fetch.retries.timeout", c.Fetch.Retries.Timeout, 0, 10)
	check.positive("fetch.retries.server_error", c.Fetch.Retries.ServerError, 0, 10)
	check.positive("fetch.retries.rate_limited", c.Fetch.Retries.RateLimited, 0, 10)
	check.positive("fetch.retries.robots", c.Fetch.Retries.Robots, 0, 10)
	check.duration("fetch.pauses.rate_limited", c.Fetch.Pauses.RateLimited, time.Millisecond, time.Hour)
	check.duration("fetch.pauses.timeout", c.Fetch.Pauses.Timeout, time.Millisecond, time.Hour)
	check.duration("fetch.pauses.server_error", c.Fetch.Pauses.ServerError, time.Millisecond, time.Hour)
	check.duration("fetch.pauses.dns", c.Fetch.Pauses.DNS, time.Millisecond, time.Hour)
	check.duration("fetch.pauses.breaker", c.Fetch.Pauses.Breaker, time.Millisecond, time.Hour)
	check.duration("fetch.window", c.Fetch.Window, time.Second, 31*24*time.Hour)
	check.duration("fetch.crawl_window", c.Fetch.CrawlWindow, time.Second, 366*24*time.Hour)
	check.duration("fetch.checkpoint.every", c.Fetch.Checkpoint.Every, 100*time.Millisecond, 10*time.Minute)
	check.size("fetch.checkpoint.bytes", c.Fetch.Checkpoint.Bytes, 64<<10, 16<<30)
	least := 2*c.Fetch.Timeout.Total + c.Fetch.Checkpoint.Every
	if c.Fetch.Checkpoint.Lease < least {
		text, _ := least.MarshalText()
		check.fail("fetch.checkpoint.lease", fmt.Sprintf("must be at least 2 × timeout.total + every = %s, so that every request ends within it", text))
	}
	if c.Fetch.Proxy != "" {
		if u, err := url.Parse(c.Fetch.Proxy); err != nil || u.Scheme != "http" || u.Host == "" {
			check.fail("fetch.proxy", "is no proxy address: write http://host:port")
		}
	}
	for _, s := range c.Fetch.Resolvers {
		_, perr := netip.ParseAddrPort(s)
		if _, err := netip.ParseAddr(s); err != nil && perr != nil {
			check.fail("fetch.resolvers", fmt.Sprintf("holds %q, which is no name server: write ADDRESS or ADDRESS:PORT", s))
		}
	}
	check.positive("parse.max_links", c.Parse.MaxLinks, 0, 1_000_000)
	if ways := []string{"fast", "trafilatura"}; !slices.Contains(ways, c.Parse.MainText) {
		check.fail("parse.main_text", fmt.Sprintf("is %q: it may be %s", c.Parse.MainText, strings.Join(ways, ", ")))
	}
	check.positive("plan.partition_urls", c.Plan.PartitionURLs, 1, 10_000_000)
	check.positive("plan.budgets.default", c.Plan.Budgets.Default, 0, 1<<31-1)
	check.positive("plan.budgets.per_day", c.Plan.Budgets.PerDay, 0, 1<<31-1)
	check.positive("plan.budgets.total", c.Plan.Budgets.Total, 0, 1<<40)
	for _, name := range sortedKeys(c.Plan.Budgets.Domains) {
		check.positive("plan.budgets.domains."+name, c.Plan.Budgets.Domains[name], 0, 1<<31-1)
	}
	check.positive("plan.max_depth", c.Plan.MaxDepth, 0, 1000)
	for _, p := range c.Plan.StripParams {
		if _, err := path.Match(p, ""); err != nil || p == "" {
			check.fail("plan.strip_params", fmt.Sprintf("holds %q, which is no pattern: write a name, * for any characters", p))
		}
	}
	check.positive("dedup.max_distance", c.Dedup.MaxDistance, 0, 7)
	check.positive("dedup.min_words", c.Dedup.MinWords, 0, 1_000_000)
	if follow := []string{"none", "host", "domain", "any"}; !slices.Contains(follow, c.Frontier.Follow) {
		check.fail("frontier.follow", fmt.Sprintf("is %q: it may be %s", c.Frontier.Follow, strings.Join(follow, ", ")))
	}
	for i, kind := range c.Frontier.Kinds {
		if !slices.Contains(schema.LinkKinds, schema.LinkKind(kind)) {
			check.fail("frontier.kinds", fmt.Sprintf("holds %q, which is no kind of link: it may hold %s", kind, strings.Join(kindNames(schema.LinkKinds), ", ")))
		} else if slices.Contains(c.Frontier.Kinds[:i], kind) {
			check.fail("frontier.kinds", fmt.Sprintf("holds %q twice", kind))
		}
	}
	c.Kubernetes.validate(check)
	return check.err
}

// checker keeps the first error.
type checker struct{ err error }

func (c *checker) fail(field, text string) {
	if c.err == nil {
		c.err = &fieldError{field, text}
	}
}

func (c *checker) positive(field string, v, least, most int) {
	if v < least || v > most {
		c.fail(field, fmt.Sprintf("is %d: it may be %d to %d", v, least, most))
	}
}

func (c *checker) duration(field string, v Duration, least, most time.Duration) {
	if v < Duration(least) || v > Duration(most) {
		is, _ := v.MarshalText()
		a, _ := Duration(least).MarshalText()
		b, _ := Duration(most).MarshalText()
		c.fail(field, fmt.Sprintf("is %s: it may be %s to %s", is, a, b))
	}
}

func (c *checker) size(field string, v Bytes, least, most int64) {
	if v < Bytes(least) || v > Bytes(most) {
		is, _ := v.MarshalText()
		a, _ := Bytes(least).MarshalText()
		b, _ := Bytes(most).MarshalText()
		c.fail(field, fmt.Sprintf("is %s: it may be %s to %s", is, a, b))
	}
}

// types checks the media ranges of fetch.types.
func (c *checker) types(t Types) {
	for _, list := range []struct {
		field  string
		ranges []string
	}{{"fetch.types.store", t.Store}, {"fetch.types.skip", t.Skip}} {
		for _, r := range list.ranges {
			if mediatype.Check(r) != nil {
				c.fail(list.field, fmt.Sprintf("holds %q, which is no media range: write type/subtype, type/*, type/*+suffix or */*, in lower case", r))
			}
		}
	}
	for _, r := range t.Skip {
		if slices.Contains(t.Store, r) {
			c.fail("fetch.types.skip", fmt.Sprintf("holds %q, as fetch.types.store does: keep one", r))
		}
	}
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// allowedFields lists the fields of the section that has no field of that name.
func allowedFields(message string) string {
	name := strings.Trim(strings.TrimPrefix(message, "unknown field "), `"`)
	best, bestField, bestDistance := "", "", 4
	walkFields(reflect.TypeFor[Config](), "", func(path, field string) {
		if d := editDistance(name, field); d < bestDistance {
			best, bestField, bestDistance = path, field, d
		}
	})
	if bestField == "" {
		return ": see the config section of the README for the fields there are"
	}
	if bestDistance == 0 {
		return fmt.Sprintf(" here: it is %s", best)
	}
	return fmt.Sprintf(": did you mean %q (%s)?", bestField, best)
}

func walkFields(t reflect.Type, prefix string, visit func(path, field string)) {
	if t.Kind() != reflect.Struct {
		return
	}
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("yaml"), ",")
		visit(prefix+name, name)
		walkFields(t.Field(i).Type, prefix+name+".", visit)
	}
}

// editDistance is Levenshtein's, over bytes.
func editDistance(a, b string) int {
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
