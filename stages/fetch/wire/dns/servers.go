package dns

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"
)

// serverPatience is how long a look-up waits for a name server before it asks the next one.
const serverPatience = 3 * time.Second

// NameServers returns a Resolver that queries the given servers ("ADDRESS" or "ADDRESS:PORT")
// instead of the system's. It asks a server only if the servers before it gave no answer. "No such
// name" is an answer too.
func NameServers(servers ...string) (Resolver, error) {
	var all sequence
	for _, s := range servers {
		addr, err := netip.ParseAddrPort(s)
		if err != nil {
			a, aerr := netip.ParseAddr(s)
			if aerr != nil {
				return nil, fmt.Errorf("name server %.80q: want ADDRESS or ADDRESS:PORT; an IPv6 address with a port needs brackets", s)
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

// sequence tries resolvers one after the other.
type sequence []Resolver

// Lookup implements Resolver. If all resolvers fail, it returns the error of the first one that sent
// anything, otherwise that of the first.
func (rs sequence) Lookup(ctx context.Context, host string) (Answer, error) {
	var first error
	for i, r := range rs {
		limited, cancel := ctx, context.CancelFunc(func() {})
		if i < len(rs)-1 {
			limited, cancel = context.WithTimeout(ctx, serverPatience)
		}
		a, err := r.Lookup(limited, host)
		cancel()
		if err == nil || IsNotFound(err) {
			return a, err
		}
		if first == nil || errors.Is(first, ErrSilent) && !errors.Is(err, ErrSilent) && ctx.Err() == nil {
			first = err
		}
		if ctx.Err() != nil {
			break
		}
	}
	return Answer{}, first
}
