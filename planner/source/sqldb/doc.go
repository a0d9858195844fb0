// Package sqldb reads a table of URLs in MySQL, MariaDB or PostgreSQL, and writes outcomes back to
// the database.
//
// The input is the address of a table, and the environment for its password. The output is the rows
// of the table in the order of a unique key, in pages. Each page asks for the rows after the last
// key, so all pages cost the same. Outcomes go to a result table beside the table of URLs.
// Statements then join the result table with the table of URLs. Each statement covers a bounded
// range of keys.
//
// Package sqldb promises:
//
//   - equal content gives the same rows in the same order;
//   - after a lost connection, the package continues after the last row; it gives up after about a
//     minute without a row;
//   - the memory does not grow with the table: the server cuts long values, and rows are not kept;
//   - no error and no name holds a password, and a password in the text of an address is refused;
//   - outcomes of a round are applied exactly once, whatever is interrupted or repeated, and never replace
//     outcomes of a newer round.
//
// Package sqldb imports formats packages only.
package sqldb

import (
	"errors"
	"time"

	"crawlbatch.io/crawlbatch/formats/store"
)

var (
	// ErrUnusable means that the address is wrong, that the server refuses it, or that the table
	// lacks what is needed. The user can correct the cause.
	ErrUnusable = errors.New("the database cannot be used as named")
	// ErrLost means that the database does not answer, or does not serve anybody at the moment. The
	// same command can be repeated when the database is back.
	ErrLost = errors.New("the database does not answer: check its address, or run this again when it is back")
)

const (
	// pageRows is the number of rows of a page.
	pageRows = 10_000
	// connectTimeout bounds a connection's set-up.
	connectTimeout = 10 * time.Second
	// pageTimeout bounds the wait for the next row of a page. A condition that selects few rows may
	// keep a server busy for many minutes, but a server that hangs must not hold a plan for ever.
	pageTimeout = time.Hour
	// slowPage is the time after which the user is told that the database still works on a page.
	slowPage = 10 * time.Second
	// openTimeout bounds the time until the columns and the key of a table are known.
	openTimeout = time.Minute
	// lostTries is the number of consecutive tries without a row after which an operation fails.
	// With the default pauses of store.Backoff, these tries take about a minute.
	lostTries = 10
)

// pauses are the pauses between tries.
var pauses store.Backoff
