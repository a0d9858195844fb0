package witness

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

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

func (w *Witness) answeredBy(p Peer) { w.Answered(p, func() string { return p.Domain }) }

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
	unreachable := func(f *Failure) { f.NoNetwork = true }
	silent := func(f *Failure) { f.Path, f.NoNetwork = Names, true }
	for name, tt := range map[string]struct {
		answered int
		change   func(*Failure)
		routed   func(v6 bool) bool
		up       time.Duration // when probes succeed, from the start
		want     Verdict
		took     time.Duration // at most
		away     bool          // whether Away said something
	}{
		"nobody answered before: perhaps all hosts are dead":         {0, nil, nil, time.Hour, OfHost, 0, false},
		"two answered: too few to tell":                              {2, nil, nil, time.Hour, OfHost, 0, false},
		"several answered, and one still does":                       {5, nil, nil, 0, OfHost, 0, false},
		"several answered, and none does for 25 s":                   {5, nil, nil, 25 * time.Second, Ours, 40 * time.Second, true},
		"several answered, and none does for 20 minutes":             {5, nil, nil, 20 * time.Minute, Ours, 21 * time.Minute, true},
		"the first probe fails, and the next one succeeds":           {5, nil, nil, 2 * time.Second, Ours, 4 * time.Second, false},
		"a machine without IPv6":                                     {0, v6, func(v6 bool) bool { return !v6 }, time.Hour, OfHost, 0, false},
		"a machine without any network":                              {0, v6, func(bool) bool { return false }, 25 * time.Second, Ours, 40 * time.Second, true},
		"IPv4 never worked here, but IPv6 does":                      {0, unreachable, func(v6 bool) bool { return v6 }, time.Hour, OfHost, 0, false},
		"no route, from the start":                                   {0, unreachable, func(bool) bool { return false }, 25 * time.Second, Ours, 40 * time.Second, true},
		"no route to IPv4 any more":                                  {1, unreachable, func(v6 bool) bool { return v6 }, 25 * time.Second, Ours, 40 * time.Second, true},
		"no name server":                                             {0, silent, nil, 25 * time.Second, Ours, 40 * time.Second, true},
		"a name for which the name server is silent, asked again":    {0, silent, nil, 0, OfHost, 0, false},
		"no network, which is back before anybody could say so":      {5, unreachable, nil, 0, OfHost, 0, false},
		"nobody else answers over this family, and a probe succeeds": {0, v6, nil, 0, OfHost, 0, false},
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
				v, err := w.Judge(t.Context(), failed(tt.change), func(_ context.Context, p Peer) error {
					if at, ok := last[p]; ok && time.Since(at) < anyGap {
						t.Errorf("%s was probed %v after the last time", p.Origin, time.Since(at))
					}
					last[p] = time.Now()
					if _, ok := w.Away(); ok {
						told = true
					}
					if time.Since(start) < tt.up {
						return errDown
					}
					return nil
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

// Many requests fail at the same time. One of them probes; all get the same verdict.
func TestManyFailuresShareTheProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWitness(10)
		time.Sleep(time.Minute)
		start, probes := time.Now(), 0
		verdicts := make(chan Verdict, 200)
		for range 200 {
			go func() {
				v, err := w.Judge(t.Context(), failed(nil), func(context.Context, Peer) error {
					if probes++; time.Since(start) < time.Minute {
						return errDown
					}
					return nil
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
				w := newWitness(5)
				n := 0
				for i := range briefs + 1 {
					want := Ours
					if i == briefs {
						want = OfHost
					}
					time.Sleep(6 * time.Second)
					v, err := w.Judge(t.Context(), failed(nil), func(context.Context, Peer) error {
						took, err := probe(n)
						n++
						time.Sleep(took)
						return err
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
			v, err := w.Judge(t.Context(), failed(nil), func(ctx context.Context, _ Peer) error { <-ctx.Done(); return ctx.Err() })
			if v != want || err != nil || time.Since(start) != after {
				t.Errorf("verdict %d, %v after %v", v, err, time.Since(start))
			}
		})
	}
}

func TestThePatienceEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWitness(5)
		start := time.Now()
		_, err := w.Judge(t.Context(), failed(func(f *Failure) { f.NoNetwork, f.Ended = true, start.Add(time.Second) }), func(context.Context, Peer) error { return errDown })
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
		old.answeredBy(Peer{Path: Names, Origin: "a.example", Domain: "a.example"})
		w := newWitness(0)
		w.Restore(old.Stored())
		w.Restore(old.Stored())
		if d := cmp.Diff(old.Stored(), w.Stored()); d != "" {
			t.Error(d)
		}
		v, err := w.Judge(t.Context(), failed(nil), func(context.Context, Peer) error {
			if time.Since(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)) < time.Minute {
				return errDown
			}
			return nil
		})
		if v != Ours || err != nil {
			t.Errorf("verdict %d, %v", v, err)
		}
		if (*Witness)(nil).Stored() != nil {
			t.Error("a nil witness has peers")
		}
	})
}
