// Package logbound bounds the log lines of a task, so that a web of failing hosts does not flood the log.
//
// New takes a logger and a clock, and returns a logger that writes at most twenty lines of a kind in five
// minutes. Lines with the same level and message are of the same kind. The other lines have the level debug.
// The first line of the next five minutes has the number of those lines, and so does a last line, which the
// function end writes. Lines of the level debug are not bounded. The package imports stages.
package logbound

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"crawlbatch.io/crawlbatch/stages"
)

// A bounded log writes at most linesAKind lines of a kind in five minutes.
const (
	every      = 5 * time.Minute
	linesAKind = 20
)

// maxKinds bounds the number of kinds that are counted. Messages are constant texts, so there are few kinds.
// Lines of further kinds count as one kind.
const maxKinds = 1000

// New returns a logger that bounds the lines of each kind. The caller calls end when the task has ended.
func New(log *slog.Logger, clock stages.Clock) (bounded *slog.Logger, end func()) {
	c := &counts{clock: clock, kinds: map[kind]*interval{}}
	return slog.New(&handler{log.Handler(), c}), func() { c.end(log) }
}

// kind is what the lines of a kind have in common.
type kind struct {
	level   slog.Level
	message string
}

// interval counts the lines of a kind in the current interval.
type interval struct {
	began   time.Time
	written int
	omitted int // since the last line that says how many were omitted
}

// counts holds the state of all loggers that derive from one call of New.
type counts struct {
	clock stages.Clock

	mu    sync.Mutex
	kinds map[kind]*interval
}

// count counts a line. It returns whether the line is written, and how many lines before it were not.
func (c *counts) count(k kind) (write bool, more int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := c.kinds[k]
	if i == nil {
		if len(c.kinds) >= maxKinds {
			k = kind{k.level, "other messages"}
		}
		i = cmp.Or(c.kinds[k], &interval{})
		c.kinds[k] = i
	}
	if now := c.clock.Now(); i.written == 0 || now.Sub(i.began) >= every {
		i.began, i.written = now, 0
	}
	if i.written == linesAKind {
		i.omitted++
		return false, 0
	}
	i.written++
	more, i.omitted = i.omitted, 0
	return true, more
}

// end writes a line for each kind of which lines were omitted since its last line.
func (c *counts) end(log *slog.Logger) {
	c.mu.Lock()
	defer c.mu.Unlock()
	kinds := slices.SortedFunc(maps.Keys(c.kinds), func(a, b kind) int {
		return cmp.Or(cmp.Compare(b.level, a.level), strings.Compare(a.message, b.message))
	})
	for _, k := range kinds {
		if n := c.kinds[k].omitted; n > 0 {
			log.Log(context.Background(), k.level, k.message, "more", n)
			c.kinds[k].omitted = 0
		}
	}
}

// handler bounds the lines of a slog.Handler.
type handler struct {
	slog.Handler
	counts *counts
}

// Handle implements slog.Handler.
func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	if r.Level <= slog.LevelDebug {
		return h.Handler.Handle(ctx, r)
	}
	write, more := h.counts.count(kind{r.Level, r.Message})
	if more > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Int("more", more))
	}
	if !write {
		if r.Level = slog.LevelDebug; !h.Enabled(ctx, r.Level) {
			return nil
		}
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &handler{h.Handler.WithAttrs(attrs), h.counts}
}

// WithGroup implements slog.Handler.
func (h *handler) WithGroup(name string) slog.Handler {
	return &handler{h.Handler.WithGroup(name), h.counts}
}
