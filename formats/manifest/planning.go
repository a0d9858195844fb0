package manifest

import "encoding/json"

// Planning is the inputs.json of tasks that make a plan. They do the work of one phase: a share of reading,
// joining, cutting or writing, or copies of files to the plan's folder.
type Planning struct {
	Header
	Crawl  string     `json:"crawl"`
	Round  int        `json:"round"`
	Plan   string     `json:"plan"`  // ID of the plan; empty before the phase place, because the files decide it
	Phase  string     `json:"phase"` // read, join, cut, write or place
	Tasks  int        `json:"tasks"` // number of tasks in the phase
	Nonce  string     `json:"nonce"` // random text that distinguishes plans that began in the same second
	Basis  *PlanBasis `json:"basis,omitempty"`
	Shares []string   `json:"shares,omitempty"` // digest of the document with each task's work
	From   []File     `json:"from,omitempty"`   // files to copy
	To     []string   `json:"to,omitempty"`     // keys of the copies, in the same order
}

func (*Planning) kind() string { return "planning" }

// PlanBasis is what the tasks of a plan have in common beside their shares. A task reads earlier rounds, stops and
// takedowns from the store. They must be those that the digest State stands for.
type PlanBasis struct {
	Of     Crawl  `json:"of"`     // crawl.json, as the plan's commit will store it
	Config string `json:"config"` // with the politeness in force
	Now    string `json:"now"`    // time of the plan, RFC 3339
	Format int    `json:"format"` // format of the plan
	Force  bool   `json:"force"`  // plan also what was fetched within plan.skip_within
	State  string `json:"state"`
	OptOut *File  `json:"opt_out,omitempty"` // the opt-out list; null if there is none
}

// Share is the result of a task that makes a plan, as package planner encodes it.
type Share = json.RawMessage
