package show

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"crawlbatch.io/crawlbatch/stages"
)

// Thousands writes n with commas, such as 12,345.
func Thousands(n int64) string {
	digits := fmt.Sprint(n)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// Count writes a number with its noun, such as 1 URL or 12,345 URLs.
func Count(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return Thousands(n) + " " + what + "s"
}

// clockTime writes a time of day, and adds the date if it is not today's.
func clockTime(at, now time.Time) string {
	at, now = at.Local(), now.Local()
	if at.Sub(now) < 10*time.Minute && now.Sub(at) < 10*time.Minute {
		return at.Format("15:04:05")
	}
	if at.YearDay() == now.YearDay() && at.Year() == now.Year() {
		return at.Format("15:04")
	}
	return at.Format("2006-01-02 15:04")
}

// span writes a duration for people, such as 45s, 1m52s or 3h20m.
func span(d time.Duration) string {
	switch {
	case d < time.Second:
		return "1s"
	case d.Round(time.Second) < time.Hour:
		return d.Round(time.Second).String()
	}
	return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
}

// remainingTime writes a remaining time.
func remainingTime(d time.Duration) string {
	switch {
	case d <= 0:
		return ""
	case d < time.Minute:
		return shortTime(d) + " left"
	}
	return "about " + shortTime(d) + " left"
}

// aged returns the activity at a time of age after the report. It says nothing about an end within a minute
// if the attempt, which began at began (milliseconds since 1970), was younger than firstGuess when it
// reported: the hosts that answered by then are the quick ones.
func aged(a stages.Activity, age time.Duration, at, began int64) stages.Activity {
	a.Remaining, a.Least = max(a.Remaining-age, 0), max(a.Least-age, 0)
	if began > 0 && milliseconds(at-began) < firstGuess && a.Remaining < time.Minute {
		a.Remaining = 0
	}
	return a
}

// firstGuess is the age of an attempt from which its prediction of an end within a minute is shown.
const firstGuess = 10 * time.Second

// leftOf writes the remaining time of a task. It is a range while a robots.txt keeps failing.
func leftOf(a stages.Activity, now time.Time) string {
	left, most := a.Remaining, mostLeft(a.Remaining, a.Latest, now)
	switch {
	case most > 0:
		return fmt.Sprintf("between %s and %s left, the longer if the robots.txt of %s goes on failing (it %s)",
			shortTime(left), shortTime(milliseconds(most)), a.Latest.Host, a.Latest.Why)
	case leastLeft(a) > 0:
		return fmt.Sprintf("between %s and %s left, the shorter if the robots.txt of %s goes on failing (it %s)",
			shortTime(a.Least), shortTime(left), a.Latest.Host, a.Latest.Why)
	}
	return remainingTime(left)
}

// leastLeft returns the remaining time, in milliseconds, if the robots.txt of a.Latest goes on failing. It
// returns 0 if this time is not at least a minute shorter than the remaining time.
func leastLeft(a stages.Activity) int64 {
	if a.Latest == nil || a.Least <= 0 || a.Least > a.Remaining-time.Minute {
		return 0
	}
	return a.Least.Milliseconds()
}

// mostLeft returns the remaining time, in milliseconds, if the robots.txt of latest goes on failing. It
// returns 0 if this time is not at least a minute longer than left.
func mostLeft(left time.Duration, latest *stages.Wait, now time.Time) int64 {
	if latest == nil {
		return 0
	}
	most := latest.Until.Sub(now)
	if most < max(left, 0)+time.Minute {
		return 0
	}
	return most.Milliseconds()
}

// shortTime writes a predicted time.
func shortTime(d time.Duration) string {
	switch {
	case d < time.Minute:
		return "under a minute"
	case d < 90*time.Minute:
		return fmt.Sprintf("%d min", (d+30*time.Second)/time.Minute)
	}
	return fmt.Sprintf("%.1f h", d.Hours())
}

// predictedTime writes a predicted time in hours, which unit names. A time below a tenth of an hour has
// minutes and seconds.
func predictedTime(d time.Duration, unit string) string {
	if d < 6*time.Minute {
		return taskTime(d)
	}
	return fmt.Sprintf("%.2f %s", d.Hours(), unit)
}

// podHours writes a sum of the times of pods.
func podHours(h float64) string {
	if h < 0.1 {
		return fmt.Sprintf("%.4f pod-hours", h)
	}
	return fmt.Sprintf("%.2f pod-hours", h)
}

// pausedLines names the hosts for which a task waited when its crawl was paused. The times at which they
// would have been asked again do not count: nothing is requested before the crawl continues.
func pausedLines(a stages.Activity) []string {
	var out []string
	for _, w := range a.Waits {
		if w.Host == "" {
			continue
		}
		if i := strings.LastIndexAny(w.Why, ",;"); i > 0 && !w.Until.IsZero() {
			w.Why = w.Why[:i] // the rest says what happens at Until
		}
		w.Until = time.Time{}
		out = append(out, "paused: "+wait(w, time.Time{}))
	}
	if a.More > 0 {
		out = append(out, fmt.Sprintf("paused: %s more", Count(int64(a.More), "host")))
	}
	return out
}

// closing says when the window closes, or returns "" if the stage is expected to end earlier.
func closing(a stages.Activity, now time.Time) string {
	if a.Closes.IsZero() || a.Remaining < a.Closes.Sub(now)-time.Minute {
		return ""
	}
	return "the window closes at " + clockTime(a.Closes, now) + " and the rest is deferred"
}

// Wait describes a wait with its reason. A wait without an end time names the host that takes
// longest.
func Wait(w stages.Wait, now time.Time) string {
	switch {
	case w.Host == "":
		return "waits: " + wait(w, now)
	case w.Until.IsZero():
		return "takes longest: " + wait(w, now)
	}
	return "waits for " + wait(w, now)
}

// wait describes a wait: its host, reason and end, and the number of URLs that wait.
func wait(w stages.Wait, now time.Time) string {
	text := w.Why
	if w.Host != "" {
		text = w.Host + ": " + text
	}
	if !w.Until.IsZero() {
		text += " at " + clockTime(w.Until, now)
		if d := w.Until.Sub(now); d > 0 {
			text += ", in " + span(d)
		}
	}
	if w.URLs > 0 {
		text += " (" + Count(w.URLs, "URL") + ")"
	}
	return text
}

// namedHosts is how many of the hosts that end together are named, and mostHosts how many a report lists.
const (
	namedHosts = 3
	mostHosts  = 20
)

// Together says which hosts of a task will end last, at nearly the same time.
func Together(hosts []string) string {
	n, names := fmt.Sprint(len(hosts)), strings.Join(hosts[:min(len(hosts), namedHosts)], ", ")
	if len(hosts) >= mostHosts {
		n += " or more"
	}
	if more := len(hosts) - namedHosts; more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	return n + " hosts end last, within a tenth of the time left: " + names
}

// Failures writes how many requests failed, by class, and the newest failure.
func Failures(all []stages.Failure, now time.Time) string {
	if len(all) == 0 {
		return ""
	}
	var classes []string
	newest := all[0]
	for _, f := range all {
		classes = append(classes, fmt.Sprintf("%s %s", f.Class, Thousands(f.N)))
		if f.At.After(newest.At) {
			newest = f
		}
	}
	text := "failed requests: " + strings.Join(classes, ", ")
	if newest.Host != "" {
		text += fmt.Sprintf("; last at %s, %s", clockTime(newest.At, now), newest.Host)
		if newest.Text != "" {
			text += ": " + newest.Text
		}
	}
	return text
}

// states writes how many hosts are in each state.
func states(a stages.Activity) string {
	var parts []string
	if a.InFlight > 0 {
		parts = append(parts, Count(int64(a.InFlight), "request")+" in flight")
	}
	if a.Ready > 0 {
		parts = append(parts, Count(int64(a.Ready), "host")+" due")
	}
	if a.Delayed > 0 {
		parts = append(parts, Count(int64(a.Delayed), "host")+" between two requests")
	}
	if a.Sitemaps > 0 {
		parts = append(parts, sitemapsOf(a))
	}
	return strings.Join(parts, ", ")
}

// sitemapsOf writes how many sitemaps wait.
func sitemapsOf(a stages.Activity) string { return Count(int64(a.Sitemaps), "sitemap") + " waiting" }

// merge adds up the activities of several tasks. The waits of the slowest task come first.
func merge(all []stages.Activity) stages.Activity {
	var sum stages.Activity
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b stages.Activity) int { return cmp.Compare(b.Remaining, a.Remaining) })
	at := map[string]int{}
	for i, a := range all {
		sum.Left += a.Left
		if sum.Least = max(sum.Least, a.Least); a.Least == 0 {
			sum.Least = max(sum.Least, a.Remaining)
		}
		sum.InFlight += a.InFlight
		sum.Ready += a.Ready
		sum.Delayed += a.Delayed
		sum.Sitemaps += a.Sitemaps
		sum.More += a.More
		sum.Remaining = max(sum.Remaining, a.Remaining)
		if a.Closes.After(sum.Closes) {
			sum.Closes = a.Closes
		}
		for _, w := range a.Waits {
			// What tasks wait for as a whole, such as the store or the network, is the same for all of a process.
			whole := func(k stages.Wait) bool { return w.Host == "" && k.Host == "" && k.Why == w.Why }
			if slices.ContainsFunc(sum.Waits, whole) {
				continue
			}
			if i == 0 || w.Host == "" || !w.Until.IsZero() { // only the slowest task's slowest host takes longest
				sum.Waits = append(sum.Waits, w)
			}
		}
		if a.Latest != nil && (sum.Latest == nil || a.Latest.Until.After(sum.Latest.Until)) {
			sum.Latest = a.Latest
		}
		for _, f := range a.Failures {
			i, ok := at[f.Class]
			if !ok {
				at[f.Class] = len(sum.Failures)
				sum.Failures = append(sum.Failures, f)
				continue
			}
			known := &sum.Failures[i]
			n := known.N + f.N
			if f.At.After(known.At) {
				*known = f
			}
			known.N = n
		}
	}
	if sum.Least >= sum.Remaining {
		sum.Least = 0
	}
	return sum
}
