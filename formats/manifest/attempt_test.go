package manifest

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAnAttemptWithUsageReadsBack(t *testing.T) {
	with := &Attempt{Task: "merge@2026-11.0:0", Attempt: 2, Class: ClassDone, Usage: &Usage{WallMS: 7, Puts: 1, Gets: 2, BytesRead: 3}}
	body, err := Encode(with)
	if err != nil {
		t.Fatal(err)
	}
	got := &Attempt{}
	if err := Decode("k", body, got); err != nil || cmp.Diff(with, got) != "" {
		t.Errorf("%v: %s", err, cmp.Diff(with, got))
	}
}

func TestUsagesAddUp(t *testing.T) {
	u := Usage{WallMS: 1, Puts: 2, Gets: 3, Lists: 4, Deletes: 5, Failed: 6, BytesRead: 7, BytesWritten: 8}
	want := Usage{WallMS: 2, Puts: 4, Gets: 6, Lists: 8, Deletes: 10, Failed: 12, BytesRead: 14, BytesWritten: 16}
	if d := cmp.Diff(want, u.Add(u)); d != "" {
		t.Error(d)
	}
}

func TestFailuresAreTheClassesThatCanBeAskedFor(t *testing.T) {
	for class, want := range map[string]bool{
		ClassDone: false, ClassInterrupted: false, ClassTaken: false,
		ClassFailed: true, ClassFault: true, ClassPermanent: true, ClassCorrupt: true,
		ClassStoreUnavailable: true, ClassStoreDenied: true, ClassDiskFull: true,
	} {
		if got := (&Attempt{Class: class}).Failure(); got != want || slices.Contains(FailureClasses(), class) != want {
			t.Errorf("%s: Failure() = %t, want %t", class, got, want)
		}
	}
}
