// Package model checks the protocol of "Commit and resume" in jobs/README.md. Tests try every order
// of events within small bounds, and look for a broken promise.
//
// The package contains no code of the crawler, because each model follows the document and not the
// program. There are two models: a partition (lease, checkpoint, files, sweep, result), and the
// choice of a round's plan in the ledger. Both share one search. A mutation is a deliberate mistake in one rule of the protocol. Each
// promise has at least one mutation that breaks it, because a model that cannot fail proves nothing.
// The package imports the standard library only.
package model
