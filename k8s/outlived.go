package k8s

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"crawlbatch.io/crawlbatch/formats/store"
)

// A pod may outlive its task. Kubernetes then counts the task as running, so the functions in this file look further: a
// container that the cluster added may run on, and a lost node never reports the end of its pods.

const (
	resultsEvery = 2 * time.Minute // time between looks into the store for results of running pods
	keptFor      = time.Minute     // time after the end of a pod's task after which the driver deletes a pod that goes on
	deletedAPass = 60              // largest number of pods deleted in one pass; later passes delete the others
)

// placed is a pod on a node.
type placed struct {
	pod, node string
	keeper    string // container that keeps the pod although its task has ended with exit 0; "" if there is none
}

// place notes that a pod is on a node. keeper is the container that keeps the pod after its task, or "".
func (w *watchedJob) place(pod *corev1.Pod, keeper string) {
	i := indexOf(pod)
	if i < 0 || i >= len(w.batch.Partitions) {
		return
	}
	at := placed{pod: pod.Name, node: pod.Spec.NodeName}
	if keeper != "" && taskEnd(pod).ExitCode == 0 {
		at.keeper = keeper
	}
	w.pods[i] = at
}

// taskEnd returns how a pod's task ended, or nil if it has not ended.
func taskEnd(pod *corev1.Pod) *corev1.ContainerStateTerminated {
	for i := range pod.Status.ContainerStatuses {
		if s := &pod.Status.ContainerStatuses[i]; s.Name == containerName {
			return s.State.Terminated
		}
	}
	return nil
}

// keptBy returns the name of a container that runs on after the end of a pod's task, or "". Sidecars of Kubernetes are init
// containers, which the kubelet ends itself.
func keptBy(pod *corev1.Pod) string {
	if taskEnd(pod) == nil {
		return ""
	}
	for _, s := range pod.Status.ContainerStatuses {
		if s.Name != containerName && s.State.Running != nil {
			return s.Name
		}
	}
	return ""
}

// withoutKeeper says how to avoid containers that keep pods.
const withoutKeeper = "keep the cluster from adding it (for Istio, kubernetes.labels: {sidecar.istio.io/inject: \"false\"}), or let it be added as a sidecar of Kubernetes, an init container with restartPolicy Always"

// deleteKept deletes a pod whose task ended at least keptFor ago, but which another container keeps. If the task failed, only
// then does the Job count the failure. If it succeeded, only then does the Job start the pod of another index; without
// such an index, the pod may stay. A container that does not exit with 0 when it is asked to end makes Kubernetes count a
// failure, which the message helps to avoid.
func (r *run) deleteKept(ctx context.Context, w *watchedJob, pod *corev1.Pod, lasted time.Duration) {
	code, by := taskEnd(pod).ExitCode, keptBy(pod)
	if now := r.Clock.Now(); lasted < keptFor || code == 0 && !w.waits || r.pods.deleted >= deletedAPass || now.Before(r.pods.mayNot) {
		return
	}
	r.pods.deleted++
	text := fmt.Sprintf("pod %s is deleted, because its task ended with exit %d and container %s runs on: %s", pod.Name, code, by, withoutKeeper)
	err := r.Client.Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.UID))})
	if err != nil && !absent(err) && ctx.Err() == nil {
		r.pods.mayNot = r.Clock.Now().Add(repeatEvery)
		text = fmt.Sprintf("pod %s should be deleted, because its task ended and container %s runs on: %v", pod.Name, by, explain(err, r.Config))
	}
	r.trouble.say("kept", pod.Name, text)
}

// endOutlived ends tasks that have a result in the store although their pods have not ended. A pod normally ends soon
// after its result, so a task whose process may still run counts only when a second look finds its result.
func (r *run) endOutlived(ctx context.Context) error {
	now := r.Clock.Now()
	if now.Before(r.pods.results) {
		return nil
	}
	r.pods.results = now.Add(resultsEvery)
	for _, name := range slices.Sorted(maps.Keys(r.jobs)) {
		w := r.jobs[name]
		if w.ended {
			continue
		}
		asked := maps.Clone(w.committed)
		maps.Copy(asked, w.pods)
		done, _, err := r.withResults(ctx, w, slices.Sorted(maps.Keys(asked)))
		if errors.Is(err, store.ErrUnavailable) {
			r.trouble.say(storeAway, "", fmt.Sprintf("the store does not answer, while pods run on: %v", err))
			return nil
		}
		if err != nil {
			return err
		}
		for _, i := range done {
			at := asked[i]
			if _, before := w.committed[i]; !before && at.keeper == "" {
				w.committed[i] = at
				continue
			}
			t := w.batch.task(i)
			text := fmt.Sprintf("%s has its result, but pod %s on node %s has not ended; the crawl goes on without it: ", t, at.pod, at.node)
			if at.keeper != "" {
				text += fmt.Sprintf("container %s runs on: %s", at.keeper, withoutKeeper)
			} else {
				text += fmt.Sprintf("see `kubectl describe pod %s -n %s` and `kubectl get node %s`", at.pod, r.Config.Kubernetes.Namespace, at.node)
			}
			r.trouble.say("outlived", at.pod, text)
			w.runsOn = true
			r.end(t, nil)
		}
	}
	return nil
}

// removeOutlived deletes the Jobs that run on although their tasks have ended, so that their pods take no room from later
// stages. A Job that also runs tasks that were not requested stays.
func (r *run) removeOutlived(ctx context.Context, found []batchv1.Job) {
	for i := range found {
		job := &found[i]
		w := r.jobs[job.Name]
		if w == nil || w.ended || !w.runsOn || ended(job) != nil {
			continue
		}
		others, err := r.othersIn(ctx, job, w.batch)
		others = slices.DeleteFunc(others, func(n int) bool { return slices.Contains(w.failed, n) })
		if err == nil && len(others) == 0 {
			r.Log.Info("deleting a Job whose tasks have ended, because pods of it have not", "job", job.Name)
			err = r.remove(ctx, job.Name)
		}
		if err != nil && ctx.Err() == nil {
			r.Log.Warn("a Job whose tasks have ended still has pods", "job", job.Name, "error", err)
		}
	}
}
