package k8s

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/stages"
)

// The labels of Jobs and pods.
const (
	LabelName      = "app.kubernetes.io/name"      // always crawlbatch
	LabelComponent = "app.kubernetes.io/component" // component of crawlbatch: task or driver
	LabelCrawl     = "crawlbatch.io/crawl"         // name of the crawl, such as 2026-11
	LabelRound     = "crawlbatch.io/round"         // number of the round, such as 0
	LabelStage     = "crawlbatch.io/stage"         // name of the stage, such as fetch
	LabelStore     = "crawlbatch.io/store"         // digest of the store's address, because a cluster may serve several stores
	LabelPartition = "crawlbatch.io/partition"     // partition of a pod, set by the driver
	LabelAttempt   = "crawlbatch.io/attempt"       // number of a pod's attempt, from 1, set by the driver
)

// The annotations of Jobs.
const (
	AnnotationTasks      = "crawlbatch.io/tasks"         // key of the Job's task list in the store
	AnnotationPartitions = "crawlbatch.io/partitions"    // the partitions of the Job's tasks for people, such as 0-199 or 3,17
	AnnotationStore      = "crawlbatch.io/store-address" // address of the store, the value of --store
	AnnotationTemplate   = "crawlbatch.io/template"      // digest of the Job's pod template
)

// shortDigest is the number of hex digits that identify an object of a cluster.
const shortDigest = 8

// Batch is the work of one Job: tasks of one stage, in ascending order of partitions.
type Batch struct {
	Stage      stages.Stage
	Crawl      string
	Round      int
	Partitions []int
	Key        string // key of the task list in the store
	Generation int    // number of the Job among Jobs for the same tasks, from 1
}

// taskList converts the batch into the task list for the store.
func (b *Batch) taskList(plan, version string) *manifest.Tasks {
	return &manifest.Tasks{Header: manifest.Header{Version: version}, Crawl: b.Crawl, Round: b.Round, Stage: string(b.Stage), Plan: plan, Partitions: b.Partitions}
}

// digest returns the digest that identifies the batch in the task list's key.
func (b *Batch) digest() string {
	name := strings.TrimSuffix(b.Key[strings.LastIndexByte(b.Key, '-')+1:], ".json")
	return name[:min(len(name), shortDigest)]
}

// baseName returns the Job's name without the generation. It has at most 52 bytes, so that pod
// names stay below 63 bytes.
func (b *Batch) baseName() string {
	return fmt.Sprintf("crawl-%s-r%d-%s-%s", b.Crawl, b.Round, b.Stage, b.digest())
}

// Name returns the Job's name.
func (b *Batch) Name() string { return fmt.Sprintf("%s-%d", b.baseName(), b.Generation) }

// task returns the task of a completion index.
func (b *Batch) task(index int) stages.Task {
	return stages.Task{Stage: b.Stage, Crawl: b.Crawl, Round: b.Round, Partition: b.Partitions[index]}
}

// resourceKey returns the key of a stage's pods in kubernetes.resources. For every audit, the key
// is "verify".
func resourceKey(s stages.Stage) string {
	if _, ok := s.Audit(); ok {
		return "verify"
	}
	return string(s)
}

// repeat returns the command that runs failed tasks of a stage again, with the given flags.
func repeat(s stages.Stage, crawl, flags string) string {
	command := "retry"
	if _, ok := s.Audit(); ok {
		command = "verify"
	}
	return fmt.Sprintf("`crawlbatch %s --month %s%s`", command, crawl, flags)
}

// Split divides tasks of one stage into batches of at most bound tasks. It sets the key of each
// batch's task list.
func Split(plan *manifest.Plan, tasks []stages.Task, bound int, version string) ([]Batch, error) {
	var batches []Batch
	for len(tasks) > 0 {
		n := min(len(tasks), max(bound, 1))
		b := Batch{Stage: tasks[0].Stage, Crawl: tasks[0].Crawl, Round: tasks[0].Round, Generation: 1}
		for _, t := range tasks[:n] {
			b.Partitions = append(b.Partitions, t.Partition)
		}
		body, err := manifest.Encode(b.taskList(plan.ID, version))
		if err != nil {
			return nil, err
		}
		b.Key = layout.TaskList(b.Crawl, b.Round, string(b.Stage), manifest.Digest(body)[:16])
		batches, tasks = append(batches, b), tasks[n:]
	}
	return batches, nil
}

// errList means that a task list belongs to another stage or plan.
var errList = errors.New("the task list belongs to another stage or plan")

// LoadTasks reads the task list under key and checks that it belongs to the given stage.
func LoadTasks(ctx context.Context, b store.Bucket, key string, stage stages.Stage, crawl string, round int) (*manifest.Tasks, error) {
	var list manifest.Tasks
	if _, _, err := manifest.Load(ctx, b, key, &list); err != nil {
		return nil, err
	}
	if list.Stage != string(stage) || list.Crawl != crawl || list.Round != round {
		return nil, fmt.Errorf("%q lists tasks of %s@%s.%d, not of %s@%s.%d: %w: %w", key, list.Stage, list.Crawl, list.Round, stage, crawl, round, errList, stages.ErrPermanent)
	}
	return &list, nil
}

// Settings returns the config for pods and its key in the store. The section politeness has its defaults,
// because pods take politeness from the newest revision or the crawl's frozen config. A change of politeness
// therefore does not change the Job.
func Settings(crawl string, cfg *config.Config, version string) (string, *manifest.Settings, error) {
	c := cfg.Clone()
	c.Politeness = config.Default().Politeness
	text, err := c.YAML()
	if err != nil {
		return "", nil, err
	}
	s := &manifest.Settings{Header: manifest.Header{Version: version}, Config: text}
	body, err := manifest.Encode(s)
	if err != nil {
		return "", nil, err
	}
	return layout.Settings(crawl, manifest.Digest(body)[:16]), s, nil
}

// maxRanges bounds the length of a list of ranges in an annotation, in bytes.
const maxRanges = 200

// ranges writes ascending numbers in Kubernetes' notation of indexes, such as 0-4,7.
func ranges(n []int) string {
	var out []string
	for i := 0; i < len(n); {
		j := i
		for j+1 < len(n) && n[j+1] == n[j]+1 {
			j++
		}
		text := strconv.Itoa(n[i])
		if j > i {
			text += "-" + strconv.Itoa(n[j])
		}
		if out = append(out, text); len(out) == maxRanges && j+1 < len(n) {
			return strings.Join(out, ",") + ",…"
		}
		i = j + 1
	}
	return strings.Join(out, ",")
}

// parseRanges reads the indexes below bound in Kubernetes' notation, such as 0,3-5. It skips
// unreadable parts.
func parseRanges(s string, bound int) []int {
	var out []int
	for part := range strings.SplitSeq(s, ",") {
		first, last, isRange := strings.Cut(part, "-")
		a, err := strconv.Atoi(first)
		if err != nil || a < 0 {
			continue
		}
		z := a
		if isRange {
			if z, err = strconv.Atoi(last); err != nil {
				continue
			}
		}
		for i := a; i <= z && i < bound; i++ {
			out = append(out, i)
		}
	}
	return out
}
