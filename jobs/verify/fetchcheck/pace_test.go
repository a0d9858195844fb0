package fetchcheck

import (
	"iter"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/jobs/verify/audit"
)

func seq[T any](rows []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, row := range rows {
			if !yield(row, nil) {
				return
			}
		}
	}
}

func TestPaceIsComparedWithinAnEpochAndOnOneClockBetweenEpochs(t *testing.T) {
	gap := func(ms int64) *int64 { return &ms }
	at := func(host string, epoch int32, start, total int64) paced {
		return paced{Host: host, URL: "http://" + host + "/", Epoch: epoch, Start: schema.Time(start * 1000), DelayMS: 100, TotalMS: total}
	}
	undelayed := func(start, total int64) paced {
		return paced{Host: "a", URL: "http://a/", Epoch: 1, Start: schema.Time(start * 1000), TotalMS: total}
	}
	cases := []struct {
		name     string
		rows     []paced
		oneClock bool
		limit    int
		pace     string // part of the expected problem; "" if no problem is expected
		inFlight bool
	}{
		{name: "a whole delay", rows: []paced{at("a", 1, 0, 50), at("a", 1, 100, 50)}},
		{name: "a millisecond lost in rounding", rows: []paced{at("a", 1, 0, 50), at("a", 1, 99, 50)}},
		{name: "two milliseconds short", rows: []paced{at("a", 1, 0, 50), at("a", 1, 98, 50)}, pace: "98 ms after http://a/"},
		{name: "another host", rows: []paced{at("a", 1, 0, 50), at("b", 1, 10, 50)}},
		{name: "another epoch, clocks unknown", rows: []paced{at("a", 1, 0, 50), at("a", 2, 10, 50)}},
		{name: "another epoch on the same clock", rows: []paced{at("a", 1, 0, 5), at("a", 2, 10, 50)}, oneClock: true, pace: "epochs 1 and 2"},
		{name: "epochs whose rows lie between one another", rows: []paced{at("a", 1, 0, 5), at("a", 2, 50, 5), at("a", 1, 60, 5), at("a", 2, 150, 5)}, pace: "60 ms after"},
		{name: "a recorded gap that is shorter than the times say", rows: []paced{at("a", 1, 0, 5), {Host: "a", Epoch: 1, Start: 200_000, DelayMS: 100, GapMS: gap(50)}}, pace: "a gap of 50 ms to the one before"},
		{name: "a gap to a request that is not recorded", rows: []paced{at("a", 1, 0, 5), {Host: "a", Epoch: 1, Start: 400_000, DelayMS: 100, GapMS: gap(150)}}},
		{name: "out of order", rows: []paced{at("a", 1, 500, 5), at("a", 1, 0, 5)}, pace: "order"},
		{name: "one ends as the next begins", rows: []paced{at("a", 1, 0, 100), at("a", 1, 100, 5)}},
		{name: "one in flight as the next begins", rows: []paced{at("a", 1, 0, 101), at("a", 1, 100, 5)}, inFlight: true},
		{name: "two in flight of two allowed", rows: []paced{at("a", 1, 0, 150), at("a", 1, 100, 5)}, limit: 2},
		{name: "a third in flight", rows: []paced{at("a", 1, 0, 500), at("a", 1, 100, 500), at("a", 1, 200, 5)}, limit: 2, inFlight: true},
		{name: "three in one millisecond", rows: []paced{undelayed(10, 1), undelayed(10, 0), undelayed(10, 0), undelayed(11, 0)}},
		{name: "two that began in one millisecond and took one", rows: []paced{undelayed(10, 1), undelayed(10, 1)}, inFlight: true},
		{name: "in flight in an epoch that was replaced", rows: []paced{at("a", 1, 0, 500), at("a", 2, 100, 5)}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			a := audit.New(audit.Options{OneClock: c.oneClock, Bucket: noStore{}})
			p := pacing{Audit: a, round: &audit.Round{}, object: "requests", limit: max(c.limit, 1)}
			if err := p.walk(seq(c.rows)); err != nil {
				t.Fatal(err)
			}
			var early, crowded bool
			for _, v := range a.Report().Violations {
				if v.Check == inFlightKept.Name {
					crowded = true
					continue
				}
				early = true
				if c.pace == "" || !strings.Contains(v.Problem, c.pace) {
					t.Errorf("found: %s", v.Problem)
				}
			}
			if early != (c.pace != "") || crowded != c.inFlight {
				t.Errorf("too early %t, too many in flight %t", early, crowded)
			}
		})
	}
}
