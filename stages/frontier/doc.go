// Package frontier decides about every URL that a round has met. For each URL it decides the state,
// the time when the URL is due again, or the reason why the URL is not planned.
//
// A task works on one reduce bucket, which holds whole domains. The task reads the states of URLs
// after the sealed rounds, and the outcomes and redirects of this round. The task also reads the
// targets of this round's links (rank's inlinks), the ranks of hosts, and the entries that the plan
// refused. The task writes the bucket's parts of two datasets. The urls dataset has a row for each
// URL whose record changed, and the skips dataset has a row for each URL that was found but may not
// be planned. For lookups, the task also writes a URL filter of both datasets. In some rounds, it
// writes a base of the urls dataset, with the state of each known URL of the bucket (package
// urlstate).
//
// The newest row of a URL in the urls dataset holds its state:
//
//	found ──plan──► fetched, redirected, denied, failed, gone   by its outcome
//	  ▲               │ next_due has come
//	  └── deferred ◄──┘ planned, but the window closed first
//
// A crawl may plan only the URLs that sources list or that the crawl itself finds
// (stages.Input.Listed). In such a crawl, a URL that only earlier crawls know returns to the state
// found in two cases: a followed link or a redirect leads to the URL, or a budget refused it. The
// URL keeps its history. The next plan takes the URLs with the state found, and the URLs that the
// crawl itself first found or planned. Other known URLs never have the state found. A URL that waits
// gets a row in one round, and another only if links change its depth, priority or form. If the
// plan refuses a URL because of a recent fetch, the URL gets back the state and the due time of this
// fetch.
//
// In every crawl, a known URL that a source lists, but a budget refuses, returns to the state found if it
// is not due anyway. So a later plan takes it.
//
// A row also holds the facts of the URL's last capture, and says how the last answer
// differs from the capture before it (schema.Change). The stage publish copies this change into pages.
//
// The time until a fetched URL is due again follows from how often it is estimated to change (package
// recrawl). The known pages of the same host and depth say what to assume about a page that was fetched
// rarely. The row keeps what the estimate needs, and what decided the due time. Until a change is
// known, each fetch at least doubles the interval, unless an announcement alone caused it.
//
// A sitemap or feed of the URL's own host can announce that a fetched URL has changed. An announced
// URL is due at the time of the announced change, but at least a minimum interval after its last
// fetch. A false announcement doubles this minimum. An announcement that no change follows
// says only that the URL has not changed since its last fetch.
//
// A sitemap that was requested because robots.txt names it has a row with its state, so that a link
// to it does not cause a second fetch. It has a due time only if a round has planned it: otherwise
// each month requests it anyway, because robots.txt names it.
//
// A URL's row keeps the form in which it is asked for (schema.Form). New links change it only until it has answered, or
// after it failed for good. A URL that failed for good, and that its own domain then links in another form, is due again.
//
// All inputs are sorted by SURT and URL and merged as streams. Memory holds the rows about up to 512 URLs of
// the current host, the bucket's host ranks and, if the follow policy needs them, its planned hosts and
// domains.
//
// A trap is a URL that is too long, that has too many segments, or whose segments repeat. Others are learned in
// each round from the last captures of all known URLs of the bucket, so the verdicts depend on no other
// state, nor on the number of buckets, and end with their evidence. Three kinds are known:
//
//   - A pattern: URLs that differ only in numbers, identifiers and parameter values. It is a trap if at least
//     Config.SimilarPages of its pages are known, and all but two have the same title and nearly the same text
//     as the page before.
//   - A calendar: a pattern whose URLs name plausible dates. Only days that are months away from the crawl are
//     refused, and only if as many known pages of such days have the same words as others of their month
//     and day of the week, apart from numbers. Past and future count apart.
//   - A parameter of queries, or an identifier in paths, that changes nothing: pairs of URLs that differ only in
//     it are the same document, or redirect to the URL without it. A URL with it is kept if no other URL is known
//     that stands for its page.
//
// A pattern or calendar is no trap if its pages lead to new URLs that are no traps themselves, and a parameter if its
// pages lead to new URLs without it.
// Pages with few words, with a page_hint or without text are no evidence. Hosts that differ only in "www." count
// apart, and URLs that differ only in their scheme count once. A URL that waits becomes skipped when it is refused,
// and found when the verdict ends. One of 32 URLs is kept until there is much evidence. The column
// detail of the dataset skips says why a URL is a trap.
//
// The stage promises that each target of a link of a followed kind has a row in the urls dataset or
// skips. It compares whole URLs, so no URL is lost through a hash collision. The same inputs give the
// same bytes: the stage reads no clock and computes all times from recorded times. Package frontier
// imports stages and formats packages.
package frontier
