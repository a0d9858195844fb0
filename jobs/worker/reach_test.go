package worker

import (
	"testing"

	"crawlbatch.io/crawlbatch/jobs/config"
)

func TestAPlanKnowsWhichHostsRequestsCannotReach(t *testing.T) {
	type answer struct{ refused, named bool }
	refused, named, neither := answer{refused: true}, answer{named: true}, answer{}
	change := func(change func(*config.Fetch)) *config.Config {
		c := config.Default()
		change(&c.Fetch)
		return c
	}
	for name, tc := range map[string]struct {
		cfg  *config.Config
		want map[string]answer
	}{
		"default": {config.Default(), map[string]answer{
			"127.0.0.1": refused, "127.0.0.1:8080": refused, "10.1.2.3": refused, "169.254.169.254": refused, "[::1]": refused, "[::1]:8080": refused,
			"localhost": refused, "localhost:8080": refused, "a.localhost": refused,
			"8.8.8.8": neither, "[2606:4700::1111]:8080": neither, "example.org": named, "localhost.example.org:8080": named, "notlocalhost": named,
		}},
		"private networks": {change(func(f *config.Fetch) { f.AllowPrivateNetworks = true }), map[string]answer{"127.0.0.1": neither, "localhost": neither, "example.org": named}},
		"NAT64 of its own": {change(func(f *config.Fetch) { f.NAT64Prefixes = []string{"2a00:1450:64::/96"} }), map[string]answer{
			"[2a00:1450:64::a00:1]": refused, "[2a00:1450:64::808:808]": neither, "[64:ff9b::a00:1]": refused, "[64:ff9b::808:808]": neither}},
		"resolvers":        {change(func(f *config.Fetch) { f.Resolvers = []string{"192.0.2.1"} }), map[string]answer{"127.0.0.1": refused, "example.org": neither}},
		"a proxy":          {change(func(f *config.Fetch) { f.Proxy = "http://192.0.2.1:3128" }), map[string]answer{"127.0.0.1": refused, "example.org": named}},
		"a proxy, private": {change(func(f *config.Fetch) { f.Proxy, f.AllowPrivateNetworks = "http://192.0.2.1:3128", true }), map[string]answer{"127.0.0.1": neither, "example.org": neither}},
		"all connect to":   {change(func(f *config.Fetch) { f.ConnectTo = []string{"::127.0.0.1:8080"} }), map[string]answer{"127.0.0.1": neither, "localhost": neither, "example.org": neither}},
		"one connects to":  {change(func(f *config.Fetch) { f.ConnectTo = []string{"localhost:80:127.0.0.1:8080"} }), map[string]answer{"127.0.0.1": refused, "localhost": neither, "example.org": named}},
		"another port":     {change(func(f *config.Fetch) { f.ConnectTo = []string{":::8080"} }), map[string]answer{"127.0.0.1": refused, "example.org": named}},
	} {
		reach := PlanConfig(tc.cfg).Reach
		for host, want := range tc.want {
			refused, named := reach(host)
			if got := (answer{refused, named}); got != want {
				t.Errorf("%s: %s: %+v, want %+v", name, host, got, want)
			}
		}
	}
}
