package manifest

// Planning is the inputs.json of tasks that help to make a plan. They do the work of one phase: they write
// the files of partitions, or copy these files to the plan's folder.
type Planning struct {
	Header
	Crawl string     `json:"crawl"`
	Round int        `json:"round"`
	Plan  string     `json:"plan"`  // ID of the plan; empty in the phase write, whose files decide it
	Phase string     `json:"phase"` // write or place
	Tasks int        `json:"tasks"` // number of tasks in the phase
	Nonce string     `json:"nonce"` // random text that distinguishes plans that began in the same second
	Parts *PlanParts `json:"parts,omitempty"`
	From  []File     `json:"from,omitempty"` // files to copy
	To    []string   `json:"to,omitempty"`   // keys of the copies, in the same order
}

func (*Planning) kind() string { return "planning" }

// PlanParts says how to write the files of partitions.
type PlanParts struct {
	Format        int        `json:"format"`          // format of the plan
	BeforeFormat8 bool       `json:"before_format_8"` // the crawl began before format 8
	Hide          bool       `json:"hide"`            // names of sources hide their secrets
	Names         []byte     `json:"names"`           // names of the files of all entries, as package planner packs them
	Parts         []PlanPart `json:"parts"`
}

// PlanPart is a partition whose files a task writes. The result of the task has the files.
type PlanPart struct {
	Partition int   `json:"partition"`
	Rows      int64 `json:"rows"`                // number of URLs
	Left      int64 `json:"left"`                // number of other URLs with spellings
	URLs      *File `json:"urls,omitempty"`      // file of the URLs
	Spellings *File `json:"spellings,omitempty"` // file of the other URLs; null if there are none
}
