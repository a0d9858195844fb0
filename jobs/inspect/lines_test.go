package inspect

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/formats/store"
)

// A bad line is answered as such. An unreadable store is no fault of a line.
func TestLinesEndsIfTheStoreCannotBeRead(t *testing.T) {
	type question struct {
		URL string `json:"url"`
	}
	var out strings.Builder
	err := Lines(strings.NewReader("{\"url\":\"bad\"}\n{\"url\":\"good\"}\n{\"url\":\"away\"}\n{\"url\":\"never\"}\n"), &out, func(q question) (any, error) {
		switch q.URL {
		case "bad":
			return nil, errors.New("no URL")
		case "away":
			return nil, fmt.Errorf("read: %w", store.ErrUnavailable)
		}
		return q, nil
	})
	want := "{\"ok\":false,\"error\":\"line 1: no URL\"}\n{\"url\":\"good\"}\n"
	if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(fmt.Sprint(err), "line 3") || out.String() != want {
		t.Errorf("%v, answers:\n%s", err, out.String())
	}
}
