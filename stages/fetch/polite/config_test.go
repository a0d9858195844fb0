package polite

import (
	"math"
	"strings"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/manifest"
)

func ptr(d time.Duration) *time.Duration { return &d }

func TestConfigOfHost(t *testing.T) {
	c := Default()
	c.Domains = map[string]Domain{
		"amazon.com":      {Class: "ecommerce"},
		"news.amazon.com": {Class: "news"},
		"example.org":     {Delay: ptr(500 * time.Millisecond), Class: "news"},
		"zero.org":        {Delay: ptr(0)},
		"example.net":     {Stop: "asked"},
		"b.example.net":   {Delay: ptr(time.Second)},
		"wide.org":        {InFlightPerHost: 4},
		"a.wide.org":      {Delay: ptr(time.Second)},
	}
	c.Stops = &manifest.Stops{}
	c.Stops.Stop("www.stopped.org", "", "ticket 17")
	c.Stops.Stop("", "stopped.co.uk", "ticket 18")
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		host string
		want terms
	}{
		{"other.com", terms{2 * time.Second, 1, ""}},
		{"amazon.com", terms{5 * time.Second, 1, ""}},
		{"www.amazon.com", terms{5 * time.Second, 1, ""}},
		{"a.news.amazon.com", terms{3 * time.Second, 1, ""}},
		{"notamazon.com", terms{2 * time.Second, 1, ""}},
		{"example.org:8080", terms{500 * time.Millisecond, 1, ""}},
		{"zero.org", terms{0, 1, ""}},
		{"b.example.net", terms{time.Second, 1, "asked"}},
		{"c.example.net", terms{2 * time.Second, 1, "asked"}},
		{"www.stopped.org", terms{2 * time.Second, 1, "ticket 17"}},
		{"www.stopped.org:8080", terms{2 * time.Second, 1, ""}},
		{"stopped.org", terms{2 * time.Second, 1, ""}},
		{"a.b.stopped.co.uk:81", terms{2 * time.Second, 1, "ticket 18"}},
		{"[::1]:80", terms{2 * time.Second, 1, ""}},
		{"192.0.2.1", terms{2 * time.Second, 1, ""}},
		{"", terms{2 * time.Second, 1, ""}},
		{"www.wide.org", terms{2 * time.Second, 4, ""}},
		{"b.a.wide.org", terms{time.Second, 4, ""}},
	} {
		if got := c.termsOf(tt.host); got != tt.want {
			t.Errorf("%q: %+v, want %+v", tt.host, got, tt.want)
		}
	}
}

func TestValidateNamesTheField(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"politeness.delay: -1s":                       func(c *Config) { c.Delay = -time.Second },
		"politeness.per_address_delay: 48h":           func(c *Config) { c.PerAddressDelay = 48 * time.Hour },
		"politeness.in_flight_per_host: 0":            func(c *Config) { c.InFlightPerHost = 0 },
		"politeness.robots_ttl: 1s":                   func(c *Config) { c.RobotsTTL = time.Second },
		"politeness.classes.x: -1s":                   func(c *Config) { c.Classes = map[string]time.Duration{"x": -time.Second} },
		`politeness.domains.a.class: "b" is not one`:  func(c *Config) { c.Domains = map[string]Domain{"a": {Class: "b"}} },
		"politeness.domains.a.delay: -1s":             func(c *Config) { c.Domains = map[string]Domain{"a": {Delay: ptr(-time.Second)}} },
		"politeness.domains.a.in_flight_per_host: 65": func(c *Config) { c.Domains = map[string]Domain{"a": {InFlightPerHost: 65}} },
		"politeness.slow_factor: NaN":                 func(c *Config) { c.SlowFactor = math.NaN() },
		"politeness.slow_factor: 11":                  func(c *Config) { c.SlowFactor = 11 },
		`"https://a" is not a domain`:                 func(c *Config) { c.Domains = map[string]Domain{"https://a": {}} },
	} {
		c := Default()
		change(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
}

func TestParseRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		value string
		want  time.Duration
		ok    bool
	}{
		{"120", 2 * time.Minute, true},
		{" 0 ", 0, true},
		{"99999999999999999999999", maxDelay, true},
		{"Sun, 01 Nov 2026 12:01:30 GMT", 90 * time.Second, true},
		{"Sunday, 01-Nov-26 12:01:30 GMT", 90 * time.Second, true},
		{"Sun, 01 Nov 2026 11:00:00 GMT", 0, true},
		{"Mon, 01 Nov 2094 11:00:00 GMT", maxDelay, true},
		{"-5", 0, false},
		{"1.5", 2 * time.Second, true},
		{"4.0", 4 * time.Second, true},
		{"30 seconds", 30 * time.Second, true},
		{"30s", 30 * time.Second, true},
		{"1793534490", 90 * time.Second, true}, // seconds since 1970
		{"1793534390", 0, true},
		{"Sun, 01 Nov 2026 12:01:30 UTC", 90 * time.Second, true},
		{"Sun, 1 Nov 2026 12:01:30 GMT", 90 * time.Second, true},
		{"01 Nov 2026 12:01:30 UTC", 90 * time.Second, true},
		{"Sun, 01 Nov 2026 13:01:30 +0100", 90 * time.Second, true},
		{"Sun, 01-Nov-2026 12:01:30 GMT", 90 * time.Second, true},
		{"2026-11-01T12:01:30Z", 90 * time.Second, true},
		{"2026-11-01T14:01:30+02:00", 90 * time.Second, true},
		{"2026-11-01 12:01:30", 90 * time.Second, true},
		{"Sun, 01 Nov 2026 07:01:30 XST", 0, false}, // what zone this is, nobody knows
		{"1e300", 0, false},
		{"1.5.5", 0, false},
		{"5 minutes", 0, false},
		{"soon", 0, false},
		{"", 0, false},
	} {
		if got, ok := ParseRetryAfter(tt.value, now); got != tt.want || ok != tt.ok {
			t.Errorf("%q: %v, %t; want %v, %t", tt.value, got, ok, tt.want, tt.ok)
		}
	}
}

func FuzzParseRetryAfter(f *testing.F) {
	f.Add("120")
	f.Add("Sun, 01 Nov 2026 12:01:30 GMT")
	now := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, v string) {
		if d, ok := ParseRetryAfter(v, now); d < 0 || d > maxDelay || d != 0 && !ok {
			t.Errorf("%q: %v, %t", v, d, ok)
		}
	})
}
