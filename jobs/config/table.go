package config

import (
	"slices"
	"time"

	"crawlbatch.io/crawlbatch/formats/schema"
)

const (
	ms     = Duration(time.Millisecond)
	second = Duration(time.Second)
	minute = Duration(time.Minute)
	hour   = Duration(time.Hour)
	day    = 24 * hour

	kib = Bytes(1 << 10)
	mib = 1 << 10 * kib
	gib = 1 << 10 * mib
	tib = 1 << 10 * gib
)

// table returns every key of the file in order. Each row has the struct field, the default, the
// allowed values, whether a running crawl may change the key, and its meaning. The yaml tag of the
// struct field is the key's name. Defaults, checks, freezing, flags, `crawlbatch config` and the
// reference in jobs/README.md all come from these rows.
func (c *Config) table() []field {
	p, f := &c.Politeness, &c.Fetch
	return slices.Concat([]field{
		key(&c.UserAgent, "", nil, frozen, "sent with each request; a public crawl needs a contact in it (URL or mail address); robots.txt groups are matched with its product token").
			withFlag("user-agent", "user agent with a contact, such as \"examplebot/1.0 (+https://example.org/bot)\""),

		key(&p.Delay, 2*second, minMax(0, day), live, "minimum time between two requests to a host, from the moment one is written to the moment the next is written"),
		key(&p.InFlightPerHost, 1, minMax(1, 64), live, "concurrent requests to a host"),
		key(&p.PerAddressDelay, nil, orUnset(minMax(0, day)), live, "minimum time between two requests of a process to an IP address; unset: 200ms, and none for `connect_to` targets"),
		key(&p.SlowFactor, 2, slowFactor, live, "if a response takes longer than the delay, the excess times this factor is added to the delay, at most 30s: at a delay of 2s, a host that takes 5s gets a request every 8s (2s + 2 × 3s); 0: slow hosts get the same delay as others"),
		key(&p.RobotsTTL, day, minMax(minute, day), live, "time for which a robots.txt is used before the next request for it"),
		key(&p.Classes, map[string]Duration{"ecommerce": 5 * second, "news": 3 * second}, eachValue(minMax(0, day)), live, "delays by name, for `politeness.domains`"),
		key(&p.Domains, nil, c.domainRule(), live, "overrides by registered domain: `class` (a key of `politeness.classes`), `delay`, `in_flight_per_host`, and `stop` (reason why the domain is stopped: its URLs end as `stopped`, within seconds in a running crawl)"),

		key(&f.Slots, 200, minMax(1, 10_000), live, "concurrent fetches of a task; fewer if [the process may open few files or take little memory](#memory-and-open-files)"),
		key(&f.Timeout.Connect, 10*second, minMax(ms, hour), live, "time limit for making a connection"),
		key(&f.Timeout.FirstByte, 15*second, minMax(ms, hour), live, "time limit from the request to the first byte of the response"),
		key(&f.Timeout.Total, 30*second, minMax(ms, hour), live, "time limit of a whole request"),
		key(&f.Timeout.Robots, 15*second, minMax(ms, hour), live, "time limit of a request for robots.txt; all URLs of a host wait for it"),
		key(&f.MaxBody, 5*mib, minMax(kib, gib), frozen, "size limit of a body; longer bodies are cut and marked as truncated"),
		key(&f.MaxSitemap, 50*mib, minMax(0, gib), frozen, "size limit of a sitemap; `fetch.max_body` applies instead if it is larger"),
		key(&f.MaxRedirects, 5, minMax(0, 20), frozen, "redirects followed for a URL"),
		key(&f.Sitemaps, SitemapsOfRobots, oneOf(SitemapsOfRobots, SitemapsIfPlanned, SitemapsIgnored), frozen, "robots: the sitemaps that robots.txt or an index file names are fetched in the round that finds them, if they belong to the same registered domain; planned: sitemaps are fetched only as URLs that a source or a link names; none: as planned, and the crawl does not follow the entries of sitemaps and feeds"),
		key(&f.SitemapLimits.Files, 100, minMax(1, 50_000), frozen, "largest number of sitemaps that a crawl fetches because robots.txt or an index names them, for each host and registered domain"),
		key(&f.SitemapLimits.URLs, 1_000_000, minMax(1, 1<<31-1), frozen, "largest number of entries that a crawl takes from these sitemaps, for each host and registered domain"),
		key(&f.SitemapLimits.Bytes, gib, minMax(kib, tib), frozen, "total decoded length of these sitemaps, for each host and registered domain; after it, the crawl fetches no further sitemap there"),
		key(&f.Types.Store, nil, mediaRanges, frozen, "media ranges to store in addition to text and the types that the parser reads: `[application/pdf, image/*]`, `[\"*/*\"]`; the detected type decides, by the most specific range"),
		key(&f.Types.Skip, nil, c.skippedTypes(), frozen, "media ranges not to store: their URLs end as `mime_filtered`"),
		key(&f.Retries.Timeout, 1, minMax(0, 10), frozen, "further tries after a timeout, after 408, 421 or 425, or if a connection was not made or ended without an answer"),
		key(&f.Retries.ServerError, 2, minMax(0, 10), frozen, "further tries after a 5xx other than 503"),
		key(&f.Retries.RateLimited, 3, minMax(0, 10), frozen, "further tries after a 429 or 503"),
		key(&f.Retries.Robots, 2, minMax(0, 10), frozen, "late tries for a robots.txt, once the first request and the tries that the keys above allow for its failure have failed (503 counts as 429; a connection that fails counts as a timeout). The first comes 12 × `pauses.server_error` (2 minutes) after the last failure, each further one three times as long after the one before (6, 18, … minutes, up to 8 hours), or after the host's pause for 429 and 503 if that ends later. After the last, the host's URLs end as `robots_unreachable` without a request, and are due again after a day, as other failed URLs"),
		key(&f.Pauses.RateLimited, 30*second, minMax(ms, hour), live, "pause of a host after a 429 or 503; each further one in a row doubles the pause, at most four times, and not beyond 2 hours; a longer Retry-After wins, up to a day; all pauses vary at random"),
		key(&f.Pauses.Timeout, 15*second, minMax(ms, hour), live, "pause before the try after a timeout"),
		key(&f.Pauses.ServerError, 10*second, minMax(ms, hour), live, "pause before the try after a 5xx other than 503; 12 times as long after its first failure, a host that sends nothing gets its late try"),
		key(&f.Pauses.DNS, minute, minMax(ms, hour), live, "pause of a host after a DNS error"),
		key(&f.Pauses.Breaker, 2*minute, minMax(ms, hour), live, "pause of a host at which most requests fail, before the next probe"),
		key(&f.Window, 20*hour, minMax(second, 31*day), live, "length of a round's fetch stage; URLs without an outcome at its end are deferred to the next round"),
		key(&f.CrawlWindow, 30*day, minMax(second, 366*day), live, "length of the crawl window: time since the first `run` of a crawl after which `run` begins no further round, however often it was restarted; a `run` of a finished crawl that is started later begins another window"),
		key(&f.Certificates, CertificatesTolerant, oneOf(CertificatesTolerant, CertificatesValid), live, "tolerant: pages are taken from a server whose certificate has expired, is self-signed, lacks its chain or is for other hosts, or that speaks TLS 1.0, because it shows them to everybody who goes on; `requests` and `pages` say what is wrong, pages of a certificate for other hosts have no text, and cookies of other servers do not go there; valid: such URLs end as `tls_error`. Sources on the web need valid certificates in any case"),
		key(&f.Proxy, "", proxyAddress, live, "proxy for every request; it gets CONNECT to an address that crawlbatch resolved and checked; write its password as `${VAR}`").
			hidden(hidePassword, passwordInstead),
		key(&f.ProxyFilters, false, nil, live, "true if the proxy itself refuses private addresses; it then gets plain http requests in absolute form, with the host's name: some proxies refuse CONNECT to port 80"),
		key(&f.Resolvers, nil, resolvers, live, "name servers to ask in turn instead of the system's"),
		key(&f.Checkpoint.Every, minute, minMax(100*ms, 10*minute), live, "time between two checkpoints of a task; while the task records little, up to ten times as long. A crash, or a spot node that goes too soon, loses what was recorded since the last checkpoint; it is fetched again"),
		key(&f.Checkpoint.Bytes, 256*mib, minMax(64*kib, 16*gib), live, "bytes fetched since the last checkpoint that cause the next one"),
		key(&f.Checkpoint.Lease, 3*minute, c.leaseRule(), live, "time after which another attempt may take over from an attempt that does not renew its lease"),
		key(&f.ConnectTo, nil, nil, live, "rules `HOST:PORT:ADDR:PORT` as curl's `--connect-to`: an empty part means any").
			withFlag("connect-to", "HOST:PORT:ADDR:PORT as in curl: connect to ADDR:PORT instead of HOST:PORT; an empty part means any; repeatable"),
		key(&f.AllowPrivateNetworks, false, nil, live, "requests may reach private addresses").
			withFlag("allow-private-networks", "let requests reach private addresses"),
		key(&f.NAT64Prefixes, nil, nat64Prefixes, live, "prefixes of the network's own NAT64, in addition to 64:ff9b::/96: an address under a prefix is private if the IPv4 address in it is"),

		key(&c.Parse.MaxLinks, 10_000, minMax(0, 1_000_000), frozen, "largest number of rows in `links` per page; links to embedded resources are left out first; links beyond the limit are only counted; 0: the default"),
		key(&c.Parse.NoArchive, NoArchiveCounts, oneOf(NoArchiveCounts, NoArchiveText), frozen, "what the datasets keep of a document that says `noarchive`. counts: its title, links, counts, digests and fingerprint, but [no other words](../stages/README.md#noarchive), because a stored text is a copy; text: all columns, for instance if you have the owner's consent"),
	}, c.planTable(), []field{
		key(&c.Dedup.MaxDistance, 3, minMax(0, 7), frozen, "number of bits in which the SimHashes of near duplicates may differ; `plan` refuses more than 3 for more than 100 million planned URLs"),
		key(&c.Dedup.MinWords, 50, minMax(0, 1_000_000), frozen, "texts with fewer words are duplicates only if they are equal"),
		key(&c.Dedup.Months, 12, minMax(0, 1200), frozen, "pages are compared with earlier rounds of the crawl's month and of this many months before it; 0: with all earlier rounds"),

		key(&c.Frontier.Follow, "domain", oneOf("none", "host", "domain", "any"), frozen, "links whose targets are planned: none, links to the same host, links to planned domains, or any links"),
		key(&c.Frontier.Kinds, kindNames(schema.DefaultFollowed), linkKinds, frozen, "kinds of links to follow, as in the column `kind` of `links`"),
		key(&c.Frontier.Recrawl.First, 30*day, c.firstRule(), frozen, "time after the first fetch of a URL until it is due again; later, a URL that changes once in this time is due after it, and others after a time that follows from how often they are estimated to change"),
		key(&c.Frontier.Recrawl.Min, day, minMax(minute, 3650*day), frozen, "least time between two fetches of a URL, even if it changes each time; for news, minutes"),
		key(&c.Frontier.Recrawl.Max, 180*day, minMax(minute, 3650*day), frozen, "largest time between two fetches of a URL, even if it never changes"),
		key(&c.Frontier.Recrawl.RetryAfter, day, minMax(minute, 3650*day), frozen, "time until a URL is due again after a failure, or after a page that the network cut; each further failure in a row doubles it, up to `frontier.recrawl.max`"),
		key(&c.Frontier.Focus.File, "", nil, frozen, "file with [weighted terms](../planner/README.md#focus), which becomes `frontier.focus.model` when the config is read: a crawl keeps the terms, not the name"),
		key(&c.Frontier.Focus.Model, "", focusModel, frozen, "the weighted terms themselves: a line for each term, with its weight"),
		key(&c.Frontier.Focus.Points, 0, points, frozen, "points of priority for a found URL with a score of 1 or more; taken away for -1 or less; in proportion between"),
		key(&c.Frontier.Focus.Threshold, nil, c.thresholdRule(), frozen, "found URLs with a lower score are not planned (reason `focus` in `skips`); unset: all are planned"),
		key(&c.Frontier.Traps.Except, nil, nil, frozen, "URL patterns, as in `plan.scope`; matching URLs are never refused as [traps](../stages/README.md#traps), and are no evidence of one: `[\"example.org/archive/*\"]`"),

		key(&c.Store.SSEKMSKey, "", nil, live, "KMS key that encrypts the objects in S3"),
		key(&c.Store.StorageClass, "", nil, live, "storage class of the objects in S3"),
		key(&c.Store.NoArchive, NoArchiveHead, oneOf(NoArchiveHead, NoArchiveKeep), frozen, "what the WARC files keep of a response that says `noarchive`. head: its head without its body, because the site asks for no copy; keep: the whole response, for instance in an archive of your own site or under legal deposit"),
		key(&c.Store.TakedownKey, "", nil, live, "secret key of the store's [list of takedowns](#never-planned-again), at least 16 bytes; write it as `${VAR}`: the store must not hold it").
			hidden(hideAll, takedownKeyInstead),

		key(&c.Prices.Date, "2025", priceDate, live, "date of the prices below, which `plan` and `status` name; the defaults are list prices of Amazon, region us-east-1, in dollars"),
		key(&c.Prices.CPU, 0.037, price, live, "price of a core for an hour, on demand: with the next key, it makes the price of m6i.xlarge (4 cores, 16 GiB: $0.192) and of c6i.xlarge (4 cores, 8 GiB: $0.17); 0: free"),
		key(&c.Prices.Memory, 0.00275, price, live, "price of 1 GiB of memory for an hour; 0: free"),
		key(&c.Prices.Puts, 0.005, price, live, "price of 1,000 PUT or LIST requests of S3 Standard; 0: free"),
		key(&c.Prices.Gets, 0.0004, price, live, "price of 1,000 GET or HEAD requests; 0: free"),
		key(&c.Prices.Stored, 0.023, price, live, "price of 10⁹ bytes stored for a month, S3 Standard; 0: free"),
	}, c.retentionTable(), c.kubernetesTable())
}

// planTable returns the keys of the section plan.
func (c *Config) planTable() []field {
	return []field{
		key(&c.Plan.PartitionURLs, 500_000, minMax(1, 10_000_000), frozen, "largest number of URLs in a partition; a domain with more has a partition of its own"),
		key(&c.Plan.BucketURLs, 2_000_000, minMax(1, 1_000_000_000), frozen, "largest number of planned URLs in a reduce bucket; the bucket may hold five times as many known URLs; a task of `rank` or `frontier` works on one bucket"),
		key(&c.Plan.Budgets.Default, 10_000, minMax(0, 1<<31-1), frozen, "URLs planned per domain and crawl; 0: no limit"),
		key(&c.Plan.Budgets.PerDay, 0, minMax(0, 1<<31-1), frozen, "URLs planned per day of a round's `fetch.window`; 0: no limit"),
		key(&c.Plan.Budgets.Total, 0, minMax(0, 1<<40), frozen, "URLs planned per crawl; 0: no limit"),
		key(&c.Plan.Budgets.Domains, nil, eachValue(minMax(0, 1<<31-1)), frozen, "URLs planned per crawl for single domains; replaces the default"),
		key(&c.Plan.Budgets.Host, 0, minMax(0, 1<<31-1), frozen, "URLs planned per host and crawl; 0: no limit"),
		key(&c.Plan.Budgets.HostsPerDomain, 0, minMax(0, 1<<31-1), frozen, "hosts planned per domain and crawl: hosts of earlier rounds stay, then hosts whose best URL has the highest priority, then hosts with the most URLs; 0: no limit"),
		key(&c.Plan.Budgets.Patterns, nil, budgetPatterns, frozen, "URLs planned per host and crawl in which a regular expression matches: the first `match` that matches counts, `urls` is the number (0 refuses all), `name` is for people"),
		key(&c.Plan.Budgets.Ranked, 0, c.rankedRule(), frozen, "most URLs planned per domain and crawl: a domain whose best host has n times the mean rank gets n times `plan.budgets.default` URLs, at least 100 and at most this many; 0: the rank does not count"),
		key(&c.Plan.Budgets.Address, 0, minMax(0, 1<<31-1), frozen, "URLs planned per crawl of all hosts that earlier rounds found at one IP address; addresses of more than a thousand planned domains (CDNs) have no limit; 0: no limit"),
		key(&c.Plan.Budgets.Exploration, 0, c.explorationRule(), frozen, "share of `plan.budgets.total` and `plan.budgets.per_day` that is kept for hosts to which no earlier round sent a request; 0: none"),
		key(&c.Plan.Budgets.RateLimited, 0, c.rateLimitedRule(), frozen, "share of its URLs per crawl (`plan.budgets.host`, or else the domain's budget) for a host that had URLs with outcome `rate_limited` or an open breaker in the last round that requested it; 0 or 1: all of them"),
		key(&c.Plan.Priority.HostRank, 300, points, frozen, "points for a URL of a host with a hundred times the mean rank; half of them for a host of mean or unknown rank"),
		key(&c.Plan.Priority.Directory, 100, points, frozen, "points that each directory of a path takes away"),
		key(&c.Plan.Priority.Anchor, 100, points, frozen, "points for a URL to which a link with a text leads"),
		key(&c.Plan.Priority.Sitemap, 80, points, frozen, "points for a URL whose host's sitemap gives it a priority; they are multiplied by that priority minus 0.5"),
		key(&c.Plan.Priority.Inlinks, 0, points, frozen, "points for a URL to which 1,000 or more pages of the round link; a third of them for ten pages"),
		key(&c.Plan.Priority.Hop, 0, points, frozen, "points that each link on the way from a listed URL to the URL takes away"),
		key(&c.Plan.Priority.Query, 0, points, frozen, "points that a query in the URL takes away"),
		key(&c.Plan.Priority.Freshness, 150, points, frozen, "points for a known URL whose [recrawl](../planner/README.md#recrawls) makes its copy fresher by a hundred times the time from which `frontier.recrawl` makes it due; none at this time, and subtracted for a hundredth of it"),
		key(&c.Plan.Priority.Overdue, 0, points, frozen, "points for a known URL that has been due for as long as its interval between two fetches"),
		key(&c.Plan.Priority.Change, 0, points, frozen, "points for a known URL that changes at each fetch"),
		key(&c.Plan.Priority.News, 0, points, frozen, "points for a URL whose path holds the date of the plan's day, such as /2026/11/25/; a seventh less for each day before"),
		key(&c.Plan.MaxDepth, 15, minMax(0, 1000), frozen, "largest number of links on the way from a seed to a planned URL"),
		key(&c.Plan.StripParams, []string{"utm_*", "fbclid", "gclid"}, paramPatterns, frozen, "parameters removed from canonical URLs"),
		key(&c.Plan.Canonical.Sessions, false, nil, frozen, "drop session identifiers from URLs: `;jsessionid=` and the parameters PHPSESSID, jsessionid, ASPSESSIONID…, CFID and CFTOKEN, and sid if its value has 16 letters and digits"),
		key(&c.Plan.Canonical.HTTPS, nil, httpsHosts, frozen, "hosts, with their subdomains, that serve https: their URLs without a port get the scheme https; `[\"*\"]`: all hosts"),
		key(&c.Plan.Canonical.WWW, false, nil, frozen, "drop `www.` from hosts"),
		key(&c.Plan.Canonical.IndexFiles, false, nil, frozen, "drop index.html, index.php, default.aspx and the like from the ends of paths"),
		key(&c.Plan.Canonical.TrailingSlash, false, nil, frozen, "drop slashes from the ends of paths"),
		key(&c.Plan.Rewrite, nil, rewrites, frozen, "rules that change URLs, in order: `name`, `match` (RE2), `replace` (with $1 for a group) and `last` (true: skip the later rules): see [canonical URLs](../planner/README.md#canonical-urls)"),
		key(&c.Plan.Filter, nil, filters, frozen, "rules that refuse canonical URLs; the first rule that matches decides: `name`, `match` (RE2) and `accept` (true: no later rule refuses the URL)"),
		key(&c.Plan.Scope.Include, nil, nil, frozen, "URL patterns, in which `*` matches any characters; with patterns, only matching URLs are planned"),
		key(&c.Plan.Scope.Exclude, nil, nil, frozen, "URL patterns; matching URLs are not planned: `[\"*/calendar/*\"]`"),
		key(&c.Plan.OptOut, "", nil, live, "list of hosts, domains and URL patterns that get no requests: a file or `s3://bucket/key`, read again for each round; see [opt-out list](../planner/README.md#opt-out-list)"),
		key(&c.Plan.History, true, nil, frozen, "a crawl continues the newest earlier month: URLs from lists and links get their history from earlier crawls (validators, digest, place of the content, form in which they are asked for)"),
		key(&c.Plan.SkipWithin, 0, minMax(0, 366*day), frozen, "URLs that were fetched within this time before the plan are not planned: `20d`, `12h`; 0: no such limit; `plan --force` plans them"),
	}
}

// retentionTable returns the keys of the section retention.
func (c *Config) retentionTable() []field {
	return []field{
		key(&c.Retention.WorkingDays, 35, minMax(0, 3660), live, "days after a crawl's last round was finished for which `prune` keeps working data: working files of reduce stages that no later round reads, and texts of segments, which the table `text` repeats; it goes with the raw captures at the latest; 0: until then"),
		key(&c.Retention.Raw, 12, minMax(0, 1200), live, "months after a crawl's month for which `prune` keeps raw captures: WARC files with their indexes, and segments; 0: for ever"),
		key(&c.Retention.Metadata, 18, c.metadataRule(), live, "months after a crawl's month for which `prune` keeps tables, plans and all other documents; then only the crawl's ledger is left; 0: for ever"),
		key(&c.Retention.ColdAfter, 90*day, minMax(day, 3660*day), live, "age at which the rule of `prune --lifecycle` moves WARC files in S3 to the class below, in whole days"),
		key(&c.Retention.ColdClass, "GLACIER_IR", oneOf("GLACIER_IR", "STANDARD_IA", "ONEZONE_IA", "INTELLIGENT_TIERING"), live, "storage class of old WARC files; objects in these classes can be read at once, which `reparse` and `verify` need"),
	}
}

// kubernetesTable returns the keys of the section kubernetes.
func (c *Config) kubernetesTable() []field {
	k := &c.Kubernetes
	return []field{
		key(&k.Namespace, "crawl", objectName, live, "namespace of the Jobs").
			withFlag("namespace", "namespace of the Jobs (kubernetes.namespace)"),
		key(&k.Image, "", imageName, live, "image of crawlbatch, needed to submit Jobs").
			withFlag("image", "image of crawlbatch (kubernetes.image)"),
		key(&k.ImagePullPolicy, "", orEmpty(oneOf("Always", "IfNotPresent", "Never")), live, "when a node pulls the image; empty: Kubernetes decides by the image's tag"),
		key(&k.ImagePullSecrets, nil, objectNames, live, "names of the Secrets for pulling the image"),
		key(&k.Parallelism.Min, 0, c.leastPodsRule(), live, "number of pods with which a stage begins, and to which the driver goes back while pods wait for a node; 0: as `max`. Not for Jobs that Kueue queues"),
		key(&k.Parallelism.Max, 50, minMax(1, 10_000), live, "largest number of pods of a stage at a time"),
		key(&k.JobTasks, 10_000, minMax(1, 100_000), live, "tasks in a Job; a stage with more is split into several Jobs"),
		key(&k.BackoffLimitPerIndex, PoisonDeaths, minMax(PoisonDeaths, 1000), live, "number of times that Kubernetes runs a failed task again before it gives the task up"),
		key(&k.MaxFailedIndexes, 0, minMax(0, 10_000), live, "number of failed tasks that ends a Job early; 0: a tenth of its tasks, at least 10"),
		key(&k.Grace, minute, minMax(MinGrace, hour), live, "time that a pod gets to end; spot nodes [may give less](../k8s/README.md#where-pods-run)"),
		key(&k.TTL, day, minMax(minute, 366*day), live, "time until a finished Job and its pods are removed"),
		key(&k.Resources, nil, resourcesRule, live, "by stage, `verify`, or `default`: `cpu` (requested: 500m, 2), `memory` (requested, and the limit), `scratch` (size of the scratch volume; a task that needs more fails); unset values are estimated from the plan"),
		key(&k.PriorityClass, "", orEmpty(objectName), live, "priority class of pods"),
		key(&k.Spot, true, nil, live, "tolerate the taints of Google's and Azure's spot nodes, [which end pods sooner](../k8s/README.md#where-pods-run) than `kubernetes.grace`"),
		key(&k.NodeSelector, nil, nil, live, "labels that a node needs to run pods"),
		key(&k.Tolerations, nil, tolerationsRule, live, "taints that pods tolerate: `key`, `operator` (Exists, Equal), `value`, `effect` (NoSchedule, PreferNoSchedule, NoExecute; empty: all)"),
		key(&k.ServiceAccount, "crawlbatch-task", objectName, live, "service account of task pods"),
		key(&k.ServiceAccountToken, false, nil, live, "mount the service account's token in task pods"),
		key(&k.ServiceAccountAnnotations, nil, nil, live, "annotations of the service account that `k8s render` prints, such as a cloud identity"),
		key(&k.DriverServiceAccount, "crawlbatch-driver", objectName, live, "service account of the pod of `run --detach`"),
		key(&k.Env, nil, nil, live, "environment variables of pods").
			hidden(hideAll, variableInstead),
		key(&k.EnvFromSecrets, nil, objectNames, live, "names of Secrets with further environment variables"),
		key(&k.CredentialsSecret, "", orEmpty(objectName), live, "name of a Secret whose key `credentials` is a credentials file of AWS; pods mount the Secret and read the store's keys from it at their start"),
		key(&k.WebIdentityRole, "", c.webIdentityRule(), live, "ARN of a role that pods assume with a token of their service account; the token is in a projected volume"),
		key(&k.WebIdentityAudience, "sts.amazonaws.com", audience, live, "audience of that token, as in the role's trust policy"),
		key(&k.Annotations, nil, nil, live, "annotations of pods, not of Jobs"),
		key(&k.Labels, nil, labelsRule, live, "labels of Jobs and of their pods, in addition to crawlbatch's own: `{kueue.x-k8s.io/queue-name: crawls}`, `{sidecar.istio.io/inject: \"false\"}`"),
		key(&k.MetricsPort, 9090, metricsPort, live, "port on which task pods serve Prometheus metrics; 0: none"),
		key(&k.MetricsTopHosts, 0, minMax(0, 20), live, "number of hosts of each pod that have series of their own, those that take the longest; 0: no series names a host"),
		key(&k.MetricsLegacyNames, false, nil, live, "serve metrics under their old names too, such as `crawler_urls_queued_total`"),
		key(&k.PolitenessConfigMap, "crawlbatch-politeness", orEmpty(objectName), live, "ConfigMap whose key politeness.yaml sets the pace of fetch pods, also while they run; it may be missing"),
	}
}
