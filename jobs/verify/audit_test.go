package verify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/jobs/worker"
	"crawlbatch.io/crawlbatch/stages"
)

// mapSide are the checks of the store's structure and of invariants 1 to 4.
func mapSide() []check {
	return slices.DeleteFunc(checks(), func(c check) bool { return c.lists[0].invariant > 4 })
}

// audit looks at the crawl as it stands now.
func (d *damaged) audit(change ...func(*Options)) *Report {
	d.t.Helper()
	o := d.a.Options
	o.OneClock = true
	for _, c := range change {
		c(&o)
	}
	r, err := newAudit(o).run(d.t.Context(), mapSide())
	if err != nil {
		d.t.Fatal(err)
	}
	return r
}

func (d *damaged) body(key string) []byte {
	d.t.Helper()
	body, _, err := d.b.Get(d.t.Context(), key, 1<<30)
	if err != nil {
		d.t.Fatal(err)
	}
	return body
}

func (d *damaged) delete(key string) {
	d.t.Helper()
	if err := d.b.Delete(d.t.Context(), key); err != nil {
		d.t.Fatal(err)
	}
}

// edit changes a document.
func edit[T any, D interface {
	*T
	manifest.Document
}](d *damaged, key string, change func(D)) {
	d.t.Helper()
	doc := D(new(T))
	if _, _, err := manifest.Load(d.t.Context(), d.b, key, doc); err != nil {
		d.t.Fatal(err)
	}
	change(doc)
	d.replace(key, encode(d.t, doc))
}

// settle has all documents of round 0 agree with an object as it is now, so that
// only what is in it can be found wrong.
func (d *damaged) settle(key string) {
	d.t.Helper()
	body := d.body(key)
	rows := int64(-1)
	if t, err := table.Open[footer](d.t.Context(), d.b, key); strings.HasSuffix(key, ".parquet") && err == nil {
		rows = t.Rows()
		if err := t.Close(); err != nil {
			d.t.Fatal(err)
		}
	}
	update := func(files []manifest.File) (found bool) {
		for i := range files {
			if f := &files[i]; f.Key == key {
				f.Bytes, f.SHA256, found = int64(len(body)), manifest.Digest(body), true
				if rows >= 0 {
					f.Rows = rows
				}
			}
		}
		return found
	}
	p, _, err := worker.FindPlan(d.t.Context(), d.b, testCrawl, 0)
	if err != nil {
		d.t.Fatal(err)
	}
	for i := range p.Partitions {
		if one := []manifest.File{p.Partitions[i].File}; update(one) {
			p.Partitions[i].File = one[0]
			d.replace(layout.PlanManifest(testCrawl, 0, p.ID), encode(d.t, p))
		}
	}
	for _, stage := range stages.Order {
		for n := range stage.Tasks(p) {
			d.editIf(layout.Result(testCrawl, 0, string(stage), n), &manifest.Result{}, func(doc manifest.Document) bool { return update(doc.(*manifest.Result).Files) })
			if stage == stages.Fetch {
				d.editIf(layout.Checkpoint(testCrawl, 0, n), &manifest.Checkpoint{}, func(doc manifest.Document) bool { return update(doc.(*manifest.Checkpoint).Files) })
			}
		}
	}
	d.editIf(layout.Sealed(testCrawl, 0), &manifest.Sealed{}, func(doc manifest.Document) bool { return update(doc.(*manifest.Sealed).Files) })
	d.freeze(p)
}

// freeze has inputs.json name the results as they are now.
func (d *damaged) freeze(p *manifest.Plan) {
	d.t.Helper()
	for _, stage := range stages.Order {
		if len(worker.Feeds(stage)) == 0 {
			continue
		}
		edit(d, layout.Inputs(testCrawl, 0, string(stage)), func(in *manifest.Inputs) {
			for i := range in.Tasks {
				t := &in.Tasks[i]
				t.SHA256 = manifest.Digest(d.body(layout.Result(testCrawl, 0, t.Stage, t.Partition)))
			}
		})
	}
}

func (d *damaged) editIf(key string, doc manifest.Document, change func(manifest.Document) bool) {
	d.t.Helper()
	if _, _, err := manifest.Load(d.t.Context(), d.b, key, doc); err != nil {
		d.t.Fatal(err)
	}
	if change(doc) {
		d.replace(key, encode(d.t, doc))
	}
}

// part is the published part of a dataset of partition 0 of round 0.
func part(dataset string) string { return layout.Table(dataset, testCrawl, 0, 0) }

// change rewrites the rows of a part, and has the documents agree.
func change[T any](d *damaged, key string, f func([]T) []T) {
	d.t.Helper()
	rewrite(d, key, f)
	d.settle(key)
}

// first gives the first row that fits.
func first[T any](d *damaged, rows []T, fits func(i int) bool) int {
	d.t.Helper()
	for i := range rows {
		if fits(i) {
			return i
		}
	}
	d.t.Fatalf("none of %d rows fits", len(rows))
	return 0
}

func result(stage stages.Stage, n int) string {
	return layout.Result(testCrawl, 0, string(stage), n)
}

// warcOf is the first WARC file of partition 0.
func warcOf(d *damaged) string {
	d.t.Helper()
	r, _, err := worker.LoadResult(d.t.Context(), d.b, stages.Task{Stage: stages.Fetch, Crawl: testCrawl})
	if err != nil || len(r.FilesOf(stages.FileWARC)) == 0 {
		d.t.Fatalf("no WARC file: %v", err)
	}
	return r.FilesOf(stages.FileWARC)[0].Key
}

func captures(subset string) string { return layout.Captures(testCrawl, subset, 0, 0) }

func TestACrawlIsAsPromised(t *testing.T) {
	d := copyCrawl(t)
	r := d.audit()
	for _, v := range r.Violations {
		t.Errorf("%+v", v)
	}
	if !slices.Equal(r.Rounds, []int{0, 1}) || len(r.Unsealed) > 0 {
		t.Errorf("rounds %v, not sealed %v", r.Rounds, r.Unsealed)
	}
	for _, c := range r.Checked {
		t.Logf("%d %s: %d %s", c.Invariant, c.Check, c.Looked, c.Of)
		if c.Looked == 0 || c.Of == "" {
			t.Errorf("%q looked at %d %q", c.Check, c.Looked, c.Of)
		}
	}
	for _, parallel := range []int{1, 7} {
		if diff := cmp.Diff(r, d.audit(func(o *Options) { o.Parallel = parallel })); diff != "" {
			t.Errorf("the report depends on what runs beside: %s", diff)
		}
	}
}

// TestDamageIsFoundByItsCheck damages a copy of the crawl in the way that a check is
// there for, and wants that check, no other, to name the object.
func TestDamageIsFoundByItsCheck(t *testing.T) {
	one := func(check, object string) map[string]string { return map[string]string{check: object} }
	cases := map[string]func(d *damaged) map[string]string{
		"crawl.json of another crawl": func(d *damaged) map[string]string {
			edit(d, layout.CrawlManifest(testCrawl), func(c *manifest.Crawl) { c.Crawl = "2026-12" })
			return one(documents, layout.CrawlManifest(testCrawl))
		},
		"crawl.json cut short": func(d *damaged) map[string]string {
			d.replace(layout.CrawlManifest(testCrawl), d.body(layout.CrawlManifest(testCrawl))[:40])
			return one(documents, layout.CrawlManifest(testCrawl))
		},
		"politeness that is none": func(d *damaged) map[string]string {
			d.replace(layout.Politeness(testCrawl), encode(d.t, &manifest.Politeness{Revision: 1, Config: "politeness: {dely: 1s}"}))
			return one(documents, layout.Politeness(testCrawl))
		},
		"a plan of a newer format": func(d *damaged) map[string]string {
			key := layout.PlanManifest(testCrawl, 0, d.load(0).plan.ID)
			d.replace(key, bytes.Replace(d.body(key), []byte(`"format_version": `), []byte(`"format_version": 99`), 1))
			return one(documents, key)
		},
		"a plan of another round": func(d *damaged) map[string]string {
			key := layout.PlanManifest(testCrawl, 1, d.load(1).plan.ID)
			edit(d, key, func(p *manifest.Plan) { p.Round = 0 })
			return one(documents, key)
		},
		"no start.json": func(d *damaged) map[string]string {
			d.delete(layout.Start(testCrawl, 0))
			return one(documents, layout.Start(testCrawl, 0))
		},
		"inputs of other results": func(d *damaged) map[string]string {
			edit(d, layout.Inputs(testCrawl, 0, "merge"), func(in *manifest.Inputs) { in.Tasks[0].SHA256 = strings.Repeat("0", 64) })
			return one(documents, result(stages.Fetch, 0))
		},
		"inputs that lack a result": func(d *damaged) map[string]string {
			edit(d, layout.Inputs(testCrawl, 0, "merge"), func(in *manifest.Inputs) { in.Tasks = in.Tasks[1:] })
			return one(documents, layout.Inputs(testCrawl, 0, "merge"))
		},
		"no inputs": func(d *damaged) map[string]string {
			d.delete(layout.Inputs(testCrawl, 0, "rank"))
			return one(documents, layout.Inputs(testCrawl, 0, "rank"))
		},
		"the result of another partition": func(d *damaged) map[string]string {
			d.replace(result(stages.Merge, 0), d.body(result(stages.Merge, 1)))
			return one(documents, result(stages.Merge, 0))
		},
		"a result that is missing": func(d *damaged) map[string]string {
			d.delete(result(stages.Publish, 0))
			return one(documents, result(stages.Publish, 0))
		},
		"a seal that lacks a file": func(d *damaged) map[string]string {
			edit(d, layout.Sealed(testCrawl, 0), func(s *manifest.Sealed) { s.Files = s.Files[1:] })
			return one(documents, layout.Sealed(testCrawl, 0))
		},
		"a seal that counts wrong": func(d *damaged) map[string]string {
			edit(d, layout.Sealed(testCrawl, 0), func(s *manifest.Sealed) { s.Counts[0].N++ })
			return one(documents, layout.Sealed(testCrawl, 0))
		},
		"a round before the last without a seal": func(d *damaged) map[string]string {
			d.delete(layout.Sealed(testCrawl, 0))
			return one(documents, layout.Sealed(testCrawl, 0))
		},
		"a part that is gone": func(d *damaged) map[string]string {
			d.delete(part(stages.FileFetches))
			return one(filesThere, part(stages.FileFetches))
		},
		"a part cut short": func(d *damaged) map[string]string {
			d.replace(part(stages.FileRequests), d.body(part(stages.FileRequests))[:2000])
			return one(filesThere, part(stages.FileRequests))
		},
		"a part that is no table": func(d *damaged) map[string]string {
			d.replace(part(stages.FileText), d.body(part(stages.FileText))[:2000])
			d.settle(part(stages.FileText))
			return one(tablesRead, part(stages.FileText))
		},
		"a part with fewer rows": func(d *damaged) map[string]string {
			rewrite(d, part(stages.FileText), func(rows []schema.Text) []schema.Text { return rows[1:] })
			d.settle(part(stages.FileText))
			edit(d, result(stages.Merge, 0), func(r *manifest.Result) { r.Files[slices.IndexFunc(r.Files, isPart(stages.FileText))].Rows++ })
			edit(d, layout.Sealed(testCrawl, 0), func(s *manifest.Sealed) {
				s.Files[slices.IndexFunc(s.Files, func(f manifest.File) bool { return f.Key == part(stages.FileText) })].Rows++
			})
			d.freeze(d.load(0).plan)
			return one(tablesRead, part(stages.FileText))
		},
		"a byte that no reader looks at": func(d *damaged) map[string]string {
			key := warcOf(d)
			body := bytes.Clone(d.body(key))
			body[9]++ // the operating system in the first gzip header
			d.replace(key, body)
			return one(fileDigests, key)
		},
		"no checkpoint": func(d *damaged) map[string]string {
			d.delete(layout.Checkpoint(testCrawl, 0, 0))
			return one(checkpoints, layout.Checkpoint(testCrawl, 0, 0))
		},
		"a checkpoint that is not complete": func(d *damaged) map[string]string {
			edit(d, layout.Checkpoint(testCrawl, 0, 0), func(c *manifest.Checkpoint) { c.Complete = false })
			return one(checkpoints, layout.Checkpoint(testCrawl, 0, 0))
		},
		"a checkpoint of another partition": func(d *damaged) map[string]string {
			d.replace(layout.Checkpoint(testCrawl, 0, 0), d.body(layout.Checkpoint(testCrawl, 0, 1)))
			return one(checkpoints, layout.Checkpoint(testCrawl, 0, 0))
		},
		"a checkpoint that lacks a row": func(d *damaged) map[string]string {
			edit(d, layout.Checkpoint(testCrawl, 0, 0), func(c *manifest.Checkpoint) { c.Recorded = nil })
			return one(checkpoints, layout.Checkpoint(testCrawl, 0, 0))
		},
		"a result that lists another segment than its checkpoint": func(d *damaged) map[string]string {
			edit(d, layout.Checkpoint(testCrawl, 0, 0), func(c *manifest.Checkpoint) { c.Files = c.Files[1:] })
			return one(checkpoints, result(stages.Fetch, 0))
		},
		"a URL without outcome": func(d *damaged) map[string]string {
			change(d, part(stages.FileFetches), func(rows []schema.Fetch) []schema.Fetch { return rows[1:] })
			return one(oneOutcome, part(stages.FileFetches))
		},
		"a URL with two outcomes": func(d *damaged) map[string]string {
			change(d, part(stages.FileFetches), func(rows []schema.Fetch) []schema.Fetch { return slices.Insert(rows, 1, rows[0]) })
			return one(oneOutcome, part(stages.FileFetches))
		},
		"an outcome of a URL that was not planned": func(d *damaged) map[string]string {
			change(d, part(stages.FileFetches), func(rows []schema.Fetch) []schema.Fetch {
				i := first(d, rows, func(i int) bool {
					return rows[i].RobotsAllowed == nil || *rows[i].RobotsAllowed && rows[i].RobotsRule == ""
				})
				rows[i].URL += "x"
				return rows
			})
			return one(oneOutcome, part(stages.FileFetches))
		},
		"an outcome that is none": func(d *damaged) map[string]string {
			change(d, part(stages.FileFetches), func(rows []schema.Fetch) []schema.Fetch {
				rows[first(d, rows, func(i int) bool { return rows[i].Outcome == schema.OK })].Outcome = "lost"
				return rows
			})
			return map[string]string{knownOutcomes: part(stages.FileFetches), oneOutcome: part(stages.FileFetches)}
		},
		"a domain in two partitions": func(d *damaged) map[string]string {
			p := d.load(0).plan
			other, err := table.Collect(table.Concat[schema.PlannedURL](d.t.Context(), d.b, []string{p.Partitions[1].File.Key}))
			if err != nil {
				d.t.Fatal(err)
			}
			change(d, p.Partitions[0].File.Key, func(rows []schema.PlannedURL) []schema.PlannedURL {
				rows[0] = other[0]
				return rows
			})
			return map[string]string{apart: "", oneOutcome: part(stages.FileFetches)}
		},
		"a request by another rule": func(d *damaged) map[string]string {
			change(d, part(stages.FileRequests), func(rows []schema.Request) []schema.Request {
				rows[first(d, rows, func(i int) bool { return rows[i].RobotsDigest != "" })].RobotsRule = "Allow: /all"
				return rows
			})
			return one(obeyed, part(stages.FileRequests))
		},
		"a request that robots.txt denied": func(d *damaged) map[string]string {
			denied := deniedURL(d)
			change(d, part(stages.FileRequests), func(rows []schema.Request) []schema.Request {
				rows[first(d, rows, func(i int) bool { return rows[i].RobotsDigest != "" && originOf(rows[i].URL) == originOf(denied) })].URL = denied
				return rows
			})
			return one(obeyed, part(stages.FileRequests))
		},
		"a request under a robots.txt that was not in force": func(d *damaged) map[string]string {
			change(d, part(stages.FileRequests), func(rows []schema.Request) []schema.Request {
				rows[first(d, rows, func(i int) bool { return rows[i].RobotsDigest != "" })].RobotsDigest = ""
				return rows
			})
			return one(obeyed, part(stages.FileRequests))
		},
		"a request before robots.txt was asked for": func(d *damaged) map[string]string {
			change(d, part(stages.FileRequests), func(rows []schema.Request) []schema.Request {
				i := first(d, rows, func(i int) bool {
					return rows[i].Purpose == schema.ForRobots && rows[i].Status == 200 && i+1 < len(rows) && rows[i+1].Host == rows[i].Host
				})
				return slices.Delete(rows, i, i+1)
			})
			return map[string]string{obeyed: part(stages.FileRequests), verdicts: part(stages.FileFetches)}
		},
		"a verdict by another rule": func(d *damaged) map[string]string {
			change(d, part(stages.FileFetches), func(rows []schema.Fetch) []schema.Fetch {
				rows[first(d, rows, func(i int) bool { return rows[i].Outcome == schema.RobotsDenied })].RobotsRule = "Disallow: /"
				return rows
			})
			return one(verdicts, part(stages.FileFetches))
		},
		"a request that came too early": func(d *damaged) map[string]string {
			change(d, part(stages.FileRequests), func(rows []schema.Request) []schema.Request {
				i := second(d, rows, func(a, b *schema.Request) bool { return b.Purpose == schema.ForPage && a.Purpose != schema.ForRobots })
				rows[i-1].TotalMS, rows[i].Start = 4, rows[i-1].Start+5
				return rows
			})
			return one(pace, part(stages.FileRequests))
		},
		"a request that came too early after the round before": func(d *damaged) map[string]string {
			p := d.load(1).plan
			began := map[string]int64{}
			for n := range p.Partitions {
				for q, err := range table.Concat[schema.Request](d.t.Context(), d.b, []string{layout.Table(stages.FileRequests, testCrawl, 1, n)}) {
					if err != nil {
						d.t.Fatal(err)
					}
					if at, ok := began[q.Host]; !ok || q.Start < at {
						began[q.Host] = q.Start
					}
				}
			}
			change(d, part(stages.FileRequests), func(rows []schema.Request) []schema.Request {
				i := first(d, rows, func(i int) bool {
					return began[rows[i].Host] > 0 && i+1 < len(rows) && rows[i+1].Host != rows[i].Host
				})
				rows[i].Start = began[rows[i].Host] - 15
				return rows
			})
			return map[string]string{pace: ""}
		},
		"a gap that was too short": func(d *damaged) map[string]string {
			change(d, part(stages.FileRequests), func(rows []schema.Request) []schema.Request {
				*rows[second(d, rows, func(_, b *schema.Request) bool { return b.GapMS != nil })].GapMS = 3
				return rows
			})
			return one(pace, part(stages.FileRequests))
		},
		"two requests in flight": func(d *damaged) map[string]string {
			change(d, part(stages.FileRequests), func(rows []schema.Request) []schema.Request {
				i := second(d, rows, func(_, _ *schema.Request) bool { return true })
				rows[i-1].TotalMS = rows[i].Start - rows[i-1].Start + 2
				return rows
			})
			return one(inFlight, part(stages.FileRequests))
		},
		"a delay below the Crawl-delay": func(d *damaged) map[string]string {
			object := ""
			for n := range d.load(0).plan.Partitions {
				object = layout.Table(stages.FileRequests, testCrawl, 0, n)
				rows, err := table.Collect(table.Concat[schema.Request](d.t.Context(), d.b, []string{object}))
				if err != nil {
					d.t.Fatal(err)
				}
				if i := slices.IndexFunc(rows, func(q schema.Request) bool { return q.DelayMS == 40 && q.RobotsDigest != "" }); i >= 0 {
					change(d, object, func(rows []schema.Request) []schema.Request {
						rows[i].DelayMS = 20
						return rows
					})
					return one(crawlDelay, object)
				}
			}
			d.t.Fatal("no host has a Crawl-delay")
			return nil
		},
		"a record that is damaged": func(d *damaged) map[string]string {
			key := warcOf(d)
			rows, err := table.Collect(table.Concat[schema.Capture](d.t.Context(), d.b, []string{captures(schema.SubsetWARC)}))
			if err != nil || len(rows) == 0 {
				d.t.Fatal(err)
			}
			body := bytes.Clone(d.body(key))
			body[rows[0].WARCRecordOffset+rows[0].WARCRecordLength/2] ^= 0x20
			d.replace(key, body)
			d.settle(key)
			return one(records, key)
		},
		"a robots.txt whose record is damaged": func(d *damaged) map[string]string {
			rows, err := table.Collect(table.Concat[schema.Capture](d.t.Context(), d.b, []string{captures(schema.SubsetRobots)}))
			if err != nil {
				d.t.Fatal(err)
			}
			c := rows[first(d, rows, func(i int) bool { return rows[i].FetchStatus == 200 })]
			body := bytes.Clone(d.body(c.WARCFilename))
			clear(body[c.WARCRecordOffset : c.WARCRecordOffset+c.WARCRecordLength])
			d.replace(c.WARCFilename, body)
			d.settle(c.WARCFilename)
			return map[string]string{records: c.WARCFilename, obeyed: c.WARCFilename}
		},
		"a capture of another digest": func(d *damaged) map[string]string {
			change(d, captures(schema.SubsetWARC), func(rows []schema.Capture) []schema.Capture {
				rows[0].ContentDigest = strings.Repeat("A", 32)
				return rows
			})
			return map[string]string{records: warcOf(d), indexes: layout.CDXJ(warcOf(d)), pointers: ""}
		},
		"a capture that is gone": func(d *damaged) map[string]string {
			change(d, captures(schema.SubsetWARC), func(rows []schema.Capture) []schema.Capture { return rows[1:] })
			return one(pointers, "")
		},
		"an outcome that points beside its record": func(d *damaged) map[string]string {
			change(d, part(stages.FileFetches), func(rows []schema.Fetch) []schema.Fetch {
				rows[first(d, rows, func(i int) bool { return rows[i].Outcome == schema.OK })].WARCRecordOff++
				return rows
			})
			return one(pointers, part(stages.FileFetches))
		},
		"a page that points to another record": func(d *damaged) map[string]string {
			change(d, part(stages.FilePages), func(rows []schema.Page) []schema.Page {
				rows[0].WARCRecordOffset, rows[0].WARCRecordLength = rows[1].WARCRecordOffset, rows[1].WARCRecordLength
				return rows
			})
			return one(pointers, part(stages.FilePages))
		},
		"an index that points beside a record": func(d *damaged) map[string]string {
			key := layout.CDXJ(warcOf(d))
			body := d.body(key)
			i := bytes.Index(body, []byte(`"offset":"`)) + len(`"offset":"`)
			end := i + bytes.IndexByte(body[i:], '"')
			d.replace(key, slices.Concat(body[:i], []byte("7"), body[end:]))
			d.settle(key)
			return one(indexes, key)
		},
		"an index out of order": func(d *damaged) map[string]string {
			key := layout.CDXJ(warcOf(d))
			lines := bytes.SplitAfter(d.body(key), []byte("\n"))
			slices.Reverse(lines)
			d.replace(key, bytes.Join(lines, nil))
			d.settle(key)
			return one(indexes, key)
		},
	}
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := copyCrawl(t)
			want := cases[name](d)
			r := d.audit()
			if r.Found() == 0 {
				t.Fatal("nothing was found")
			}
			for _, v := range r.Violations {
				object, ok := want[v.Check]
				if !ok || object != "" && v.Object != object {
					t.Errorf("found besides: %+v", v)
				}
				if strings.TrimSpace(v.Problem) == "" {
					t.Errorf("a violation without words: %+v", v)
				}
			}
			for check := range want {
				if !slices.ContainsFunc(r.Violations, func(v Violation) bool { return v.Check == check }) {
					t.Errorf("%q found nothing; found %+v", check, r.Violations)
				}
			}
		})
	}
}

func isPart(dataset string) func(manifest.File) bool {
	return func(f manifest.File) bool { return f.Key == part(dataset) }
}

// second finds the later of two requests in a row to one host that fit.
func second(d *damaged, rows []schema.Request, fits func(a, b *schema.Request) bool) int {
	d.t.Helper()
	return first(d, rows, func(i int) bool { return i > 0 && rows[i-1].Host == rows[i].Host && fits(&rows[i-1], &rows[i]) })
}

// deniedURL is a planned URL of partition 0 that robots.txt denied, of an origin
// from which others were requested.
func deniedURL(d *damaged) string {
	d.t.Helper()
	asked := map[string]bool{}
	for q, err := range table.Concat[schema.Request](d.t.Context(), d.b, []string{part(stages.FileRequests)}) {
		if err != nil {
			d.t.Fatal(err)
		}
		if q.RobotsDigest != "" {
			asked[originOf(q.URL)] = true
		}
	}
	for f, err := range table.Concat[schema.Fetch](d.t.Context(), d.b, []string{part(stages.FileFetches)}) {
		if err != nil {
			d.t.Fatal(err)
		}
		if f.RobotsAllowed != nil && !*f.RobotsAllowed && asked[originOf(f.URL)] {
			return f.URL
		}
	}
	d.t.Fatal("no URL was denied")
	return ""
}

func TestAnUnfinishedRoundIsCheckedAsFarAsItGoes(t *testing.T) {
	d := copyCrawl(t)
	p := d.load(1).plan
	d.delete(layout.Sealed(testCrawl, 1))
	for _, stage := range stages.Order[1:] {
		d.delete(layout.Inputs(testCrawl, 1, string(stage)))
		for n := range stage.Tasks(p) {
			d.delete(layout.Result(testCrawl, 1, string(stage), n))
		}
	}
	r := d.audit(func(o *Options) { o.Round = 1 })
	for _, v := range r.Violations {
		t.Errorf("%+v", v)
	}
	if !slices.Equal(r.Unsealed, []int{1}) {
		t.Errorf("not sealed: %v", r.Unsealed)
	}
	for _, c := range r.Checked {
		if c.Looked == 0 {
			t.Errorf("%q looked at nothing of the segments", c.Check)
		}
	}

	// A task under way has what its checkpoint lists.
	d.delete(layout.Result(testCrawl, 1, "fetch", 0))
	edit(d, layout.Checkpoint(testCrawl, 1, 0), func(c *manifest.Checkpoint) { c.Complete = false })
	if r := d.audit(); r.Found() > 0 {
		t.Errorf("a task under way: %+v", r.Violations)
	}
	var c manifest.Checkpoint
	if _, _, err := manifest.Load(t.Context(), d.b, layout.Checkpoint(testCrawl, 1, 0), &c); err != nil {
		t.Fatal(err)
	}
	d.delete(c.Files[0].Key)
	if r := d.audit(); r.Found() != 1 || r.Violations[0].Object != c.Files[0].Key || r.Violations[0].Check != filesThere {
		t.Errorf("a lost segment of a task under way: %+v", r.Violations)
	}
}

func TestLaterPolitenessMayAllowMoreInFlight(t *testing.T) {
	d := copyCrawl(t)
	change(d, part(stages.FileRequests), func(rows []schema.Request) []schema.Request {
		i := second(d, rows, func(_, _ *schema.Request) bool { return true })
		rows[i-1].TotalMS = rows[i].Start - rows[i-1].Start + 2
		return rows
	})
	if d.audit().Found() == 0 {
		t.Error("two in flight where one may be were not found")
	}
	later := d.a.Config.Politeness
	later.InFlightPerHost = 2
	if _, err := worker.PublishPoliteness(t.Context(), d.b, testCrawl, later, "test"); err != nil {
		t.Fatal(err)
	}
	if r := d.audit(); r.Found() > 0 {
		t.Errorf("%+v", r.Violations)
	}
}

func TestASampleLooksAtPartOfEachKind(t *testing.T) {
	d := copyCrawl(t)
	all := map[string]int64{}
	for _, c := range d.audit().Checked {
		all[c.Check] = c.Looked
	}
	for _, c := range d.audit(func(o *Options) { o.Sample = 0.2 }).Checked {
		t.Logf("%s: %d of %d", c.Check, c.Looked, all[c.Check])
		everything := c.Check == documents || c.Check == filesThere || c.Check == tablesRead // cheap
		if everything != (c.Looked == all[c.Check]) {
			t.Errorf("%s looked at %d of %d", c.Check, c.Looked, all[c.Check])
		}
	}
	if r := d.audit(func(o *Options) { o.Round = 1 }); !slices.Equal(r.Rounds, []int{1}) {
		t.Errorf("round 1 alone: %v", r.Rounds)
	}
	_, err := Run(t.Context(), Options{Bucket: d.b, Crawl: testCrawl, Round: 5, Config: d.a.Config, Scratch: t.TempDir(), Sample: 1})
	if !errors.Is(err, worker.ErrNoPlan) {
		t.Errorf("a round that there is not: %v", err)
	}
}

// away is a store that answers nothing but documents.
type away struct{ store.Bucket }

func (b away) Open(ctx context.Context, key string) (store.Object, error) {
	if path.Ext(key) == ".json" {
		return b.Bucket.Open(ctx, key)
	}
	return nil, fmt.Errorf("open %q: %w", key, store.ErrUnavailable)
}

func TestAStoreThatIsAwayIsNoViolation(t *testing.T) {
	d := copyCrawl(t)
	o := d.a.Options
	o.Bucket = away{d.b}
	if r, err := Run(t.Context(), o); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("%v, %+v", err, r)
	}
}

func TestTheListOfViolationsIsBoundedAndTheRestCounted(t *testing.T) {
	d := copyCrawl(t)
	change(d, part(stages.FileFetches), func([]schema.Fetch) []schema.Fetch { return nil })
	r := d.audit()
	if len(r.Violations) != maxViolations || r.Found() < maxViolations+5 {
		t.Errorf("%d listed, %d found", len(r.Violations), r.Found())
	}
	if diff := cmp.Diff(r, d.audit(func(o *Options) { o.Parallel = 1 })); diff != "" {
		t.Error(diff)
	}
}
