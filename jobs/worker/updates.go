package worker

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"time"

	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/stages"
)

// PolitenessUpdates publishes new politeness while a crawl runs.
type PolitenessUpdates struct {
	Bucket  store.Bucket
	Crawl   string
	Version string // the version of this program, for the store
	Clock   stages.Clock
	Log     *slog.Logger
	Tasks   Reloads // tells the fetch tasks of this process to read the ledger
}

// Publish makes the politeness of c the crawl's newest revision, and tells the running tasks to
// read it. file names the source of c.
func (u *PolitenessUpdates) Publish(ctx context.Context, file string, c *config.Config) error {
	// Publish changes the store before it tells the running tasks. Otherwise, an attempt that takes a
	// task over in between would read the old politeness, and could be less polite than its predecessor.
	publishing, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	revision, err := roundstate.PublishPoliteness(publishing, u.Bucket, u.Crawl, c.Politeness, ledger.Writer{Version: u.Version, Clock: u.Clock})
	if err != nil {
		return err
	}
	u.Tasks.Publish()
	u.Log.Info("politeness was read again", "file", file, "revision", revision)
	return nil
}

// StillInForce is the log message about a file that cannot be used.
const StillInForce = "the old politeness holds"

// Refused logs why the politeness settings in a file do not come into force. If err is nil, it logs
// nothing.
func (u *PolitenessUpdates) Refused(file string, err error) {
	if err != nil {
		u.Log.Error(StillInForce, "file", file, "error", strings.Join(strings.Fields(err.Error()), " "))
	}
}

// followEvery is the time between two reads of a mounted file. A kubelet takes up to a minute to
// update a mounted ConfigMap.
const followEvery = 3 * time.Second

// Follow publishes the politeness of the file now and after each change of the file, until ctx
// ends. A missing file changes nothing. Follow logs an invalid file once and keeps the old
// politeness. If the store does not answer, Follow tries again.
func (u *PolitenessUpdates) Follow(ctx context.Context, file string) {
	var done []byte // content of the file that was last published or refused
	logged := ""    // text of the error that was logged last
	for {
		body, err := os.ReadFile(file)
		if err == nil && !bytes.Equal(body, done) {
			var c *config.Config
			if c, err = config.ReadPoliteness(file, body, os.LookupEnv); err == nil {
				err = u.Publish(ctx, file, c)
			}
			if err == nil || errors.Is(err, config.ErrInvalid) {
				done = body
			}
			if err == nil {
				logged = ""
			}
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) && ctx.Err() == nil && err.Error() != logged {
			logged = err.Error()
			u.Refused(file, err)
		}
		if u.Clock.Sleep(ctx, followEvery) != nil {
			return
		}
	}
}
