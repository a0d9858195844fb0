package verify

import (
	"fmt"
	"slices"
	"testing"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table/tabletest"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/simweb"
)

// topicWeb is a web of ten topics, whose seeds are the home pages of its hosts.
func topicWeb() simweb.Config {
	w := simweb.Default()
	w.Hosts, w.PagesPerHost, w.Topics, w.SeedShare, w.Robots, w.FaultShare = 60, 80, 10, 0, false, 0
	w.ExactShare, w.NearShare, w.ChainShare = 0, 0, 0
	return w
}

const topicRounds = 5

// crawlTopic crawls the web in rounds of 120 URLs and returns the share of the pages of each round that are
// about the topic.
func crawlTopic(t *testing.T, topic int, change func(*config.Config)) (l *simwebLab, rates []float64) {
	t.Helper()
	web, err := simweb.New(topicWeb())
	if err != nil {
		t.Fatal(err)
	}
	l = newSimwebLab(t, topicWeb(), func(c *config.Config) {
		c.Plan.PartitionURLs = 100
		c.Plan.Budgets.PerDay = 144                                                                                    // 120 in a window of 20 hours
		c.Plan.Priority.HostRank, c.Plan.Priority.Directory, c.Plan.Priority.Anchor, c.Plan.Priority.Hop = 0, 0, 0, 30 // breadth first
		c.Frontier.Focus.Model = fmt.Sprintf("1 %s\n", web.TopicWord(topic))
		change(c)
	})
	if err := l.driver.Run(t.Context(), testCrawl, topicRounds); err != nil {
		t.Fatal(err)
	}
	sealed, err := roundstate.Sealed(t.Context(), l.bucket, testCrawl)
	if err == nil {
		sealed, err = roundstate.WithFiles(t.Context(), l.bucket, sealed, roundstate.Selection{})
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sealed {
		relevant, all := 0, 0
		for _, f := range s.FilesOf(stages.FilePages) {
			for _, p := range tabletest.Read[schema.Page](t, l.bucket, f.Key) {
				if p.DocumentKind != "html" {
					continue
				}
				if p.Focus == nil {
					t.Fatalf("%s has no score", p.URL)
				}
				host, path, _ := web.Locate(p.URL)
				about, known := web.TopicAt(host, path)
				if !known {
					continue
				}
				if all++; about == topic {
					relevant++
					if *p.Focus < 1 {
						t.Errorf("%s is about the topic, but has score %v", p.URL, *p.Focus)
					}
				}
			}
		}
		rates = append(rates, float64(relevant)/float64(all))
	}
	return l, rates
}

func TestAFocusHarvestsMorePagesOfATopic(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	mean := func(rates []float64) (sum float64) {
		for _, r := range rates[1:] { // all crawls begin with the same pages
			sum += r / float64(len(rates)-1)
		}
		return sum
	}
	least := 0.5
	rates := map[string]float64{}
	for _, c := range []struct {
		name   string
		change func(*config.Config)
	}{
		{"breadth first", func(*config.Config) {}},
		{"prefer", func(c *config.Config) { c.Frontier.Focus.Points = 400 }},
		{"prefer and keep", func(c *config.Config) { c.Frontier.Focus.Points, c.Frontier.Focus.Threshold = 400, &least }},
	} {
		l, byRound := crawlTopic(t, 3, c.change)
		t.Logf("%s: %.2f, after the first round %.2f", c.name, byRound, mean(byRound))
		rates[c.name] = mean(byRound)
		l.verify(t, true)
	}
	if rates["prefer"] < 2*rates["breadth first"] || rates["prefer and keep"] < 2*rates["breadth first"] {
		t.Errorf("%v", rates)
	}
}

// A second month may have other terms, or none. Its pages have the scores of its own terms.
func TestASecondMonthHasAFocusOfItsOwn(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	of := topicWeb()
	of.Hosts, of.PagesPerHost = 8, 20
	web, err := simweb.New(of)
	if err != nil {
		t.Fatal(err)
	}
	addr, stop, err := serveWeb(web)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	m := &monthsLab{t, directory(t), testConfig(addr), web, t.TempDir()}
	m.cfg.Politeness.Delay = 0
	seeds, least := slices.Collect(web.Seeds()), 0.5
	scored := func(month string) (scored, all, relevant, skipped int) {
		for _, p := range rowsOfMonth[schema.Page](m, month, stages.FilePages) {
			if all++; p.Focus != nil {
				scored++
				if *p.Focus >= 1 {
					relevant++
				}
			}
		}
		for _, s := range rowsOfMonth[schema.Skip](m, month, stages.FileSkips) {
			if s.Reason == schema.SkipFocus {
				skipped++
			}
		}
		return scored, all, relevant, skipped
	}
	m.crawl(firstMonth, stages.SystemClock{}, 2, seeds, nil)
	if n, all, _, skipped := scored(firstMonth); n != 0 || all == 0 || skipped != 0 {
		t.Errorf("without terms, %d of %d pages have a score, %d URLs are skipped", n, all, skipped)
	}
	m.cfg.Frontier.Focus = config.Focus{Model: "1 " + web.TopicWord(3) + "\n", Points: 400, Threshold: &least}
	m.crawl(secondMonth, monthAhead{}, 2, seeds, nil)
	if n, all, relevant, skipped := scored(secondMonth); n != all || all == 0 || relevant == 0 || skipped == 0 {
		t.Errorf("with terms, %d of %d pages have a score, %d are relevant, %d URLs are skipped", n, all, relevant, skipped)
	}
}
