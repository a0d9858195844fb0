package k8s

import (
	"k8s.io/apimachinery/pkg/api/resource"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/cost"
	"crawlbatch.io/crawlbatch/stages"
)

// The resources of a task are estimated from these figures. The estimates are generous: a limit
// that is too low kills pods, but a limit that is too high only costs money. The config key
// kubernetes.resources overrides the estimates. The peak memory of a task was measured on amd64
// without a memory limit. In MB, for partitions of 12,000 and of 48,000 documents of 6 kB, it is:
//
//	fetch 248, 450 · merge 280, 407 · dedup 79, 89 · rank 83, 112 · frontier 99, 135 · publish 103, 149
//
// Merge was measured with its least memory for sorting; it takes up to 580 MB where no limit is set.
// Most of the growth comes from buffers, which are bounded. A merge task reached 239 and 365 MB with
// 25,000 and 150,000 documents of 2 kB. A fetch task reached 410 MB on ordinary pages, and 813 MB
// with a body of 5 MiB in each of 200 slots. The estimates assume bodies of 5 MiB in all slots. With
// documents of 2 kB, a fetch task reached 318 MiB with 100,000 URLs of 300 hosts, and 468 MiB with
// 100,000 hosts and 100,000 or 500,000 URLs.
const (
	baseMemory     = 256 << 20 // bytes for the process and its buffers; a reduce task gets another baseMemory for sorting
	slotMemory     = 2 << 20   // bytes for each fetch in flight
	parseFactor    = 80        // multiple of fetch.max_body that parsing needs in memory
	rowMemory      = 64        // bytes for each planned URL of a task
	hostMemory     = 2 << 10   // bytes for each host of a task; fetch takes 1.5 kB
	mergeRowMemory = 4 << 10   // bytes for each document that merge or publish joins, up to joinMemory; merge takes 3.5 kB
	joinMemory     = 512 << 20 // bytes for the buffers of merge or publish
	edgeRowMemory  = 2 << 10   // bytes for each URL of a bucket in rank or frontier
	graphHost      = 32        // bytes for each planned host in rank; the graph of hosts takes 24 for each host with outlinks
	graphDomain    = 512       // bytes for each planned domain in rank: 290 bytes in the graph of domains; the rest is for linked domains without a planned URL
	hashMemory     = 256       // bytes for each document that dedup, or an audit's check of clusters, sorts in memory
	dedupMemory    = 384 << 20 // largest number of bytes for this sorting, in addition to the buffers
	likeMemory     = 4         // bytes for the marks and the near duplicates in dedup, for each URL of the round
	similarMemory  = 8         // bytes in an audit for each page that is similar to another; assumes that all pages are
	dedupScratch   = 512       // bytes in dedup's sorted files for each URL of the round
	earlierMemory  = 2         // bytes in dedup for each known URL, which may be a representative of an earlier round
	earlierScratch = 160       // bytes in dedup's sorted files for each known URL
	itemScratch    = 16        // bytes in each task of similar for each fingerprint

	fetchCPU     = 0.010 // core seconds for each URL, twice the measured time
	leastCPU     = 250   // smallest CPU of a fetch task, in millicores
	mostCPU      = 4000
	reduceCPU    = 1000 // CPU of a reduce task of at least reduceURLs URLs, in millicores
	dedupCPU     = 2000
	reduceURLs   = 1_000_000
	memoryStep   = 64 << 20
	leastScratch = 1 << 30
	graphScratch = 100 // bytes for each URL of the round in rank, for the graph of all hosts
	graphSets    = 256 // bytes for each planned domain in rank, for the scratch file of the graph of domains
	knownScratch = 256 // bytes in frontier for each known URL of a bucket, because the task may write a base of urls
	cutsKept     = 4   // number of checkpoints whose segments and WARC files a fetch task may keep on disk
)

// needs holds the resources that a pod requests.
type needs struct {
	cpu     resource.Quantity
	memory  int64 // request and limit of memory, in bytes
	scratch int64 // scratch space on disk, in bytes
}

// needsOf returns the needs of the largest task of a batch. A task of an audit recomputes tasks of any reduce
// stage, one after the other, and may run the check of clusters, which keeps the pages that are similar to
// others in memory.
func needsOf(p *manifest.Plan, cfg *config.Config, b *Batch) needs {
	return estimated(p, cfg, b).configured(cfg, b.Stage)
}

// estimated is needsOf without kubernetes.resources.
func estimated(p *manifest.Plan, cfg *config.Config, b *Batch) needs {
	if _, ok := b.Stage.Audit(); !ok {
		return estimate(p, cfg, b)
	}
	all := needs{cpu: *resource.NewMilliQuantity(reduceCPU, resource.DecimalSI)}
	for _, stage := range stages.Order {
		if stage == stages.Fetch {
			continue
		}
		n := estimate(p, cfg, wholeStage(p, stage))
		all.memory, all.scratch = max(all.memory, n.memory+baseMemory), max(all.scratch, n.scratch)
	}
	all.memory = max(all.memory, 3*baseMemory+min((p.URLs+p.Known)*hashMemory, dedupMemory)+(p.URLs+p.Known)*similarMemory)
	return all
}

// enough returns the memory and the scratch space that a batch should get if those of needsOf were too little: the estimates,
// and at least twice as much.
func enough(p *manifest.Plan, cfg *config.Config, b *Batch) (memory, scratch config.Bytes) {
	given := needsOf(p, cfg, b)
	most := estimated(p, cfg, b)
	most.memory, most.scratch = max(most.memory, 2*given.memory), max(most.scratch, 2*given.scratch)
	most.round()
	return config.Bytes(most.memory), config.Bytes(most.scratch)
}

// round raises memory and scratch space to multiples of memoryStep.
func (n *needs) round() {
	n.memory = (n.memory + memoryStep - 1) / memoryStep * memoryStep
	n.scratch = (n.scratch + memoryStep - 1) / memoryStep * memoryStep
}

// wholeStage returns a batch of all tasks of a stage.
func wholeStage(p *manifest.Plan, stage stages.Stage) *Batch {
	b := &Batch{Stage: stage}
	for i := range stage.Tasks(p) {
		b.Partitions = append(b.Partitions, i)
	}
	return b
}

// PodSize returns what each pod of a stage requests if one Job runs all its tasks.
func PodSize(p *manifest.Plan, cfg *config.Config, stage stages.Stage) cost.Pod {
	n := needsOf(p, cfg, wholeStage(p, stage))
	return cost.Pod{Cores: n.cpu.AsApproximateFloat64(), GiB: float64(n.memory) / (1 << 30)}
}

// estimate returns the estimated needs of the largest task of a batch.
func estimate(p *manifest.Plan, cfg *config.Config, b *Batch) needs {
	urls, rate, hosts := int64(0), 0.0, int64(0) // URLs, requests per second and hosts of the largest partition
	for _, n := range b.Partitions {
		if n >= len(p.Partitions) {
			continue
		}
		part := p.Partitions[n]
		urls, hosts = max(urls, part.URLs), max(hosts, part.Hosts)
		if part.EstimatedSeconds > 0 {
			rate = max(rate, float64(part.URLs)/part.EstimatedSeconds)
		}
	}
	share := int64(1)
	if p.URLs > 0 {
		share = p.EstimatedBytes / p.URLs // estimated bytes of content per URL
	}
	buckets := int64(max(p.Buckets, 1))
	milli := inProportion(reduceCPU, urls)
	held := urls*rowMemory + hosts*hostMemory
	var n needs
	switch b.Stage {
	case stages.Fetch:
		milli = int64(rate * fetchCPU * 1000)
		n.memory = baseMemory + int64(cfg.Fetch.Slots)*slotMemory + int64(cfg.Fetch.MaxBody)*parseFactor + held
		n.scratch = leastScratch + cutsKept*int64(cfg.Fetch.Checkpoint.Bytes)
	case stages.Digest, stages.Similar, stages.Cluster, stages.Dedup:
		milli, n = dedupNeeds(p, b.Stage)
	case stages.Rank, stages.Frontier:
		n.memory = 2*baseMemory + p.URLs/buckets*edgeRowMemory
		n.scratch = leastScratch + p.EstimatedBytes/buckets
		if b.Stage == stages.Rank { // only the task of bucket 0 computes the graphs, but all pods of a Job get the same resources
			n.memory += graphsMemory(p)
			n.scratch += p.URLs*graphScratch + p.Domains*graphSets
		} else {
			n.scratch += p.Known / buckets * knownScratch
		}
	default:
		n.memory = 2*baseMemory + min(urls*mergeRowMemory, joinMemory) + held
		n.scratch = leastScratch + urls*share
	}
	n.cpu = *resource.NewMilliQuantity(min(max((milli+49)/50*50, leastCPU), mostCPU), resource.DecimalSI)
	return n
}

// dedupNeeds estimates the CPU in millicores, the memory and the scratch space of a task of dedup, or of
// a stage that does a part of dedup's work.
func dedupNeeds(p *manifest.Plan, stage stages.Stage) (milli int64, n needs) {
	tasks := int64(max(stage.Tasks(p), 1))
	urls, known := (p.URLs+tasks-1)/tasks, (p.Known+tasks-1)/tasks // of a task
	milli = inProportion(dedupCPU, urls)
	n.memory = 2 * baseMemory
	n.scratch = leastScratch + urls*dedupScratch + known*earlierScratch
	switch {
	case stage == stages.Dedup && tasks > 1: // the task only writes
		return milli, n
	case stage == stages.Similar: // each task has all fingerprints on disk, but searches only its part
		urls, known = p.URLs, p.Known
		n.scratch += (urls + known) * itemScratch
	}
	n.memory += min((urls+known)*hashMemory, dedupMemory)
	if stage != stages.Digest {
		n.memory += urls*likeMemory + known*earlierMemory
	}
	return milli, n
}

// graphsMemory estimates the memory of the graphs of hosts and domains, in bytes.
func graphsMemory(p *manifest.Plan) int64 {
	return p.Hosts*graphHost + p.Domains*graphDomain
}

// configured replaces estimates by the values of kubernetes.resources for the stage.
func (n needs) configured(cfg *config.Config, stage stages.Stage) needs {
	for _, key := range []string{"default", resourceKey(stage)} {
		r := cfg.Kubernetes.Resources[key]
		if r.CPU != "" {
			if q, err := resource.ParseQuantity(r.CPU); err == nil { // the validation of the config has checked the quantity
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
	n.round()
	return n
}

// inProportion returns the CPU of a reduce task in millicores. A task of at least reduceURLs URLs gets the
// argument most. A smaller task gets less, in proportion to its URLs.
func inProportion(most, urls int64) int64 { return most * min(urls, reduceURLs) / reduceURLs }
