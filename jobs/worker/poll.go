package worker

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"

	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/stages"
)

// ledgerPoll reads the ledger of a task's crawl again and again. While the ledger cannot be read, the
// task keeps what it knows: a paused crawl stays paused, and stops stay in force.
type ledgerPoll struct {
	bucket store.Bucket
	log    *slog.Logger
	task   stages.Task
	known  *ledger.Ledger        // the newest ledger that was read
	fault  atomic.Pointer[error] // why the last read failed; nil if it succeeded, or if the store did not answer
}

// newer returns the newest ledger, or nil if it has not changed or cannot be read. The log says once
// that the ledger cannot be read, and once that it can be read again.
func (p *ledgerPoll) newer(ctx context.Context) *ledger.Ledger {
	l, err := p.known.Newer(ctx, p.bucket)
	if ctx.Err() != nil || errors.Is(err, store.ErrUnavailable) { // the wrappers of the store report a store that does not answer
		return nil
	}
	if p.note(err); err != nil || l == p.known {
		return nil
	}
	p.known = l
	return l
}

// note keeps the result of a read, and logs it if it differs from that of the read before.
func (p *ledgerPoll) note(err error) {
	was := p.fault.Load()
	switch {
	case err == nil && was != nil:
		p.fault.Store(nil)
		p.log.Info("the ledger is readable again", "task", p.task.String())
	case err != nil && (was == nil || (*was).Error() != err.Error()):
		p.fault.Store(&err)
		p.log.Error("the ledger cannot be read; what it said before stays in force, and it is read again every "+ControlEvery.String(), "task", p.task.String(), "error", err)
	}
}
