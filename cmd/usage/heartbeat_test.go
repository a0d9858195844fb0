package usage

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/stages"
)

func TestAHeartbeatSaysWhatWasReadAndWrittenUntilTheCommandEnds(t *testing.T) {
	dir, err := dirstore.Open(t.TempDir(), dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		var h Heartbeat
		h.End() // before Start, it does nothing
		var said []Beat
		h.Start(stages.SystemClock{}, func(b Beat) { said = append(said, b) })
		time.Sleep(HeartbeatEvery + time.Second) // the first beat comes before the command opens a store
		b := h.Count(dir)
		if _, err := store.CreateBytes(t.Context(), b, "a/b", []byte("12345")); err != nil {
			t.Fatal(err)
		}
		if _, _, err := b.Get(t.Context(), "a/b", 100); err != nil {
			t.Fatal(err)
		}
		time.Sleep(HeartbeatEvery)
		h.Note("read", 4096, "entries of urls.txt")
		time.Sleep(HeartbeatEvery)
		h.End()
		second := Beat{After: 2 * HeartbeatEvery, Read: 5, Written: 5, At: "a/b"}
		third := second
		third.After, third.Step = 3*HeartbeatEvery, "read 4,096 entries of urls.txt"
		if want := []Beat{{After: HeartbeatEvery}, second, third}; !slices.Equal(said, want) {
			t.Errorf("it said %+v, want %+v", said, want)
		}
		time.Sleep(10 * HeartbeatEvery) // the command says itself for what it waits
		said = nil
		h.Start(stages.SystemClock{}, func(b Beat) { said = append(said, b) })
		time.Sleep(HeartbeatEvery + time.Second)
		h.End()
		if len(said) != 1 || said[0].After != HeartbeatEvery {
			t.Errorf("after the wait, it said %+v", said)
		}
	})
}

func TestALineOfABeat(t *testing.T) {
	var out strings.Builder
	say := BeatPrinter(&out, nil, false)
	step, at := "read 4,096 entries of urls.txt", "a/b"
	say(Beat{After: HeartbeatEvery})
	say(Beat{After: HeartbeatEvery, Step: step})
	say(Beat{After: HeartbeatEvery, Read: 5, At: at})
	say(Beat{After: HeartbeatEvery, Read: 5, At: at, Step: step})
	const want = `crawlbatch: still working after 30s
crawlbatch: still working after 30s: read 4,096 entries of urls.txt
crawlbatch: still working after 30s: read 5 bytes and wrote 0 bytes, now at a/b
crawlbatch: still working after 30s: read 4,096 entries of urls.txt (of the store, read 5 bytes and wrote 0 bytes, now at a/b)
`
	if out.String() != want {
		t.Errorf("it printed\n%s\nwant\n%s", out.String(), want)
	}
}
