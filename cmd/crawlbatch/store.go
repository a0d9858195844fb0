package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/formats/store/s3store"
	"crawlbatch.io/crawlbatch/jobs/config"
)

// openStore opens --store, makes sure that one in S3 answers, and wraps it: reads
// are repeated and, in S3, hedged.
func (c *common) openStore(ctx context.Context, cfg *config.Config) (store.Bucket, error) {
	notes := &store.RetryLog{Log: c.log, Now: time.Now}
	retry := store.Retry{OnRetry: notes.Read}
	switch {
	case c.store == "":
		return nil, usagef("--store is empty: give a directory or s3://bucket/prefix")
	case strings.HasPrefix(c.store, s3store.Scheme):
		s, err := s3store.Open(ctx, c.store, s3store.Options{
			SSEKMSKey: cfg.Store.SSEKMSKey, StorageClass: cfg.Store.StorageClass, OnRetry: notes.Write, OnSilence: c.stillTrying,
		})
		if err != nil {
			return nil, usageError{err}
		}
		if err := s.Reach(ctx); err != nil {
			return nil, err
		}
		return store.WithRetry(store.WithHedge(s, store.Hedge{}), retry), nil
	case strings.Contains(c.store, "://"):
		return nil, usagef("--store %q: give a directory or s3://bucket/prefix", c.store)
	}
	d, err := dirstore.Open(c.store, dirstore.Options{OneMachine: c.oneMachine})
	if errors.Is(err, store.ErrUnsupported) {
		err = fmt.Errorf("%w (--one-machine)", err)
	}
	if err != nil {
		return nil, usageError{err}
	}
	return store.WithRetry(d, retry), nil
}

// stillTrying tells whoever waits that a store in S3 does not answer.
func (c *common) stillTrying(host string, until time.Time) {
	fmt.Fprintf(c.err, "crawlbatch: %s does not answer: still trying until %s\n", host, until.Format(time.TimeOnly))
}

// openArchive opens a store with WARC files of others, which is only read.
func (c *common) openArchive(ctx context.Context, address string) (store.Bucket, error) {
	notes := &store.RetryLog{Log: c.log, Now: time.Now}
	retry := store.Retry{OnRetry: notes.Read}
	if strings.HasPrefix(address, s3store.Scheme) {
		s, err := s3store.Open(ctx, address, s3store.Options{OnRetry: notes.Write})
		if err != nil {
			return nil, usageError{err}
		}
		return store.WithRetry(store.WithHedge(s, store.Hedge{}), retry), nil
	}
	// Locks and links, which a shared file system may not have, are for writers.
	d, err := dirstore.Open(address, dirstore.Options{OneMachine: true})
	if err != nil {
		return nil, usageError{err}
	}
	return store.WithRetry(d, retry), nil
}

// reached adds to an error of the first access to the store what to look at.
func reached(err error) error {
	if errors.Is(err, store.ErrUnavailable) {
		return fmt.Errorf("%w: is --store right, and for s3:// AWS_ENDPOINT_URL_S3? If so, run this again when the store is back", err)
	}
	return err
}
