package manifest

import "testing"

func TestSecondsAtSeveralTasks(t *testing.T) {
	p := &Plan{}
	for _, s := range []float64{10, 2, 3, 4} {
		p.Partitions = append(p.Partitions, PlanPartition{EstimatedSeconds: s})
	}
	for tasks, want := range map[int]float64{0: 19, 1: 19, 2: 10, 3: 10, 9: 10} {
		if got := p.SecondsAt(tasks); got != want {
			t.Errorf("%d tasks: %v s, want %v", tasks, got, want)
		}
	}
	if got := (&Plan{}).SecondsAt(4); got != 0 {
		t.Errorf("no partition: %v s", got)
	}
}
