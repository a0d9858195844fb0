package config

// Kubernetes configures the executor that submits Jobs.
type Kubernetes struct {
	Namespace                 string               `yaml:"namespace"`
	Image                     string               `yaml:"image"`
	ImagePullPolicy           string               `yaml:"image_pull_policy,omitempty"`
	ImagePullSecrets          []string             `yaml:"image_pull_secrets,omitempty"`
	Parallelism               Parallelism          `yaml:"parallelism"`
	JobTasks                  int                  `yaml:"job_tasks"`
	BackoffLimitPerIndex      int                  `yaml:"backoff_limit_per_index"`
	MaxFailedIndexes          int                  `yaml:"max_failed_indexes,omitempty"`
	Grace                     Duration             `yaml:"grace"`
	TTL                       Duration             `yaml:"ttl"`
	Resources                 map[string]Resources `yaml:"resources,omitempty"`
	PriorityClass             string               `yaml:"priority_class,omitempty"`
	Spot                      bool                 `yaml:"spot"`
	NodeSelector              map[string]string    `yaml:"node_selector,omitempty"`
	Tolerations               []Toleration         `yaml:"tolerations,omitempty"`
	ServiceAccount            string               `yaml:"service_account"`
	ServiceAccountToken       bool                 `yaml:"service_account_token"`
	ServiceAccountAnnotations map[string]string    `yaml:"service_account_annotations,omitempty"`
	DriverServiceAccount      string               `yaml:"driver_service_account"`
	Env                       map[string]string    `yaml:"env,omitempty"`
	EnvFromSecrets            []string             `yaml:"env_from_secrets,omitempty"`
	CredentialsSecret         string               `yaml:"credentials_secret,omitempty"`
	WebIdentityRole           string               `yaml:"web_identity_role,omitempty"`
	WebIdentityAudience       string               `yaml:"web_identity_audience"`
	Annotations               map[string]string    `yaml:"annotations,omitempty"`
	Labels                    map[string]string    `yaml:"labels,omitempty"`
	MetricsPort               int                  `yaml:"metrics_port"`
	MetricsLegacyNames        bool                 `yaml:"metrics_legacy_names,omitempty"`
	MetricsTopHosts           int                  `yaml:"metrics_top_hosts,omitempty"`
	PolitenessConfigMap       string               `yaml:"politeness_config_map"`
}

// Parallelism bounds the number of pods of a stage at a time. Min is 0 if the number is always Max.
type Parallelism struct {
	Min int `yaml:"min,omitempty"`
	Max int `yaml:"max"`
}

// Resources holds the requests and limits of a pod. A zero value means an estimate from the plan.
type Resources struct {
	CPU     string `yaml:"cpu,omitempty"`
	Memory  Bytes  `yaml:"memory,omitempty"`
	Scratch Bytes  `yaml:"scratch,omitempty"`
}

// Toleration lets pods run on nodes that have a taint.
type Toleration struct {
	Key      string `yaml:"key,omitempty"`
	Operator string `yaml:"operator,omitempty"`
	Value    string `yaml:"value,omitempty"`
	Effect   string `yaml:"effect,omitempty"`
}

// MinGrace is the time that a fetch pod needs to write its last checkpoint and the record of its
// attempt.
const MinGrace = 40 * second

// PoisonDeaths is how many attempts of a fetch task may die before the URL that kills them is
// quarantined. The first three attempts die without progress. The next three die while they fetch
// this URL alone.
const PoisonDeaths = 6
