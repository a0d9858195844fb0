package recrawl

import (
	"math/rand/v2"
	"testing"

	"crawlbatch.io/crawlbatch/formats/schema"
)

// BenchmarkDo measures what the frontier computes for a fetched URL (interval), and a plan for a due URL (gain, worth).
// The histories of young are those of pages after two to four monthly fetches, of which every sixth found a change.
func BenchmarkDo(b *testing.B) {
	for name, h := range map[string]schema.ChangeHistory{
		"unchanged": {UnchangedMS: 90 * 86_400_000, SameMS: 90 * 86_400_000},
		"changed":   {ChangeWeight: 3000, ChangedMS: 60 * 86_400_000, UnchangedMS: 90 * 86_400_000},
	} {
		b.Run("interval/"+name, func(b *testing.B) {
			for b.Loop() {
				monthly.Interval(h, Steady(h, 30*day))
			}
		})
		b.Run("gain/"+name, func(b *testing.B) {
			for b.Loop() {
				monthly.Gain(h, 30*day, false)
			}
		})
	}
	r := rand.New(rand.NewPCG(1, 2))
	var young [512]schema.ChangeHistory
	var peers Peers
	for n := range young {
		for range 1 + r.IntN(3) {
			young[n] = Observe(young[n], 30*day.Milliseconds()+r.Int64N(3_600_000), r.IntN(6) == 0)
		}
		peers.Add(young[n])
	}
	rule, n := monthly.Among(&peers), 0
	b.Run("interval/young", func(b *testing.B) {
		for b.Loop() {
			h := young[n%len(young)]
			rule.Interval(h, Steady(h, 30*day))
			n++
		}
	})
}
