// Package show shows the progress and the status of a crawl to people.
//
// The package receives the driver's events, the counters and activities of tasks, and a crawl's
// status. On a terminal, it writes lines that stay, and below these lines a block that it redraws
// in place. If the output is not a terminal, it writes a line when the state changes, and at least
// once a minute.
//
// A Progress never delays tasks: they only add to counters, and a goroutine of its own writes to the
// terminal. Close waits for this goroutine for at most one second. The package imports jobs,
// stages and formats. Only cmd imports the package.
package show
