package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/worker"
)

// reloadOnHangup reads the politeness section of --config anew whenever the process
// gets SIGHUP, until ctx ends, and hands it to the fetch tasks that run. A file that
// is wrong, or that changes what is frozen, is logged, and the old pace holds.
func (c *common) reloadOnHangup(ctx context.Context, running *config.Config) *worker.Reloads {
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
				c.reload(running, reloads)
			}
		}
	}()
	return reloads
}

func (c *common) reload(running *config.Config, reloads *worker.Reloads) {
	if c.config == "" {
		c.log.Warn("SIGHUP: there is no --config to read politeness from")
		return
	}
	later, err := c.loadConfig()
	if err == nil {
		err = running.Adopt(later)
	}
	if err != nil {
		c.log.Error("SIGHUP: the old politeness holds", "error", oneLine(err))
		return
	}
	reloads.Publish(worker.Politeness(later))
	c.log.Info("SIGHUP: politeness was read anew", "config", c.config)
}
