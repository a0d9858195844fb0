// Package owner tells the owner of a host what a crawl did to the host.
//
// The inputs are the host, in any form, and the store of a crawl. From the tables of finished
// rounds, package owner reads only parts of the bucket that holds the host's domain, and in these
// parts only row groups that may name the host. From an unfinished round, it reads the rows that
// the partition's checkpoint lists.
//
// The output is a row for each request, a row for each planned URL that was not requested, a
// summary, and a text to reply with. Rows are streamed, so the memory does not depend on the number
// of requests. Package owner never writes to the store.
package owner
