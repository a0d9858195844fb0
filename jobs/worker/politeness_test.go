package worker

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/stages/fetch/polite"
)

func TestPolitenessIsTakenWhole(t *testing.T) {
	c, err := config.Read("crawlbatch.yaml", []byte(`politeness:
  delay: 7s
  in_flight_per_host: 3
  per_address_delay: 1s
  slow_factor: 1.5
  robots_ttl: 2h
  classes: {shop: 9s}
  domains:
    example.com: {class: shop, in_flight_per_host: 4}
    example.org: {delay: 500ms}
    example.net: {stop: "asked by the owner, ticket 17"}
`), func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	half := 500 * time.Millisecond
	want := polite.Config{
		Delay: 7 * time.Second, InFlightPerHost: 3, PerAddressDelay: time.Second, SlowFactor: 1.5, RobotsTTL: 2 * time.Hour,
		Classes: map[string]time.Duration{"shop": 9 * time.Second, "ecommerce": 5 * time.Second, "news": 3 * time.Second},
		Domains: map[string]polite.Domain{
			"example.com": {Class: "shop", InFlightPerHost: 4}, "example.org": {Delay: &half}, "example.net": {Stop: "asked by the owner, ticket 17"},
		},
	}
	if diff := cmp.Diff(want, Politeness(c)); diff != "" {
		t.Errorf("politeness (-want +got):\n%s", diff)
	}
}

// The planner must predict the pace that the fetch stage keeps.
func TestThePlannerKnowsThePaceOfEachHost(t *testing.T) {
	c, err := config.Read("crawlbatch.yaml", []byte(`politeness:
  delay: 7s
  in_flight_per_host: 3
  domains:
    example.com: {class: ecommerce, in_flight_per_host: 4}
    www.example.com: {delay: 10s}
    example.org: {delay: 0s}
`), func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	type pace struct {
		Delay    time.Duration
		InFlight int
	}
	plan, fetch, got := PlanConfig(c), polite.New(polite.Options{Config: Politeness(c)}), map[string]pace{}
	for _, host := range []string{"example.com", "shop.example.com", "www.example.com", "a.www.example.com:8080", "example.org", "other.example"} {
		delay, inFlight := plan.Pace(host)
		if want := fetch.Configured(host); delay != want {
			t.Errorf("%s: planned with %v, fetched with %v", host, delay, want)
		}
		got[host] = pace{delay, inFlight}
	}
	want := map[string]pace{
		"example.com": {5 * time.Second, 4}, "shop.example.com": {5 * time.Second, 4}, "www.example.com": {10 * time.Second, 4},
		"a.www.example.com:8080": {10 * time.Second, 4}, "example.org": {0, 3}, "other.example": {7 * time.Second, 3},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("pace (-want +got):\n%s", diff)
	}
}
