package k8s

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"crawlbatch.io/crawlbatch/formats/room"
	"crawlbatch.io/crawlbatch/jobs/limits"
	"crawlbatch.io/crawlbatch/stages"
)

// The paths and names inside a pod.
const (
	scratchDir      = "/scratch"
	politenessDir   = "/etc/crawlbatch"
	PolitenessFile  = "politeness.yaml" // key in the politeness ConfigMap
	terminationLog  = "/dev/termination-log"
	unprivileged    = 65532 // number of the user and group of processes
	hostnameTopo    = "kubernetes.io/hostname"
	zoneTopo        = "topology.kubernetes.io/zone"
	scratchVolume   = "scratch"
	politenessMount = "politeness"
	metricsPort     = "metrics" // name of the metrics port of task pods, which a PodMonitor scrapes
)

// PodName is the environment variable that holds the pod's name.
const PodName = "POD_NAME"

// spotTaints lists the taints that clouds give their spot nodes.
var spotTaints = []corev1.Toleration{
	{Key: "cloud.google.com/gke-spot", Operator: corev1.TolerationOpEqual, Value: "true", Effect: corev1.TaintEffectNoSchedule},
	{Key: "kubernetes.azure.com/scalesetpriority", Operator: corev1.TolerationOpEqual, Value: "spot", Effect: corev1.TaintEffectNoSchedule},
}

// pod returns the template of a batch's pods. The pods meet the restricted Pod Security level. labels are crawlbatch's
// own labels.
func (r *Renderer) pod(b *Batch, labels map[string]string) corev1.PodTemplateSpec {
	k := &r.Config.Kubernetes
	n := needsOf(r.Plan, r.Config, b)
	args := []string{
		"task", string(b.Stage), "--month", b.Crawl, "--round", strconv.Itoa(b.Round), "--tasks", b.Key, "--settings", r.Settings,
		"--store", canonicalStore(r.Store), "--log-format", "json", "--termination-log", terminationLog,
	}
	var ports []corev1.ContainerPort
	if k.MetricsPort != 0 {
		args = append(args, "--metrics-listen", ":"+strconv.Itoa(k.MetricsPort))
		if k.MetricsTopHosts > 0 {
			args = append(args, "--metrics-top-hosts", strconv.Itoa(k.MetricsTopHosts))
		}
		if k.MetricsLegacyNames {
			args = append(args, "--metrics-legacy-names")
		}
		ports = []corev1.ContainerPort{{Name: metricsPort, ContainerPort: int32(k.MetricsPort), Protocol: corev1.ProtocolTCP}}
	}
	volumes := []corev1.Volume{scratch(n.scratch)}
	mounts := []corev1.VolumeMount{{Name: scratchVolume, MountPath: scratchDir}}
	if b.Stage == stages.Fetch && k.PolitenessConfigMap != "" {
		args = append(args, "--politeness", path.Join(politenessDir, PolitenessFile))
		mounts = append(mounts, corev1.VolumeMount{Name: politenessMount, MountPath: politenessDir, ReadOnly: true})
		volumes = append(volumes, corev1.Volume{Name: politenessMount, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: k.PolitenessConfigMap}, Optional: ptr(true),
		}}})
	}
	_, more := enough(r.Plan, r.Config, b)
	spec := r.podSpec(args, n, fmt.Sprintf("kubernetes.resources.%s.scratch to %v", resourceKey(b.Stage), more), volumes, mounts)
	spec.Containers[0].Ports = ports
	spec.ServiceAccountName = k.ServiceAccount
	spec.AutomountServiceAccountToken = ptr(k.ServiceAccountToken)
	spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{spread(hostnameTopo, labels), spread(zoneTopo, labels)}
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: r.withConfigured(labels), Annotations: maps.Clone(k.Annotations)},
		Spec:       spec,
	}
}

// podSpec returns the common part of the pods of tasks and of the driver. remedy says what gives a pod more scratch space.
func (r *Renderer) podSpec(args []string, n needs, remedy string, volumes []corev1.Volume, mounts []corev1.VolumeMount) corev1.PodSpec {
	k := &r.Config.Kubernetes
	env := maps.Clone(r.Env)
	if env == nil {
		env = map[string]string{}
	}
	maps.Copy(env, k.Env)
	credentials, mounted, files := storeCredentials(k)
	for name, file := range files {
		if _, ok := env[name]; !ok {
			env[name] = file
		}
	}
	env["GOMEMLIMIT"] = strconv.FormatInt(limits.Soft(n.memory), 10)
	env["TMPDIR"] = scratchDir
	env[room.Variable], env[room.Remedy] = strconv.FormatInt(n.scratch, 10), remedy
	spec := corev1.PodSpec{
		RestartPolicy:                 corev1.RestartPolicyNever,
		TerminationGracePeriodSeconds: ptr(int64(k.Grace.Std().Seconds())),
		EnableServiceLinks:            ptr(false),
		PriorityClassName:             k.PriorityClass,
		NodeSelector:                  maps.Clone(k.NodeSelector),
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: ptr(true), RunAsUser: ptr(int64(unprivileged)), RunAsGroup: ptr(int64(unprivileged)), FSGroup: ptr(int64(unprivileged)),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Volumes: append(volumes, credentials...),
		Containers: []corev1.Container{{
			Name: containerName, Image: k.Image, ImagePullPolicy: corev1.PullPolicy(k.ImagePullPolicy), Args: args, Env: podEnv(env),
			Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: n.cpu, corev1.ResourceMemory: bytesOf(n.memory), corev1.ResourceEphemeralStorage: bytesOf(n.scratch)},
				Limits:   corev1.ResourceList{corev1.ResourceMemory: bytesOf(n.memory)},
			},
			VolumeMounts:             append(mounts, mounted...),
			TerminationMessagePath:   terminationLog,
			TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
			SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: ptr(false), ReadOnlyRootFilesystem: ptr(true), RunAsNonRoot: ptr(true),
				Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			},
		}},
	}
	for _, s := range k.ImagePullSecrets {
		spec.ImagePullSecrets = append(spec.ImagePullSecrets, corev1.LocalObjectReference{Name: s})
	}
	for _, s := range k.EnvFromSecrets {
		spec.Containers[0].EnvFrom = append(spec.Containers[0].EnvFrom, corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: s}}})
	}
	if k.Spot {
		spec.Tolerations = append(spec.Tolerations, spotTaints...)
	}
	for _, t := range k.Tolerations {
		spec.Tolerations = append(spec.Tolerations, corev1.Toleration{Key: t.Key, Operator: corev1.TolerationOperator(t.Operator), Value: t.Value, Effect: corev1.TaintEffect(t.Effect)})
	}
	return spec
}

// podEnv returns the variable with the pod's name, then the variables of m sorted by name.
func podEnv(m map[string]string) []corev1.EnvVar {
	env := []corev1.EnvVar{{Name: PodName, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.name"}}}}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		env = append(env, corev1.EnvVar{Name: name, Value: m[name]})
	}
	return env
}

func scratch(size int64) corev1.Volume {
	return corev1.Volume{Name: scratchVolume, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: ptr(bytesOf(size))}}}
}

func bytesOf(n int64) resource.Quantity { return *resource.NewQuantity(n, resource.BinarySI) }

// spread asks Kubernetes to place a stage's pods on different nodes or zones if possible. The loss
// of a node then affects few pods, and the pods send their requests from different addresses.
func spread(topology string, labels map[string]string) corev1.TopologySpreadConstraint {
	return corev1.TopologySpreadConstraint{
		MaxSkew: 1, TopologyKey: topology, WhenUnsatisfiable: corev1.ScheduleAnyway,
		LabelSelector: &metav1.LabelSelector{MatchLabels: maps.Clone(labels)},
	}
}
