package verify

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table/tabletest"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/inspect"
	"crawlbatch.io/crawlbatch/jobs/lookup"
	"crawlbatch.io/crawlbatch/stages"
)

// calendarWeb serves a calendar with a page for each day and a newspaper with an index and an article for
// each of 60 days. Both link from day to day.
type calendarWeb struct {
	today time.Time
	mu    sync.Mutex
	asked map[string]bool // host and path
}

func (c *calendarWeb) path(n int) string { return c.today.AddDate(0, 0, n).Format("/2006/01/02") }

func (c *calendarWeb) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	c.asked[r.Host+r.URL.Path] = true
	c.mu.Unlock()
	w.Header().Set("Content-Type", "text/html")
	page := func(title, text string, links ...string) {
		fmt.Fprintf(w, "<html lang=en><title>%s</title><main><p>%s</p></main><nav>", title, text)
		for _, l := range links {
			fmt.Fprintf(w, "<a href=%q>on</a> ", l)
		}
	}
	path := strings.TrimPrefix(r.URL.Path, "/calendar")
	day, err := time.Parse("/2006/01/02", path)
	n := int(day.Sub(c.today).Hours() / 24)
	switch {
	case r.Host == "paper.test" && err == nil && n <= 0 && n > -60:
		page("The Gazette", "The articles of the day in the Gazette, the newspaper for all friends of mills.", c.path(n-1), c.path(n-5), c.path(n-20), c.path(n)+"/"+strings.Repeat("x", 60+n))
	case r.Host == "paper.test" && strings.Contains(path, "/x"):
		page("The Gazette", fmt.Sprintf("An article about mill %s, which the newspaper for all friends of mills has written.", strings.Repeat("m", len(path))))
	case r.Host == "calendar.test" && err == nil:
		date := day.Format("Monday 2 January 2006")
		page("Events on "+date, date+": there are no events of the society today, please look at another day.", "/calendar"+c.path(n-1), "/calendar"+c.path(n+1), "/calendar"+c.path(n+40))
	case r.URL.Path == "/" && r.Host == "paper.test":
		page("The Gazette", "The newspaper for all friends of mills.", c.path(0))
	case r.URL.Path == "/":
		var links []string
		for n := 95; n < 140; n++ {
			links = append(links, "/calendar"+c.path(n))
		}
		page("Society", "The society of all friends of mills.", links...)
	default:
		http.NotFound(w, r)
	}
}

// TestACrawlLeavesACalendar crawls a calendar and a newspaper. The calendar ends although its URLs and titles have no
// end. The newspaper is complete.
func TestACrawlLeavesACalendar(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	web := &calendarWeb{today: time.Now().UTC().Truncate(24 * time.Hour), asked: map[string]bool{}}
	s := httptest.NewServer(web)
	t.Cleanup(s.Close)
	l := newCrawlLab(t, s.Listener.Addr().String(), []string{"http://calendar.test/", "http://paper.test/"}, func(c *config.Config) {
		c.Politeness.Delay = config.Duration(time.Millisecond)
		c.Plan.Budgets.Domains = map[string]int{"calendar.test": 60}
	})
	const rounds = 12
	if err := l.driver.Run(t.Context(), testCrawl, rounds); err != nil {
		t.Fatal(err)
	}
	for n := range 60 {
		if day := web.path(-n); !web.asked["paper.test"+day] || !web.asked["paper.test"+day+"/"+strings.Repeat("x", 60-n)] {
			t.Errorf("the newspaper of %s is missing", day)
		}
	}
	waits, refused := 0, map[string]string{}
	for n := range rounds {
		for _, u := range tabletest.Read[schema.URLRecord](t, l.bucket, layout.Table(stages.FileURLs, testCrawl, n, 0)) {
			if u.State == schema.StateSkipped && u.Host == "calendar.test" {
				waits++
			}
		}
		for _, k := range tabletest.Read[schema.Skip](t, l.bucket, layout.Table(stages.FileSkips, testCrawl, n, 0)) {
			if k.Reason == schema.SkipTrap {
				refused[k.URL] = k.Detail
			}
		}
	}
	if len(refused) < 20 || waits == 0 {
		t.Errorf("%d URLs were refused, %d of these waited", len(refused), waits)
	}
	var url string
	for u, detail := range refused {
		url = max(url, u)
		if !strings.HasPrefix(u, "http://calendar.test/calendar/") || !strings.HasPrefix(detail, "calendar: pages of the future at calendar.test/calendar/0/0/0 are the same (") {
			t.Errorf("%s was refused: %s", u, detail)
		}
	}
	l.verify(t, true)
	known, err := lookup.Open(t.Context(), l.bucket, testCrawl, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	u, err := inspect.NewURL(l.cfg, nil, known)
	if err != nil {
		t.Fatal(err)
	}
	a, err := u.Answer(t.Context(), inspect.URLQuestion{URL: url})
	if err != nil || a.Known.Skip == nil || a.Known.Skip.Reason != schema.SkipTrap {
		t.Errorf("inspect url %s: %+v, %v", url, a, err)
	}
}
