package show

import (
	"context"
	"io"
	"strings"
	"time"

	"crawlbatch.io/crawlbatch/jobs"
	"crawlbatch.io/crawlbatch/stages"
)

// StatusWidth is the width of a status outside of terminals, in cells.
const StatusWidth = 80

// WatchStatus reads a status at each interval and redraws it in place on a terminal. It stops when
// ctx ends or when it cannot read the status.
func WatchStatus(ctx context.Context, w io.Writer, clock stages.Clock, every time.Duration, read func(context.Context) (*jobs.Status, error)) error {
	block := newBlock(w)
	for {
		s, err := read(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		// Draw every second, because the size of the terminal may change.
		for until := clock.Now().Add(every); clock.Now().Before(until); {
			var text strings.Builder
			width, _ := block.Size()
			if err := Status(&text, s, clock.Now(), width-1); err != nil {
				return err
			}
			if err := block.Draw(nil, strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")); err != nil {
				return err
			}
			if clock.Sleep(ctx, min(every, time.Second)) != nil {
				return nil
			}
		}
	}
}
