package k8s

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"crawlbatch.io/crawlbatch/formats/room"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/stages"
)

// kustomization has the fields of kustomization.yaml that the manifests use.
type kustomization struct {
	metav1.TypeMeta    `json:",inline"`
	Namespace          string           `json:"namespace"`
	Resources          []string         `json:"resources"`
	Components         []string         `json:"components"`
	Images             []map[string]any `json:"images"`
	Patches            []map[string]any `json:"patches"`
	GeneratorOptions   map[string]any   `json:"generatorOptions"`
	ConfigMapGenerator []struct {
		Name     string   `json:"name"`
		Behavior string   `json:"behavior"`
		Files    []string `json:"files"`
		Envs     []string `json:"envs"`
		Literals []string `json:"literals"`
		Options  struct {
			DisableNameSuffixHash bool              `json:"disableNameSuffixHash"`
			Labels                map[string]string `json:"labels"`
		} `json:"options"`
	} `json:"configMapGenerator"`
}

// podMonitor is the type PodMonitor of the Prometheus operator, which Kubernetes' client lacks.
type podMonitor struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Selector            metav1.LabelSelector `json:"selector"`
		PodTargetLabels     []string             `json:"podTargetLabels"`
		PodMetricsEndpoints []struct {
			Port     string `json:"port"`
			Interval string `json:"interval"`
		} `json:"podMetricsEndpoints"`
	} `json:"spec"`
}

var strict = serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()

// objects reads the Kubernetes objects of a file. An unknown field is an error.
func objects(t *testing.T, file string) []any {
	t.Helper()
	body, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out []any
	docs := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(body)))
	for {
		doc, err := docs.Read()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		var kind metav1.TypeMeta
		if err := yaml.Unmarshal(doc, &kind); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		var o any
		switch kind.Kind {
		case "PodMonitor":
			o = &podMonitor{}
			err = yaml.UnmarshalStrict(doc, o)
		case "PrometheusRule":
			o = &prometheusRule{}
			err = yaml.UnmarshalStrict(doc, o)
		default:
			o, _, err = strict.Decode(doc, nil, nil)
		}
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		out = append(out, o)
	}
}

// readObject returns the object of type T in a file of the manifests.
func readObject[T any](t *testing.T, file string) T {
	t.Helper()
	for _, o := range objects(t, file) {
		if v, ok := o.(T); ok {
			return v
		}
	}
	t.Fatalf("%s has no %T", file, *new(T))
	panic("not reached")
}

func TestKustomizationsNameEveryFileAndEachIsWhatItSays(t *testing.T) {
	named := map[string]bool{
		filepath.Join(monitoring, "rules.yaml"): true, // for a Prometheus without the operator
	}
	seen := 0
	walk(t, func(file string) {
		if filepath.Base(file) != "kustomization.yaml" {
			return
		}
		seen++
		body, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var k kustomization
		if err := yaml.UnmarshalStrict(body, &k); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		named[file] = true
		dir := filepath.Dir(file)
		for _, name := range k.Resources {
			path := filepath.Join(dir, name)
			if info, err := os.Stat(path); err != nil {
				t.Errorf("%s: %v", file, err)
			} else if !info.IsDir() {
				named[path] = true
				if len(objects(t, path)) == 0 {
					t.Errorf("%s holds no object", path)
				}
			}
		}
		for _, g := range k.ConfigMapGenerator {
			for _, name := range slices.Concat(g.Files, g.Envs) {
				if _, file, ok := strings.Cut(name, "="); ok { // key=file
					name = file
				}
				named[filepath.Join(dir, name)] = true
				if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
					t.Errorf("%s: %v", file, err)
				}
			}
		}
	})
	if seen < 4 {
		t.Errorf("%d kustomizations only", seen)
	}
	walk(t, func(file string) {
		if !named[file] {
			t.Errorf("%s is in no kustomization", file)
		}
	})
}

// walk calls visit with each file of the manifests and of the example.
func walk(t *testing.T, visit func(file string)) {
	t.Helper()
	for _, root := range []string{"manifests", "example"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				visit(path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestManifestsUseTheNamesThatTheConfigHasByDefault(t *testing.T) {
	k := config.Default().Kubernetes
	if ns := readObject[*corev1.Namespace](t, "manifests/namespace.yaml"); ns.Name != k.Namespace || ns.Labels["pod-security.kubernetes.io/enforce"] != "restricted" {
		t.Errorf("namespace %s, labels %v", ns.Name, ns.Labels)
	}
	var accounts []string
	for _, o := range objects(t, "manifests/rbac.yaml") {
		if a, ok := o.(*corev1.ServiceAccount); ok {
			accounts = append(accounts, a.Name)
		}
	}
	if diff := cmp.Diff([]string{k.ServiceAccount, k.DriverServiceAccount}, accounts); diff != "" {
		t.Errorf("service accounts (-config +manifests):\n%s", diff)
	}
	cron := readObject[*batchv1.CronJob](t, "manifests/cronjob.yaml")
	if got := cron.Spec.JobTemplate.Spec.Template.Spec.ServiceAccountName; got != k.DriverServiceAccount {
		t.Errorf("the CronJob's pods are %s", got)
	}
	detached, err := yaml.Marshal(driverPolicy().Rules)
	if err != nil {
		t.Fatal(err)
	}
	rules := cron.Spec.JobTemplate.Spec.PodFailurePolicy.Rules
	for i := range rules { // kubectl fills in the names of containers
		if rules[i].OnExitCodes != nil {
			rules[i].OnExitCodes.ContainerName = ptr(containerName)
		}
	}
	written, err := yaml.Marshal(rules)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(detached), string(written)); diff != "" || !slices.Contains(rules[0].OnExitCodes.Values, exitMostFailed) {
		t.Errorf("what ends the driver's Job (--detach +CronJob):\n%s", diff)
	}
	// A politeness file in the manifests would override every crawl's config without the user's knowledge.
	// The example may have one, because a user reads and edits the example.
	for folder, want := range map[string][]string{
		"manifests": {"crawlbatch-env crawlbatch.env", "crawlbatch-config crawlbatch.yaml"},
		"example":   {"crawlbatch-env ", "crawlbatch-config crawlbatch.yaml", k.PolitenessConfigMap + " " + PolitenessFile},
	} {
		body, err := os.ReadFile(filepath.Join(folder, "kustomization.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		var kust kustomization
		if err := yaml.Unmarshal(body, &kust); err != nil {
			t.Fatal(err)
		}
		var maps []string
		for _, g := range kust.ConfigMapGenerator {
			maps = append(maps, g.Name+" "+strings.Join(append(g.Files, g.Envs...), " "))
		}
		if diff := cmp.Diff(want, maps); diff != "" || kust.GeneratorOptions["disableNameSuffixHash"] != true {
			t.Errorf("%s: names of ConfigMaps and their keys (-want +got):\n%s", folder, diff)
		}
	}
	monitor := readObject[*podMonitor](t, "manifests/components/monitoring/podmonitor.yaml")
	if monitor.Spec.PodMetricsEndpoints[0].Port != "metrics" || monitor.Spec.Selector.MatchLabels[LabelName] != "crawlbatch" {
		t.Errorf("the PodMonitor looks at %+v", monitor.Spec)
	}
}

func TestTheConfigsThatComeAlongAreGoodAndSayThePaceInOnePlace(t *testing.T) {
	for _, dir := range []string{"manifests", "example"} {
		body, err := os.ReadFile(filepath.Join(dir, "crawlbatch.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		c, err := config.Read("crawlbatch.yaml", body, os.LookupEnv)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(config.Default().Politeness, c.Politeness); diff != "" {
			t.Errorf("%s/crawlbatch.yaml sets politeness:\n%s", dir, diff)
		}
		if dir == "example" && c.RequireContact() != nil {
			t.Errorf("the example is not enough to crawl: %v", c.RequireContact())
		}
		if dir != "example" {
			continue
		}
		if body, err = os.ReadFile(filepath.Join(dir, PolitenessFile)); err != nil {
			t.Fatal(err)
		}
		if c, err = config.ReadPoliteness(PolitenessFile, body, os.LookupEnv); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(config.Default().Politeness, c.Politeness); diff != "" {
			t.Errorf("%s/%s is not the default:\n%s", dir, PolitenessFile, diff)
		}
	}
}

// The CronJob's pods must meet the restricted Pod Security level, or the cluster refuses them.
func TestTheCronJobsPodsMayNothing(t *testing.T) {
	for _, file := range []string{"manifests/cronjob.yaml", monitoring + "/probe.yaml"} {
		cron := readObject[*batchv1.CronJob](t, file)
		if cron.Spec.Suspend == nil || !*cron.Spec.Suspend {
			t.Errorf("%s starts before an overlay has named the bucket", file)
		}
		checkRestricted(t, cron.Spec.JobTemplate.Spec.Template.Spec)
	}
	if spec := readObject[*batchv1.CronJob](t, monitoring+"/probe.yaml").Spec.JobTemplate.Spec.Template.Spec; *spec.AutomountServiceAccountToken {
		t.Error("the probe has a token of the cluster")
	}
}

func checkRestricted(t *testing.T, spec corev1.PodSpec) {
	t.Helper()
	if s := spec.SecurityContext; s == nil || !*s.RunAsNonRoot || s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		t.Errorf("pod: %+v", s)
	}
	for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
		s := c.SecurityContext
		if s == nil || *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem || !*s.RunAsNonRoot || !slices.Contains(s.Capabilities.Drop, "ALL") || len(s.Capabilities.Add) > 0 {
			t.Errorf("%s: %+v", c.Name, s)
		}
		if c.Resources.Limits.Memory().IsZero() || c.Image != "crawlbatch" {
			t.Errorf("%s: image %s, limits %v", c.Name, c.Image, c.Resources.Limits)
		}
	}
	for _, v := range spec.Volumes {
		if v.EmptyDir == nil && v.ConfigMap == nil {
			t.Errorf("volume %s is neither scratch nor config", v.Name)
		}
	}
}

// The driver's role must grant exactly the rights that the driver uses.
func TestTheRoleIsWhatTheDriverAsksTheCluster(t *testing.T) {
	used := map[string]bool{}
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
		defer stop()
		if err := l.runTasks(ctx, 0, 1); ctx.Err() == nil {
			t.Fatal(err)
		}
		// The next driver asks for pods with another image and therefore replaces the Job. The
		// driver also sets labels on a pod, deletes the pod because a sidecar keeps it, and raises the
		// number of pods.
		l.Config.Kubernetes.Image = "other"
		l.Config.Kubernetes.Parallelism.Min = 1
		ctx, stop = context.WithTimeout(t.Context(), 2*keptFor)
		defer stop()
		go func() {
			time.Sleep(5 * time.Second)
			l.runningPod(t, l.jobs(t)[0], "pod", 0, map[string]corev1.ContainerState{containerName: exited(1), "sidecar": runs})
		}()
		if err := l.runTasks(ctx, 0, 1); ctx.Err() == nil {
			t.Fatal(err)
		}
		// Another driver adopts the Job and reports the adoption in an Event.
		ctx, stop = context.WithTimeout(t.Context(), 10*time.Second)
		defer stop()
		if err := l.runTasks(ctx, 0, 1); ctx.Err() == nil {
			t.Fatal(err)
		}
		l.Config.Kubernetes.Image = ""
		if err := l.AdoptImage(t.Context(), "nobody"); err == nil {
			t.Error("AdoptImage found a pod that does not exist")
		}
		for _, a := range l.cluster.Actions() {
			used[a.GetResource().Group+"/"+a.GetResource().Resource+" "+a.GetVerb()] = true
		}
	})
	granted := map[string]bool{}
	for _, rule := range readObject[*rbacv1.Role](t, "manifests/rbac.yaml").Rules {
		for _, verb := range rule.Verbs {
			granted[rule.APIGroups[0]+"/"+rule.Resources[0]+" "+verb] = true
		}
	}
	if diff := cmp.Diff(granted, used); diff != "" {
		t.Errorf("rights (-granted +used):\n%s", diff)
	}
}

// A pod must know how much its scratch volume may hold, because the kubelet evicts it without an error in any write.
func TestPodsKnowTheLimitOfTheirScratchVolume(t *testing.T) {
	r := rendering(t, "kubernetes: {image: 'registry.example/crawlbatch:1', resources: {merge: {scratch: 8GiB}}, env: {CRAWLBATCH_SCRATCH: '1'}}")
	batches, err := Split(r.Plan, tasks(stages.Merge, 0), 10, "v1")
	if err != nil {
		t.Fatal(err)
	}
	cron := readObject[*batchv1.CronJob](t, "manifests/cronjob.yaml").Spec.JobTemplate.Spec.Template.Spec
	for what, spec := range map[string]corev1.PodSpec{"task": r.Job(&batches[0], 1).Spec.Template.Spec, "driver": r.DriverJob("2026-11", 1).Spec.Template.Spec, "CronJob": cron} {
		var limit *resource.Quantity
		for _, v := range spec.Volumes {
			if v.Name == scratchVolume {
				limit = v.EmptyDir.SizeLimit
			}
		}
		for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
			known, remedy := "", ""
			for _, v := range c.Env {
				switch from := v.ValueFrom; {
				case v.Name == room.Remedy:
					remedy = v.Value
				case v.Name == room.Variable && from != nil && from.ResourceFieldRef.Resource == "requests.ephemeral-storage":
					known = strconv.FormatInt(c.Resources.Requests.StorageEphemeral().Value(), 10)
				case v.Name == room.Variable:
					known = v.Value
				}
			}
			if known != strconv.FormatInt(limit.Value(), 10) || remedy == "" || what == "task" && !strings.HasPrefix(remedy, "kubernetes.resources.merge.scratch to ") {
				t.Errorf("%s, container %s: the volume may hold %d bytes, the process knows %q and says %q", what, c.Name, limit.Value(), known, remedy)
			}
		}
	}
}
