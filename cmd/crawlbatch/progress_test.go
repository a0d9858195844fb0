package main

import (
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/stages"
)

// The finer command comes first: it ends the wait for one host only, on every machine.
func TestTheAdviceNamesTheCommandThatStopsTheHost(t *testing.T) {
	for host, name := range map[string]string{"a.test": "a.test", "a.test:8080": "a.test:8080", "[::1]:8080": "'[::1]:8080'"} {
		o := runOptions{common: &common{store: "/a b"}}
		got := o.advice(stages.Task{Stage: stages.Fetch, Crawl: "2026-11", Partition: 3}, []string{host})
		stop, giveUp := strings.Index(got, "`crawlbatch host "+name+` --month 2026-11 --stop "REASON"`), strings.Index(got, "--give-up --partition 3")
		if stop < 0 || giveUp < stop || strings.Count(got, "--store '/a b'") != 2 {
			t.Errorf("%s: %s", host, got)
		}
	}
	o := runOptions{common: &common{store: "/a b"}}
	got := o.advice(stages.Task{Stage: stages.Fetch, Crawl: "2026-11"}, []string{"a.test", "b.test", "c.test", "d.test"})
	if want := "4 hosts end last, within a tenth of the time left: a.test, b.test, c.test and 1 more: to end the wait, stop each of them, such as `crawlbatch host a.test"; !strings.HasPrefix(got, want) {
		t.Error(got)
	}
}
