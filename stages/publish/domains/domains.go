package domains

import (
	"context"
	"errors"
	"fmt"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/stages"
)

// Writer returns the partition whose publish task writes the part of a bucket: the bucket's first
// partition. ok is false if the plan has no partition in the bucket.
func Writer(p *manifest.Plan, bucket int) (partition int, ok bool) {
	for n := range p.Partitions {
		if p.Partitions[n].Bucket == bucket {
			return n, true
		}
	}
	return 0, false
}

// WrittenBy reports whether the publish task of a partition writes the part of its bucket.
func WrittenBy(p *manifest.Plan, partition int) bool {
	n, ok := Writer(p, p.Partitions[partition].Bucket)
	return ok && n == partition
}

// sortMemory is the memory of each of the two sorts, in bytes.
const sortMemory = 32 << 20

// hostRow holds the columns of hosts that count. Hosts that are only targets of links have no delay.
type hostRow struct {
	Host         string      `parquet:"host"`
	Domain       string      `parquet:"domain"`
	RobotsState  string      `parquet:"robots_state,optional"`
	RobotsDigest string      `parquet:"robots_digest,optional"`
	DelayMS      *int64      `parquet:"delay_ms,optional"`
	Planned      int64       `parquet:"planned"`
	Breaker      int32       `parquet:"breaker_events"`
	FirstRequest schema.Time `parquet:"first_request,optional,timestamp(microsecond)"`
	LastRequest  schema.Time `parquet:"last_request,optional,timestamp(microsecond)"`
	Rank         float64     `parquet:"rank"`
	Harmonic     float64     `parquet:"harmonic"`
}

func hostKey(k table.Key, h *hostRow) table.Key { return k.Text(h.Domain).Text(h.Host) }

// Write writes the part of a bucket.
func Write(ctx context.Context, env *stages.Env, in *stages.Input, bucket int) (f manifest.File, err error) {
	facts, err := table.NewSorter(env.Scratch, factKey, sortMemory)
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, facts.Close()) }()
	hosts, err := table.NewSorter(env.Scratch, hostKey, sortMemory)
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, hosts.Close()) }()
	if err := collect(ctx, env, in, bucket, facts, hosts); err != nil {
		return f, err
	}
	key := layout.Table(stages.FileDomains, in.Task.Crawl, in.Task.Round, bucket)
	return stages.Write(ctx, env, stages.FileDomains, key, []string{"domain"}, func(w *table.Writer[schema.Domain]) error {
		return join(ctx, facts, hosts, openEarlier(ctx, env, in, bucket), w)
	})
}

// join writes a row for each domain that has an outcome.
func join(ctx context.Context, facts *table.Sorter[fact], hosts *table.Sorter[hostRow], before *earlier, w *table.Writer[schema.Domain]) error {
	defer before.close()
	of := table.Pull(facts.Sorted(ctx))
	defer of.Close()
	all := table.Pull(hosts.Sorted(ctx))
	defer all.Close()
	for {
		first, err := of.Peek()
		if first == nil {
			return err
		}
		d, planned := newDomain(first), first.Kind == outcomes
		if err := d.addFacts(of); err != nil {
			return err
		}
		if !planned {
			continue // only robots.txt files of other domains redirect to this one
		}
		if err := d.addHosts(all); err != nil {
			return fmt.Errorf("read hosts: %w", err)
		}
		if err := before.compare(&d.row); err != nil {
			return fmt.Errorf("read earlier domains: %w", err)
		}
		if err := w.Append(d.finish()); err != nil {
			return err
		}
	}
}
