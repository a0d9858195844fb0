package manifest

// Tasks is tasks-DIGEST.json: tasks of one stage that are run together somewhere
// else. Who runs the n-th of them is given n alone.
type Tasks struct {
	Header
	Crawl      string `json:"crawl"`
	Round      int    `json:"round"`
	Stage      string `json:"stage"`
	Plan       string `json:"plan"`
	Partitions []int  `json:"partitions"` // ascending
}

func (*Tasks) kind() string { return "tasks" }

// Settings is settings-DIGEST.json: the config that tasks somewhere else run with,
// which differs from the frozen one where a running crawl may change.
type Settings struct {
	Header
	Config string `json:"config"` // YAML, ${VAR} unexpanded
}

func (*Settings) kind() string { return "settings" }
