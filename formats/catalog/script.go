package catalog

import (
	"bufio"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
)

// Script is SQL that opens the datasets, for a client that takes one statement at a time. Many
// clients split a script at each semicolon, so its comments and descriptions contain none.
type Script struct {
	Head       []string // comment lines before the first statement
	Statements []Statement
}

// Statement is one statement of a script.
type Statement struct {
	Name string // short name that can be part of a file name, such as captures-table
	SQL  string // text of the statement, without a final semicolon
}

// Write writes the script's comment and its statements, each with an empty line before it and a
// semicolon after it.
func (s *Script) Write(w io.Writer) error {
	out := bufio.NewWriter(w)
	out.WriteString(s.Comment())
	for _, st := range s.Statements {
		fmt.Fprintf(out, "\n%s;\n", st.SQL)
	}
	return out.Flush()
}

// Comment returns the script's head as SQL comment lines.
func (s *Script) Comment() string {
	var b strings.Builder
	for _, line := range s.Head {
		fmt.Fprintf(&b, "-- %s\n", comment(line))
	}
	return b.String()
}

func (s *Script) add(name, format string, args ...any) {
	s.Statements = append(s.Statements, Statement{name, strings.TrimRight(fmt.Sprintf(format, args...), "\n")})
}

// newScript returns a script without statements, whose head names the store and the sealed rounds.
func newScript(root string, sealed []*manifest.Sealed) *Script {
	return &Script{Head: []string{
		fmt.Sprintf("The datasets of %s: %s.", root, rounds(sealed)),
		"These tables and views lack rounds that are sealed later: generate them again then.",
	}}
}

// tableName returns the name of the table or view with all rows of a dataset. For the urls dataset it
// is urls_history, because the view urls shows only the newest state of each URL.
func tableName(d Dataset) string {
	if d.Name == "urls" {
		return "urls_history"
	}
	return d.Name
}

// folders returns the folders with the parts of a dataset in sealed rounds, and the folders of compacted
// copies, each sorted.
func folders(dataset string, sealed []*manifest.Sealed) (published, copied []string) {
	published, copied = parts(dataset, sealed)
	for _, keys := range []*[]string{&published, &copied} {
		for i, key := range *keys {
			(*keys)[i] = path.Dir(key)
		}
		slices.Sort(*keys)
		*keys = slices.Compact(*keys)
	}
	return published, copied
}

// copyName returns the name of the table over a folder of a compacted copy, such as pages_copy_2026_11.
func copyName(d Dataset, folder string) string {
	return tableName(d) + "_copy_" + strings.ReplaceAll(layout.CrawlOf(folder+"/"), "-", "_")
}

// partitionValues returns the values of d's partition columns, in order, from the path of a folder.
func partitionValues(folder string, d Dataset) []string {
	values := make([]string, len(d.Partitions))
	for element := range strings.SplitSeq(folder, "/") {
		key, value, _ := strings.Cut(element, "=")
		if i := slices.IndexFunc(d.Partitions, func(c Column) bool { return c.Name == key }); i >= 0 {
			values[i] = value
		}
	}
	return values
}

// publishedRows returns the SQL condition that selects the rows of sealed rounds whose published parts of
// a dataset are to be read, by their partition columns.
func publishedRows(dataset string, sealed []*manifest.Sealed) string {
	var crawls []string
	roundsOf := map[string][]string{}
	for _, s := range sealed {
		if published, _ := parts(dataset, []*manifest.Sealed{s}); len(published) == 0 {
			continue
		}
		if roundsOf[s.Crawl] == nil {
			crawls = append(crawls, s.Crawl)
		}
		roundsOf[s.Crawl] = append(roundsOf[s.Crawl], fmt.Sprint(s.Round))
	}
	return joined(crawls, "\n   OR ", func(crawl string) string {
		return fmt.Sprintf(`("crawl" = %s AND "round" IN (%s))`, literal(crawl), strings.Join(roundsOf[crawl], ", "))
	})
}

// newest returns a query that selects the newest row of each URL from the table history. list is the
// list of the selected columns.
func newest(history, list string, sealed []*manifest.Sealed) string {
	return fmt.Sprintf("SELECT %s\nFROM (\n  SELECT %s,\n"+
		"    row_number() OVER (PARTITION BY url_surtkey, url ORDER BY crawl DESC, round DESC) AS newest\n"+
		"  FROM %s\n  %s) AS states\nWHERE newest = 1", list, list, history, withoutReparses(sealed))
}

// joined converts each item to a text and joins the texts.
func joined[T any](items []T, separator string, text func(T) string) string {
	texts := make([]string, len(items))
	for i, item := range items {
		texts[i] = text(item)
	}
	return strings.Join(texts, separator)
}

// quoted returns the names of columns as a list, with quote before and after each name.
func quoted(columns []Column, quote string) string {
	return joined(columns, ", ", func(c Column) string { return quote + c.Name + quote })
}

// nulls returns a select list with a null of the right type for each column. typeName returns the
// name of a type in the client's dialect.
func nulls(columns []Column, typeName func(Type) string, quote string) string {
	return joined(columns, ",\n", func(c Column) string {
		return fmt.Sprintf("  CAST(NULL AS %s) AS %s", typeName(c.Type), quote+c.Name+quote)
	})
}

// plain replaces the semicolons of a text by commas, because clients split a script at semicolons.
func plain(s string) string { return strings.ReplaceAll(s, ";", ",") }

// comment returns a text without line breaks, other control characters and semicolons.
func comment(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, plain(s))
}

// hiveLiteral quotes a string for the dialects of Hive. Their escape character is a backslash.
func hiveLiteral(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s) + "'"
}

// hiveColumns returns the declarations of columns in the dialects of Hive.
func hiveColumns(columns []Column) string {
	return joined(columns, ",\n", func(c Column) string {
		return fmt.Sprintf("  `%s` %s COMMENT %s", c.Name, c.Type.Hive(), hiveLiteral(plain(c.Description)))
	})
}
