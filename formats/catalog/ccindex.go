package catalog

import (
	"fmt"
	"reflect"
	"slices"
	"sync"

	"crawlbatch.io/crawlbatch/formats/schema"
)

// ccIndex describes the view ccindex as a dataset without files: captures with the columns of Common Crawl's
// cc-index in their order. The url of cc-index is the URL that was requested, so the view has the column sent
// in its place, and path and query of it.
var ccIndex = sync.OnceValue(func() Dataset {
	d := Dataset{Name: "ccindex", Row: "a stored response, for queries that were written for Common Crawl's cc-index"}
	d.Columns = slices.DeleteFunc(slices.Concat(Columns(reflect.TypeFor[schema.URLColumns]()), Columns(reflect.TypeFor[schema.CaptureColumns]())), func(c Column) bool { return c.Name == "sent" })
	for i := range d.Columns {
		switch c := &d.Columns[i]; c.Name {
		case "url":
			c.Description = "URL that was sent, and the record's WARC-Target-URI: with path and query as they were linked"
		case "url_path":
			c.Description = "path of the URL that was sent"
		case "url_query":
			c.Description = "query of the URL that was sent, without the question mark"
		}
	}
	d.Partitions = []Column{crawlColumn, subsetColumn, roundColumn}
	return d
})

// sentColumns are the expressions of the columns that depend on what was sent, in the SQL that all clients understand. A
// URL that was sent has a path. Engines differ in what regexp_extract returns without a match.
var sentColumns = map[string]string{
	"url":       "coalesce(sent, url)",
	"url_path":  "CASE WHEN sent IS NULL THEN url_path ELSE regexp_extract(sent, '^[^/]+//[^/?]+([^?]+)', 1) END",
	"url_query": "CASE WHEN sent IS NULL THEN url_query ELSE nullif(regexp_extract(sent, '^[^?]+[?](.+)$', 1), '') END",
}

// ccIndexQuery returns the query of the view. captures names the view that it reads.
func ccIndexQuery(captures string) string {
	d := ccIndex()
	return fmt.Sprintf("SELECT\n%s\nFROM %s", joined(slices.Concat(d.Columns, d.Partitions), ",\n", func(c Column) string {
		if sent, ok := sentColumns[c.Name]; ok {
			return fmt.Sprintf("  %s AS %s", sent, c.Name)
		}
		return "  " + c.Name
	}), captures)
}
