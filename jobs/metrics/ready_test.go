package metrics_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"testing"

	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/metrics"
	"crawlbatch.io/crawlbatch/stages"
)

// answering is a store whose calls return a given error.
type answering struct {
	store.Bucket
	err error
}

func (b *answering) Get(context.Context, string, int64) ([]byte, store.Version, error) {
	return nil, "", b.err
}

func (b *answering) Swap(context.Context, string, io.ReaderAt, int64, store.Version) (store.Version, error) {
	return "", b.err
}

func TestAProcessIsNotReadyWhileTheStoreDoesNotAnswer(t *testing.T) {
	m := metrics.New("v1", stages.SystemClock{})
	server, err := m.Listen("127.0.0.1:0", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	ready := func() int {
		resp, err := http.Get("http://" + server.Addr().String() + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		return resp.StatusCode
	}
	inner := &answering{}
	b := m.Bucket(inner)
	if err := m.Attempt(func(context.Context, stages.Task) error { return nil })(t.Context(), stages.Task{Stage: stages.Fetch}); err != nil || ready() != http.StatusOK {
		t.Fatalf("work has begun: %d, %v", ready(), err)
	}
	away := fmt.Errorf("connection refused: %w", store.ErrUnavailable)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for _, step := range []struct {
		name string
		ctx  context.Context
		err  error
		want int
	}{
		{"it does not answer", t.Context(), away, http.StatusServiceUnavailable},
		{"it answers that there is no object", t.Context(), store.ErrNotFound, http.StatusOK},
		{"the caller gave up", over, away, http.StatusOK},
		{"it does not answer again", t.Context(), away, http.StatusServiceUnavailable},
		{"it refuses a swap", t.Context(), store.ErrConflict, http.StatusOK},
	} {
		inner.err = step.err
		_, _, err := b.Get(step.ctx, "k", 1)
		if step.err == store.ErrConflict {
			_, err = store.SwapBytes(step.ctx, b, "k", nil, "")
		}
		if got := ready(); got != step.want || !errors.Is(err, step.err) {
			t.Errorf("%s: /readyz answers %d, want %d; %v", step.name, got, step.want, err)
		}
	}
}
