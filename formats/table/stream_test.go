package table

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
)

func TestOpeningStopsAfterAnError(t *testing.T) {
	inputs, lost := make([]int, 1000), errors.New("lost")
	for i := range inputs {
		inputs[i] = i
	}
	var opened atomic.Int32
	_, err := openAll(inputs, func(i int) (*Reader[struct{}], error) {
		opened.Add(1)
		if i >= 3 {
			return nil, fmt.Errorf("input %d: %w", i, lost)
		}
		return nil, nil
	})
	if !errors.Is(err, lost) || !strings.HasPrefix(err.Error(), "input 3:") || opened.Load() > 3+openers {
		t.Errorf("%d opened: %v", opened.Load(), err)
	}
}

func TestAPanicOfOpenReachesTheCaller(t *testing.T) {
	defer func() {
		if p := recover(); p != "hostile" {
			t.Errorf("recovered %v", p)
		}
	}()
	_, _ = openAll([]int{1}, func(int) (*Reader[struct{}], error) { panic("hostile") })
}
