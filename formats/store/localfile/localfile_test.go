package localfile_test

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/localfile"
)

func TestOnlyAFullScratchDirectoryIsNamed(t *testing.T) {
	at := func(path string, err error) error {
		return fmt.Errorf("merge: %w", &fs.PathError{Op: "write", Path: path, Err: err})
	}
	for _, tc := range []struct {
		err   error
		named bool
	}{
		{nil, false},
		{at("/scratch/run/3", syscall.ENOSPC), true},
		{at("/scratch/run/3", syscall.EDQUOT), true},
		{at("/scratch/run/3", syscall.EIO), false},
		{at("/scratches/3", syscall.ENOSPC), false},
		{at("/home/report.html", syscall.ENOSPC), false},
		{fmt.Errorf("put: %w: %w", store.ErrFull, at("/scratch/store/x", syscall.ENOSPC)), false},
		{syscall.ENOSPC, false},
		{localfile.NameScratch(at("/scratch/run/3", syscall.ENOSPC), "/scratch/run"), true},
	} {
		got := localfile.NameScratch(tc.err, "/scratch")
		if errors.Is(got, localfile.ErrScratch) != tc.named || !errors.Is(got, tc.err) || !tc.named && got != tc.err {
			t.Errorf("%v becomes %v", tc.err, got)
		}
		if tc.named && strings.Count(got.Error(), "is full") != 1 {
			t.Errorf("%v names it not once", got)
		}
	}
}
