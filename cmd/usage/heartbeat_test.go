package usage

import (
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
		h.End()
		want := []Beat{{After: HeartbeatEvery}, {After: 2 * HeartbeatEvery, Read: 5, Written: 5, At: "a/b"}}
		if len(said) != 2 || said[0] != want[0] || said[1] != want[1] {
			t.Errorf("it said %+v, want %+v", said, want)
		}
	})
}
