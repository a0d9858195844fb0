package wire

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"
)

// serverPatience is how long a name server is waited for when another can be asked.
const serverPatience = 3 * time.Second

// NameServers is a Resolver that asks the given servers, "ADDRESS" or
// "ADDRESS:PORT", in the place of the system's: the first, and each other one when
// those before it gave no answer. That a name does not exist is an answer.
func NameServers(servers ...string) (Resolver, error) {
	var all inTurn
	for _, s := range servers {
		addr, err := netip.ParseAddrPort(s)
		if err != nil {
			a, aerr := netip.ParseAddr(s)
			if aerr != nil {
				return nil, fmt.Errorf("name server %.80q: want ADDRESS or ADDRESS:PORT, IPv6 ones with a port in brackets", s)
			}
			addr = netip.AddrPortFrom(a, 53)
		}
		all = append(all, newSystemResolver(addr.String()))
	}
	if len(all) == 0 {
		return nil, errors.New("no name server is given")
	}
	return all, nil
}

// inTurn asks resolvers one after the other.
type inTurn []Resolver

// Lookup implements Resolver. The error is the first one's.
func (rs inTurn) Lookup(ctx context.Context, host string) (Answer, error) {
	var first error
	for i, r := range rs {
		limited, cancel := ctx, context.CancelFunc(func() {})
		if i < len(rs)-1 {
			limited, cancel = context.WithTimeout(ctx, serverPatience)
		}
		a, err := r.Lookup(limited, host)
		cancel()
		if err == nil || notFound(err) {
			return a, err
		}
		if first == nil {
			first = err
		}
		if ctx.Err() != nil {
			break
		}
	}
	return Answer{}, first
}

// notFound reports whether an error says that a name certainly has no address.
func notFound(err error) bool {
	dns, ok := errors.AsType[*net.DNSError](err)
	return ok && dns.IsNotFound
}
