package config

import (
	"fmt"
	"net/netip"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"crawlbatch.io/crawlbatch/formats/focus"
	"crawlbatch.io/crawlbatch/formats/mediatype"
	"crawlbatch.io/crawlbatch/formats/nat64"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/urlkey"
)

// The following rules each belong to a single key.

var slowFactor = &rule[float64]{"0 to 10", func(f float64, report report) {
	if !(f >= 0 && f <= 10) { // NaN is refused too
		report("", fmt.Sprintf("is %v: it must be 0 to 10, where 0 treats slow hosts like other hosts", f))
	}
}}

var price = &rule[float64]{"0 to 1000", func(dollars float64, report report) {
	if !(dollars >= 0 && dollars <= 1000) { // NaN is refused too
		report("", fmt.Sprintf("is %v: it must be 0 to 1000 dollars, where 0 is free", dollars))
	}
}}

var focusModel = &rule[string]{"lines of a weight and a term", func(text string, report report) {
	if text == "" {
		return
	}
	if _, err := focus.Parse(text); err != nil {
		report("", "is "+err.Error())
	}
}}

func (c *Config) thresholdRule() *rule[*float64] {
	return &rule[*float64]{"-1000000 to 1000000", func(least *float64, report report) {
		switch {
		case least == nil:
		case !(*least >= -1e6 && *least <= 1e6): // NaN is refused too
			report("", fmt.Sprintf("is %v: it must be -1000000 to 1000000", *least))
		case c.Frontier.Focus.Model == "":
			report("", "has no effect without frontier.focus.file: name a file with weighted terms")
		}
	}}
}

var priceDate = &rule[string]{"YYYY, YYYY-MM or YYYY-MM-DD", func(date string, report report) {
	for _, layout := range []string{"2006", "2006-01", time.DateOnly} {
		if _, err := time.Parse(layout, date); err == nil {
			return
		}
	}
	report("", fmt.Sprintf("is %q: write YYYY, YYYY-MM or YYYY-MM-DD, such as 2026-11", date))
}}

// domainRule checks politeness.domains. politeness.classes must have every class that a domain
// names.
func (c *Config) domainRule() *rule[map[string]Domain] {
	return &rule[map[string]Domain]{"", func(domains map[string]Domain, report report) {
		classes := c.Politeness.Classes
		for _, name := range sortedKeys(domains) {
			d := domains[name]
			if _, ok := classes[d.Class]; !ok && d.Class != "" {
				report(name, fmt.Sprintf("names the class %q, which politeness.classes does not have: it has %s", d.Class, strings.Join(sortedKeys(classes), ", ")))
			}
			orUnset(minMax(0, day)).check(d.Delay, func(_, text string) { report(name, text) })
			minMax(0, 64).check(d.InFlightPerHost, func(_, text string) { report(name+".in_flight_per_host", text) })
		}
	}}
}

var mediaRanges = eachEntry("media range", "type/subtype, type/*, type/*+suffix or */*, in lower case", func(s string) bool { return mediatype.Check(s) == nil })

// skippedTypes makes the rule for fetch.types.skip, which must not hold a media range that
// fetch.types.store also holds.
func (c *Config) skippedTypes() *rule[[]string] {
	return &rule[[]string]{mediaRanges.allowed, func(skip []string, report report) {
		mediaRanges.check(skip, report)
		for _, r := range skip {
			if slices.Contains(c.Fetch.Types.Store, r) {
				report("", fmt.Sprintf("holds %q, which fetch.types.store also holds: remove it from one of them", r))
			}
		}
	}}
}

var proxyAddress = &rule[string]{"`http://[USER:PASSWORD@]HOST:PORT`", func(proxy string, report report) {
	if u, err := url.Parse(proxy); proxy != "" && (err != nil || u.Scheme != "http" || u.Host == "") {
		report("", "is not a proxy address: write http://host:port")
	}
}}

var resolvers = eachEntry("name server", "ADDRESS or ADDRESS:PORT", func(s string) bool {
	_, withPort := netip.ParseAddrPort(s)
	_, alone := netip.ParseAddr(s)
	return withPort == nil || alone == nil
})

var nat64Prefixes = &rule[[]string]{"IPv6 prefixes of length 32, 40, 48, 56, 64 or 96 (RFC 6052)", func(texts []string, report report) {
	if _, err := nat64.Parse(texts); err != nil {
		report("", "holds "+err.Error())
	}
}}

// leaseRule requires that a lease outlasts every request that begins before the next checkpoint.
func (c *Config) leaseRule() *rule[Duration] {
	return &rule[Duration]{"at least 2 × `fetch.timeout.total` + `fetch.checkpoint.every`", func(lease Duration, report report) {
		if least := 2*c.Fetch.Timeout.Total + c.Fetch.Checkpoint.Every; lease < least {
			report("", fmt.Sprintf("must be at least 2 × timeout.total + every = %s, so that every request ends before the lease does", least))
		}
	}}
}

// leastPodsRule requires that the least number of pods is at most the largest.
func (c *Config) leastPodsRule() *rule[int] {
	return &rule[int]{"0 to `kubernetes.parallelism.max`", func(least int, report report) {
		if most := c.Kubernetes.Parallelism.Max; least < 0 || least > most {
			report("", fmt.Sprintf("is %d: it must be 0 to kubernetes.parallelism.max = %d", least, most))
		}
	}}
}

// firstRule requires that the first time until a URL is due again lies between the least and the largest.
func (c *Config) firstRule() *rule[Duration] {
	return &rule[Duration]{"`frontier.recrawl.min` to `frontier.recrawl.max`", func(first Duration, report report) {
		if r := c.Frontier.Recrawl; first < r.Min || first > r.Max {
			report("", fmt.Sprintf("is %v: it must be frontier.recrawl.min = %v to frontier.recrawl.max = %v", first, r.Min, r.Max))
		}
	}}
}

// metadataRule requires that metadata is kept at least as long as raw captures, because it says what
// the captures are.
func (c *Config) metadataRule() *rule[int] {
	return &rule[int]{"at least `retention.raw`, at most 1200, or 0", func(months int, report report) {
		if raw := c.Retention.Raw; months < 0 || months > 1200 || months > 0 && (raw == 0 || months < raw) {
			report("", fmt.Sprintf("must be 0 or retention.raw = %d to 1200, because nobody can read captures without their metadata", raw))
		}
	}}
}

var paramPatterns = eachEntry("pattern", "a name, * for any characters", func(s string) bool {
	_, err := path.Match(s, "")
	return err == nil && s != ""
})

var httpsHosts = eachEntry("host", "a host name without port, or *", func(s string) bool {
	_, err := urlkey.NewWithRules(nil, urlkey.Rules{HTTPS: []string{s}})
	return err == nil
})

// groupReference matches a reference to a group in a replacement, and $$, which stands for a dollar
// sign.
var groupReference = regexp.MustCompile(`\$(\$|[\pL\p{Nd}_]+|\{[\pL\p{Nd}_]+\})`)

var rewrites = &rule[[]Rewrite]{fmt.Sprintf("at most %d", urlkey.MaxRules), func(list []Rewrite, report report) {
	if _, err := urlkey.NewWithRules(nil, (&Plan{Rewrite: list}).URLRules()); err != nil {
		report("", "holds a rule that cannot be used: "+err.Error())
		return
	}
	for _, w := range list {
		e := regexp.MustCompile(w.Match)
		for _, m := range groupReference.FindAllStringSubmatch(w.Replace, -1) {
			name := strings.Trim(m[1], "{}")
			number, err := strconv.Atoi(name)
			if name != "$" && !(err == nil && number <= e.NumSubexp() && name == strconv.Itoa(number)) && !slices.Contains(e.SubexpNames(), name) {
				report("", fmt.Sprintf("holds the replacement %q, whose %s names no group of %q: write ${1} before a letter, a digit or _", w.Replace, m[0], w.Match))
			}
		}
	}
}}

var filters = &rule[[]Filter]{rewrites.allowed, func(list []Filter, report report) {
	if len(list) > urlkey.MaxRules {
		report("", fmt.Sprintf("holds %d rules: it must be %s", len(list), rewrites.allowed))
	}
	for _, f := range list {
		if _, err := urlkey.Expression(f.Match); err != nil {
			report("", "holds a rule that cannot be used: "+err.Error())
		}
	}
}}

var share = &rule[float64]{"0 to 1", func(f float64, report report) {
	if !(f >= 0 && f <= 1) { // NaN is refused too
		report("", fmt.Sprintf("is %v: it must be 0 to 1", f))
	}
}}

// rankedRule requires a default budget that the rank of a domain may change.
func (c *Config) rankedRule() *rule[int] {
	return &rule[int]{"at least `plan.budgets.default`, or 0", func(most int, report report) {
		switch least := c.Plan.Budgets.Default; {
		case most != 0 && least == 0:
			report("", "bounds a multiple of plan.budgets.default, which is 0: set both")
		case most != 0 && (most < least || most >= 1<<31):
			report("", fmt.Sprintf("is %d: it must be 0, or from plan.budgets.default = %d to 2147483647", most, least))
		}
	}}
}

// explorationRule requires a budget of which a share can be kept.
func (c *Config) explorationRule() *rule[float64] {
	return &rule[float64]{share.allowed, func(f float64, report report) {
		share.check(f, report)
		if b := &c.Plan.Budgets; f > 0 && b.PerDay == 0 && b.Total == 0 {
			report("", "is a share of plan.budgets.per_day and plan.budgets.total: set one of them")
		}
	}}
}

// rateLimitedRule requires a budget of which a host can get less.
func (c *Config) rateLimitedRule() *rule[float64] {
	return &rule[float64]{share.allowed, func(f float64, report report) {
		share.check(f, report)
		if b := &c.Plan.Budgets; f > 0 && f < 1 && b.Host == 0 && b.Default == 0 && len(b.Domains) == 0 {
			report("", "is a share of plan.budgets.host or of a domain's budget: set plan.budgets.host or plan.budgets.default")
		}
	}}
}

var budgetPatterns = &rule[[]BudgetPattern]{rewrites.allowed, func(list []BudgetPattern, report report) {
	if len(list) > urlkey.MaxRules {
		report("", fmt.Sprintf("holds %d patterns: it must be %s", len(list), rewrites.allowed))
	}
	for _, p := range list {
		if _, err := urlkey.Expression(p.Match); err != nil {
			report("", "holds a pattern that cannot be used: "+err.Error())
		}
		minMax(0, 1<<31-1).check(p.URLs, func(_, text string) {
			report("", fmt.Sprintf("holds a pattern %q whose number of urls %s", p.Match, text))
		})
	}
}}

var linkKinds = &rule[[]string]{"each " + strings.Join(kindNames(schema.LinkKinds), ", "), func(kinds []string, report report) {
	for i, kind := range kinds {
		if !slices.Contains(schema.LinkKinds, schema.LinkKind(kind)) {
			report("", fmt.Sprintf("holds %q, which is not a kind of link: it may hold %s", kind, strings.Join(kindNames(schema.LinkKinds), ", ")))
		} else if slices.Contains(kinds[:i], kind) {
			report("", fmt.Sprintf("holds %q twice", kind))
		}
	}
}}

// These patterns match the object names (RFC 1123 subdomains) and the CPU quantities that
// Kubernetes accepts.
var (
	objectNamePattern = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`)
	cpuQuantity       = regexp.MustCompile(`^([1-9][0-9]*m|[0-9]+(\.[0-9]{1,3})?)$`)
)

func isObjectName(s string) bool { return len(s) <= 253 && objectNamePattern.MatchString(s) }

const objectNameHint = "the name of an object, lower-case letters, digits and -"

var objectName = &rule[string]{objectNameHint, func(name string, report report) {
	if !isObjectName(name) {
		report("", fmt.Sprintf("is %q: write %s", name, objectNameHint))
	}
}}

var objectNames = eachEntry("name", objectNameHint, isObjectName)

var imageName = &rule[string]{"registry/name:tag", func(image string, report report) {
	if strings.ContainsAny(image, " \t\n") {
		report("", fmt.Sprintf("is %q: write registry/name:tag, without spaces", image))
	}
}}

var metricsPort = &rule[int]{"1024 to 65535, or 0", func(port int, report report) {
	if port != 0 && (port < 1024 || port > 65535) { // ports below 1024 need a privilege
		report("", fmt.Sprintf("is %d: it must be 1024 to 65535, or 0 for none", port))
	}
}}

var tolerationsRule = &rule[[]Toleration]{"", func(tolerations []Toleration, report report) {
	for _, t := range tolerations {
		orEmpty(oneOf("Exists", "Equal")).check(t.Operator, report)
		orEmpty(oneOf("NoSchedule", "PreferNoSchedule", "NoExecute")).check(t.Effect, report)
	}
}}

// webIdentityRule refuses a role together with credentials_secret, because pods would use only one
// of the two.
func (c *Config) webIdentityRule() *rule[string] {
	return &rule[string]{"an ARN, or empty", func(role string, report report) {
		switch {
		case role == "":
		case !strings.HasPrefix(role, "arn:") || strings.ContainsAny(role, " \t\n"):
			report("", fmt.Sprintf("is %q: write the ARN of a role, such as arn:aws:iam::123456789012:role/crawl", role))
		case c.Kubernetes.CredentialsSecret != "":
			report("", "is set, but kubernetes.credentials_secret is set too: remove one of them")
		}
	}}
}

var audience = &rule[string]{"not empty", func(audience string, report report) {
	if audience == "" {
		report("", "is empty: write the audience that the role's trust policy has, such as sts.amazonaws.com")
	}
}}

// These patterns match the keys and values of labels that Kubernetes accepts, apart from their lengths.
var (
	labelName   = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`)
	labelPrefix = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
)

const (
	mostLabel       = 63  // bytes of a label's name and of its value
	mostLabelPrefix = 253 // bytes of the prefix of a label's key
)

// isLabelKey reports whether a key is NAME or PREFIX/NAME as Kubernetes accepts them.
func isLabelKey(key string) bool {
	prefix, name, prefixed := strings.Cut(key, "/")
	if !prefixed {
		name = key
	} else if len(prefix) > mostLabelPrefix || !labelPrefix.MatchString(prefix) {
		return false
	}
	return len(name) <= mostLabel && labelName.MatchString(name)
}

// isOwnLabel reports whether crawlbatch or the Job controller sets the label with this key.
func isOwnLabel(key string) bool {
	prefix, _, _ := strings.Cut(key, "/")
	return slices.Contains([]string{"app.kubernetes.io/name", "app.kubernetes.io/component", "job-name", "controller-uid"}, key) ||
		slices.Contains([]string{"crawlbatch.io", "batch.kubernetes.io"}, prefix)
}

var labelsRule = &rule[map[string]string]{"keys and values as Kubernetes accepts them", func(labels map[string]string, report report) {
	for _, key := range sortedKeys(labels) {
		switch value := labels[key]; {
		case isOwnLabel(key):
			report(key, "is a label that crawlbatch or Kubernetes sets: remove it")
		case !isLabelKey(key):
			report(key, fmt.Sprintf("is no label's key: write NAME or PREFIX/NAME, a NAME of at most %d letters, digits, -, _ and ., and a PREFIX like a host's name", mostLabel))
		case value != "" && (len(value) > mostLabel || !labelName.MatchString(value)):
			report(key, fmt.Sprintf("is %q: write at most %d letters, digits, -, _ and ., with a letter or a digit at both ends", value, mostLabel))
		}
	}
}}

// resourceKeys lists the allowed keys of kubernetes.resources.
var resourceKeys = []string{"default", "fetch", "merge", "digest", "similar", "cluster", "dedup", "rank", "frontier", "publish", "verify"}

var resourcesRule = &rule[map[string]Resources]{"`memory` 64MiB to 4TiB, `scratch` 64MiB to 16TiB", func(resources map[string]Resources, report report) {
	for _, stage := range sortedKeys(resources) {
		r := resources[stage]
		if !slices.Contains(resourceKeys, stage) {
			report(stage, "is not a stage: it must be "+strings.Join(resourceKeys, ", "))
		}
		if r.CPU != "" && !cpuQuantity.MatchString(r.CPU) {
			report(stage, fmt.Sprintf("asks for cpu %q: write 500m or 2", r.CPU))
		}
		for _, size := range []struct{ asked, most Bytes }{{r.Memory, 4 * tib}, {r.Scratch, 16 * tib}} {
			if size.asked != 0 {
				minMax(64*mib, size.most).check(size.asked, func(_, text string) { report(stage, text) })
			}
		}
	}
}}
