package k8s

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/stages"
)

// The resources of the driver. They are small, because it only reads manifests, waits, and plans rounds.
const (
	driverMemory  = 1 << 30
	driverScratch = 4 << 30
	driverTries   = 20 // number of restarts of a driver that dies; a restarted driver continues from the store
)

// DriverJob renders the Job that runs the driver, `crawlbatch run`, inside the cluster.
func (r *Renderer) DriverJob(crawl string, rounds int) *batchv1.Job {
	k := &r.Config.Kubernetes
	labels := map[string]string{LabelName: "crawlbatch", LabelComponent: "driver", LabelCrawl: crawl, LabelStore: storeLabel(r.Store)}
	args := []string{
		"run", "--month", crawl, "--rounds", strconv.Itoa(rounds), "--executor", "kubernetes", "--settings", r.Settings, "--store", r.Store,
		"--log-format", "json",
	}
	n := needs{cpu: *resource.NewMilliQuantity(leastCPU, resource.DecimalSI), memory: driverMemory, scratch: driverScratch}
	spec := r.podSpec(args, n, []corev1.Volume{scratch(n.scratch)}, []corev1.VolumeMount{{Name: scratchVolume, MountPath: scratchDir}})
	spec.ServiceAccountName = k.DriverServiceAccount
	spec.AutomountServiceAccountToken = ptr(true)
	return &batchv1.Job{
		TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("crawl-%s-driver-%s", crawl, storeLabel(r.Store)), Namespace: k.Namespace, Labels: labels,
			Annotations: map[string]string{AnnotationStore: r.Store},
		},
		Spec: batchv1.JobSpec{
			BackoffLimit: ptr(int32(driverTries)), PodReplacementPolicy: ptr(batchv1.Failed), TTLSecondsAfterFinished: ptr(int32(k.TTL.Std().Seconds())),
			PodFailurePolicy: driverPolicy(),
			Template:         corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: k.Annotations}, Spec: spec},
		},
	}
}

// driverPolicy returns the policy that ends the driver's Job after failed tasks, after a round in which most
// URLs failed, and after permanent errors, because a person must then act.
func driverPolicy() *batchv1.PodFailurePolicy {
	p := failurePolicy()
	p.Rules[0].Action = batchv1.PodFailurePolicyActionFailJob
	p.Rules[0].OnExitCodes.Values = []int32{exitTasksFailed, exitMostFailed, exitPermanent}
	return p
}

// Detach stores the config for the pods and submits the Job that runs the driver of a crawl. running is true
// if the Job already ran before the call. Detach sets r.Settings, which the caller leaves empty.
func Detach(ctx context.Context, client Client, b store.Bucket, r Renderer, crawl string, rounds int, version string, log *slog.Logger) (job *batchv1.Job, running bool, err error) {
	key, settings, err := Settings(crawl, r.Config, version)
	if err != nil {
		return nil, false, err
	}
	if _, err := manifest.Create(ctx, b, key, settings); err != nil {
		return nil, false, err
	}
	r.Settings = key
	job = r.DriverJob(crawl, rounds)
	running, err = Submit(ctx, client, &r, job, stages.SystemClock{}, log)
	return job, running, err
}

// Submit creates the driver's Job. It replaces an ended Job of the same name. If a Job of this name still
// runs, Submit leaves it alone and returns true.
func Submit(ctx context.Context, client Client, r *Renderer, job *batchv1.Job, clock stages.Clock, log *slog.Logger) (running bool, err error) {
	e := &run{Executor: &Executor{Client: client, Config: r.Config, Clock: clock}, trouble: newTroubles(clock, log)}
	for {
		other, existed, err := e.make(ctx, job)
		switch {
		case err != nil || !existed:
			return false, err
		case other == nil:
			continue
		case ended(other) == nil && other.DeletionTimestamp == nil:
			return true, nil
		}
		if err := e.remove(ctx, job.Name); err != nil {
			return false, err
		}
		if err := e.waitDeleted(ctx, job.Name); err != nil {
			return false, err
		}
	}
}
