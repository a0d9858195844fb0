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
// Answers are kept apart by Path, because IPv6 may fail while IPv4 works, and NAT64 while IPv6 works. Where one
// never worked, another one is judged. A Witness opens no connection itself: the caller of Judge gives it a function that
// probes. A probe sends no request.
//
// What answers in place of all hosts, such as a captive portal or a resolver that knows no name, is a witness
// too and therefore not noticed.
package witness

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
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
	NAT64               // connections to IPv4 addresses through NAT64
	Proxy               // connections through the proxy
	machine             // resources of this machine, and its connection to the proxy
	paths
)

var pathNames = [paths]string{"names", "ipv4", "ipv6", "nat64", "proxy", "machine"}

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
	since   time.Time            // since when at least one path is away; zero if none is
	lost    time.Duration        // time for which at least one path was away before
}

// path is the state of a Path.
type path struct {
	peers    []*peer
	added    time.Time // when peers changed
	answered time.Time // when the first byte of the newest answer came, or a probe succeeded; zero if never in this process

	refuted map[string]bool    // domains whose probes failed since the last answer
	began   time.Time          // when the first request failed that led to these probes
	probing context.CancelFunc // ends the probe under way; nil if there is none
	probed  time.Time          // when the last probe began, or Lack was called last

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

// Answered notes that the first byte of an answer came at the given time, from a host or a name server.
// domain is called if the peer is new.
func (w *Witness) Answered(p Peer, at time.Time, domain func() string) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answer(p.Path, at)
	if p.Path != Names {
		w.answer(machine, at)
	}
	to, now := &w.paths[p.Path], w.clock.Now()
	if len(to.peers) == keptPeers && now.Sub(to.added) < time.Second {
		return
	}
	for _, known := range to.peers {
		if known.Addr == p.Addr && (p.Addr.IsValid() || known.Origin == p.Origin) {
			return
		}
	}
	p.Domain = domain()
	w.keep(p, now)
}

// keep adds a peer. If the path is full, it replaces the oldest peer of the domain that has the most.
func (w *Witness) keep(p Peer, now time.Time) {
	to := &w.paths[p.Path]
	if len(to.peers) == keptPeers {
		of := map[string]int{}
		for _, known := range to.peers {
			of[known.Domain]++
		}
		drop := 0
		for i, known := range to.peers {
			if of[known.Domain] > of[to.peers[drop].Domain] {
				drop = i
			}
		}
		to.peers = slices.Delete(to.peers, drop, drop+1)
	}
	to.peers, to.added = append(to.peers, &peer{Peer: p}), now
}

// answer notes that a path worked at the given time. The caller holds w.mu.
func (w *Witness) answer(p Path, at time.Time) {
	to := &w.paths[p]
	if at.After(to.answered) {
		to.answered = at
	}
	if at.Before(to.probed) && (len(to.refuted) > 0 || to.probing != nil) {
		return // a probe began later
	}
	if now := w.clock.Now(); len(to.refuted) > 0 || to.probing != nil && now.Sub(to.probed) >= lostPacket {
		to.brief(now)
	}
	if to.away.IsZero() {
		// Their addresses may be theirs no more.
		to.peers = slices.DeleteFunc(to.peers, func(p *peer) bool { return to.refuted[p.Domain] })
	}
	if to.probing != nil {
		to.probing() // nobody needs its result
	}
	w.restore(p)
}

// restore notes that a path that may have been away is not. The caller holds w.mu.
func (w *Witness) restore(p Path) {
	to := &w.paths[p]
	to.refuted = nil
	if !to.away.IsZero() {
		now := w.clock.Now()
		if to.told {
			w.log.Info("fetching goes on", "after", now.Sub(to.away).Round(time.Second), "path", p.String())
		}
		to.away, to.back, to.told = time.Time{}, now, false
		if !slices.ContainsFunc(w.paths[:], func(at path) bool { return !at.away.IsZero() }) {
			w.lost += now.Sub(w.since)
			w.since = time.Time{}
		}
	}
	w.wake()
}

// wake ends the sleep of all calls that wait.
func (w *Witness) wake() {
	for _, end := range w.waiting {
		end()
	}
	w.waiting = w.waiting[:0]
}

// Probe connects to a peer, or asks for its name. noNetwork is that of a Failure. If the peer must not be
// probed, err is ErrUnfit.
type Probe func(ctx context.Context, p Peer) (noNetwork bool, err error)

// ErrUnfit means that a peer must not be probed any more.
var ErrUnfit = errors.New("the peer must not be probed")

// brief notes that the path was away perhaps, and is back: a probe failed, or its first packet was lost, and
// now it succeeds, or somebody else answers. Requests that failed meanwhile are made again. Probes may fail as
// well because their peers are dead, or be slow because everything is. So only a few such outages in a row
// count.
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
// The error is that of ctx, or ErrAway.
func (w *Witness) Judge(ctx context.Context, f Failure, probe Probe) (Verdict, error) {
	if w == nil {
		return OfHost, nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if f.Path == Names {
		f.NoNetwork = f.NoNetwork || !w.routed(false) && !w.routed(true)
		v, err := w.judge(ctx, &f, probe)
		if v != OfHost || err != nil {
			return v, err
		}
		// A name server may answer from its memory while the network behind it is away.
		f.Path, f.NoNetwork = w.worked(), false
		return w.judge(ctx, &f, probe)
	}
	if other := w.worked(); f.Path != Proxy && other != Proxy && w.paths[f.Path].answered.IsZero() && !w.paths[other].answered.IsZero() {
		f.Path, f.NoNetwork = other, false // this machine has no network of that family, or no NAT64
	}
	// A router far away may say that it has no route either. And a machine may lack one of the families.
	f.NoNetwork = f.NoNetwork && !w.routed(f.Path == IPv6 || f.Path == NAT64) && (len(w.paths[f.Path].peers) > 0 || !w.routed(f.Path == IPv4))
	return w.judge(ctx, &f, probe)
}

// worked returns the path of connections on which the newest answer came.
func (w *Witness) worked() Path {
	newest := IPv4
	for _, p := range []Path{IPv6, NAT64, Proxy} {
		if w.paths[p].answered.After(w.paths[newest].answered) {
			newest = p
		}
	}
	return newest
}

func (w *Witness) judge(ctx context.Context, f *Failure, probe Probe) (Verdict, error) {
	at := &w.paths[f.Path]
	for {
		now := w.clock.Now()
		switch {
		case ctx.Err() != nil:
			return Ours, ctx.Err()
		case !at.away.IsZero() && now.Sub(at.away) >= Patience:
			if f.Path != Names && w.paths[w.worked()].answered.After(at.away) {
				return OfHost, nil // hosts on another path answer
			}
			return Ours, fmt.Errorf("%s: %w", at.why, ErrAway)
		case !at.away.IsZero():
		case !at.back.IsZero() && !at.back.Before(f.Began):
			return Ours, nil
		case !at.answered.IsZero() && !at.answered.Before(f.Ended), !f.NoNetwork && !at.tells(f):
			return OfHost, nil
		}
		next, due := at.next(f)
		if at.probing != nil || due.After(now) {
			w.wait(ctx, max(due.Sub(now), anyGap/10))
			continue
		}
		w.probe(ctx, at, f, next, probe)
	}
}

// tells reports whether enough hosts of other domains have answered for their silence to tell something. A
// list may name only dead hosts.
func (at *path) tells(f *Failure) bool {
	others := map[string]bool{}
	for _, p := range at.peers {
		if p.Domain != f.Domain {
			others[p.Domain] = true
		}
	}
	return len(others) >= doubted
}

// next returns the peer to probe and the earliest time for it: of the peers of other domains, the one whose
// domain no probe has refuted, and whose last probe is longest ago. Without such a peer, it is the host that
// failed, or the top-level domain of its name, which every name server knows.
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
	if best != nil {
		if own := best.probed.Add(probeGap); own.After(due) {
			due = own
		}
		return best.Peer, due
	}
	self := f.Peer
	if f.Path == Names {
		self.Origin = self.Origin[strings.LastIndexByte(self.Origin, '.')+1:]
	}
	return self, due
}

// probe probes a peer. The caller holds w.mu, which is free meanwhile.
func (w *Witness) probe(ctx context.Context, at *path, f *Failure, p Peer, probe Probe) {
	began := w.clock.Now()
	limited, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	at.probing, at.probed = cancel, began
	for _, known := range at.peers {
		if known.Domain == p.Domain {
			known.probed = began
		}
	}
	noNetwork, err := w.unlocked(limited, p, probe)
	at.probing = nil
	switch {
	case err == nil:
		now := w.clock.Now()
		if now.Sub(began) >= lostPacket {
			at.brief(now)
		}
		w.answer(f.Path, now)
	case errors.Is(err, ErrUnfit):
		at.peers = slices.DeleteFunc(at.peers, func(known *peer) bool { return known.Peer == p })
	case ctx.Err() != nil, !at.answered.Before(began): // the probe was broken off
	case f.NoNetwork && !noNetwork:
		w.restore(f.Path)
		at.back = w.clock.Now() // so that f is made again
	default:
		if len(at.refuted) == 0 {
			at.refuted, at.began = map[string]bool{}, f.Began
		}
		at.refuted[p.Domain] = true
		if at.away.IsZero() && (f.NoNetwork || len(at.refuted) >= doubted) {
			w.leave(f.Path, at.began, f.words(), f.Why)
		}
	}
	w.wake()
}

// unlocked calls probe without the lock.
func (w *Witness) unlocked(ctx context.Context, p Peer, probe Probe) (bool, error) {
	w.mu.Unlock()
	defer w.mu.Lock()
	return probe(ctx, p)
}

// words says what is away, and what to do.
func (f *Failure) words() string {
	switch {
	case f.Path == Names:
		return "no name server answers, or none finds a name any more: check the network and the servers (fetch.resolvers, or /etc/resolv.conf)"
	case f.Path == Proxy:
		return "the proxy reaches no host that answered before: check the proxy and its network"
	case f.NoNetwork:
		return "this machine has no network: check its interfaces and routes"
	case f.Path == NAT64:
		return "no host that answered through NAT64 before can be reached: check the translator"
	}
	return "no host that answered before can be reached: check this machine's network and its firewall"
}

// leave notes that a path is away since the given time.
func (w *Witness) leave(p Path, since time.Time, why, failure string) {
	at := &w.paths[p]
	at.why, at.told = fmt.Sprintf("%s (%s)", why, failure), true
	w.setAway(at, since)
	w.log.Warn("fetching waits: "+why, "error", failure, "since", since)
}

func (w *Witness) setAway(at *path, since time.Time) {
	at.away = since
	if w.since.IsZero() {
		w.since = since
	}
}

// Lost returns for how long all paths together were away, that is, nothing could be fetched.
func (w *Witness) Lost() time.Duration {
	if w == nil {
		return 0
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.since.IsZero() {
		return w.lost
	}
	return w.lost + w.clock.Now().Sub(w.since)
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
	if now.Sub(at.probed) > 10*retryGap {
		w.restore(machine) // the last failure was another one
	}
	at.probed = now
	switch {
	case at.away.IsZero():
		at.why = fmt.Sprintf("%s (%v)", why, err)
		w.setAway(at, now)
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

// Stored returns the newest peers of each path, one of a domain, for a checkpoint.
func (w *Witness) Stored() (out []manifest.Answerer) {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, at := range w.paths {
		domains := map[string]bool{}
		for _, p := range slices.Backward(at.peers) {
			if domains[p.Domain] || len(domains) == storedPeers {
				continue
			}
			domains[p.Domain] = true
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
	for _, k := range slices.Backward(stored) { // the oldest first
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
