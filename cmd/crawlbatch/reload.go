package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/worker"
)

// reloadOnHangup publishes the politeness section of --config whenever the process gets SIGHUP,
// until ctx ends. If the file is invalid or changes a frozen key, reloadOnHangup logs the fault and
// keeps the old politeness.
func (c *common) reloadOnHangup(ctx context.Context, running *config.Config, updates *worker.PolitenessUpdates) {
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	go func() {
		defer signal.Stop(hangups)
		for {
			select {
			case <-ctx.Done():
				return
			case <-hangups:
			}
			if c.config == "" {
				c.log.Warn("SIGHUP: there is no --config to read politeness from")
				continue
			}
			later, err := c.configOver(running)
			if err == nil {
				err = running.Adopt(later)
			}
			if err == nil {
				err = updates.Publish(ctx, c.config, later)
			}
			updates.Refused(c.config, err)
		}
	}()
}
