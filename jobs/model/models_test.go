package model

import (
	"fmt"
	"os"
	"testing"
)

// mutations lists the mutations of the partition's protocol. Each entry names the promise that the
// mutation breaks, and the bounds within which a search finds this.
var mutations = []struct {
	mutation, promise string
	m                 partition
	deep              bool
}{
	{leaseFromAnswer, oneFetches, partition{attempts: 2, urls: 1}, false},
	{impatient, oneFetches, partition{attempts: 2, urls: 1}, false},
	{uncheckedRequests, withRight, partition{attempts: 2, urls: 1}, false},
	{lateRequests, flightsEnd, partition{attempts: 2, urls: 1}, false},
	{foundIsMine, oneFetches, partition{attempts: 2, urls: 1, renewals: 1}, false},
	{monotonicClock, oneFetches, partition{attempts: 2, urls: 1, pauses: 1}, false},
	{locksUnchecked, oneFetches, partition{attempts: 2, urls: 1, locks: true, removals: 1}, false},
	{reclaimKeepsRight, nothingTwice, partition{attempts: 2, urls: 1, locks: true, removals: 1, crashes: 1, renewals: 1}, true},
	{releaseInFlight, flightsEnd, partition{attempts: 2, urls: 1}, false},
	{namesBeforeData, nothingListed, partition{attempts: 1, urls: 1}, false},
	{sweepOwn, nothingListed, partition{attempts: 1, urls: 1}, false},
	{sweepAny, nothingListed, partition{attempts: 2, urls: 1}, false},
	{sameEpoch, neverRecurs, partition{attempts: 2, urls: 1}, false},
	{uncountedCheckpoint, neverRecurs, partition{attempts: 1, urls: 1, renewals: 1}, false},
	{otherBytes, refusedForLoss, partition{attempts: 2, urls: 2}, false},
	{recordedOnly, sumsAgree, partition{attempts: 1, urls: 1}, false},
	{resultUnanswered, oneResult, partition{attempts: 1, urls: 1}, false},
	{unmarked, traceRefuses, partition{attempts: 2, urls: 1, outsider: deletes, crashes: 1}, false},
	{markFirst, refusedForLoss, partition{attempts: 2, urls: 1, crashes: 1}, false},
	{takenUnchecked, traceRefuses, partition{attempts: 2, urls: 1, outsider: deletes}, false},
	{noEpochRule, traceRefuses, partition{attempts: 2, urls: 1, outsider: putsBack}, true},
	{noFollowsRule, traceRefuses, partition{attempts: 2, urls: 1, outsider: putsBack, renewals: 1}, true},
	{noOrderRule, traceRefuses, partition{attempts: 2, urls: 2, outsider: putsBack}, true},
	{oneLook, refusedForLoss, partition{attempts: 2, urls: 1}, false},
	{followsUnanswered, refusedForLoss, partition{attempts: 2, urls: 1, renewals: 1}, false},
}

// TestEachRuleOfThePartitionIsNeeded breaks each rule in turn and searches for the broken promise.
// Some mutations break their promise only after 30 actions or more. Only `make model` tests these.
func TestEachRuleOfThePartitionIsNeeded(t *testing.T) {
	for _, c := range mutations {
		t.Run(c.mutation, func(t *testing.T) {
			if c.deep && !thorough() {
				t.Skip("a long search: run `make model`")
			}
			c.m.mutation = c.mutation
			expectBreaks(t, c.m.machine(), c.promise)
		})
	}
}

// TestPartitionKeepsItsPromises visits the states near the start of two attempts at a partition of
// one URL. `make model` visits all states of two attempts, and the nearest 6 million of three.
func TestPartitionKeepsItsPromises(t *testing.T) {
	models := map[string]struct {
		m    partition
		most int
	}{
		"two attempts":             {partition{attempts: 2, urls: 1}, 25_000},
		"two attempts with a lock": {partition{attempts: 2, urls: 1, locks: true, removals: 1}, 25_000},
	}
	if thorough() {
		clear(models)
		for name, m := range map[string]partition{
			"disturbed": {attempts: 2, urls: 1, renewals: 1, pauses: 1, crashes: 1},
			"two URLs":  {attempts: 2, urls: 2, crashes: 1},
			"locks":     {attempts: 2, urls: 1, renewals: 1, crashes: 1, locks: true, removals: 1},
			"put back":  {attempts: 2, urls: 1, pauses: 1, crashes: 1, outsider: putsBack},
			"deleted":   {attempts: 2, urls: 1, pauses: 1, crashes: 1, outsider: deletes},
		} {
			models["two attempts, "+name] = struct {
				m    partition
				most int
			}{m, most}
		}
		for name, m := range map[string]partition{
			"renewed and put back": {attempts: 2, urls: 1, renewals: 1, outsider: putsBack},
			"disturbed":            {attempts: 3, urls: 1, renewals: 1, pauses: 1, crashes: 2},
			"locks":                {attempts: 3, urls: 1, renewals: 1, crashes: 2, locks: true, removals: 2},
			"put back":             {attempts: 3, urls: 1, crashes: 2, outsider: putsBack},
			"deleted":              {attempts: 3, urls: 1, crashes: 2, outsider: deletes},
		} {
			models[fmt.Sprintf("%d attempts to a bound, %s", m.attempts, name)] = struct {
				m    partition
				most int
			}{m, mostOfThree}
		}
	}
	for name, c := range models {
		t.Run(name, func(t *testing.T) {
			o := expectHolds(t, c.m.machine(), c.most, nil)
			if c.most == most && !o.whole {
				t.Error("not every state was seen")
			}
		})
	}
}

// TestPartitionReachesItsEnds requires that the search sees every way in which an attempt may end.
func TestPartitionReachesItsEnds(t *testing.T) {
	reached := map[string]bool{}
	see := func(what string, did bool) { reached[what] = reached[what] || did }
	note := func(s *partitionState) {
		see("the result is there", s.result.epoch == 1)
		see("a successor makes the result", s.result.epoch == 2)
		see("two attempts made checkpoints", s.store.epoch == 2 && s.store.counter > 1)
		see("a partition is released", s.store.released && !s.store.complete)
		see("an attempt refuses", s.att[0].phase == refused || s.att[1].phase == refused)
		see("an outsider leaves no trace", s.blind)
		see("a lock is taken again", s.removals == 1 && s.att[0].lock == stands && s.att[0].seen.counter > 1 && s.att[0].right > 0)
	}
	for _, m := range []partition{
		{attempts: 2, urls: 1},
		{attempts: 2, urls: 1, crashes: 1, outsider: deletes},
		{attempts: 1, urls: 1, renewals: 1, locks: true, removals: 1},
	} {
		search(m.machine(), reaching, note)
	}
	requireAll(t, reached, 7)
}

// thorough reports whether the tests search the whole models, as in `make model`.
func thorough() bool { return os.Getenv("CRAWLBATCH_MODEL") != "" }

// These constants limit the number of states that a search visits, and therefore its memory. A
// visited state takes 16 to 30 bytes, and a state that is still to be visited takes 250 bytes. A
// model of three attempts has far more states than a search can visit.
const (
	most        = 15_000_000
	mostOfThree = 6_000_000
	reaching    = 30_000
)

// requireAll requires that all values of a map are true, and that the map has the wanted number of
// entries.
func requireAll(t *testing.T, reached map[string]bool, want int) {
	t.Helper()
	n := 0
	for what, did := range reached {
		if did {
			n++
		} else {
			t.Errorf("no state in which %s", what)
		}
	}
	if n != want {
		t.Errorf("%d of the wanted states were reached, want %d", n, want)
	}
}
