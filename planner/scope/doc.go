// Package scope says which URLs a crawl may request.
//
// The input is patterns, filters and an opt-out list, from the config and from a source, and the guard of
// the store's list of takedowns. The output is an answer for each canonical URL, with the pattern, filter
// or entry that refuses it.
//
// Package scope promises that a Scope and an OptOut are immutable, so goroutines may share them, and that
// an answer takes time linear in the URL, times the number of patterns that may match it. Patterns that are
// names or have no star count once together, and those of a host whose only star is at their end once for
// each of their lengths.
//
// Package scope imports formats packages and package source.
package scope
