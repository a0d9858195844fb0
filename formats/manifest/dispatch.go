package manifest

// Tasks is tasks-DIGEST.json: tasks of one stage for other machines. Whoever runs the n-th of them
// gets only n.
type Tasks struct {
	Header
	Crawl      string `json:"crawl"`
	Round      int    `json:"round"`
	Stage      string `json:"stage"`
	Plan       string `json:"plan"`
	Partitions []int  `json:"partitions"` // ascending
}

func (*Tasks) kind() string { return "tasks" }

// Settings is settings-DIGEST.json: the config of tasks on other machines. It differs from the
// frozen one in the keys that may change during a crawl.
type Settings struct {
	Header
	Config string `json:"config"` // YAML, ${VAR} unexpanded
}

func (*Settings) kind() string { return "settings" }
