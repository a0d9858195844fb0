package wire

import (
	"errors"
	"net"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// A name server that fails is followed by the next; one that says that there is no
// such name is believed.
func TestNameServersAreAskedInTurn(t *testing.T) {
	answer := func(q dnsmessage.Question, b *dnsmessage.Builder) {
		if q.Type == dnsmessage.TypeA && q.Name.String() == "host.test." {
			b.StartAnswers()
			b.AResource(dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: 300}, dnsmessage.AResource{A: [4]byte{93, 184, 216, 34}})
		}
	}
	closed, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	broken := closed.LocalAddr().String()
	closed.Close()
	good := dnsServer(t, false, answer)
	a, err := NameServers([]string{broken, good}).Lookup(t.Context(), "host.test")
	if err != nil || len(a.Addrs) != 1 {
		t.Errorf("%+v, %v", a, err)
	}
	var dns *net.DNSError
	if _, err = NameServers([]string{good, broken}).Lookup(t.Context(), "nowhere.test"); !errors.As(err, &dns) || !dns.IsNotFound {
		t.Errorf("nowhere.test: %v, want not found", err)
	}
}
