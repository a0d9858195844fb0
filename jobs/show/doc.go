// Package show tells people how a crawl goes: on a terminal, in lines, in a table.
//
// In: what the driver observes, what tasks count and what they are doing; a crawl's
// status. Out: on a terminal, lines that stay above a block that is redrawn in
// place; elsewhere lines alone, each when something changes and at least one a minute.
//
// A Progress never holds up what it shows: tasks only add to counters, and on a
// terminal one goroutine writes, which nobody waits for longer than a second. It
// imports jobs, stages and formats, and only cmd imports it.
package show
