package manifest

// Tasks is tasks-DIGEST.json: tasks of one stage for other machines. The machine that runs
// the n-th task gets only n.
type Tasks struct {
	Header
	Crawl      string `json:"crawl"`
	Round      int    `json:"round"`
	Stage      string `json:"stage"`
	Plan       string `json:"plan"`
	Partitions []int  `json:"partitions"` // ascending
}

func (*Tasks) kind() string { return "tasks" }

// Settings is settings-DIGEST.json: the config of tasks on other machines. It differs from
// the frozen config only in keys that may change during a crawl.
type Settings struct {
	Header
	Config string `json:"config"` // YAML with ${VAR} unexpanded
}

func (*Settings) kind() string { return "settings" }
