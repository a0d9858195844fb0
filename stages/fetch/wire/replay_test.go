package wire

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestWhatWasKeptReadsAsItDidOnTheWire replays the raw bytes of every response that
// the client could make something of.
func TestWhatWasKeptReadsAsItDidOnTheWire(t *testing.T) {
	type told struct {
		Status                      int
		Header                      Header
		Payload, Body, Digest, Kept string
	}
	tell := func(x *Exchange) told {
		return told{x.Status, x.Header, string(x.Payload), string(x.Body), x.PayloadDigest, raw(t, x)}
	}
	replayed := 0
	for _, tt := range badResponses {
		if tt.kind != nil {
			continue
		}
		t.Run(tt.name, func(t *testing.T) {
			x, err := get(t, clientTo(t, rawServer(t, answer(tt.raw)), nil), "http://host.test/")
			if err != nil {
				t.Fatal(err)
			}
			again, err := Replay([]byte(raw(t, x)), false, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer again.Release()
			if d := cmp.Diff(tell(x), tell(again)); d != "" {
				t.Errorf("(-wire +replay)\n%s", d)
			}
			replayed++
		})
	}
	if replayed < 20 {
		t.Errorf("only %d responses were replayed", replayed)
	}
	for _, bad := range []string{"", "SSH-2.0-OpenSSH_9.9\r\n", "HTTP/1.1 20"} {
		x, err := Replay([]byte(bad), false, 0)
		if err == nil {
			t.Errorf("%q was read as a response of status %d", bad, x.Status)
		}
		x.Release()
	}
}

func TestReplayIsBounded(t *testing.T) {
	x, err := Replay([]byte("HTTP/1.1 200 OK\r\n\r\n"+string(make([]byte, 5000))), true, 1000)
	if err != nil || len(x.Payload) != 1000 || x.Truncated != TruncLength {
		t.Errorf("%d bytes, truncated %q, %v", len(x.Payload), x.Truncated, err)
	}
	x.Release()
}
