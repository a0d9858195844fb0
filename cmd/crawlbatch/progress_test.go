package main

import (
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/stages"
)

// The advice must not tell a user to stop a host with an IPv6 address, because politeness.domains cannot
// name such an address.
func TestTheAdviceStopsAHostOnlyWhereAConfigCanNameIt(t *testing.T) {
	for host, stop := range map[string]string{
		"a.test": "{a.test: {stop: not now}}", "a.test:8080": "{a.test: {stop: not now}}", "10.0.0.1:80": "{10.0.0.1: {stop: not now}}",
		"[::1]": "", "[::1]:8080": "",
	} {
		o := runOptions{common: &common{store: defaultStore}}
		got := o.advice(stages.Task{Stage: stages.Fetch, Crawl: "2026-11", Partition: 3}, host)
		if !strings.Contains(got, "--give-up --partition 3`") || !strings.Contains(got, stop) || stop == "" && strings.Contains(got, "stop:") {
			t.Errorf("%s: %s", host, got)
		}
	}
}
