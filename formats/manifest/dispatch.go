package manifest

// Tasks is tasks-DIGEST.json, a list of tasks of one stage that other machines run. A pod of an
// Indexed Job knows only the index of its task in this list.
type Tasks struct {
	Header
	Crawl      string `json:"crawl"`
	Round      int    `json:"round"`
	Stage      string `json:"stage"`
	Plan       string `json:"plan"`
	Partitions []int  `json:"partitions"` // numbers of the tasks' partitions, ascending
}

func (*Tasks) kind() string { return "tasks" }

// Settings is settings-DIGEST.json, the config for tasks on other machines. It differs from the
// frozen config at most in keys that may change during a crawl.
type Settings struct {
	Header
	Config string `json:"config"` // config as YAML, with ${VAR} unexpanded
}

func (*Settings) kind() string { return "settings" }
