package show

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/planner"
	"crawlbatch.io/crawlbatch/planner/slowest"
	"crawlbatch.io/crawlbatch/planner/source"
)

// Plan writes a summary of a plan and of the refused entries, also of those that the frontier offers. The summary begins with verb. refused is
// the name of the store that lists each refused line, or "" if no store does. If partitions is true,
// Plan adds a line for each partition. If there are several sources, Plan adds a line for each, and it
// adds a line for each budget that refuses URLs. If the plan has more than tasks partitions, Plan also
// predicts the time of a process that fetches this many partitions at a time. No time is longer than the
// window, after which a fetch task ends.
func Plan(w io.Writer, p *manifest.Plan, sources []planner.SourceCount, budgets []manifest.Count, verb, refused string, partitions bool, tasks int, window time.Duration) error {
	p = p.Within(window)
	var text strings.Builder
	fmt.Fprintf(&text, "%s round %d of %s: %s, %s, %s, %s\n", verb, p.Round, p.Crawl,
		Count(p.URLs, "URL"), Count(p.Hosts, "host"), Count(p.Domains, "domain"), Count(int64(len(p.Partitions)), "partition"))
	longest := time.Duration(p.EstimatedSeconds * float64(time.Second))
	bytes := Bytes(p.EstimatedBytes)
	fmt.Fprintf(&text, "predicted: %s if all partitions run at once, %s, %s\n", predictedTime(longest, "hours"), podHours(p.PodHours()), bytes)
	if len(p.Partitions) > tasks {
		at := time.Duration(p.SecondsAt(tasks) * float64(time.Second))
		fmt.Fprintf(&text, "  one process of `crawlbatch run --fetch-tasks %d` fetches them in %s; reduce stages come after that\n", tasks, predictedTime(at, "hours"))
	}
	if partitions {
		fmt.Fprintf(&text, "%-10s %8s %6s %7s %5s\n", "partition", "URLs", "hosts", "domains", "hours")
		for _, part := range p.Partitions {
			fmt.Fprintf(&text, "%-10s %8d %6d %7d %5.2f\n", layout.Part(part.Partition), part.URLs, part.Hosts, part.Domains, part.EstimatedSeconds/3600)
		}
	}
	entries, beside := int64(0), ""
	if slices.ContainsFunc(p.Refused, func(c manifest.Count) bool { return c.Name == string(schema.SkipDuplicate) }) {
		beside = " besides duplicates"
	}
	for _, s := range sources {
		entries += s.Entries
		if len(sources) > 1 {
			why := ""
			if s.NoMatch() {
				why = "; no record meets its condition"
			}
			fmt.Fprintf(&text, "  from %s: %d entries, %d refused%s%s\n", s.Name, s.Entries, s.Refused, beside, why)
		}
	}
	if len(p.Refused) > 0 {
		fmt.Fprintf(&text, "refused of %d entries:", entries)
		for _, c := range p.Refused {
			fmt.Fprintf(&text, " %s %d", c.Name, c.N)
		}
		fmt.Fprintln(&text)
		for _, c := range budgets {
			fmt.Fprintf(&text, "  plan.budgets.%s refuses %s\n", c.Name, Count(c.N, "URL"))
		}
		if refused != "" {
			fmt.Fprintf(&text, "  each with its line: %s/%s\n", refused, layout.PlanRefused(p.Crawl, p.Round, p.ID))
		}
	}
	if len(p.Merged) > 0 {
		fmt.Fprint(&text, "entries that became one URL with others, by the step of the canonical form:")
		for _, c := range p.Merged {
			fmt.Fprintf(&text, " %s %d", c.Name, c.N)
		}
		fmt.Fprintln(&text)
	}
	if p.TakenDown > 0 {
		fmt.Fprintf(&text, "refused because of a takedown, without a row: %s\n", Count(p.TakenDown, "URL"))
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// FilterAnswers writes what the URL filters of earlier rounds answered about listed URLs. It writes
// nothing if none was asked.
func FilterAnswers(w io.Writer, a source.FilterAnswers) error {
	asked := a.Absent + a.Found + a.NotFound
	if asked == 0 {
		return nil
	}
	share := 100 * float64(a.NotFound) / float64(max(a.Absent+a.NotFound, 1))
	_, err := fmt.Fprintf(w, "asked the URL filters of earlier rounds %s times: %s absent, %s found, %s looked up in vain (%.2f %%)\n",
		Thousands(asked), Thousands(a.Absent), Thousands(a.Found), Thousands(a.NotFound), share)
	return err
}

// Slowest lists the domains that decide the length of a planned round, slowest first. For each, it
// names the budget that would halve the time of its slowest host. It leaves out domains that take
// less than a minute.
func Slowest(w io.Writer, all []slowest.Host) error {
	var text strings.Builder
	for _, h := range all {
		if h.Time() < time.Minute {
			break
		}
		if text.Len() == 0 {
			fmt.Fprintln(&text, "the slowest hosts, one of each domain:")
		}
		if h.Unreachable > 0 {
			fmt.Fprintf(&text, "  %s: %s; its robots.txt was unreachable, and the tries for it take %s\n", h.Host, Count(h.URLs, "URL"), predictedTime(h.Time(), "h"))
			continue
		}
		fmt.Fprintf(&text, "  %s: %s at one each %.1f s = %s\n", h.Host, Count(h.URLs, "URL"), h.Each.Seconds(), predictedTime(h.Time(), "h"))
	}
	if text.Len() > 0 && all[0].URLs > 1 && all[0].Unreachable == 0 {
		h := all[0]
		h.URLs /= 2
		fmt.Fprintf(&text, "  plan.budgets.domains of %s for %s would end this host in at most %s\n", Thousands(h.URLs), h.Domain, predictedTime(h.Time(), "h"))
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// Unforeseen says how much longer than predicted a round may take, because no round has requested its largest
// hosts. No time is longer than the window. It writes nothing if the prediction allows for it.
func Unforeseen(w io.Writer, all []slowest.Host, predicted, window time.Duration) error {
	var text strings.Builder
	most, longest := slowest.Unforeseen(all)
	longest, tries := min(longest, window), min(most.Tries, window)
	if longest > predicted && longest >= time.Minute {
		fmt.Fprintf(&text, "  %s if %s, with %s, allows one request each %v (Crawl-delay, or slow answers)\n", predictedTime(longest, "h"), most.Host, Count(most.URLs, "URL"), slowest.SlowEach)
	}
	if longest > 0 && tries > predicted {
		fmt.Fprintf(&text, "  %s if a robots.txt answers only 503\n", predictedTime(tries, "h"))
	}
	if text.Len() == 0 {
		return nil
	}
	_, err := fmt.Fprintf(w, "no round has requested some of these hosts; the round takes\n%s", &text)
	return err
}

// Continues writes which earlier crawls a planned crawl continues, and which later months it skips.
func Continues(w io.Writer, crawls []manifest.ContinuedCrawl, skipped []string) error {
	if len(crawls)+len(skipped) == 0 {
		return nil
	}
	text := "continues no earlier month"
	if n := len(crawls) - 1; n >= 0 {
		text = fmt.Sprintf("continues %s (%s)", crawls[n].Crawl, Count(int64(crawls[n].Rounds), "round"))
		if n > 0 {
			text += fmt.Sprintf(" and %s before it", Count(int64(n), "crawl"))
		}
	}
	for _, month := range skipped {
		text += fmt.Sprintf("; skips %s, which has no finished round", month)
	}
	_, err := io.WriteString(w, text+"\n")
	return err
}

// Summary writes a summary of a sealed round.
func Summary(w io.Writer, s *manifest.Sealed) {
	n := map[string]int64{}
	for _, c := range s.Counts {
		n[c.Name] = c.N
	}
	var text strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&text, format+"\n", args...) }
	line("round %d of %s: %s, %s, %s, %s, %s", s.Round, s.Crawl, Count(n["plan.urls"], "URL"),
		Count(n["publish.pages"], "page"), Count(n["publish.duplicates"], "duplicate"), Count(n["merge.links"], "link"), Count(n["plan.hosts"], "host"))
	var outcomes []string
	for _, o := range schema.Outcomes {
		if c := n["merge.outcome."+string(o)]; c > 0 {
			outcomes = append(outcomes, fmt.Sprintf("%s %s", o, Thousands(c)))
		}
	}
	line("  outcomes: %s", strings.Join(outcomes, ", "))
	if layout.IsReparse(s.Crawl) {
		line("  parsed again: %s; with their old rows: %s withheld (noarchive), %s with a damaged record",
			Count(n["fetch.reparse.pages"], "page"), Thousands(n["fetch.reparse.withheld"]), Thousands(n["fetch.reparse.damaged"]))
		if c := n["fetch.reparse.differs"]; c > 0 {
			line("  %s: the digest is not that of the bytes; `crawlbatch verify --month %s` lists them", Count(c, "record"), s.Crawl)
		}
	}
	line("  frontier: %s for the next round, %s skipped", Count(n["frontier.waiting"], "URL"), Thousands(n["frontier.skips"]))
	_, _ = io.WriteString(w, text.String())
}
