package k8s

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/stages"
)

// The exit codes with a meaning for Jobs. cmd/crawlbatch documents all exit codes. Exit code 2 (usage or
// config) is missing, because a Go program that crashes also exits with 2: in a pod, crawlbatch exits with
// exitPermanent instead.
const (
	exitTasksFailed = 3  // exit code of a driver if some tasks failed for good
	exitMostFailed  = 5  // exit code of a driver if all tasks succeeded, but most URLs failed
	exitInterrupted = 75 // exit code after an interruption, which does not count as a failure, because another attempt continues
	exitPermanent   = 78 // exit code of an error that another try cannot fix
)

// The names of containers.
const (
	containerName   = "task" // of each pod that this package renders, the driver's included
	driverContainer = "run"  // of the driver that manifests/cronjob.yaml starts
)

// Renderer makes the manifests of Jobs. It sends no request to a cluster.
type Renderer struct {
	Config   *config.Config
	Plan     *manifest.Plan
	Store    string            // value of --store; pods must reach the store at this address
	Settings string            // key of the config for pods in the store (see Settings)
	Env      map[string]string // environment variables of pods, which kubernetes.env overrides
}

// NeedImage returns an error if the config names no image, because every cluster would refuse the
// Jobs.
func NeedImage(cfg *config.Config) error {
	if cfg.Kubernetes.Image == "" {
		return &refusal{text: "kubernetes.image is empty: name the image of crawlbatch in the config, or with --image"}
	}
	return nil
}

// Job renders the Job of a batch, which runs at most share pods at the same time.
func (r *Renderer) Job(b *Batch, share int) *batchv1.Job {
	k := &r.Config.Kubernetes
	labels := r.labels(b)
	tasks := int32(len(b.Partitions))
	spec := batchv1.JobSpec{
		CompletionMode:          ptr(batchv1.IndexedCompletion),
		Completions:             ptr(tasks),
		Parallelism:             ptr(min(tasks, int32(max(share, 1)))),
		BackoffLimitPerIndex:    ptr(int32(k.BackoffLimitPerIndex)),
		MaxFailedIndexes:        ptr(maxFailed(k.MaxFailedIndexes, tasks)),
		PodReplacementPolicy:    ptr(batchv1.Failed),
		TTLSecondsAfterFinished: ptr(int32(k.TTL.Std().Seconds())),
		PodFailurePolicy:        failurePolicy(),
		Template:                r.pod(b, labels),
	}
	annotations := map[string]string{
		AnnotationTasks: b.Key, AnnotationPartitions: ranges(b.Partitions), AnnotationStore: canonicalStore(r.Store),
		AnnotationTemplate: templateDigest(&spec.Template),
	}
	return &batchv1.Job{
		TypeMeta:   metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{Name: b.Name(), Namespace: k.Namespace, Labels: r.withConfigured(labels), Annotations: annotations},
		Spec:       spec,
	}
}

// Shares divides the allowed number of concurrent pods among the batches. Each batch gets at least
// one pod.
func Shares(batches []Batch, parallelism int) []int {
	total := 0
	for _, b := range batches {
		total += len(b.Partitions)
	}
	shares := make([]int, len(batches))
	for i, b := range batches {
		shares[i] = max(1, parallelism*len(b.Partitions)/max(total, 1))
	}
	return shares
}

// ServiceAccount renders the service account of task pods, with the annotations for a cloud
// identity.
func (r *Renderer) ServiceAccount() *corev1.ServiceAccount {
	k := &r.Config.Kubernetes
	return &corev1.ServiceAccount{
		TypeMeta:                     metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"},
		ObjectMeta:                   metav1.ObjectMeta{Name: k.ServiceAccount, Namespace: k.Namespace, Annotations: maps.Clone(k.ServiceAccountAnnotations), Labels: map[string]string{LabelName: "crawlbatch"}},
		AutomountServiceAccountToken: ptr(false),
	}
}

func (r *Renderer) labels(b *Batch) map[string]string {
	return map[string]string{
		LabelName: "crawlbatch", LabelComponent: "task", LabelCrawl: b.Crawl, LabelRound: strconv.Itoa(b.Round), LabelStage: string(b.Stage), LabelStore: storeLabel(r.Store),
	}
}

// canonicalStore returns the form of a store's address that Jobs have, so that s3://b/c and s3://b/c/ are one store.
func canonicalStore(address string) string { return strings.TrimRight(address, "/") }

// withConfigured returns crawlbatch's own labels and those of kubernetes.labels, which have other keys. Selectors use
// only the former.
func (r *Renderer) withConfigured(own map[string]string) map[string]string {
	all := maps.Clone(own)
	maps.Copy(all, r.Config.Kubernetes.Labels)
	return all
}

// storeLabel returns the label value for a store's address. It is a digest, because an address has characters
// that label values must not have.
func storeLabel(address string) string {
	sum := sha256.Sum256([]byte(canonicalStore(address)))
	return hex.EncodeToString(sum[:])[:shortDigest]
}

// maxFailed returns the number of tasks that may fail before the Job stops its other tasks, because so many
// failures probably have a common cause.
func maxFailed(configured int, tasks int32) int32 {
	if configured == 0 {
		return min(tasks, max(10, tasks/10))
	}
	return min(tasks, int32(configured))
}

// failurePolicy returns the policy that tells Kubernetes which pods count as failed. After a
// permanent error, Kubernetes does not repeat the task. Interruptions and lost nodes do not count
// as failures.
func failurePolicy() *batchv1.PodFailurePolicy {
	codes := func(v ...int32) *batchv1.PodFailurePolicyOnExitCodesRequirement {
		return &batchv1.PodFailurePolicyOnExitCodesRequirement{ContainerName: ptr(containerName), Operator: batchv1.PodFailurePolicyOnExitCodesOpIn, Values: v}
	}
	return &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{
		{Action: batchv1.PodFailurePolicyActionFailIndex, OnExitCodes: codes(exitPermanent)},
		{Action: batchv1.PodFailurePolicyActionIgnore, OnExitCodes: codes(exitInterrupted)},
		{Action: batchv1.PodFailurePolicyActionIgnore, OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}}},
	}}
}

// templateDigest returns a digest that is the same for all Jobs with the same pods.
func templateDigest(t *corev1.PodTemplateSpec) string {
	body, err := json.Marshal(t)
	if err != nil { // never happens, because JSON can encode every template
		return fmt.Sprintf("none: %v", err)
	}
	return manifest.Digest(body)[:16]
}

func ptr[T any](v T) *T { return &v }

// Write writes YAML: the service account, and the Jobs of each stage. The function missing returns the
// tasks of a stage that need a Job.
func (r *Renderer) Write(w io.Writer, order []stages.Stage, version string, missing func(stages.Stage) ([]stages.Task, error)) error {
	objects := []any{r.ServiceAccount()}
	for _, stage := range order {
		tasks, err := missing(stage)
		if err != nil {
			return err
		}
		batches, err := Split(r.Plan, tasks, r.Config.Kubernetes.JobTasks, version)
		if err != nil {
			return err
		}
		for i, share := range Shares(batches, r.Config.Kubernetes.Parallelism.Max) {
			objects = append(objects, r.Job(&batches[i], share))
		}
	}
	for _, object := range objects {
		text, err := yaml.Marshal(object)
		if err != nil {
			return fmt.Errorf("render: %w", err)
		}
		if _, err := fmt.Fprintf(w, "---\n%s", text); err != nil {
			return err
		}
	}
	return nil
}
