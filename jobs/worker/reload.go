package worker

import (
	"sync"

	"crawlbatch.io/crawlbatch/stages/fetch"
)

// Reloads tells the running fetch tasks of this process to read the ledger at once. It carries no
// politeness: only the store knows the newest politeness together with the newest stops. The zero
// value is ready to use.
type Reloads struct {
	mu    sync.Mutex
	tasks map[chan struct{}]bool
}

// Publish tells all running tasks that the store has new politeness.
func (r *Reloads) Publish() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for task := range r.tasks {
		select {
		case task <- struct{}{}:
		default: // the task has not received the last value yet
		}
	}
}

// subscribe returns a channel that tells a task to read the ledger, and a function that ends the
// subscription. If r is nil, the channel never has a value.
func (r *Reloads) subscribe() (<-chan struct{}, func()) {
	task := make(chan struct{}, 1)
	if r == nil {
		return task, func() {}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.tasks == nil {
		r.tasks = map[chan struct{}]bool{}
	}
	r.tasks[task] = true
	return task, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.tasks, task)
	}
}

// offer sends c to a task without waiting for the task. If the channel still holds an older value,
// offer discards that value.
func offer(task chan fetch.Revision, c fetch.Revision) {
	for {
		select {
		case task <- c:
			return
		default:
		}
		select {
		case <-task:
		default:
		}
	}
}
