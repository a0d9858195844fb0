package k8s

import (
	"k8s.io/apimachinery/pkg/api/resource"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/stages"
)

// The resources of tasks by their work. The estimates are generous, because a limit that is too low
// kills pods, and one that is too high only costs money. kubernetes.resources overrides them.
// Measured peaks of a whole task on amd64 without a memory limit, in MB, for a partition of 12,000
// and of 48,000 documents of 6 kB:
//
//	fetch 248, 450 · merge 280, 407 · dedup 79, 89 · rank 83, 112 · frontier 99, 135 · publish 103, 149
//
// Most of the growth is in buffers up to their bounds. Fetch reached 813 MB while each of 200 slots
// had a body of 5 MiB, the case assumed here, and 410 MB on ordinary pages.
const (
	baseMemory     = 256 << 20 // the process and its buffers; a reduce task's sorts hold as much again before they spill
	slotMemory     = 2 << 20   // for each fetch in flight
	parseFactor    = 80        // memory for parsing, as a multiple of fetch.max_body; a sitemap of 50 MiB takes less
	rowMemory      = 1 << 10   // for each planned URL of a fetch task
	mergeRowMemory = 4 << 10   // for each document that merge or publish joins; measured in merge: 3.5 kB
	edgeRowMemory  = 2 << 10   // for each URL of a bucket of rank or frontier
	graphMemory    = 64        // for each URL of the round in rank, which keeps the graph of all hosts: 12 bytes for each edge, doubled for garbage collection
	hashMemory     = 256       // for each document that dedup compares: 80 bytes and its share of the sealed rounds' representatives

	fetchCPU       = 0.010 // core seconds for each URL; measured to fetch, parse and compress one: 0.005
	leastCPU       = 250   // millicores
	mostCPU        = 4000
	reduceCPU      = 1000 // for a reduce task of at least a million URLs; less in proportion for fewer
	dedupCPU       = 2000
	reduceURLs     = 1_000_000
	memoryStep     = 64 << 20
	leastScratch   = 1 << 30
	spelledScratch = 1 << 10 // for each known URL with spellings that a fetch task does not plan
	cutsKept       = 4       // a fetch task may keep the segments and WARC files of this many checkpoints
)

// needs holds the resources of a pod.
type needs struct {
	cpu     resource.Quantity
	memory  int64 // bytes, for the request and the limit
	scratch int64 // bytes
}

// estimate returns the needs of the largest of the tasks.
func estimate(p *manifest.Plan, cfg *config.Config, b *Batch) needs {
	urls, rate := int64(0), 0.0 // for the largest partition
	spelled := int64(0)         // known URLs with spellings, in the partition that has the most
	for _, n := range b.Partitions {
		if n >= len(p.Partitions) {
			continue
		}
		part := p.Partitions[n]
		urls = max(urls, part.URLs)
		if part.Spellings != nil {
			spelled = max(spelled, part.Spellings.Rows)
		}
		if part.EstimatedSeconds > 0 {
			rate = max(rate, float64(part.URLs)/part.EstimatedSeconds)
		}
	}
	share := int64(1)
	if p.URLs > 0 {
		share = p.EstimatedBytes / p.URLs // bytes for each URL
	}
	buckets := int64(max(p.Buckets, 1))
	milli := inProportion(reduceCPU, urls)
	var n needs
	switch b.Stage {
	case stages.Fetch:
		milli = int64(rate * fetchCPU * 1000)
		n.memory = baseMemory + int64(cfg.Fetch.Slots)*slotMemory + int64(cfg.Fetch.MaxBody)*parseFactor + urls*rowMemory
		n.scratch = leastScratch + cutsKept*int64(cfg.Fetch.Checkpoint.Bytes) + spelled*spelledScratch
	case stages.Dedup:
		milli = inProportion(dedupCPU, p.URLs)
		n.memory = 2*baseMemory + p.URLs*hashMemory
		n.scratch = leastScratch + p.URLs*hashMemory
	case stages.Rank, stages.Frontier:
		n.memory = 2*baseMemory + p.URLs/buckets*edgeRowMemory
		if b.Stage == stages.Rank {
			n.memory += p.URLs * graphMemory
		}
		n.scratch = leastScratch + p.EstimatedBytes/buckets
	default:
		n.memory = 2*baseMemory + urls*mergeRowMemory
		n.scratch = leastScratch + 2*urls*share
	}
	n.cpu = *resource.NewMilliQuantity(min(max((milli+49)/50*50, leastCPU), mostCPU), resource.DecimalSI)
	for _, key := range []string{"default", string(b.Stage)} {
		r := cfg.Kubernetes.Resources[key]
		if r.CPU != "" {
			if q, err := resource.ParseQuantity(r.CPU); err == nil { // config validation has checked it
				n.cpu = q
			}
		}
		if r.Memory > 0 {
			n.memory = int64(r.Memory)
		}
		if r.Scratch > 0 {
			n.scratch = int64(r.Scratch)
		}
	}
	n.memory = (n.memory + memoryStep - 1) / memoryStep * memoryStep
	n.scratch = (n.scratch + memoryStep - 1) / memoryStep * memoryStep
	return n
}

// inProportion returns the CPU of a reduce task in millicores. A task of reduceURLs URLs or more gets
// most; a smaller task gets a share in proportion to its URLs.
func inProportion(most, urls int64) int64 { return most * min(urls, reduceURLs) / reduceURLs }

// goMemory returns the soft limit of Go's heap for a hard limit. The rest is for stacks, the
// runtime and memory that the kernel counts too.
func goMemory(limit int64) int64 { return limit - limit/8 }
