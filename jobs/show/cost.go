package show

import (
	"fmt"
	"io"
	"strings"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/jobs/cost"
	"crawlbatch.io/crawlbatch/stages"
)

// Cost writes the predicted pod-hours, requests and bytes of a planned round, and their price.
func Cost(w io.Writer, m *cost.Model, p *manifest.Plan, past cost.Past) error {
	p = p.Within(m.Config.Fetch.Window.Std())
	all := m.Predict(p, past)
	fetch := m.Price(p, stages.Fetch, all[stages.Fetch])
	var sum cost.Dollars
	for _, stage := range stages.Order {
		sum = sum.Add(m.Price(p, stage, all[stage]))
	}
	by := "by the figures of other crawls"
	if past.Rounds > 0 {
		by = "by what " + Count(int64(past.Rounds), "earlier round") + " used"
	}
	total, hours, pod := all.Total(), all[stages.Fetch].Wall().Hours(), m.Pods(p, stages.Fetch)
	var text strings.Builder
	fmt.Fprintf(&text, "estimated cost: %s, and %s for each month of storage, at prices of %s and %s\n", dollars(sum.Once()), dollars(sum.Monthly), m.Config.Prices.Date, by)
	fmt.Fprintf(&text, "  fetch: %s of %.2g cores and %.1f GiB, %s\n", podHours(hours), pod.Cores, pod.GiB, dollars(fetch.Machines))
	fmt.Fprintf(&text, "  other stages: %s, %s\n", podHours(total.Wall().Hours()-hours), dollars(sum.Machines-fetch.Machines))
	fmt.Fprintf(&text, "  store: %s PUT, %s GET, %s LIST, %s; %s written\n", shortCount(total.Puts), shortCount(total.Gets), shortCount(total.Lists), dollars(sum.Requests), shortBytes(total.BytesWritten))
	_, err := io.WriteString(w, text.String())
	return err
}

// dollars writes an amount of money: cents below $100.
func dollars(d float64) string {
	switch {
	case d <= 0:
		return "$0"
	case d < 0.01:
		return "<$0.01"
	case d < 100:
		return fmt.Sprintf("$%.2f", d)
	}
	return "$" + Thousands(int64(d+0.5))
}
