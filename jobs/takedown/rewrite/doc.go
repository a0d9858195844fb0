// Package rewrite computes what an object of the store becomes when names are taken down.
//
// The input is a file that a document lists, and a Matcher of names (package formats/takedown). The
// output is the new content in a local file, or nothing if the file names no target. Rows about a target
// go, cells that refer to a target become null, and the content of others stays. Numbers of other rows
// stay as the round counted them. The same file gives the same bytes.
//
// WARC records become tombstones of equal length, so the offsets of the others stay. A vertex of a web
// graph keeps its number without its name. A cluster whose representative goes gets a new one.
//
// Memory does not grow with the size of a file. Package rewrite imports stages and formats.
package rewrite
