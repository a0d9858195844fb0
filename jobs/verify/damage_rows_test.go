package verify

import (
	"bytes"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/table/tabletest"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
	"crawlbatch.io/crawlbatch/stages"
)

func TestDamageToRowsAndRecordsIsFoundByItsCheck(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	findEach(t, damages{
		"a URL without outcome": func(d *damagedCrawl) map[string]string {
			change(d, part(stages.FileFetches), func(rows []schema.Fetch) []schema.Fetch { return rows[1:] })
			return one(oneOutcome, part(stages.FileFetches))
		},
		"a URL with two outcomes": func(d *damagedCrawl) map[string]string {
			change(d, part(stages.FileFetches), func(rows []schema.Fetch) []schema.Fetch { return slices.Insert(rows, 1, rows[0]) })
			return one(oneOutcome, part(stages.FileFetches))
		},
		"an outcome of a URL that was not planned": func(d *damagedCrawl) map[string]string {
			change(d, part(stages.FileFetches), func(rows []schema.Fetch) []schema.Fetch {
				i := firstRow(d, rows, func(i int) bool {
					return rows[i].RobotsAllowed == nil || *rows[i].RobotsAllowed && rows[i].RobotsRule == ""
				})
				rows[i].URL += "x"
				return rows
			})
			return one(oneOutcome, part(stages.FileFetches))
		},
		"an outcome that is none": func(d *damagedCrawl) map[string]string {
			change(d, part(stages.FileFetches), func(rows []schema.Fetch) []schema.Fetch {
				rows[firstRow(d, rows, func(i int) bool { return rows[i].Outcome == schema.OK })].Outcome = "lost"
				return rows
			})
			return map[string]string{knownOutcomes: part(stages.FileFetches), oneOutcome: part(stages.FileFetches)}
		},
		"a domain in two partitions": func(d *damagedCrawl) map[string]string {
			p := d.load(0).Plan
			other := tabletest.Read[schema.PlannedURL](d.t, d.b, p.Partitions[1].File.Key)
			change(d, p.Partitions[0].File.Key, func(rows []schema.PlannedURL) []schema.PlannedURL {
				rows[0] = other[0]
				return rows
			})
			return map[string]string{apart: "", oneOutcome: part(stages.FileFetches)}
		},
		"a request by another rule": func(d *damagedCrawl) map[string]string {
			change(d, part(stages.FileRequests), func(rows []schema.Request) []schema.Request {
				rows[firstRow(d, rows, func(i int) bool { return rows[i].RobotsDigest != "" })].RobotsRule = "Allow: /all"
				return rows
			})
			return one(obeyed, part(stages.FileRequests))
		},
		"a request that robots.txt denied": func(d *damagedCrawl) map[string]string {
			denied := deniedURL(d)
			change(d, part(stages.FileRequests), func(rows []schema.Request) []schema.Request {
				rows[firstRow(d, rows, func(i int) bool { return rows[i].RobotsDigest != "" && originOf(rows[i].URL) == originOf(denied) })].URL = denied
				return rows
			})
			return one(obeyed, part(stages.FileRequests))
		},
		"a request under a robots.txt that was not in force": func(d *damagedCrawl) map[string]string {
			change(d, part(stages.FileRequests), func(rows []schema.Request) []schema.Request {
				rows[firstRow(d, rows, func(i int) bool { return rows[i].RobotsDigest != "" })].RobotsDigest = ""
				return rows
			})
			return one(obeyed, part(stages.FileRequests))
		},
		"a request before robots.txt was asked for": func(d *damagedCrawl) map[string]string {
			change(d, part(stages.FileRequests), func(rows []schema.Request) []schema.Request {
				i := firstRow(d, rows, func(i int) bool {
					return rows[i].Purpose == schema.ForRobots && rows[i].Status == 200 && i+1 < len(rows) && rows[i+1].Host == rows[i].Host
				})
				return slices.Delete(rows, i, i+1)
			})
			return map[string]string{obeyed: "", verdicts: part(stages.FileFetches)} // obeyed may name either round, because the next one uses this robots.txt too
		},
		"a request whose evidence is another answer": func(d *damagedCrawl) map[string]string {
			change(d, part(stages.FileRequests), func(rows []schema.Request) []schema.Request {
				rows[firstRow(d, rows, func(i int) bool { return rows[i].RobotsDigest != "" })].RobotsOffset++
				return rows
			})
			return one(obeyed, part(stages.FileRequests))
		},
		"a verdict by another rule": func(d *damagedCrawl) map[string]string {
			change(d, part(stages.FileFetches), func(rows []schema.Fetch) []schema.Fetch {
				rows[firstRow(d, rows, func(i int) bool { return rows[i].Outcome == schema.RobotsDenied })].RobotsRule = "Disallow: /"
				return rows
			})
			return one(verdicts, part(stages.FileFetches))
		},
		"a request that came too early": func(d *damagedCrawl) map[string]string {
			change(d, part(stages.FileRequests), func(rows []schema.Request) []schema.Request {
				i := second(d, rows, func(a, b *schema.Request) bool { return b.Purpose == schema.ForPage && a.Purpose != schema.ForRobots })
				rows[i-1].TotalMS, rows[i].Start = 4, rows[i-1].Start.Add(5*time.Millisecond)
				return rows
			})
			return one(pace, part(stages.FileRequests))
		},
		"a request that came too early after the round before": func(d *damagedCrawl) map[string]string {
			p := d.load(1).Plan
			began := map[string]schema.Time{}
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
				i := firstRow(d, rows, func(i int) bool {
					return began[rows[i].Host] > 0 && i+1 < len(rows) && rows[i+1].Host != rows[i].Host
				})
				rows[i].Start = began[rows[i].Host].Add(-15 * time.Millisecond)
				return rows
			})
			return map[string]string{pace: ""}
		},
		"a gap that was too short": func(d *damagedCrawl) map[string]string {
			change(d, part(stages.FileRequests), func(rows []schema.Request) []schema.Request {
				*rows[second(d, rows, func(_, b *schema.Request) bool { return b.GapMS != nil })].GapMS = 3
				return rows
			})
			return one(pace, part(stages.FileRequests))
		},
		"two requests in flight": func(d *damagedCrawl) map[string]string {
			change(d, part(stages.FileRequests), func(rows []schema.Request) []schema.Request {
				i := second(d, rows, func(_, _ *schema.Request) bool { return true })
				rows[i-1].TotalMS = rows[i].Start.Sub(rows[i-1].Start).Milliseconds() + 2
				return rows
			})
			return one(inFlight, part(stages.FileRequests))
		},
		"a delay below the Crawl-delay": func(d *damagedCrawl) map[string]string {
			object := ""
			for n := range d.load(0).Plan.Partitions {
				object = layout.Table(stages.FileRequests, testCrawl, 0, n)
				rows := tabletest.Read[schema.Request](d.t, d.b, object)
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
		"a record that is damaged": func(d *damagedCrawl) map[string]string {
			key := warcOf(d)
			rows, err := tabletest.Collect(table.Concat[schema.Capture](d.t.Context(), d.b, []string{captures(schema.SubsetWARC)}))
			if err != nil || len(rows) == 0 {
				d.t.Fatal(err)
			}
			body := bytes.Clone(d.body(key))
			body[rows[0].WARCRecordOffset+rows[0].WARCRecordLength/2] ^= 0x20
			d.replace(key, body)
			d.settle(key)
			return one(records, key)
		},
		"a robots.txt whose record is damaged": func(d *damagedCrawl) map[string]string {
			rows := tabletest.Read[schema.Capture](d.t, d.b, captures(schema.SubsetRobots))
			c := rows[firstRow(d, rows, func(i int) bool { return rows[i].FetchStatus == 200 })]
			body := bytes.Clone(d.body(c.WARCFilename))
			clear(body[c.WARCRecordOffset : c.WARCRecordOffset+c.WARCRecordLength])
			d.replace(c.WARCFilename, body)
			d.settle(c.WARCFilename)
			return map[string]string{records: c.WARCFilename, obeyed: c.WARCFilename}
		},
		"a capture of another digest": func(d *damagedCrawl) map[string]string {
			change(d, captures(schema.SubsetWARC), func(rows []schema.Capture) []schema.Capture {
				rows[0].ContentDigest = strings.Repeat("A", 32)
				return rows
			})
			return map[string]string{records: warcOf(d), indexes: layout.CDXJ(warcOf(d)), pointers: ""}
		},
		"a capture that is gone": func(d *damagedCrawl) map[string]string {
			change(d, captures(schema.SubsetWARC), func(rows []schema.Capture) []schema.Capture { return rows[1:] })
			return one(pointers, "")
		},
		"an outcome that points beside its record": func(d *damagedCrawl) map[string]string {
			change(d, part(stages.FileFetches), func(rows []schema.Fetch) []schema.Fetch {
				rows[firstRow(d, rows, func(i int) bool { return rows[i].Outcome == schema.OK })].WARCRecordOff++
				return rows
			})
			return one(pointers, part(stages.FileFetches))
		},
		"a page that points to another record": func(d *damagedCrawl) map[string]string {
			change(d, part(stages.FilePages), func(rows []schema.Page) []schema.Page {
				rows[0].WARCRecordOffset, rows[0].WARCRecordLength = rows[1].WARCRecordOffset, rows[1].WARCRecordLength
				return rows
			})
			return one(pointers, part(stages.FilePages))
		},
		"a sitemap that points to another record": func(d *damagedCrawl) map[string]string {
			change(d, sitemapsOf(d), func(rows []schema.Sitemap) []schema.Sitemap {
				rows[firstRow(d, rows, func(i int) bool { return rows[i].Outcome == schema.OK })].WARCRecordLen++
				return rows
			})
			return one(pointers, "")
		},
		"a sitemap of another digest": func(d *damagedCrawl) map[string]string {
			change(d, sitemapsOf(d), func(rows []schema.Sitemap) []schema.Sitemap {
				rows[firstRow(d, rows, func(i int) bool { return rows[i].Outcome == schema.OK })].ContentDigest = strings.Repeat("A", 32)
				return rows
			})
			return one(pointers, "")
		},
		"a sitemap that was requested at another time": func(d *damagedCrawl) map[string]string {
			change(d, sitemapsOf(d), func(rows []schema.Sitemap) []schema.Sitemap {
				rows[firstRow(d, rows, func(i int) bool { return rows[i].Outcome == schema.OK })].FetchedAt++
				return rows
			})
			return one(asked, "")
		},
		"a request for a sitemap that no row names": func(d *damagedCrawl) map[string]string {
			change(d, sitemapsOf(d), func(rows []schema.Sitemap) []schema.Sitemap {
				return slices.Delete(rows, 0, 1+firstRow(d, rows, func(i int) bool { return rows[i].Outcome == schema.OK }))
			})
			return one(asked, "")
		},
		"an index that points beside a record": func(d *damagedCrawl) map[string]string {
			key := layout.CDXJ(warcOf(d))
			body := d.body(key)
			i := bytes.Index(body, []byte(`"offset":"`)) + len(`"offset":"`)
			end := i + bytes.IndexByte(body[i:], '"')
			d.replace(key, slices.Concat(body[:i], []byte("7"), body[end:]))
			d.settle(key)
			return one(indexes, key)
		},
		"an index out of order": func(d *damagedCrawl) map[string]string {
			key := layout.CDXJ(warcOf(d))
			lines := bytes.SplitAfter(d.body(key), []byte("\n"))
			slices.Reverse(lines)
			d.replace(key, bytes.Join(lines, nil))
			d.settle(key)
			return one(indexes, key)
		},
	})
}

// sitemapsOf returns a segment of the first round with the row of a sitemap that was fetched.
func sitemapsOf(d *damagedCrawl) string {
	d.t.Helper()
	for n := range d.load(0).Plan.Partitions {
		r, _, err := roundstate.LoadResult(d.t.Context(), d.b, stages.Task{Stage: stages.Fetch, Crawl: testCrawl, Partition: n})
		if err != nil {
			d.t.Fatal(err)
		}
		for _, f := range r.FilesOf(stages.FileSitemaps) {
			for _, s := range tabletest.Read[schema.Sitemap](d.t, d.b, f.Key) {
				if s.Outcome == schema.OK && !s.Earlier {
					return f.Key
				}
			}
		}
	}
	d.t.Fatal("no sitemap was fetched")
	return ""
}

func isPart(dataset string) func(manifest.File) bool {
	return func(f manifest.File) bool { return f.Key == part(dataset) }
}

// second returns the index of the first request that, with the request before it to the same host,
// satisfies fits.
func second(d *damagedCrawl, rows []schema.Request, fits func(a, b *schema.Request) bool) int {
	d.t.Helper()
	return firstRow(d, rows, func(i int) bool { return i > 0 && rows[i-1].Host == rows[i].Host && fits(&rows[i-1], &rows[i]) })
}

// deniedURL returns a planned URL of partition 0 that robots.txt denied. The crawl has requested
// other URLs of the same origin.
func deniedURL(d *damagedCrawl) string {
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

func originOf(t string) string {
	u, err := url.Parse(t)
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host
}
