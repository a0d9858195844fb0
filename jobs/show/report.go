package show

import (
	"fmt"
	"io"
	"math"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/jedib0t/go-pretty/v6/table"

	"crawlbatch.io/crawlbatch/formats/visible"
	"crawlbatch.io/crawlbatch/jobs/verify"
)

// Report writes the findings of an audit: first the checks, then the violations. The checks are a
// table, or lines if the terminal is too narrow for the table.
func Report(w io.Writer, r *verify.Report) error {
	fmt.Fprintf(w, "crawl %s in %s\n", r.Crawl, r.Store)
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.AppendHeader(table.Row{"invariant", "check", "checked", "of", "violations"})
	var idle []string
	var list strings.Builder // the checks as lines, printed if the table is too wide
	for _, c := range r.Checked {
		invariant := fmt.Sprint(c.Invariant)
		if c.Invariant == 0 {
			invariant = "store"
		}
		t.AppendRow(table.Row{invariant, c.Check, c.Looked, c.Of, c.Found})
		fmt.Fprintf(&list, "%s %s: %d %s, %s\n", invariant, c.Check, c.Looked, c.Of, Count(c.Found, "violation"))
		if c.Looked == 0 {
			idle = append(idle, c.Check)
		}
	}
	rows := t.Render()
	if first, _, _ := strings.Cut(rows, "\n"); utf8.RuneCountInString(first) > Width(w, math.MaxInt) {
		rows = strings.TrimSuffix(list.String(), "\n")
	}
	fmt.Fprintln(w, rows)
	for _, v := range r.Violations {
		fmt.Fprintf(w, "\n%s in %s: %s\n", v.Check, line(placeOf(&v)), line(v.Problem))
		if v.Row != "" {
			fmt.Fprintf(w, "  row: %s\n", line(v.Row))
		}
		if v.Where != "" && path.Ext(v.Object) == ".parquet" {
			// Report prints SQL instead of a command line, because a shell would interpret parts of
			// some URLs.
			fmt.Fprintf(w, "  in DuckDB: SELECT * FROM '%s/%s' WHERE %s;\n", strings.TrimSuffix(r.Store, "/"), line(v.Object), line(v.Where))
		}
	}
	if n := r.Found() - int64(len(r.Violations)); n > 0 {
		fmt.Fprintf(w, "\n%d more of the same kinds are not listed\n", n)
	}
	if len(idle) > 0 {
		fmt.Fprintf(w, "\nnothing to check, or nothing of it in the sample: %s\n", strings.Join(idle, ", "))
	}
	for _, n := range r.Notes {
		fmt.Fprintf(w, "\n%s\n", line(n))
	}
	for _, n := range r.Unsealed {
		fmt.Fprintf(w, "\nround %d is not finished: its committed results were checked\n", n)
	}
	rounds := "no round"
	if n := len(r.Rounds); n > 0 {
		rounds = Count(int64(n), "round")
	}
	if n := r.Found(); n > 0 {
		_, err := fmt.Fprintf(w, "\n%s in %s: not as promised\n", Count(n, "violation"), rounds)
		return err
	}
	share := ""
	if r.Sample < 1 {
		share = fmt.Sprintf(" in a sample of %g", r.Sample)
	}
	_, err := fmt.Fprintf(w, "\nno violation in %s%s: as promised\n", rounds, share)
	return err
}

// line returns stored text on one line that is safe to print.
func line(s string) string { return visible.Text(strings.Join(strings.Fields(s), " ")) }

// placeOf returns the object and the round of a violation.
func placeOf(v *verify.Violation) string {
	if v.Round < 0 {
		return v.Object
	}
	return fmt.Sprintf("round %d, %s", v.Round, v.Object)
}
