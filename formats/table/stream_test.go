package table

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
)

func TestOpeningStopsAfterAnError(t *testing.T) {
	lost := errors.New("lost")
	var opened atomic.Int32
	_, err := openAll(0, 1000, func(i int) (*reader, error) {
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
	_, _ = openAll(0, 1, func(int) (*reader, error) { panic("hostile") })
}
