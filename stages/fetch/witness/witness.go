// Package witness tells the failure of a host from a failure of the network between this machine and all
// hosts.
//
// A connection that is refused, reset or not answered says only that this machine did not reach the host.
// Whether the host is the cause, another host tells, the witness: one that answers after the failure, or one
// that answered before and still accepts a connection (a probe). A failure counts against its host only then.
// If several hosts that answered before cannot be reached any more, the network is away, and no failure since
// then counts. Nor does it if the network is back before several probes have failed.
//
// The input is each answer and each failed request of the fetch tasks of a process. The output is a Verdict.
// Answers are kept apart by Path, because IPv6 may fail while IPv4 works. A Witness opens no connection
// itself: the caller of Judge gives it a function that probes. A probe sends no request.
//
// What answers in place of all hosts, such as a captive portal or a resolver that knows no name, is a witness
// too and therefore not noticed.
package witness

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/stages"
)

// Path is a way to hosts that may fail by itself.
type Path uint8

// The paths.
const (
	Names   Path = iota // questions to name servers
	IPv4                // connections to IPv4 addresses
	IPv6                // connections to IPv6 addresses
	Proxy               // connections through the proxy
	machine             // resources of this machine, and its connection to the proxy
	paths
)

var pathNames = [paths]string{"names", "ipv4", "ipv6", "proxy", "machine"}

// String returns the name of the path in checkpoints.
func (p Path) String() string { return pathNames[p] }

// Peer is a host that answered, or that failed to.
type Peer struct {
	Path   Path
	Origin string         // such as "https://example.org:443"; for Names, the name
	Domain string         // registered domain
	Addr   netip.AddrPort // address that answered; invalid for Names, and for Proxy
}

// Failure is a request without an answer.
type Failure struct {
	Peer
	Began, Ended time.Time
	// NoNetwork says that the request failed before anything was sent to a host: this machine has no network
	// of the family, or no name server answered.
	NoNetwork bool
	Why       string // the error, for people
}

// Verdict says whose failure it was.
type Verdict uint8

// The verdicts.
const (
	OfHost Verdict = iota // the network worked: the failure counts
	Ours                  // the network was away: the request is made again
)

const (
	keptPeers   = 64               // peers that a path remembers
	storedPeers = 8                // peers of a path that a checkpoint has
	doubted     = 3                // peers of different domains that must fail before the network is called away
	probeGap    = 10 * time.Second // shortest time between two probes of the same peer
	anyGap      = probeGap / 3     // shortest time between two probes
	probeTime   = 10 * time.Second // time limit of a probe
	retryGap    = 5 * time.Second  // wait for resources of this machine before a request is made again
	quiet       = 2 * time.Second  // a shorter failure of this machine is not logged
	lostPacket  = time.Second      // a probe that takes so long sent its first packet in vain (RFC 6298)
	briefs      = 5                // outages in a row that may end before enough probes failed
	briefGap    = time.Minute      // time after which there may be one more
)

// Patience is how long requests wait for the network before they end with ErrAway.
const Patience = 30 * time.Minute

// ErrAway means that the network, or what a request needs of this machine, was away for Patience. It wraps
// stages.ErrInterrupted, because a later attempt may succeed.
var ErrAway = fmt.Errorf("nothing could be fetched for %v: %w", Patience, stages.ErrInterrupted)

// Witness judges the failures of one process. A nil Witness blames the host for each. It is safe for
// concurrent use.
type Witness struct {
	clock stages.Clock
	log   *slog.Logger
	// routed reports whether this machine has a route to the addresses of a family.
	routed func(v6 bool) bool

	mu      sync.Mutex
	paths   [paths]path
	waiting []context.CancelFunc // end the sleep of calls that wait for a change
}

// path is the state of a Path.
type path struct {
	peers    []*peer
	added    time.Time // when peers changed
	answered time.Time // last answer, or end of the last probe that succeeded

	refuted map[string]bool    // domains whose probes failed since the last answer
	began   time.Time          // when the first request failed that led to these probes
	probing context.CancelFunc // ends the probe under way; nil if there is none
	probed  time.Time          // when the last probe began

	away time.Time // since when the path is away; zero if it is not
	why  string
	told bool      // whether away was logged
	back time.Time // when it was away last; zero if never

	spent time.Time // when all brief outages will be forgotten; see brief
}

type peer struct {
	Peer
	probed time.Time
}

// New returns a Witness that knows no peer.
func New(clock stages.Clock, log *slog.Logger) *Witness {
	return &Witness{clock: clock, log: log, routed: routed}
}

// routed asks the routing table: connecting a UDP socket sends nothing.
func routed(v6 bool) bool {
	network, address := "udp4", "192.0.2.1:9"
	if v6 {
		network, address = "udp6", "[2001:db8::1]:9"
	}
	c, err := net.Dial(network, address)
	if err != nil {
		return false
	}
	c.Close()
	return true
}

// Answered notes that a host or a name server answered. domain is called if the peer is new.
func (w *Witness) Answered(p Peer, domain func() string) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.clock.Now()
	w.answer(p.Path, now)
	if p.Path != Names {
		w.answer(machine, now)
	}
	at := &w.paths[p.Path]
	if len(at.peers) == keptPeers && now.Sub(at.added) < time.Second {
		return
	}
	for _, known := range at.peers {
		if known.Addr == p.Addr && (p.Addr.IsValid() || known.Origin == p.Origin) {
			return
		}
	}
	p.Domain = domain()
	w.keep(p, now)
}

// keep adds a peer, in place of the oldest one of a full path.
func (w *Witness) keep(p Peer, now time.Time) {
	at := &w.paths[p.Path]
	if len(at.peers) == keptPeers {
		at.peers = append(at.peers[:0], at.peers[1:]...)
	}
	at.peers, at.added = append(at.peers, &peer{Peer: p}), now
}

// answer notes that a path works. The caller holds w.mu.
func (w *Witness) answer(p Path, now time.Time) {
	at := &w.paths[p]
	if len(at.refuted) > 0 || at.probing != nil && now.Sub(at.probed) >= lostPacket {
		at.brief(now)
	}
	at.answered, at.refuted = now, nil
	if at.probing != nil {
		at.probing() // nobody needs its result
	}
	if !at.away.IsZero() {
		if at.told {
			w.log.Info("fetching goes on", "after", now.Sub(at.away).Round(time.Second), "path", p.String())
		}
		at.away, at.back, at.told = time.Time{}, now, false
	}
	for _, wake := range w.waiting {
		wake()
	}
	w.waiting = w.waiting[:0]
}

// brief notes that the path was away perhaps, and is back: a probe failed, or its first packet was lost, and
// now it succeeds, or somebody else answers. Requests that failed meanwhile are made again. Probes may fail as well because their
// peers are dead, or be slow because everything is. So only a few such outages in a row count.
func (at *path) brief(now time.Time) {
	if at.spent.Sub(now) > (briefs-1)*briefGap {
		return
	}
	if at.spent.Before(now) {
		at.spent = now
	}
	at.spent, at.back = at.spent.Add(briefGap), now
}

// Judge waits until it is known whose failure f was. If the network is away, Judge waits until it is back.
// probe connects to a peer, or asks for its name. The error is that of ctx, or ErrAway.
func (w *Witness) Judge(ctx context.Context, f Failure, probe func(context.Context, Peer) error) (Verdict, error) {
	if w == nil {
		return OfHost, nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	at := &w.paths[f.Path]
	for {
		now := w.clock.Now()
		switch {
		case ctx.Err() != nil:
			return Ours, ctx.Err()
		case !at.away.IsZero() && now.Sub(at.away) >= Patience:
			return Ours, fmt.Errorf("%s: %w", at.why, ErrAway)
		case !at.away.IsZero():
		case !at.back.IsZero() && !at.back.Before(f.Began):
			return Ours, nil
		case !at.answered.IsZero() && !at.answered.Before(f.Ended), !w.tells(at, &f):
			return OfHost, nil
		}
		next, due := at.next(&f)
		if at.probing != nil || due.After(now) {
			w.wait(ctx, max(due.Sub(now), anyGap/10))
			continue
		}
		w.probe(ctx, at, &f, next, probe)
	}
}

// tells reports whether probes can tell that the network is the cause of f. If too few other hosts have
// answered, they cannot: a list may name only dead hosts. But if this machine has no network for a family, or
// hears no name server, the cause is clear, unless it never had IPv6, or never had IPv4.
func (w *Witness) tells(at *path, f *Failure) bool {
	if !f.NoNetwork {
		others := map[string]bool{}
		for _, p := range at.peers {
			if p.Domain != f.Domain {
				others[p.Domain] = true
			}
		}
		return len(others) >= doubted
	}
	return f.Path == Names || len(at.peers) > 0 || !w.routed(f.Path == IPv4)
}

// next returns the peer to probe and the earliest time for it: of the peers of other domains, the one whose
// domain no probe has refuted, and whose last probe is longest ago. Without such a peer, it is that of f.
func (at *path) next(f *Failure) (Peer, time.Time) {
	var best *peer
	for _, p := range at.peers {
		switch {
		case p.Domain == f.Domain:
		case best == nil,
			at.refuted[best.Domain] && !at.refuted[p.Domain],
			at.refuted[best.Domain] == at.refuted[p.Domain] && p.probed.Before(best.probed):
			best = p
		}
	}
	due := at.probed.Add(anyGap)
	if best == nil {
		return f.Peer, due
	}
	if own := best.probed.Add(probeGap); own.After(due) {
		due = own
	}
	return best.Peer, due
}

// probe probes a peer. The caller holds w.mu, which is free meanwhile.
func (w *Witness) probe(ctx context.Context, at *path, f *Failure, p Peer, probe func(context.Context, Peer) error) {
	began := w.clock.Now()
	limited, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	at.probing, at.probed = cancel, began
	for _, known := range at.peers {
		if known.Peer == p {
			known.probed = began
		}
	}
	w.mu.Unlock()
	err := probe(limited, p)
	w.mu.Lock()
	at.probing = nil
	switch {
	case err == nil:
		now := w.clock.Now()
		if now.Sub(began) >= lostPacket {
			at.brief(now)
		}
		w.answer(f.Path, now)
		return
	case ctx.Err() != nil, !at.answered.Before(began): // the probe was broken off
	default:
		if len(at.refuted) == 0 {
			at.refuted, at.began = map[string]bool{}, f.Began
		}
		at.refuted[p.Domain] = true
		if at.away.IsZero() && (f.NoNetwork || len(at.refuted) >= doubted) {
			w.leave(f.Path, at.began, f.words(), f.Why)
		}
	}
	for _, wake := range w.waiting {
		wake()
	}
	w.waiting = w.waiting[:0]
}

// words says what is away, and what to do.
func (f *Failure) words() string {
	switch {
	case f.Path == Names && f.NoNetwork:
		return "no name server answers: check the network and /etc/resolv.conf, or set fetch.resolvers"
	case f.Path == Names:
		return "the name servers find no name any more: check them, or set fetch.resolvers"
	case f.Path == Proxy:
		return "the proxy reaches no host that answered before: check the proxy and its network"
	case f.NoNetwork:
		return "this machine has no network: check its interfaces and routes"
	}
	return "no host that answered before can be reached: check this machine's network and its firewall"
}

// leave notes that a path is away since the given time.
func (w *Witness) leave(p Path, since time.Time, why, failure string) {
	at := &w.paths[p]
	at.away, at.why, at.told = since, fmt.Sprintf("%s (%s)", why, failure), true
	w.log.Warn("fetching waits: "+why, "error", failure, "since", since)
}

// wait frees w.mu until something changes, ctx ends or d has passed.
func (w *Witness) wait(ctx context.Context, d time.Duration) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w.waiting = append(w.waiting, cancel)
	w.mu.Unlock()
	_ = w.clock.Sleep(ctx, d) // the loop of the caller looks at what has changed
	w.mu.Lock()
}

// Lack waits after a request that this machine could not make, as why says, before it is made again. The
// error is that of ctx, or ErrAway.
func (w *Witness) Lack(ctx context.Context, why string, err error) error {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	at := &w.paths[machine]
	now := w.clock.Now()
	switch {
	case at.away.IsZero():
		at.away, at.why = now, fmt.Sprintf("%s (%v)", why, err)
	case now.Sub(at.away) >= Patience:
		return fmt.Errorf("%s: %w", at.why, ErrAway)
	case !at.told && now.Sub(at.away) >= quiet:
		at.told = true
		w.log.Warn("fetching waits: "+why, "error", err, "since", at.away)
	}
	w.mu.Unlock()
	err = w.clock.Sleep(ctx, retryGap)
	w.mu.Lock()
	return err
}

// Away says what fetching waits for, and until when. It returns false if it does not wait.
func (w *Witness) Away() (stages.Wait, bool) {
	if w == nil {
		return stages.Wait{}, false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, at := range w.paths {
		if !at.away.IsZero() && at.told {
			return stages.Wait{Why: at.why + "; the fetcher keeps trying, and gives up", Until: at.away.Add(Patience)}, true
		}
	}
	return stages.Wait{}, false
}

// Stored returns the newest peers of each path for a checkpoint.
func (w *Witness) Stored() (out []manifest.Answerer) {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, at := range w.paths {
		for _, p := range at.peers[max(0, len(at.peers)-storedPeers):] {
			a := manifest.Answerer{Path: p.Path.String(), Origin: p.Origin, Domain: p.Domain}
			if p.Addr.IsValid() {
				a.Address = p.Addr.String()
			}
			out = append(out, a)
		}
	}
	return out
}

// Restore adds stored peers to the paths that have room.
func (w *Witness) Restore(stored []manifest.Answerer) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, k := range stored {
		i := slices.Index(pathNames[:], k.Path)
		if i < 0 || Path(i) >= machine || len(w.paths[i].peers) == keptPeers {
			continue
		}
		p := Peer{Path: Path(i), Origin: k.Origin, Domain: k.Domain}
		p.Addr, _ = netip.ParseAddrPort(k.Address) // without an address, as for Names
		if !slices.ContainsFunc(w.paths[i].peers, func(known *peer) bool { return known.Peer == p }) {
			w.keep(p, w.clock.Now())
		}
	}
}
