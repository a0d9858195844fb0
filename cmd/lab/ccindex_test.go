//go:build lab

package lab

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/cmd/demo"
	"crawlbatch.io/crawlbatch/formats/catalog/duckdbtest"
	"crawlbatch.io/crawlbatch/formats/schema"
)

// askCCIndex runs in DuckDB queries that were written for Common Crawl's index. It changes only the
// names of the table and the crawl in the queries. It compares each answer with one that is computed
// from the rows without SQL.
func askCCIndex(t *testing.T, views string, rows map[string][]schema.Capture) {
	questions, err := filepath.Glob("../../testdata/duckdb/cc-index/*.sql")
	if err != nil || len(questions) == 0 {
		t.Fatalf("%d questions (%v)", len(questions), err)
	}
	files, byName := []string{views}, map[string]string{}
	for _, q := range questions {
		file := duckdbtest.SQLFile(t, readQuestion(t, q))
		files = append(files, file)
		byName[strings.TrimSuffix(filepath.Base(q), ".sql")] = file
	}
	answers, want := duckdbtest.Ask(t, files...), ccIndexAnswers(rows)
	empty := 0
	for name, file := range byName {
		lines, ok := want[name]
		if !ok || answers[file] == nil {
			t.Errorf("%s: ccIndexAnswers has an answer: %t, DuckDB gave %v", name, ok, answers[file])
			continue
		}
		got := answers[file].Lines()
		if len(lines) == 0 {
			empty++ // the demo's web has no rows for this question; a test of formats/catalog asks it with other rows
		}
		slices.Sort(got)
		slices.Sort(lines)
		if diff := cmp.Diff(lines, got); diff != "" {
			t.Errorf("%s (- from the rows, + DuckDB):\n%s", name, diff)
		}
	}
	if len(byName)-empty < 12 {
		t.Errorf("only %d of %d questions have an answer", len(byName)-empty, len(byName))
	}
	if len(want) != len(byName) {
		t.Errorf("%d answers are expected of %d questions", len(want), len(byName))
	}
}

// ccIndexAnswers computes the answer to each question from rows, which are grouped by subset. An
// answer is a list of lines in any order. Bars separate the values of a line.
func ccIndexAnswers(rows map[string][]schema.Capture) map[string][]string {
	pages := rows["warc"]
	all := slices.Concat(pages, rows["crawldiagnostics"], rows["robotstxt"])
	hosts, domains := map[string]map[string]bool{}, map[string]map[string]bool{}
	sizes := map[string]int{}
	for _, c := range pages {
		if hosts[c.HostTLD] == nil {
			hosts[c.HostTLD], domains[c.HostTLD] = map[string]bool{}, map[string]bool{}
		}
		hosts[c.HostTLD][c.HostName] = true
		if c.HostRegisteredDomain != "" {
			domains[c.HostTLD][c.HostRegisteredDomain] = true
		}
		sizes[c.MimeType] += int(c.WARCRecordLength)
	}
	return map[string][]string{
		"count-by-language": countBy(pages, func(c schema.Capture) string {
			if c.Languages == "" {
				return ""
			}
			return c.Languages[:3] + "|%d"
		}),
		"count-by-mime-type": grouped(pages, func(c schema.Capture) string { return c.MimeDetected }, func(mime string, n int) string {
			return fmt.Sprintf("%s|%d|%.1f", duckdbText(mime), n, 100*float64(n)/float64(len(pages)))
		}),
		"count-by-partition": {
			fmt.Sprintf("%s|warc|%d", demo.Crawl, len(pages)),
			fmt.Sprintf("%s|crawldiagnostics|%d", demo.Crawl, len(rows["crawldiagnostics"])),
			fmt.Sprintf("%s|robotstxt|%d", demo.Crawl, len(rows["robotstxt"])),
		},
		"count-by-status": countBy(all, func(c schema.Capture) string { return fmt.Sprint(c.FetchStatus) + "|%d" }),
		"count-by-tld": grouped(pages, func(c schema.Capture) string { return c.HostTLD }, func(tld string, n int) string {
			return fmt.Sprintf("%s|%d|%d|%d", duckdbText(tld), n, len(hosts[tld]), len(domains[tld]))
		}),
		"domains-of-a-suffix": countBy(pages, func(c schema.Capture) string {
			return lineIf(c.HostRegistrySuffix == "co.uk", duckdbText(c.HostRegisteredDomain)+"|%d")
		}),
		"first-path-element": countBy(pages, func(c schema.Capture) string { return strings.Split(c.Path+"/", "/")[1] + "|%d" }),
		"home-pages": list(pages, func(c schema.Capture) string {
			return lineIf(c.Path == "/" && c.Query == "" && c.FetchStatus == 200 && c.Truncated == "", c.HostName+"|"+duckdbText(c.Languages))
		}),
		"host-name-parts": countBy(pages, func(c schema.Capture) string {
			return duckdbText(c.HostTLD) + "|" + duckdbText(c.Host2ndLastPart) + "|" + duckdbText(c.Host3rdLastPart) + "|%d"
		}),
		"international-names": countBy(pages, func(c schema.Capture) string {
			return lineIf(strings.HasPrefix(c.HostName, "xn--") || strings.Contains(c.HostName, ".xn--"), c.HostName+"|%d")
		}),
		"mime-type-declared-or-detected": countBy(pages, func(c schema.Capture) string {
			return duckdbText(c.MimeType) + "|" + duckdbText(c.MimeDetected) + "|%d"
		}),
		"pages-a-day": countBy(pages, func(c schema.Capture) string {
			at := c.FetchTime.Time()
			return at.Format("2006-01-02 00:00:00|") + fmt.Sprint(at.Hour()) + "|%d"
		}),
		"pages-in-a-language": list(pages, func(c schema.Capture) string {
			return lineIf(strings.HasPrefix(c.Languages, "deu"), c.URL+"|"+c.Languages)
		}),
		"ports-and-queries": list(pages, func(c schema.Capture) string {
			return lineIf(c.Port != 0, fmt.Sprintf("%s|%d|%s", c.Protocol, c.Port, duckdbText(c.Query)))
		}),
		"private-domains": countBy(pages, func(c schema.Capture) string {
			return lineIf(c.HostPrivateSuffix != c.HostRegistrySuffix, c.HostPrivateSuffix+"|"+duckdbText(c.HostPrivateDomain)+"|%d")
		}),
		"record-size-by-mime-type": grouped(pages, func(c schema.Capture) string { return c.MimeType }, func(mime string, n int) string {
			return fmt.Sprintf("%s|%.1f|%d", duckdbText(mime), float64(sizes[mime])/float64(n), n)
		}),
		"records-of-a-domain": list(pages, func(c schema.Capture) string {
			return lineIf(c.HostRegisteredDomain == "example.org", fmt.Sprintf("%s|%s|%d|%d", c.URL, c.WARCFilename,
				c.WARCRecordOffset, c.WARCRecordOffset+c.WARCRecordLength-1))
		}),
		"redirects": list(rows["crawldiagnostics"], func(c schema.Capture) string {
			return lineIf(c.FetchStatus >= 300 && c.FetchStatus < 400 && c.FetchRedirect != "", c.URL+"|"+c.FetchRedirect)
		}),
		"robots-files": list(rows["robotstxt"], func(c schema.Capture) string {
			return fmt.Sprintf("%s|%s|%d", c.HostName, c.Path, c.FetchStatus)
		}),
		"surt-prefix": list(all, func(c schema.Capture) string {
			return lineIf(c.SURT >= "org,example)" && c.SURT < "org,example-", c.SURT)
		}),
	}
}

// duckdbText returns a text in the form that DuckDB shows. DuckDB shows an empty text as <nil>,
// because an empty text is stored as null.
func duckdbText(s string) string {
	if s == "" {
		return "<nil>"
	}
	return s
}

// lineIf returns line if counts is true, and "" otherwise.
func lineIf(counts bool, line string) string {
	if counts {
		return line
	}
	return ""
}

// list calls line with each row, and returns the lines that are not empty.
func list(rows []schema.Capture, line func(schema.Capture) string) (lines []string) {
	for _, c := range rows {
		if l := line(c); l != "" {
			lines = append(lines, l)
		}
	}
	return lines
}

// countBy calls line with each row, and returns each different line once, with its number in place of %d.
func countBy(rows []schema.Capture, line func(schema.Capture) string) []string {
	counting := list(rows, line)
	slices.Sort(counting)
	var lines []string
	for len(counting) > 0 {
		n := 1
		for n < len(counting) && counting[n] == counting[0] {
			n++
		}
		lines = append(lines, strings.ReplaceAll(counting[0], "%d", fmt.Sprint(n)))
		counting = counting[n:]
	}
	return lines
}

// grouped groups rows by key(row), and returns line(key, number of rows) for each group.
func grouped(rows []schema.Capture, key func(schema.Capture) string, line func(key string, n int) string) (lines []string) {
	groups := map[string]int{}
	for _, c := range rows {
		groups[key(c)]++
	}
	for k, n := range groups {
		lines = append(lines, line(k, n))
	}
	return lines
}
