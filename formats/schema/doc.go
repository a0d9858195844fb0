// Package schema holds the row types of every dataset and of every working file. It also holds the
// closed vocabularies of their columns: outcomes, skip reasons, states, kinds.
//
// Each struct defines one table. A field's parquet tag names the column, and the doc tag describes
// the column. A vol tag marks a volatile column, such as a time or an address: its values may differ
// between two crawls of the same web. Columns without a vol tag are stable. A since tag names the
// FormatVersion that added the column. Files of an older format lack the column, and readers get
// nulls. Package catalog derives the DuckDB views, the Athena DDL and the documentation from the
// tags of the structs.
//
// All integers are signed, timestamps are milliseconds UTC, and names are snake_case. A column of
// Common Crawl's flat cc-index schema keeps its name, type and meaning. A column marked optional
// stores its zero value as null. Adding a column is a compatible change. A changed meaning or type
// of a column needs a new FormatVersion.
//
// Package schema imports only packages logarithm and pack.
package schema

import (
	"reflect"
	"strconv"
)

// FormatVersion is written into every manifest. A reader refuses a manifest with a newer version.
//
//	1: Version 1 is the first format.
//	2: Every reader supports the encodings of tables, robots.txt must allow every spelling of a
//	   URL, and plans keep the spellings.
//	3: Each crawl has a ledger. Each checkpoint, each result, crawls.json and active.json carry a
//	   proof. Files over 1 MiB have digests of their blocks. Tables are as in version 2.
//	4: The reduce stages exchange smaller working files and divide their work differently. Targets and
//	   anchors of links have dictionaries. The table hosts counts at most 256 hosts of a domain as
//	   sources of a host of another domain, and has the column harmonic. Rounds have web graphs.
//	5: A crawl may list how many rounds of earlier crawls it continues, and may be planned without
//	   their frontier. Tables are as in version 4.
//	6: In a crawl that is planned without the frontier of earlier crawls, a page that answers 304 has
//	   the links of its stored content. Seals keep the digests of the blocks of links. Plans keep the
//	   opt-out list.
//	   Fetch tasks may fetch the sitemaps that robots.txt files name. Fetch and merge have the working
//	   file sitemaps. Links have sources that are neither pages nor redirects.
//	7: Fetch tasks note which sitemaps a round has planned, in the column planned of the working file
//	   sitemaps. A later round does not request such a sitemap only because a robots.txt names it.
//	   Targets and inlinks have the column sitemap_weight, which counts for priorities.
//	8: Plans pack partitions by the pace of each host. Plans of older formats know only the delay of
//	   the registered domain, and assume 1.5 s for each URL. Plans, fetches and urls say which sources
//	   listed a URL (Listing).
//	9: Rounds have the datasets stages and runs. Attempts record when they began, their CPU time and
//	   their memory. The ledger records stopped hosts and pauses, which older versions would not
//	   obey. A checkpoint says how many URLs of the task have no outcome yet, how many bytes arrived,
//	   on which machine the task runs, and for how long.
//	   If a round has several buckets, the stages digest, similar and cluster do most of the work of
//	   dedup, which has a task for each bucket. The column via follows the least spanning forest of
//	   the near pairs. In older formats it follows the order in which the search found the pairs.
//	   The command prune may delete old objects of a crawl. The ledger says which (manifest.Pruning),
//	   and active.json names a deletion that is not complete.
//	10: If the URL of a sitemap or feed that is a source has a secret parameter, plans and datasets have
//	   *** in place of its value. A plan that repeats an older plan keeps the value, and so its ID.
//	   Rounds have the domains dataset, which publish tasks of some partitions write. Later rounds read
//	   it, so seals keep the digests of its blocks.
//	   In hosts, a host whose robots.txt answered only 429 or 5xx is unreachable even if no URL of it has
//	   the outcome robots_unreachable.
//	11: A checkpoint says when the attempt took the partition, and until when a robots.txt that keeps
//	   failing may delay its end. Tables are as in version 10.
//	12: Rounds have the terms dataset, by which publish weighs the topics of pages. Merge has the
//	   working file terms, and segments have 128 terms of a page in place of 50.
//	   In rounds that were planned in format 12 or newer, publish reads the states of URLs. Pages and
//	   urls say how an answer differs from the URL's last capture, and urls keep the facts of this
//	   capture (Change, CaptureFacts). Pages say which of them belong to a family of soft 404s.
//	   A plan predicts times from the observed time between a host's requests.
//	   A checkpoint says how many URLs had no outcome when the attempt began, which hosts will end last
//	   together, and when the attempt may end if a robots.txt keeps failing.
//	   A ledger may name a compacted copy of the tables.
//	13: Merge scores pages by frontier.focus (Page.Focus, Inlink.SourceFocus). A plan knows which pauses
//	   and raised delays of hosts pass to its round, and takes the pace of a host from as many requests
//	   as it plans.
//	   Rows of urls say when the content changed between fetches, and what decided when the URL is due
//	   again. The frontier estimates rates of change from them (package recrawl). Plans and fetches say
//	   why a known URL was planned. A change no longer halves the interval between fetches.
//	14: Known pages of a host say how often its new pages change.
//	   The stages digest and similar have at most 16 tasks each. In older formats they have at most 64.
//	   Pages and urls say how many link targets changed since the last capture. Segments, working pages
//	   and urls have a sketch of the targets (LinkSketch).
//	   Segments hold the lines of the main text only once (WorkingText), which saves an eighth of the bytes of texts.
//	   A part of a compacted copy has the rows of all rounds of a month, and its columns crawl, round and subset
//	   say where each row comes from.
//	15: Segments hold sets of links (LinkSet) in place of rows of links.
//	16: Crawls from the frontier take the links of pages that answered 304 from earlier rounds, as crawls from lists do.
//	   A known URL that a source lists waits if a budget refuses it. Hosts with and without "www." have traps by
//	   similar pages. A retry does not count as a false alarm of a sitemap.
//	   Budgets count the URLs that an earlier round of the crawl planned also if they are due again and the plan
//	   refuses them. The domain of an IPv6 address with a port that is only a target of links has brackets.
//	   A term counts only if one in 100,000 sampled pages of its language has it.
//	   A robots.txt that answers 4xx with an incomplete body means no rules. In older formats it counts as not fetched.
//	   After a takedown, merge finds which of the documents of a URL have links left.
//	17: Pages whose cluster has the front page of their host as its representative are in no family of soft 404s, also
//	   if an earlier round fetched that page.
//	   The digest of a host's robots.txt is that of its file from https, also in rounds that read only the file from http.
//
// A round keeps the FormatVersion in which it began. This version decides, for example, how
// robots.txt is read. A stage keeps the FormatVersion in which its inputs were frozen. This version
// decides, for example, how tables are encoded.
const FormatVersion = 18

// TellsZero returns the first FormatVersion whose files distinguish 0 from null in an optional
// column. The struct tag zero holds this version. Files of an older format store 0 as null.
func TellsZero(f reflect.StructField) int { return version(f, "zero") }

// HasDictionary reports whether a text column has a dictionary only since some FormatVersion, and
// format is at least that version. The struct tag dict holds the version. (A column with dict in its
// parquet tag has a dictionary in every version. HasDictionary is false for it.)
func HasDictionary(f reflect.StructField, format int) bool {
	return f.Tag.Get("dict") != "" && format >= version(f, "dict")
}

// Since returns the FormatVersion that added the column of a struct field.
func Since(f reflect.StructField) int { return version(f, "since") }

// version returns the number in a struct tag, or 1 if the field has no such tag.
func version(f reflect.StructField, tag string) int {
	v, err := strconv.Atoi(f.Tag.Get(tag))
	if err != nil {
		return 1
	}
	return v
}
