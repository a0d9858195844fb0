package jobs

import (
	"errors"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/jobs/config"
)

func TestALargePlanNeedsASmallDistance(t *testing.T) {
	for _, tt := range []struct {
		distance int
		urls     int64
		want     string // beginning of the expected error; "" if the plan is allowed
	}{
		{3, 2_000_000_000, ""},
		{7, 100_000_000, ""},
		{4, 100_000_001, "dedup.max_distance is 4, and 100000001 URLs are planned: comparing their texts would take about 4m0s of CPU, and 1m0s at a distance of 3; " +
			"set dedup.max_distance to 3, or plan at most 100000000 URLs with plan.budgets.total"},
		{6, 1_000_000_000, "dedup.max_distance is 6, and 1000000000 URLs are planned: comparing their texts would take about 6h31m0s of CPU, and 19m0s at a distance of 3; "},
	} {
		err := checkDistance(tt.distance, tt.urls)
		if tt.want == "" {
			if err != nil {
				t.Errorf("distance %d, %d URLs: %v", tt.distance, tt.urls, err)
			}
			continue
		}
		if !errors.Is(err, config.ErrInvalid) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("distance %d, %d URLs: %v, want %s", tt.distance, tt.urls, err, tt.want)
		}
	}
}
