package request

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"crawlbatch.io/crawlbatch/formats/http1"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/stages/fetch/polite"
	"crawlbatch.io/crawlbatch/stages/fetch/wire"
	"crawlbatch.io/crawlbatch/stages/fetch/wire/dial"
	"crawlbatch.io/crawlbatch/stages/fetch/witness"
)

// judge tells the witness how a request ended. If this machine or its network was the cause of a failure,
// judge waits until requests may succeed again, and makes the request an aborted one, which is repeated.
func (r *Sender) judge(ctx context.Context, g *polite.Grant, s *Sent, begun, ended time.Time) {
	if r.Witness == nil || s.Aborted() {
		return
	}
	side, todo := sideOf(s)
	peer := r.peerOf(s)
	domain := func() string {
		key, _ := urlkey.KeyOf(s.Row.URL) // without a key, the peer counts as one of the domain ""
		return key.Domain
	}
	if side == wire.TheHosts {
		if at := answeredAt(s, ended); !at.IsZero() {
			r.Witness.Answered(peer, at, domain)
		}
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(r.Stopping, cancel)()
	var err error
	if side == wire.Ours {
		err = r.Witness.Lack(ctx, todo, s.Err)
	} else {
		f := witness.Failure{Peer: peer, Began: begun, Ended: ended, Why: "the body broke off"}
		if e, ok := errors.AsType[*wire.Error](s.Err); ok {
			f.NoNetwork, f.Why = e.NoNetwork(), e.Error()
			if e.Phase == wire.PhaseDNS {
				name, _ := urlkey.SplitPort(s.Row.Host)
				f.Peer = witness.Peer{Path: witness.Names, Origin: name}
			}
		}
		f.Domain = domain()
		var verdict witness.Verdict
		if verdict, err = r.Witness.Judge(ctx, f, r.probe); verdict == witness.OfHost {
			return
		}
		g.Sent(ended) // something may have reached the host, so its delay applies
	}
	if errors.Is(err, witness.ErrAway) {
		r.Fail(err)
	}
	if s.Err == nil {
		s.Err = fmt.Errorf("%w: %w", wire.ErrAborted, ErrOurs)
		return
	}
	s.Err = fmt.Errorf("%w: %w: %w", wire.ErrAborted, ErrOurs, s.Err)
}

// sideOf returns the side of how a request ended. todo is for people if the side is wire.Ours.
func sideOf(s *Sent) (side wire.Side, todo string) {
	x := s.Exchange
	switch {
	case s.Err != nil:
		return wire.SideOf(s.Err)
	case forwarded(s) && x.Status == http.StatusProxyAuthRequired:
		return wire.Ours, wire.ProxyCredentials
	case x.BodyTruncated == http1.TruncTime, x.BodyTruncated == http1.TruncDisconnect:
		return wire.Unknown, ""
	}
	return wire.TheHosts, ""
}

// forwarded reports whether the proxy may have answered in place of the server.
func forwarded(s *Sent) bool {
	return s.Exchange.Route == dial.RouteProxy && strings.HasPrefix(s.Row.URL, "http:")
}

// answeredAt returns when the first byte of the host came, or zero if perhaps none came.
func answeredAt(s *Sent, ended time.Time) time.Time {
	x := s.Exchange
	switch {
	case forwarded(s) && x.Status >= 502 && x.Status <= 504:
		return time.Time{}
	case errors.Is(s.Err, wire.ErrTLS):
		return ended
	case x.Timing.FirstByte > 0:
		return x.Start.Add(x.Timing.FirstByte)
	}
	return time.Time{}
}

// peerOf returns the peer of a request. Its domain is empty.
func (r *Sender) peerOf(s *Sent) witness.Peer {
	x := s.Exchange
	_, translated := r.NAT64.Embedded(x.Addr.Addr())
	p := witness.Peer{Path: witness.IPv4, Origin: originOf(s.Row.URL), Addr: x.Addr}
	switch {
	case x.Route == dial.RouteProxy:
		p.Path, p.Addr = witness.Proxy, netip.AddrPort{}
	case translated:
		p.Path = witness.NAT64
	case x.Addr.Addr().Is6():
		p.Path = witness.IPv6
	}
	return p
}

// originOf returns the scheme and the host of a canonical URL.
func originOf(url string) string {
	scheme, rest, _ := strings.Cut(url, "://")
	host, _, _ := strings.Cut(rest, "/")
	return strings.Clone(scheme + "://" + host)
}

// probe connects to a peer, or asks for its name, without a request.
func (r *Sender) probe(ctx context.Context, p witness.Peer) (noNetwork bool, err error) {
	switch {
	case p.Path == witness.Names:
		err = r.Client.HearsNameServers(ctx, p.Origin)
	case r.Barred(p.Origin + "/"):
		return false, witness.ErrUnfit
	default:
		err = r.Client.Reach(ctx, p.Origin, p.Addr)
	}
	e, ok := errors.AsType[*wire.Error](err)
	return ok && e.NoNetwork(), err
}
