// Package show shows the progress and the status of a crawl to people: on a terminal, as lines or
// as a table.
//
// In: the driver's events, the counters and activities of tasks, a crawl's status. Out: on a
// terminal, lines that stay above a block that is redrawn in place. Elsewhere it writes only lines:
// one when something changes and at least one each minute.
//
// A Progress never delays tasks: tasks only add to counters, and one goroutine writes to the
// terminal. Close waits at most one second for this goroutine. The package imports jobs, stages and
// formats, and only cmd imports it.
package show
