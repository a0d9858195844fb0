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
