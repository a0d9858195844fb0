// Package show shows the progress and the status of a crawl to people: on a terminal, as lines, as a
// table.
//
// In: the driver's events, the counters and activities of tasks, a crawl's status. Out: on a
// terminal, lines that stay above a block that is redrawn in place; elsewhere lines only, one when
// something changes and at least one a minute.
//
// A Progress never delays tasks: they only add to counters, and one goroutine writes to the
// terminal; Close waits for it no longer than a second. The package imports jobs, stages and
// formats, and only cmd imports it.
package show
