package config

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Kubernetes is read by the executor that submits Jobs. Each stage is one Job, or
// several above JobTasks.
type Kubernetes struct {
	Namespace        string   `yaml:"namespace"`
	Image            string   `yaml:"image"`                        // of crawlbatch; no default
	ImagePullPolicy  string   `yaml:"image_pull_policy,omitempty"`  // Always, IfNotPresent or Never; "": as Kubernetes does by the tag
	ImagePullSecrets []string `yaml:"image_pull_secrets,omitempty"` // names of Secrets
	Parallelism      int      `yaml:"parallelism"`                  // pods of a stage at a time
	JobTasks         int      `yaml:"job_tasks"`                    // tasks of a Job at most; a stage of more is split

	BackoffLimitPerIndex int      `yaml:"backoff_limit_per_index"`      // failures of a task beyond the first before it is given up
	MaxFailedIndexes     int      `yaml:"max_failed_indexes,omitempty"` // failed tasks that end a Job early; 0: a tenth of them, at least 10
	Grace                Duration `yaml:"grace"`                        // what a pod has to end in when it is told to
	TTL                  Duration `yaml:"ttl"`                          // until a finished Job and its pods are removed

	Resources     map[string]Resources `yaml:"resources,omitempty"` // by stage, or "default"; what is unset is estimated from the plan
	PriorityClass string               `yaml:"priority_class,omitempty"`
	Spot          bool                 `yaml:"spot"` // tolerate the taints that clouds give their spot nodes
	NodeSelector  map[string]string    `yaml:"node_selector,omitempty"`
	Tolerations   []Toleration         `yaml:"tolerations,omitempty"`

	ServiceAccount            string            `yaml:"service_account"`                       // of task pods
	ServiceAccountToken       bool              `yaml:"service_account_token"`                 // mount its token in task pods
	ServiceAccountAnnotations map[string]string `yaml:"service_account_annotations,omitempty"` // cloud identity; rendered with `k8s render`
	DriverServiceAccount      string            `yaml:"driver_service_account"`                // of `run --detach`
	Env                       map[string]string `yaml:"env,omitempty"`
	EnvFromSecrets            []string          `yaml:"env_from_secrets,omitempty"`     // names of Secrets
	Annotations               map[string]string `yaml:"annotations,omitempty"`          // of pods
	MetricsPort               int               `yaml:"metrics_port"`                   // on which task pods serve Prometheus metrics, under /metrics; 0: none
	MetricsLegacyNames        bool              `yaml:"metrics_legacy_names,omitempty"` // under the names that they had before, too
	PolitenessConfigMap       string            `yaml:"politeness_config_map"`          // its key politeness.yaml is read again while fetch pods run; it may be missing
}

// Resources are what a pod asks for and may use at most; zero: estimated.
type Resources struct {
	CPU     string `yaml:"cpu,omitempty"`     // requested, as Kubernetes writes it: 500m, 2
	Memory  Bytes  `yaml:"memory,omitempty"`  // requested and limit
	Scratch Bytes  `yaml:"scratch,omitempty"` // size of the scratch volume
}

// Toleration lets pods run on tainted nodes.
type Toleration struct {
	Key      string `yaml:"key,omitempty"`
	Operator string `yaml:"operator,omitempty"` // Exists or Equal
	Value    string `yaml:"value,omitempty"`
	Effect   string `yaml:"effect,omitempty"` // NoSchedule, PreferNoSchedule, NoExecute; "": all
}

// MinGrace is what a fetch pod needs to end well: its last checkpoint, then the
// record of the attempt.
const MinGrace = 40 * time.Second

// PoisonDeaths is how many attempts at a fetch task may die before the URL that
// kills them is found: three without progress, and three at that URL alone.
const PoisonDeaths = 6

func defaultKubernetes() Kubernetes {
	return Kubernetes{
		Namespace: "crawl", Parallelism: 50, JobTasks: 10_000,
		BackoffLimitPerIndex: PoisonDeaths, Grace: Duration(time.Minute), TTL: Duration(24 * time.Hour), Spot: true,
		ServiceAccount: "crawlbatch-task", DriverServiceAccount: "crawlbatch-driver", PolitenessConfigMap: "crawlbatch-politeness",
		MetricsPort: 9090,
	}
}

// Names of objects (RFC 1123 subdomains) and CPU quantities, as Kubernetes takes them.
var (
	objectName  = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$`)
	cpuQuantity = regexp.MustCompile(`^([1-9][0-9]*m|[0-9]+(\.[0-9]{1,3})?)$`)
)

// resourceKeys are what kubernetes.resources may hold.
var resourceKeys = []string{"default", "fetch", "merge", "dedup", "rank", "frontier", "publish"}

func (k *Kubernetes) validate(check *checker) {
	name := func(field, v string, needed bool) {
		if (v != "" || needed) && !objectName.MatchString(v) {
			check.fail("kubernetes."+field, fmt.Sprintf("is %q: write the name of an object, lower-case letters, digits and -", v))
		}
	}
	choice := func(field, v string, allowed ...string) {
		if v != "" && !slices.Contains(allowed, v) {
			check.fail("kubernetes."+field, fmt.Sprintf("is %q: it may be %s", v, strings.Join(allowed, ", ")))
		}
	}
	name("namespace", k.Namespace, true)
	if strings.ContainsAny(k.Image, " \t\n") {
		check.fail("kubernetes.image", fmt.Sprintf("is %q: write registry/name:tag, without spaces", k.Image))
	}
	choice("image_pull_policy", k.ImagePullPolicy, "Always", "IfNotPresent", "Never")
	check.positive("kubernetes.parallelism", k.Parallelism, 1, 10_000)
	check.positive("kubernetes.job_tasks", k.JobTasks, 1, 100_000)
	check.positive("kubernetes.backoff_limit_per_index", k.BackoffLimitPerIndex, PoisonDeaths, 1000)
	check.positive("kubernetes.max_failed_indexes", k.MaxFailedIndexes, 0, 10_000)
	check.duration("kubernetes.grace", k.Grace, MinGrace, time.Hour)
	check.duration("kubernetes.ttl", k.TTL, time.Minute, 366*24*time.Hour)
	name("priority_class", k.PriorityClass, false)
	name("service_account", k.ServiceAccount, true)
	name("driver_service_account", k.DriverServiceAccount, true)
	name("politeness_config_map", k.PolitenessConfigMap, false)
	if k.MetricsPort != 0 && (k.MetricsPort < 1024 || k.MetricsPort > 65535) { // those below need a privilege
		check.fail("kubernetes.metrics_port", fmt.Sprintf("is %d: it may be 1024 to 65535, or 0 for none", k.MetricsPort))
	}
	for _, s := range k.ImagePullSecrets {
		name("image_pull_secrets", s, true)
	}
	for _, s := range k.EnvFromSecrets {
		name("env_from_secrets", s, true)
	}
	for _, t := range k.Tolerations {
		choice("tolerations", t.Operator, "Exists", "Equal")
		choice("tolerations", t.Effect, "NoSchedule", "PreferNoSchedule", "NoExecute")
	}
	for _, stage := range sortedKeys(k.Resources) {
		r, field := k.Resources[stage], "kubernetes.resources."+stage
		if !slices.Contains(resourceKeys, stage) {
			check.fail(field, "is no stage: it may be "+strings.Join(resourceKeys, ", "))
		}
		if r.CPU != "" && !cpuQuantity.MatchString(r.CPU) {
			check.fail(field, fmt.Sprintf("asks for cpu %q: write 500m or 2", r.CPU))
		}
		if r.Memory != 0 {
			check.size(field, r.Memory, 64<<20, 4<<40)
		}
		if r.Scratch != 0 {
			check.size(field, r.Scratch, 64<<20, 16<<40)
		}
	}
}
