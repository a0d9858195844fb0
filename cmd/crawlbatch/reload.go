package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/worker"
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
	revision := 0
	if err == nil {
		// First where all see it, so that no successor of a task is less polite.
		publishing, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		revision, err = worker.PublishPoliteness(publishing, b, crawl, later.Politeness, version)
	}
	if err != nil {
		c.log.Error("SIGHUP: the old politeness holds", "error", oneLine(err))
		return
	}
	reloads.Publish(fetch.Revision{Number: revision, Config: worker.Politeness(later)})
	c.log.Info("SIGHUP: politeness was read anew", "config", c.config, "revision", revision)
}
