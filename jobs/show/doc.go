// Package show shows the progress and the status of a crawl to people.
//
// The package receives the driver's events, the counters and activities of tasks, and a crawl's
// status. On a terminal, the package writes lines that stay, and redraws a block below these lines
// in place. Outside of a terminal, a new line appears when the state changes, and at least each
// minute.
//
// A Progress never delays tasks, because tasks only add to counters, and one goroutine writes to
// the terminal. Close waits at most one second for this goroutine. The package imports jobs, stages
// and formats. Only cmd imports the package.
package show
