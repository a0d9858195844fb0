package store

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestRetriesAreToldOfAtMostEveryTenSeconds(t *testing.T) {
	var said bytes.Buffer
	now := time.Unix(0, 0)
	n := &RetryLog{Log: slog.New(slog.NewTextHandler(&said, nil)), Now: func() time.Time { return now }}
	var lines []int
	for range 30 {
		said.Reset()
		n.Read(1, time.Second, errors.New("away"))
		n.Write("k", 1, errors.New("away"))
		lines = append(lines, strings.Count(said.String(), "\n"))
		now = now.Add(time.Second)
	}
	want := slices.Repeat([]int{0}, 30)
	want[0], want[10], want[20] = 1, 1, 1
	if !slices.Equal(lines, want) {
		t.Errorf("lines a second: %v", lines)
	}
	now = now.Add(time.Minute)
	said.Reset()
	n.Read(3, time.Second, errors.New("away"))
	if !strings.Contains(said.String(), "more=19") || !strings.Contains(said.String(), "level=WARN") {
		t.Errorf("it says %s", said.String())
	}
}

// awayStore does not answer reads.
type awayStore struct{ Bucket }

func (awayStore) Get(context.Context, string, int64) ([]byte, Version, error) {
	return nil, "", ErrUnavailable
}

// GetNew does not repeat a read, but who waits for the next poll must learn that the store is away.
func TestAPollOfAStoreThatIsAwayIsReported(t *testing.T) {
	reports := 0
	b := WithRetry(awayStore{}, Retry{Tries: 3, OnRetry: func(int, time.Duration, error) { reports++ }})
	for range 5 {
		if _, _, err := GetNew(t.Context(), b, "k", 10, "v"); !errors.Is(err, ErrUnavailable) {
			t.Fatal(err)
		}
	}
	if reports != 5 {
		t.Errorf("%d reports of 5 polls", reports)
	}
}
