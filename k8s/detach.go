package k8s

import (
	"context"
	"fmt"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"crawlbatch.io/crawlbatch/formats/manifest"
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
	labels := r.withConfigured(map[string]string{LabelName: "crawlbatch", LabelComponent: "driver", LabelCrawl: crawl, LabelStore: storeLabel(r.Store)})
	args := []string{
		"run", "--month", crawl, "--rounds", strconv.Itoa(rounds), "--executor", "kubernetes", "--settings", r.Settings, "--store", canonicalStore(r.Store),
		"--log-format", "json",
	}
	n := needs{cpu: *resource.NewMilliQuantity(leastCPU, resource.DecimalSI), memory: driverMemory, scratch: driverScratch}
	const remedy = "the scratch volume of the CronJob, and run the driver as its Job: that of `run --detach` is fixed"
	spec := r.podSpec(args, n, remedy, []corev1.Volume{scratch(n.scratch)}, []corev1.VolumeMount{{Name: scratchVolume, MountPath: scratchDir}})
	spec.ServiceAccountName = k.DriverServiceAccount
	spec.AutomountServiceAccountToken = ptr(true)
	return &batchv1.Job{
		TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("crawl-%s-driver-%s", crawl, storeLabel(r.Store)), Namespace: k.Namespace, Labels: labels,
			Annotations: map[string]string{AnnotationStore: canonicalStore(r.Store)},
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
// if the Job already ran before the call.
func (e *Executor) Detach(ctx context.Context, crawl string, rounds int) (job *batchv1.Job, running bool, err error) {
	key, settings, err := Settings(crawl, e.Config, e.Version)
	if err != nil {
		return nil, false, err
	}
	if _, err := manifest.Create(ctx, e.Bucket, key, settings); err != nil {
		return nil, false, err
	}
	job = (&Renderer{Config: e.Config, Store: e.Store, Settings: key, Env: e.Env}).DriverJob(crawl, rounds)
	running, err = e.submitDriver(ctx, job)
	return job, running, err
}

// submitDriver creates the driver's Job. It replaces an ended Job of the same name. If a Job of this name still
// runs, submitDriver leaves it alone and returns true.
func (e *Executor) submitDriver(ctx context.Context, job *batchv1.Job) (running bool, err error) {
	r := e.newRun()
	for {
		other, existed, err := r.make(ctx, job)
		switch {
		case err != nil || !existed:
			return false, err
		case other == nil:
			if err := e.Clock.Sleep(ctx, pollEvery); err != nil {
				return false, err
			}
			continue
		case ended(other) == nil && other.DeletionTimestamp == nil:
			return true, nil
		}
		if err := r.remove(ctx, job.Name); err != nil {
			return false, err
		}
		if err := r.waitDeleted(ctx, job.Name); err != nil {
			return false, err
		}
	}
}
