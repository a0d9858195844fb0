// Package frontier decides what becomes of every URL that a round has met: where it
// stands now, when it is due again, or why it will not be planned.
//
// In, for one reduce bucket, which holds whole domains: the states that the sealed
// rounds left, the outcomes of this round, its redirects, what its pages link to
// (rank's inlinks), the ranks of hosts, and what the plan refused. Out: the bucket's
// parts of the published urls (a row for each URL whose state changed) and skips (a
// row for each URL that was found and not planned, with its reason), and beside them
// the Bloom file of the URLs that both hold, for who looks one up.
//
// A URL's state is the newest row of it:
//
//	found ──plan──► fetched, redirected, denied, failed, gone   by its outcome
//	  ▲               │ next_due has come
//	  └── deferred ◄──┘ planned, but the window closed first
//
// A fetched URL that a sitemap or feed of its own host says has changed since is due at
// that change, at least the least interval after its last fetch; the interval that its
// own changes have taught stays, and announcements that prove false count for less.
//
// Whatever spelling of a URL its own domain's links (rank), a source (the plan, what it
// refused) or a round before gives stays in its row, which is written anew where they
// grow: robots.txt has to allow each. A fifth spelling is kept as the mark that there
// are more than four; such a URL is never due again. One that is skipped, or that only
// links of other kinds than the followed ones name, has a row as soon as it has
// spellings, in the state skipped, and is judged anew when it is met.
//
// All inputs are sorted by SURT and URL; they are merged as streams, and memory holds
// the row at hand, the bucket's host ranks and, where the policy asks for them, its
// planned hosts and domains.
//
// A trap is a URL too long, of too many segments or of segments that repeat, or one
// like at least 50 of the round (but for numbers, identifiers and values) of whose
// pages each has the text of the one before. These are the only cases in which a page's
// content decides about a URL; what made a URL a trap is in the row's detail.
//
// It promises that every target of a link of a followed kind ends in urls or in
// skips, by exact comparison of URLs: nothing is lost to a hash. The same inputs give
// the same bytes: no clock is read, times follow from those recorded. It imports
// stages and formats packages.
package frontier
