// Package polite decides when a request may be sent, and to which host.
// It paces hosts and addresses, holds back those that ask for it, suspends those that
// fail, and picks the host that gets the next free slot.
//
// In: hosts with their planned rows in order of priority, the politeness config,
// and for every request when it was written and how it ended. Out: grants, each
// the right to send one request to one host.
//
// It promises, at any time and whatever the order of events:
//   - two requests to a host are written no closer than the delay in force, and
//     never more of them are in flight than allowed;
//   - two requests to an address are cleared no closer than the delay for it;
//   - a grant is given only when its request may be sent at once, as far as is known:
//     no slot waits for a host, or for an address that others use;
//   - of hosts that are due those with items of a higher priority come more often,
//     and none starves (Band); within a host items come in their order;
//   - a grant is given for every item exactly once, also for those that can no
//     longer be fetched (their grant says why);
//   - the same calls at the same times give the same grants.
//
// The delay in force is the longest of what the config has for the host (its domain,
// its class, the default), its robots.txt (Crawl-delay), its answers (429 and 503 raise
// it, calm lowers it again) and its slowness (Config.SlowFactor). A Retry-After is
// obeyed up to a day. However long a delay is, the host is asked as often as the window
// allows and what is left is given back when nothing more can be due before it closes.
//
// A host that waits costs a heap entry, not a goroutine. The life of a host:
//
//	waiting ─(due)─► ready ─(picked)─► writing ─(Written)─► in flight ─(Done)─► waiting …
//	                   └─(its address is not due)─► parked ─(address due)─► ready
//	waiting ─(too many of its requests failed: Breaker)─► open ─(pause)─► probe ─► waiting, or given up
//
// It imports packages stages (the clock) and formats/manifest (host clocks).
package polite
