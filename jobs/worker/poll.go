package worker

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"

	"crawlbatch.io/crawlbatch/formats/manifest"
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
	if ctx.Err() != nil || errors.Is(err, store.ErrUnavailable) { // store.GetNew reports a store that does not answer
		return nil
	}
	if p.note(err); err != nil || l == p.known {
		return nil
	}
	p.known = l
	return l
}

// over returns the fault of the last read if the crawl cannot go on in this process: the store has no such
// crawl any more, or it has another format. A task that is started again ends in the same way.
func (p *ledgerPoll) over() error {
	if err := p.fault.Load(); err != nil && (errors.Is(*err, ledger.ErrNoCrawl) || errors.Is(*err, ledger.ErrPruned) || errors.Is(*err, manifest.ErrFormat)) {
		return *err
	}
	return nil
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
