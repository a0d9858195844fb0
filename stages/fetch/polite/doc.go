// Package polite decides when a request may be sent, and to which host. Its Scheduler paces hosts
// and IP addresses, obeys Retry-After, suspends hosts that fail, and picks the host that gets the
// next free slot.
//
// The Scheduler takes the politeness config and the hosts. Each host has its planned rows in order
// of priority. The caller reports when each request was written and how it ended. The Scheduler
// returns grants. Each grant allows one request to one host.
//
// For every order of events, the scheduler promises:
//   - two requests to a host are written no closer together than the host's delay, and the number
//     of requests in flight to a host stays within its limit;
//   - two requests to an address are written no closer together than the delay per address, and both
//     delays hold for all Schedulers with the same Clocks;
//   - a grant is given only when no reason that the Scheduler knows makes the request wait, so no
//     slot waits for a host or for an address that several hosts share;
//   - due hosts with items of higher priority get grants more often, and no host starves (Band);
//     the items of one host come in the order of its queue;
//   - every item gets exactly one grant, and the grant of an item that can no longer be fetched
//     says why;
//   - the same calls at the same times give the same grants.
//
// The delay of a host is the longest of four delays: the configured one (domain, class or default),
// the Crawl-delay in robots.txt, the raised delay after 429 or 503, and the delay of a slow host
// (Config.SlowFactor). Other responses lower a raised delay again. A Retry-After is obeyed up to a
// day. A host with a long delay gets as many requests as fit into the crawl window; its other items
// get grants of kind Closed.
//
// A waiting host costs a heap entry, not a goroutine. The diagram shows the life of a host:
//
//	waiting ─(due)─► ready ─(picked)─► writing ─(Written)─► in flight ─(Done)─► waiting …
//	                   └─(its address is not due)─► parked ─(address due)─► ready
//	waiting ─(too many of its requests failed: Breaker)─► open ─(pause)─► probe ─► waiting, or given up
//
// Package polite imports packages stages (the clock) and formats/manifest (host clocks).
package polite
