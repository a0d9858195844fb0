// Package show shows the progress and the status of a crawl to people.
//
// In: the driver's events, the counters and activities of tasks, a crawl's status. Out: on a
// terminal, lines that stay above a block that is redrawn in place. Outside of a terminal, a new
// line appears when the state changes, and at least each minute.
//
// A Progress never delays tasks, because tasks only add to counters, and one goroutine writes to
// the terminal. Close waits at most one second for this goroutine. The package imports jobs, stages
// and formats. Only cmd imports the package.
package show
