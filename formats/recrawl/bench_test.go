package recrawl

import (
	"testing"

	"crawlbatch.io/crawlbatch/formats/schema"
)

// BenchmarkDo measures what the frontier computes for a fetched URL (interval), and a plan for a due URL (gain).
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
}
