package owner

import (
	"bufio"
	"cmp"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Unrecorded is the purpose of a row of CSV about a killed attempt or a pruned crawl, some requests of which have no rows.
const Unrecorded = "unrecorded"

// CSV writes the rows as CSV with a header. Columns have the names of the JSON keys of Row. A last row for each
// killed attempt and each pruned crawl says that requests are missing.
func (q *Question) CSV(ctx context.Context, out io.Writer) error {
	w := csv.NewWriter(out)
	begun := false
	begin := func() error {
		begun = true
		return w.Write([]string{
			"round", "time", "host", "purpose", "url", "planned_url", "http_status", "outcome", "robots_allowed", "robots_rule", "robots_digest",
			"delay_ms", "gap_ms", "address", "bytes_sent", "bytes_received", "total_ms", "error",
		})
	}
	write := func(r *Row) error {
		if !begun {
			if err := begin(); err != nil {
				return err
			}
		}
		status, allowed := "", ""
		if r.Status != nil {
			status = strconv.Itoa(int(*r.Status))
		}
		if r.RobotsAllowed != nil {
			allowed = strconv.FormatBool(*r.RobotsAllowed)
		}
		return w.Write([]string{
			r.Round, r.Time, cell(r.Host), r.Purpose, r.URL, r.PlannedURL, status, r.Outcome, allowed, cell(r.RobotsRule), r.RobotsDigest,
			number(r.DelayMS), number(r.GapMS), r.Address, strconv.FormatInt(r.BytesSent, 10), strconv.FormatInt(r.BytesReceived, 10), number(r.TotalMS), cell(r.Error),
		})
	}
	s, err := q.Answer(ctx, write)
	if err == nil {
		err = s.unrecorded(write)
	}
	if err == nil && !begun {
		err = begin()
	}
	w.Flush()
	if err != nil {
		return err
	}
	return w.Error()
}

// unrecorded calls write with a row for each pruned crawl and each killed attempt.
func (s *Summary) unrecorded(write func(*Row) error) error {
	for _, crawl := range s.Pruned {
		if err := write(&Row{Round: crawl, Host: cmp.Or(s.Host, s.Domain), Purpose: Unrecorded, Error: "the rows of this crawl were deleted by its age"}); err != nil {
			return err
		}
	}
	for _, part := range s.Rounds {
		for _, k := range part.Killed {
			if err := write(&Row{Round: part.Round, Time: k.Began, Host: cmp.Or(s.Host, s.Domain), Purpose: Unrecorded, Error: k.missing()}); err != nil {
				return err
			}
		}
	}
	return nil
}

// cell returns a text from the web in a form that spreadsheets do not read as a formula.
func cell(s string) string {
	if s != "" && strings.ContainsRune("=+-@\t\r", rune(s[0])) {
		return "'" + s
	}
	return s
}

func number(n *int64) string {
	if n == nil {
		return ""
	}
	return strconv.FormatInt(*n, 10)
}

// JSON writes one object with the rows under "requests", then the summary under "summary".
func (q *Question) JSON(ctx context.Context, out io.Writer) error {
	w := bufio.NewWriter(out)
	before := "{\"requests\":[\n"
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	s, err := q.Answer(ctx, func(r *Row) error {
		if _, err := w.WriteString(before); err != nil {
			return err
		}
		before = ","
		return enc.Encode(r)
	})
	if err != nil {
		_ = w.Flush() // JSON returns the error of the answer; the object lacks its end, so no reader takes it for complete
		return err
	}
	if before != "," {
		if _, err := w.WriteString(before); err != nil {
			return err
		}
	}
	if _, err := w.WriteString("],\"summary\":\n"); err != nil {
		return err
	}
	if err := enc.Encode(s); err != nil {
		return err
	}
	if _, err := w.WriteString("}\n"); err != nil {
		return err
	}
	return w.Flush()
}

// Text writes, for people, the summary, the last rows and the text to reply with. command is the
// command line that the user gave; advice about the other rows repeats it. stop is one about the newest crawl alone.
func (q *Question) Text(ctx context.Context, out io.Writer, last int, command, stop string) error {
	rows, skipped := tail{most: last}, skips{most: last}
	s, err := q.Answer(ctx, func(r *Row) error {
		if r.Purpose == NotRequested {
			skipped.add(r)
		} else {
			rows.add(r)
		}
		return nil
	})
	if err != nil {
		return err
	}
	w := bufio.NewWriter(out)
	s.print(w, q.Target, q.Crawl)
	if rows.total > 0 {
		fmt.Fprintf(w, "\n%s\n", rows.title(command))
		rows.each(func(r *Row) { printRequest(w, r, q.Target.Host == "") })
	}
	skipped.print(w, command)
	fmt.Fprintf(w, "\nA text to reply with (attach what `%s -o csv` writes):\n\n%s", command, shownLines(s.Reply))
	if !slices.ContainsFunc(s.Stops, func(stop Stop) bool { return stop.Ended == "" && stop.Crawl == q.Crawl }) {
		fmt.Fprintf(w, "\nTo stop requests within seconds, and for all later rounds of the crawl:\n\n  %s --stop \"asked by the owner\"\n", stop)
	}
	fmt.Fprintln(w, "\nTo keep later crawls away, add the host to the list of plan.opt_out.")
	return w.Flush()
}

// tail keeps the last rows.
type tail struct {
	most  int
	total int64
	rows  []*Row // when it is full, a ring whose oldest row is at total % most
}

func (t *tail) add(r *Row) {
	if len(t.rows) < t.most {
		t.rows = append(t.rows, r)
	} else if t.most > 0 {
		t.rows[t.total%int64(t.most)] = r
	}
	t.total++
}

func (t *tail) each(use func(*Row)) {
	for i := range t.rows {
		at := i
		if t.total > int64(t.most) {
			at = int((t.total + int64(i)) % int64(t.most))
		}
		use(t.rows[at])
	}
}

func (t *tail) title(command string) string {
	if t.total == int64(len(t.rows)) {
		return requests(t.total) + ":"
	}
	return fmt.Sprintf("The last %d of %s (all of them: %s -o csv):", len(t.rows), requests(t.total), command)
}

func printRequest(w io.Writer, r *Row, withHost bool) {
	how := r.Outcome
	if r.Status != nil {
		how = strconv.Itoa(int(*r.Status))
	}
	gap := "first"
	if r.GapMS != nil {
		gap = "gap " + span(*r.GapMS)
	}
	if r.BytesSent == 0 {
		gap = "not sent"
	}
	fmt.Fprintf(w, "%s  %-8s  %s  %s, delay %s  ", r.Time, r.Purpose, how, gap, span(*r.DelayMS))
	if withHost {
		fmt.Fprintf(w, "%s  ", r.Host)
	}
	fmt.Fprint(w, shown(r.URL))
	if r.RobotsRule != "" {
		fmt.Fprintf(w, "  (robots.txt: %s)", shown(r.RobotsRule))
	}
	fmt.Fprintln(w)
}

// print writes the summary as lines of text. newest is the newest crawl of the question.
func (s *Summary) print(w io.Writer, t Target, newest string) {
	line := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%-11s%s\n", name, fmt.Sprintf(format, args...))
	}
	line("host", "%s", t)
	line("crawl", "%s", s.Month)
	if len(s.Pruned) > 0 {
		line("pruned", "%s: nothing of these crawls is left", strings.Join(s.Pruned, ", "))
	}
	if n := len(s.Rounds) - roundsShown; n > 0 {
		line("round", "%d earlier rounds: see -o json", n)
	}
	for _, r := range s.Rounds[max(0, len(s.Rounds)-roundsShown):] {
		note := ""
		if !r.Finished {
			note = "; not finished: requests since the last checkpoint are missing here"
		}
		line("round", "%s: %d URLs planned, %d requests sent%s", r.Round, r.Planned, r.Requests, note)
		for _, k := range r.Killed {
			line("", "%s", k.missing())
		}
	}
	line("requests", "%d sent, %d without a connection, %d planned URLs without a request", s.Requests, s.Unconnected, s.NotRequested)
	if t.Host == "" {
		line("hosts", "%d", s.Hosts)
	}
	if s.Requests > 0 {
		line("time", "%s to %s", s.First, s.Last)
		line("bytes", "%d received, %d sent", s.BytesReceived, s.BytesSent)
		line("delay", "%s to %s", span(*s.SmallestDelay), span(*s.LargestDelay))
	}
	if s.SmallestGapMS != nil {
		line("gap", "at least %s between two requests to a host (the delay was %s then)", span(*s.SmallestGapMS), span(s.DelayThenMS))
	}
	line("purposes", "%s", list(s.Purposes))
	line("statuses", "%s", list(s.Statuses))
	line("outcomes", "%s", list(s.Outcomes))
	if s.BreakerEvents > 0 {
		line("suspended", "%d times, because too many requests failed", s.BreakerEvents)
	}
	for i := range s.Stops {
		line("stop", "%s", shown(s.Stops[i].line(newest)))
	}
	for _, r := range s.Robots {
		text := r.Round + ":"
		if t.Host == "" {
			text += " " + r.Host + ","
		}
		if r.State != "" {
			text += " " + r.State + ","
		}
		if r.Digest != "" {
			text += " SHA-1 " + r.Digest + ","
		}
		read := "read " + r.ReadAt
		if r.ReadAt == "" {
			read = "not read in this round"
		}
		line("robots.txt", "%s %s", text, read)
	}
	line("stored", "%d documents, %d redirects and errors, %d robots.txt, %d bytes in %d WARC files",
		s.Stored.Documents, s.Stored.Diagnostics, s.Stored.RobotsFiles, s.Stored.Bytes, len(s.Stored.WARCFiles))
	for i, f := range s.Stored.WARCFiles {
		if i == filesShown {
			line("", "and %d more: see -o json", len(s.Stored.WARCFiles)-i)
			break
		}
		line("", "%s", f)
	}
	for i := range s.Stored.Deleted {
		line("deleted", "%s", s.Stored.Deleted[i].line())
	}
}

// roundsShown is the largest number of rounds that the text names.
const roundsShown = 50

// filesShown is the largest number of WARC files that the text names.
const filesShown = 5

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func list(counts []Count) string {
	var words []string
	for _, c := range counts {
		words = append(words, fmt.Sprintf("%s %d", c.Name, c.N))
	}
	return dash(strings.Join(words, ", "))
}

// span formats a number of milliseconds, such as 2.01s.
func span(ms int64) string { return (time.Duration(ms) * time.Millisecond).String() }

// shown replaces characters that a terminal could take for commands.
func shown(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '�'
	}, s)
}

// shownLines is like shown but keeps line ends.
func shownLines(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		lines[i] = shown(l)
	}
	return strings.Join(lines, "\n")
}
