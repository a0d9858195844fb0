package main

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/signal"
	"syscall"
	"time"

	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/jobs/worker"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch"
)

// reloadOnHangup reads the politeness section of --config anew whenever the process
// gets SIGHUP, until ctx ends, and hands it to the fetch tasks that run. A file that
// is wrong, or that changes what is frozen, is logged, and the old pace holds.
func (c *common) reloadOnHangup(ctx context.Context, b store.Bucket, crawl string, running *config.Config) *worker.Reloads {
	reloads := &worker.Reloads{}
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	go func() {
		defer signal.Stop(hangups)
		for {
			select {
			case <-ctx.Done():
				return
			case <-hangups:
				c.reload(ctx, b, crawl, running, reloads)
			}
		}
	}()
	return reloads
}

func (c *common) reload(ctx context.Context, b store.Bucket, crawl string, running *config.Config, reloads *worker.Reloads) {
	if c.config == "" {
		c.log.Warn("SIGHUP: there is no --config to read politeness from")
		return
	}
	later, err := config.LoadOver(running, c.config, os.LookupEnv)
	if err == nil {
		c.overlay(later)
		err = later.Validate()
	}
	if err == nil {
		err = running.Adopt(later)
	}
	if err == nil {
		err = c.publish(ctx, b, crawl, c.config, later, reloads)
	}
	if err != nil {
		c.log.Error(oldHolds, "file", c.config, "error", oneLine(err))
	}
}

// oldHolds is said of a file that changes nothing.
const oldHolds = "the old politeness holds"

// publish makes the politeness of later, which was read from file, the newest
// revision, and hands it to the tasks that run.
func (c *common) publish(ctx context.Context, b store.Bucket, crawl, file string, later *config.Config, reloads *worker.Reloads) error {
	// First where all see it, so that no successor of a task is less polite.
	publishing, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	revision, err := roundstate.PublishPoliteness(publishing, b, crawl, later.Politeness, version)
	if err != nil {
		return err
	}
	reloads.Publish(fetch.Revision{Number: revision, Config: worker.Politeness(later)})
	c.log.Info("politeness was read anew", "file", file, "revision", revision)
	return nil
}

// followEvery is how often a mounted file is looked at. A kubelet takes up to a
// minute to bring a changed ConfigMap to it.
const followEvery = 3 * time.Second

// followPoliteness hands the politeness in file to the fetch tasks that run: as it
// is when they start, and whenever it changes, until ctx ends. A file that is missing
// changes nothing; one that is wrong is logged once, and the old pace holds. While the
// store is away it is tried again.
func (c *common) followPoliteness(ctx context.Context, b store.Bucket, crawl, file string, clock stages.Clock, reloads *worker.Reloads) {
	var dealt []byte // with this content
	said := ""       // the last error logged
	for {
		body, err := os.ReadFile(file)
		if err == nil && !bytes.Equal(body, dealt) {
			var later *config.Config
			if later, err = config.ReadPoliteness(file, body, os.LookupEnv); err == nil {
				err = c.publish(ctx, b, crawl, file, later, reloads)
			}
			if err == nil || errors.Is(err, config.ErrInvalid) {
				dealt = body
			}
			if err == nil {
				said = ""
			}
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) && ctx.Err() == nil && oneLine(err) != said {
			said = oneLine(err)
			c.log.Error(oldHolds, "file", file, "error", said)
		}
		if clock.Sleep(ctx, followEvery) != nil {
			return
		}
	}
}
