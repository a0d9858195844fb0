package worker

import (
	"sync"

	"crawlbatch.io/crawlbatch/stages/fetch"
)

// Reloads passes new politeness to fetch tasks that run or start later. The zero value of Reloads
// is ready to use.
type Reloads struct {
	mu     sync.Mutex
	latest *fetch.Revision
	tasks  map[chan fetch.Revision]bool
}

// Publish replaces the politeness of all running and later tasks.
func (r *Reloads) Publish(c fetch.Revision) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.latest = &c
	for task := range r.tasks {
		offer(task, c)
	}
}

// subscribe returns a channel of new politeness for a task, and a function that ends the subscription.
// If r is nil, nothing is published.
func (r *Reloads) subscribe() (chan fetch.Revision, func()) {
	task := make(chan fetch.Revision, 1)
	if r == nil {
		return task, func() {}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.tasks == nil {
		r.tasks = map[chan fetch.Revision]bool{}
	}
	r.tasks[task] = true
	if r.latest != nil {
		offer(task, *r.latest)
	}
	return task, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.tasks, task)
	}
}

// offer puts the newest value into the channel in place of a value that the task has not read yet, so
// that it never waits for the task.
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
