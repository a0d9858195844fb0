package usage

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"

	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/show"
	"crawlbatch.io/crawlbatch/stages"
)

// HeartbeatEvery is the time between two lines of a Heartbeat.
const HeartbeatEvery = 30 * time.Second

// Heartbeat says from time to time what a command has read and written, so that a command which prints nothing else
// for minutes can be told from one that hangs. Count may be called at any time.
type Heartbeat struct {
	mu     sync.Mutex
	stores []*store.Counter
	verb   string
	n      int64
	of     string
	end    func()
}

// Beat is what a command has done so far.
type Beat struct {
	After         time.Duration // since Start
	Read, Written int64         // bytes
	At            string        // key of the object that was read last; "": none
	Step          string        // what the command said last of itself, such as "read 4,096 entries of urls.txt"; "": nothing
}

// Note tells what the command does. It may be called often and from several goroutines.
func (h *Heartbeat) Note(verb string, n int64, of string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.verb, h.n, h.of = verb, n, of
}

// Count returns b as a bucket whose calls the heartbeat counts.
func (h *Heartbeat) Count(b store.Bucket) store.Bucket {
	c := store.Count(b)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stores = append(h.stores, c)
	return c
}

// Start calls say every HeartbeatEvery, until End is called. After End, Start may be called again.
func (h *Heartbeat) Start(clock stages.Clock, say func(Beat)) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	h.end = func() { cancel(); <-ended }
	go func() {
		defer close(ended)
		h.run(ctx, clock, say)
	}()
}

// End ends what Start began, if it was called. After End, say is not called.
func (h *Heartbeat) End() {
	if h.end != nil {
		h.end()
	}
}

func (h *Heartbeat) run(ctx context.Context, clock stages.Clock, say func(Beat)) {
	began := clock.Now()
	for clock.Sleep(ctx, HeartbeatEvery) == nil {
		beat := Beat{After: clock.Now().Sub(began)}
		h.mu.Lock()
		stores := slices.Clone(h.stores)
		if h.verb != "" {
			beat.Step = fmt.Sprintf("%s %s %s", h.verb, show.Thousands(h.n), h.of)
		}
		h.mu.Unlock()
		for _, c := range stores {
			n := c.Counts()
			beat.Read, beat.Written = beat.Read+n.BytesIn, beat.Written+n.BytesOut
			if last := c.Last(); last != "" {
				beat.At = last
			}
		}
		say(beat)
	}
}

// BeatPrinter returns a function for Heartbeat.Start that prints a line to w, or to the log if structured is true.
func BeatPrinter(w io.Writer, log *slog.Logger, structured bool) func(Beat) {
	return func(b Beat) {
		after, done := b.After.Round(time.Second), ""
		if structured {
			log.Info("still working", "after", after, "step", b.Step, "read_bytes", b.Read, "written_bytes", b.Written, "at", b.At)
			return
		}
		switch read := fmt.Sprintf("read %s and wrote %s, now at %s", show.Bytes(b.Read), show.Bytes(b.Written), b.At); {
		case b.Step != "" && b.Read+b.Written > 0:
			done = fmt.Sprintf(": %s (of the store, %s)", b.Step, read)
		case b.Step != "":
			done = ": " + b.Step
		case b.At != "":
			done = ": " + read
		}
		fmt.Fprintf(w, "crawlbatch: still working after %s%s\n", after, done)
	}
}
