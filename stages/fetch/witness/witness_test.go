package witness

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/stages"
)

func host(n int) Peer {
	name := fmt.Sprintf("h%d.example", n)
	return Peer{Path: IPv4, Origin: "http://" + name, Domain: name, Addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(n)}), 80)}
}

func newWitness(answered int) *Witness {
	w := New(stages.SystemClock{}, slog.New(slog.DiscardHandler))
	w.routed = func(bool) bool { return true }
	for n := range answered {
		w.answeredBy(host(n))
	}
	return w
}

func (w *Witness) answeredBy(p Peer) { w.Answered(p, time.Now(), func() string { return p.Domain }) }

// failed returns a failure of host 99 that ends now.
func failed(change func(*Failure)) Failure {
	f := Failure{Peer: host(99), Began: time.Now(), Ended: time.Now(), Why: "refused"}
	if change != nil {
		change(&f)
	}
	return f
}

var errDown = errors.New("down")

func TestAFailureCountsOnlyIfAWitnessVouches(t *testing.T) {
	v6 := func(f *Failure) {
		f.Path, f.NoNetwork, f.Addr = IPv6, true, netip.MustParseAddrPort("[2001:db8::1]:80")
	}
	v6Silent := func(f *Failure) { v6(f); f.NoNetwork = false }
	unreachable := func(f *Failure) { f.NoNetwork = true }
	translated := func(f *Failure) { f.Path, f.Addr = NAT64, netip.MustParseAddrPort("[64:ff9b::5db8:d822]:80") }
	silent := func(f *Failure) { f.Path, f.NoNetwork = Names, true }
	servfail := func(f *Failure) { f.Path = Names }
	none, only4, only6 := func(bool) bool { return false }, func(v6 bool) bool { return !v6 }, func(v6 bool) bool { return v6 }
	const never = 100 * time.Hour
	for name, tt := range map[string]struct {
		answered int
		change   func(*Failure)
		routed   func(v6 bool) bool
		up       time.Duration // when probes succeed, from the start
		want     Verdict
		took     time.Duration // at most
		away     bool          // whether Away said something
	}{
		"nobody answered before: perhaps all hosts are dead":       {0, nil, nil, never, OfHost, 0, false},
		"two answered: too few to tell":                            {2, nil, nil, never, OfHost, 0, false},
		"several answered, and one still does":                     {5, nil, nil, 0, OfHost, 0, false},
		"several answered, and none does for 25 s":                 {5, nil, nil, 25 * time.Second, Ours, 40 * time.Second, true},
		"several answered, and none does for 20 minutes":           {5, nil, nil, 20 * time.Minute, Ours, 21 * time.Minute, true},
		"the first probe fails, and the next one succeeds":         {5, nil, nil, 2 * time.Second, Ours, 4 * time.Second, false},
		"a machine without IPv6, where nothing answered":           {0, v6, only4, never, OfHost, 0, false},
		"a machine without IPv6, while IPv4 works":                 {5, v6, only4, 0, OfHost, 0, false},
		"a machine without IPv6, while IPv4 is away":               {5, v6, only4, 25 * time.Second, Ours, 40 * time.Second, true},
		"IPv6 that never worked is silent, and IPv4 is away":       {5, v6Silent, nil, 25 * time.Second, Ours, 40 * time.Second, true},
		"NAT64 that never worked, while IPv4 works":                {5, translated, nil, 0, OfHost, 0, false},
		"NAT64 that never worked, while IPv4 is away":              {5, translated, nil, 25 * time.Second, Ours, 40 * time.Second, true},
		"a machine without any network":                            {0, v6, none, 25 * time.Second, Ours, 40 * time.Second, true},
		"a router far away has no route":                           {0, unreachable, only4, never, OfHost, 0, false},
		"a machine without IPv4, where nothing answered":           {0, unreachable, only6, never, OfHost, 0, false},
		"no route, from the start":                                 {0, unreachable, none, 25 * time.Second, Ours, 40 * time.Second, true},
		"no route to IPv4 any more":                                {1, unreachable, only6, 25 * time.Second, Ours, 40 * time.Second, true},
		"no name server":                                           {0, silent, nil, 25 * time.Second, Ours, 40 * time.Second, true},
		"a name server that answers only for its top-level domain": {0, silent, nil, 0, OfHost, 0, false},
		"a stub that answers SERVFAIL without a network":           {0, servfail, none, 25 * time.Second, Ours, 40 * time.Second, true},
		"a name server that answers from memory, IPv4 is away":     {5, servfail, nil, 25 * time.Second, Ours, 40 * time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWitness(tt.answered)
				if tt.routed != nil {
					w.routed = tt.routed
				}
				time.Sleep(time.Minute)
				start, told := time.Now(), false
				last := map[Peer]time.Time{}
				v, err := w.Judge(t.Context(), failed(tt.change), func(_ context.Context, p Peer) (bool, error) {
					if at, ok := last[p]; ok && time.Since(at) < anyGap {
						t.Errorf("%s was probed %v after the last time", p.Origin, time.Since(at))
					}
					if p.Path == Names && p.Origin != "example" {
						t.Errorf("%s was asked for", p.Origin)
					}
					last[p] = time.Now()
					if _, ok := w.Away(); ok {
						told = true
					}
					if time.Since(start) < tt.up {
						return true, errDown
					}
					return false, nil
				})
				if took := time.Since(start); v != tt.want || err != nil || took > tt.took || told != tt.away {
					t.Errorf("verdict %d, %v after %v, away %t", v, err, took, told)
				}
				if _, ok := w.Away(); ok {
					t.Error("it is still away")
				}
			})
		})
	}
}

// IPv6 works on while the translator does not.
func TestNAT64IsAwayWhileIPv6Works(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWitness(0)
		for n := range 5 {
			p := host(n)
			p.Path = NAT64
			w.answeredBy(p)
		}
		six := Peer{Path: IPv6, Origin: "http://six.example", Domain: "six.example", Addr: netip.MustParseAddrPort("[2001:db8::6]:80")}
		time.Sleep(time.Minute)
		start := time.Now()
		v, err := w.Judge(t.Context(), failed(func(f *Failure) { f.Path = NAT64 }), func(_ context.Context, p Peer) (bool, error) {
			w.answeredBy(six)
			if p.Path != NAT64 {
				t.Errorf("%s was probed", p.Origin)
			}
			if wait, ok := w.Away(); ok && !strings.Contains(wait.Why, "check the translator") {
				t.Error(wait.Why)
			}
			if time.Since(start) < 25*time.Second {
				return false, errDown
			}
			return false, nil
		})
		if took := time.Since(start); v != Ours || err != nil || took < 25*time.Second || took > 40*time.Second {
			t.Errorf("verdict %d, %v after %v", v, err, took)
		}
	})
}

// The route comes back, but the host that failed is dead.
func TestANetworkIsBackIfAProbeMeetsAnotherError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWitness(0)
		w.routed = func(bool) bool { return false }
		start := time.Now()
		refused := func(context.Context, Peer) (bool, error) { return time.Since(start) < time.Minute, errDown }
		v, err := w.Judge(t.Context(), failed(func(f *Failure) { f.NoNetwork = true }), refused)
		if d := time.Since(start); v != Ours || err != nil || d > 70*time.Second {
			t.Errorf("verdict %d, %v after %v", v, err, d)
		}
		time.Sleep(time.Second)
		if v, err := w.Judge(t.Context(), failed(nil), refused); v != OfHost || err != nil {
			t.Errorf("then: verdict %d, %v", v, err)
		}
	})
}

// IPv6 worked once and is gone for good. IPv4 works.
func TestAFamilyThatIsGoneDoesNotEndTheTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWitness(5)
		w.routed = func(v6 bool) bool { return !v6 }
		v6 := Peer{Path: IPv6, Origin: "http://six.example", Domain: "six.example", Addr: netip.MustParseAddrPort("[2001:db8::6]:80")}
		w.answeredBy(v6)
		w.Restore([]manifest.Answerer{{Path: "ipv6", Origin: "http://other.example", Domain: "other.example", Address: "[2001:db8::7]:80"}})
		go func() {
			for t.Context().Err() == nil {
				time.Sleep(time.Second)
				w.answeredBy(host(1))
			}
		}()
		f := failed(func(f *Failure) { f.Path, f.NoNetwork = IPv6, true })
		v, err := w.Judge(t.Context(), f, func(context.Context, Peer) (bool, error) { return true, errDown })
		if v != OfHost || err != nil {
			t.Errorf("verdict %d, %v", v, err)
		}
	})
}

func TestStaleAndBarredPeersAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWitness(6)
		time.Sleep(time.Minute)
		v, err := w.Judge(t.Context(), failed(nil), func(_ context.Context, p Peer) (bool, error) {
			switch p.Origin {
			case "http://h0.example":
				return false, errDown
			case "http://h1.example":
				return false, ErrUnfit
			}
			return false, nil
		})
		if v != Ours || err != nil || len(w.paths[IPv4].peers) != 4 { // perhaps it was a brief outage
			t.Errorf("verdict %d, %v, %d peers", v, err, len(w.paths[IPv4].peers))
		}
		for n := range 200 { // one domain with many addresses
			p := host(100)
			p.Addr = netip.AddrPortFrom(netip.AddrFrom4([4]byte{198, 51, 100, byte(n)}), 80)
			w.answeredBy(p)
			time.Sleep(2 * time.Second)
		}
		f := failed(nil)
		if at := &w.paths[IPv4]; !at.tells(&f) || len(at.peers) != keptPeers || len(w.Stored()) != 5 {
			t.Errorf("%d peers, %d stored", len(at.peers), len(w.Stored()))
		}
	})
}

// Many requests fail at the same time. One of them probes; all get the same verdict.
func TestManyFailuresShareTheProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWitness(10)
		time.Sleep(time.Minute)
		start, probes := time.Now(), 0
		verdicts := make(chan Verdict, 200)
		for range 200 {
			go func() {
				v, err := w.Judge(t.Context(), failed(nil), func(context.Context, Peer) (bool, error) {
					if probes++; time.Since(start) < time.Minute {
						return false, errDown
					}
					return false, nil
				})
				if err != nil {
					t.Error(err)
				}
				verdicts <- v
			}()
		}
		for range 200 {
			if v := <-verdicts; v != Ours {
				t.Errorf("verdict %d", v)
			}
		}
		if d := time.Since(start); probes > 25 || d > 70*time.Second {
			t.Errorf("%d probes in %v", probes, d)
		}
	})
}

// A probe is sent again until the network is back, so that its success says nothing about the time before.
// But a host is not asked again and again because probes meet dead hosts.
func TestABriefOutageIsNoHosts(t *testing.T) {
	for name, probe := range map[string]func(n int) (time.Duration, error){
		"the first packet was lost": func(int) (time.Duration, error) { return 3 * time.Second, nil },
		"every other peer is dead": func(n int) (time.Duration, error) {
			if n%2 == 0 {
				return 0, errDown
			}
			return 0, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWitness(40)
				n := 0
				for i := range briefs + 1 {
					want := Ours
					if i == briefs {
						want = OfHost
					}
					time.Sleep(6 * time.Second)
					v, err := w.Judge(t.Context(), failed(nil), func(context.Context, Peer) (bool, error) {
						took, err := probe(n)
						n++
						time.Sleep(took)
						return false, err
					})
					if v != want || err != nil {
						t.Errorf("failure %d: verdict %d, %v", i, v, err)
					}
				}
			})
		})
	}
}

// But if the probe under way has already lost a packet, the network was away until the answer.
func TestAnAnswerOfAnotherHostVouches(t *testing.T) {
	for after, want := range map[time.Duration]Verdict{lostPacket / 2: OfHost, 2 * lostPacket: Ours} {
		synctest.Test(t, func(t *testing.T) {
			w := newWitness(5)
			time.Sleep(time.Minute)
			time.AfterFunc(after, func() { w.answeredBy(host(2)) })
			start := time.Now()
			v, err := w.Judge(t.Context(), failed(nil), func(ctx context.Context, _ Peer) (bool, error) { <-ctx.Done(); return false, ctx.Err() })
			if v != want || err != nil || time.Since(start) != after {
				t.Errorf("verdict %d, %v after %v", v, err, time.Since(start))
			}
		})
	}
}

func TestThePatienceEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWitness(5)
		w.routed = func(bool) bool { return false }
		time.Sleep(time.Minute)
		start := time.Now()
		_, err := w.Judge(t.Context(), failed(func(f *Failure) { f.NoNetwork = true }), func(context.Context, Peer) (bool, error) { return true, errDown })
		if d := time.Since(start); !errors.Is(err, ErrAway) || !errors.Is(err, stages.ErrInterrupted) || d < Patience || d > Patience+time.Minute {
			t.Errorf("%v after %v", err, d)
		}
		start = time.Now()
		for err = nil; err == nil; {
			err = w.Lack(t.Context(), "too many open files: raise the limit", errDown)
		}
		if d := time.Since(start); !errors.Is(err, ErrAway) || d < Patience || d > Patience+time.Minute {
			t.Errorf("%v after %v", err, d)
		}
	})
}

// What a checkpoint holds makes a new process as wise as the old one.
func TestPeersSurviveARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old := newWitness(100)
		time.Sleep(time.Minute)
		old.answeredBy(Peer{Path: Names, Origin: "a.example", Domain: "a.example"})
		w := newWitness(0)
		w.Restore(old.Stored())
		w.Restore(old.Stored())
		if d := cmp.Diff(old.Stored(), w.Stored()); d != "" {
			t.Error(d)
		}
		start := time.Now()
		v, err := w.Judge(t.Context(), failed(nil), func(context.Context, Peer) (bool, error) {
			if time.Since(start) < time.Minute {
				return false, errDown
			}
			return false, nil
		})
		if v != Ours || err != nil {
			t.Errorf("verdict %d, %v", v, err)
		}
		if (*Witness)(nil).Stored() != nil {
			t.Error("a nil witness has peers")
		}
	})
}
