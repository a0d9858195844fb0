package usage

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"

	"crawlbatch.io/crawlbatch/formats/store"
)

// A store on a file system that hangs does not even notice that the time is over.
func TestAShellDoesNotWaitForAStoreThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs := make(chan struct{})
		defer close(hangs)
		began := time.Now()
		found := ask(&cobra.Command{}, func(context.Context) (store.Bucket, error) {
			<-hangs
			return nil, errors.New("late")
		}, months)
		if took := time.Since(began); found != nil || took != 2*time.Second {
			t.Errorf("%v after %v", found, took)
		}
	})
}
