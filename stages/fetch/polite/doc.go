// Package polite decides when a request may be sent: it paces hosts and
// addresses, holds back those that ask for it, suspends those that fail, and
// picks among the hosts that are due the one that the task would wait for longest.
//
// In: hosts with their planned rows in order of priority, the politeness config,
// and for every request when it was written and how it ended. Out: turns, each
// the right to send one request to one host.
//
// It promises, at any time and whatever the order of events:
//   - two requests to a host are written no closer than the delay in force, and
//     never more of them are in flight than allowed;
//   - two requests to an address are cleared no closer than the delay for it;
//   - a turn is given for every item exactly once, also for those that can no
//     longer be fetched (their turn says why);
//   - the same calls at the same times give the same turns.
//
// A host that waits costs a heap entry, not a goroutine. The life of a host:
//
//	waiting ─(due)─► ready ─(picked)─► writing ─(Written)─► in flight ─(Done)─► waiting …
//	                   └─(its address is not due)─► parked ─(address due)─► ready
//	waiting ─(more than half of its requests failed)─► open ─(pause)─► probe ─► waiting, or given up
//
// It imports package stages for the clock and a hash; nothing else of crawlbatch.
package polite
