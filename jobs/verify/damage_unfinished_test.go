package verify

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/stages"
)

// unfinish turns round 1 into a round that is being fetched. It removes the result of partition 0, but
// keeps the partition's other objects.
func (d *damagedCrawl) unfinish() {
	d.t.Helper()
	p := d.load(1).Plan
	d.delete(layout.Sealed(testCrawl, 1))
	for _, stage := range stages.Order {
		if stage != stages.Fetch {
			d.delete(layout.Inputs(testCrawl, 1, string(stage)))
		}
		for n := range stage.Tasks(p) {
			if stage != stages.Fetch || n == 0 {
				d.delete(layout.Result(testCrawl, 1, string(stage), n))
			}
		}
	}
	d.forget()
}

// checkpoint reads the checkpoint of the unfinished partition.
func (d *damagedCrawl) checkpoint() (c manifest.Checkpoint) {
	d.t.Helper()
	if _, _, err := manifest.Load(d.t.Context(), d.b, unfinished, &c); err != nil {
		d.t.Fatal(err)
	}
	return c
}

var unfinished = layout.Checkpoint(testCrawl, 1, 0)

// fileOf returns the last file of a dataset that the checkpoint lists.
func (d *damagedCrawl) fileOf(dataset string) string {
	d.t.Helper()
	key := ""
	for _, f := range d.checkpoint().Files {
		if f.Dataset == dataset {
			key = f.Key
		}
	}
	if key == "" {
		d.t.Fatalf("the checkpoint lists no %s", dataset)
	}
	return key
}

// flip changes one byte in the middle of an object.
func (d *damagedCrawl) flip(key string) {
	d.t.Helper()
	body := bytes.Clone(d.body(key))
	body[len(body)/2] ^= 1
	d.replace(key, body)
}

func TestDamageToAnUnfinishedRoundIsFoundAsThatToASealedOne(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	cases := damages{
		"no checkpoint": func(d *damagedCrawl) map[string]string {
			d.delete(unfinished)
			return one(checkpoints, unfinished)
		},
		"no fetch folder and no WARC files": func(d *damagedCrawl) map[string]string {
			prefixes := []string{layout.FetchDir(testCrawl, 1, 0), layout.WARCs(testCrawl, 1, d.load(1).Plan.ID, 0)}
			for _, key := range d.keys() {
				if slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(key, p) }) {
					d.delete(key)
				}
			}
			return one(checkpoints, unfinished)
		},
		"a checkpoint with a byte changed": func(d *damagedCrawl) map[string]string {
			body := bytes.Replace(d.body(unfinished), []byte(`"stalled": 1`), []byte(`"stalled": 2`), 1)
			d.replace(unfinished, bytes.Replace(body, []byte(`"counter": `), []byte(`"counter": 1`), 1))
			return one(checkpoints, unfinished)
		},
		"a checkpoint cut short": func(d *damagedCrawl) map[string]string {
			d.replace(unfinished, d.body(unfinished)[:300])
			return one(checkpoints, unfinished)
		},
		"an empty checkpoint": func(d *damagedCrawl) map[string]string {
			d.replace(unfinished, nil)
			return one(checkpoints, unfinished)
		},
		"the checkpoint of another partition": func(d *damagedCrawl) map[string]string {
			d.replace(unfinished, d.body(layout.Checkpoint(testCrawl, 1, 1)))
			return one(checkpoints, unfinished)
		},
		"a checkpoint that records nothing": func(d *damagedCrawl) map[string]string {
			edit(d, unfinished, func(c *manifest.Checkpoint) { c.Recorded = nil })
			return map[string]string{checkpoints: unfinished, oneOutcome: ""}
		},
		"a checkpoint that lists fewer fetches": func(d *damagedCrawl) map[string]string {
			edit(d, unfinished, func(c *manifest.Checkpoint) {
				c.Files = slices.DeleteFunc(c.Files, func(f manifest.File) bool { return f.Dataset == stages.FileFetches })
			})
			return map[string]string{checkpoints: unfinished, oneOutcome: ""}
		},
		"an older checkpoint": func(d *damagedCrawl) map[string]string {
			edit(d, unfinished, func(c *manifest.Checkpoint) {
				c.Epoch, c.Counter, c.Recorded, c.Files, c.Counts, c.Complete = 0, 1, nil, nil, nil, false
			})
			return one(checkpoints, unfinished)
		},
	}
	for _, dataset := range []string{stages.FileFetches, stages.FileRequests, stages.FileCaptures, stages.FilePages, stages.FileText, stages.FileLinkSets, stages.FileRobots, stages.FileWARC, stages.FileCDXJ} {
		cases["a byte of "+dataset+" changed"] = func(d *damagedCrawl) map[string]string {
			key := d.fileOf(dataset)
			d.flip(key)
			return map[string]string{fileDigests: key, "*": key}
		}
		cases["no "+dataset] = func(d *damagedCrawl) map[string]string {
			key := d.fileOf(dataset)
			d.delete(key)
			return one(filesThere, key)
		}
	}
	prepared := damages{}
	for name, damage := range cases {
		prepared[name] = func(d *damagedCrawl) map[string]string {
			d.unfinish()
			return damage(d)
		}
	}
	findEach(t, prepared)
}

func TestTheAdviceForAnUnfinishedRoundFetchesNothingAgain(t *testing.T) {
	d := copyCrawl(t)
	d.unfinish()
	d.delete(unfinished)
	r := d.audit()
	if r.Found() != 1 || !strings.Contains(r.Violations[0].Problem, "restore its last state") || strings.Contains(r.Violations[0].Problem, "plan`") {
		t.Errorf("%+v", r.Violations)
	}
}

func TestAnUnfinishedRoundIsReadAsDeeplyAsASealedOne(t *testing.T) {
	d := copyCrawl(t)
	all := map[string]int64{}
	for _, c := range d.audit(func(o *Options) { o.Round = 1 }).Checked {
		all[c.Check] = c.Looked
	}
	d.unfinish()
	r := d.audit(func(o *Options) { o.Round = 1 })
	for _, v := range r.Violations {
		t.Errorf("%+v", v)
	}
	for _, c := range r.Checked {
		if c.Invariant > 0 && c.Check != pointers && c.Looked != all[c.Check] { // the check of pointers reads fewer rows, because the round has no published pages yet
			t.Errorf("%s looked at %d of %d", c.Check, c.Looked, all[c.Check])
		}
	}
}
