package worker

import (
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/stages"
)

func TestAttemptsShareTheCPUOfTheirProcess(t *testing.T) {
	var now time.Duration
	c := &CPU{used: func() time.Duration { return now }}
	now = 5 * time.Second // before the first attempt
	a, endA := c.share()
	now += 10 * time.Second // a alone
	b, endB := c.share()
	now += 6 * time.Second // a and b
	if a() != 13*time.Second || b() != 3*time.Second {
		t.Errorf("a has %v, b has %v", a(), b())
	}
	endA()
	now += 4 * time.Second // b alone
	if b() != 7*time.Second {
		t.Errorf("b has %v", b())
	}
	endB()
	now += time.Hour // nobody
	d, endD := c.share()
	defer endD()
	if now += time.Second; d() != time.Second {
		t.Errorf("d has %v", d())
	}
}

func TestAnAttemptRecordsWhenItBegan(t *testing.T) {
	r, _ := startedStore(t)
	r.Machine, r.CPU = "pod-7", &CPU{}
	for n := range 2 {
		commitResult(t, r.Bucket, task(stages.Merge, n))
	}
	reduced := task(stages.Dedup, 0)
	for range 2 { // the second finds the result, so it is no attempt
		if err := r.Run(t.Context(), reduced); err != nil {
			t.Fatal(err)
		}
	}
	var begun manifest.Begun
	if _, _, err := manifest.Load(t.Context(), r.Bucket, layout.Begun(reduced.Crawl, reduced.Round, string(reduced.Stage), 0, 1), &begun); err != nil {
		t.Fatal(err)
	}
	a := attempts(t, r.Bucket, reduced)
	if len(a) != 1 || a[0].Began == "" || a[0].Began != begun.At || a[0].Machine != "pod-7" || begun.Machine != "pod-7" || a[0].Rows == nil || a[0].Peak < 1<<20 || a[0].CPUMS < 0 || a[0].Epoch != 0 {
		t.Errorf("began %+v, ended %+v", begun, a)
	}
	if there, err := manifest.Exists(t.Context(), r.Bucket, layout.Begun(reduced.Crawl, reduced.Round, string(reduced.Stage), 0, 2)); there || err != nil {
		t.Errorf("a second beginning: %t, %v", there, err)
	}
	// A task that waits for an earlier stage leaves nothing.
	early := task(stages.Publish, 0)
	if err := r.Run(t.Context(), early); err == nil {
		t.Fatal("publish ran before frontier")
	}
	if there, err := manifest.Exists(t.Context(), r.Bucket, layout.Begun(early.Crawl, early.Round, string(early.Stage), 0, 1)); there || err != nil {
		t.Errorf("an attempt that did not begin: %t, %v", there, err)
	}
}
