//go:build lab

package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/cmd/crawltest"
	"crawlbatch.io/crawlbatch/cmd/demo"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store/s3store"
	"crawlbatch.io/crawlbatch/formats/store/storetest/versitygw"
	"crawlbatch.io/crawlbatch/jobs/ledger"
	"crawlbatch.io/crawlbatch/stages"
)

// secondMonth crawls two months from the same list. The web does not change, so the second month
// must find every page unchanged. Between the months, the owner of a host asks not to be crawled.
// The opt-out list is an object in the bucket. The crawls also fetch the sitemaps that robots.txt names.
func secondMonth(t *testing.T, r *clusterRun, salt uint64) {
	const nobody = "# nobody has asked yet\n"
	c := r.crawl(t, clusterPlan{
		salt: salt, delay: 50 * time.Millisecond, hosts: 8, pages: 12, faultless: true, optOut: nobody,
		replace: []string{"partition_urls: 100", "partition_urls: 30, bucket_urls: 45"},
	})
	c.finish()
	var seeds []string
	for url := range c.web.Seeds() {
		seeds = append(seeds, url)
	}
	out, _, _ := strings.Cut(strings.TrimPrefix(seeds[0], "http://"), "/")
	crawltest.Write(t, c.optOut, nobody+out+"\n")
	began := time.Now()
	c.nextMonth(seeds)

	first, second := c.monthOf(demo.Crawl), c.monthOf(nextCrawl)
	t.Logf("first month %v, second month %v", first.counts, second.counts)
	isOut := func(url string) bool { return strings.HasPrefix(url, "http://"+out+"/") }
	if !slices.ContainsFunc(first.fetched, isOut) {
		t.Errorf("no page of %s was fetched in the first month", out)
	}
	if d := cmp.Diff(slices.DeleteFunc(first.fetched, isOut), second.fetched); d != "" {
		t.Errorf("the second month fetched other URLs (-want +got):\n%s", d)
	}
	n := second.counts
	if n["ok"]+n["changed true"]+n["changed unknown"]+n["first seen in "+nextCrawl] > 0 {
		t.Errorf("fetched anew: %v", n)
	}
	if n["not_modified not_modified"] == 0 || n["changed false"] == 0 ||
		n["not_modified not_modified"]+n["ok identical_payload"] != len(second.fetched) || n["first seen in "+demo.Crawl] < len(second.fetched) {
		t.Errorf("%v, of %d URLs", n, len(second.fetched))
	}
	if first.counts["skipped opt_out"] > 0 || n["skipped opt_out"] == 0 {
		t.Errorf("the opt-out list refused %d URLs, and later %d", first.counts["skipped opt_out"], n["skipped opt_out"])
	}
	sitemaps := map[bool]int{}
	for _, e := range c.stop() {
		late := e.Time.After(began)
		if late && e.Host == out {
			t.Errorf("%s%s was requested at %s, although %s is on the opt-out list", e.Host, e.Path, e.Time.Format("15:04:05.000"), out)
		}
		if strings.Contains(e.Path, "sitemap") {
			sitemaps[late]++
		}
	}
	if sitemaps[false] == 0 || sitemaps[true] == 0 {
		t.Errorf("%d requests for sitemaps, and later %d", sitemaps[false], sitemaps[true])
	}
}

// nextCrawl is the month after demo.Crawl.
const nextCrawl = "2000-02"

// nextMonth crawls and verifies the next month from lists in the bucket, and verifies the first month again.
func (c *clusterCrawl) nextMonth(urls []string) {
	c.t.Helper()
	bucket, _, _ := strings.Cut(strings.TrimPrefix(c.store, s3store.Scheme), "/")
	var sources []string
	for n := range 2 {
		name := fmt.Sprintf("urls-%d.txt", n)
		crawltest.Write(c.t, filepath.Join(c.server.Dir, bucket, name), strings.Join(urls[len(urls)*n/2:len(urls)*(n+1)/2], "\n")+"\n")
		sources = append(sources, "--source", s3store.Scheme+bucket+"/"+name)
	}
	month := []string{"--month", nextCrawl}
	for _, args := range [][]string{
		slices.Concat([]string{"plan", "--config", c.config, "--connect-to", "::" + c.addr}, sources, month),
		append(append([]string{"run", "--rounds", "2"}, month...), c.flags...),
		append([]string{"verify", "--one-clock"}, month...),
		{"verify", "--one-clock"},
	} {
		code, out := c.start(args[0], args[1:]...).wait()
		if code != 0 {
			c.t.Fatalf("%s: exit %d\n%s", strings.Join(args, " "), code, out)
		}
		if args[0] == "plan" && !strings.Contains(out, "continues "+demo.Crawl+" (2 rounds)") {
			c.t.Errorf("plan does not say which month it continues:\n%s", out)
		}
	}
}

// secondMonthBeside starts the CronJob's Job for the next month by hand while the first month is crawled, which
// the CronJob's concurrencyPolicy does not see. The Job's plan must wait, and take the frontier that the first
// month leaves. The first month is paused until the plan waits.
func secondMonthBeside(t *testing.T, r *clusterRun, salt uint64) {
	c := r.crawl(t, clusterPlan{salt: salt, delay: clusterDelay, hosts: 8, pages: 12})
	c.applyCronJob(r)
	run := c.start("run", append([]string{"--rounds", "1"}, c.flags...)...)
	waitUntil(t, "a task of the first month", 2*time.Minute, func() bool { return len(c.processes("task")) > 0 })
	must := func(command string) {
		if code, out := c.start(command).wait(); code != 0 {
			t.Fatalf("%s: exit %d\n%s", command, code, out)
		}
	}
	must("pause")
	job := "crawl-" + nextCrawl
	kubectl(t, "-n", c.namespace, "create", "job", job, "--from=cronjob/crawlbatch")
	said := ""
	says := func(text string) func() bool {
		return func() bool {
			said, _ = tryKubectl("", "-n", c.namespace, "logs", "job/"+job, "-c", "plan") // fails until the container has started
			return strings.Contains(said, text)
		}
	}
	waitUntil(t, "the plan's wait", 2*time.Minute, says("the plan of "+nextCrawl+" waits for "+demo.Crawl))
	must("continue")
	if code, out := run.wait(); code != 0 {
		t.Fatalf("run: exit %d\n%s", code, out)
	}
	waitUntil(t, "the plan", 3*time.Minute, says("next: crawlbatch run --month "+nextCrawl))
	if !strings.Contains(said, "the plan of "+nextCrawl+" goes on") || !strings.Contains(said, "continues "+demo.Crawl+" (1 round)") || strings.Contains(said, "warning: "+demo.Crawl) {
		t.Errorf("the plan says\n%s", said)
	}
	b := c.bucket()
	first, err := ledger.Load(t.Context(), b, demo.Crawl)
	if err != nil {
		t.Fatal(err)
	}
	next, err := ledger.Load(t.Context(), b, nextCrawl)
	if err != nil {
		t.Fatal(err)
	}
	ended := first.Of(manifest.EntryFinished)
	if choice, _ := next.Plan(0); ended == nil || choice == nil || ledger.Moment(choice.At) < ledger.Moment(ended.At) {
		t.Errorf("the first month ended with %+v, and the next one's plan is %+v", ended, choice)
	}
	kubectl(t, "-n", c.namespace, "delete", "job", job)
}

// applyCronJob applies the manifests with the image, the store and the config of the crawl, so that Jobs of the
// CronJob can start.
func (c *clusterCrawl) applyCronJob(r *clusterRun) {
	c.t.Helper()
	kubectl(c.t, "-n", c.namespace, "create", "secret", "generic", "crawlbatch-store",
		"--from-literal=AWS_ACCESS_KEY_ID="+versitygw.AccessKey, "--from-literal=AWS_SECRET_ACCESS_KEY="+versitygw.SecretKey)
	dir := writeOverlay(c.t, c.namespace, "manifests")
	crawltest.Write(c.t, filepath.Join(dir, "crawlbatch.yaml"), strings.Replace(c.text, "\nfetch:\n", fmt.Sprintf("\nfetch:\n  connect_to: [%q]\n", "::"+c.addr), 1))
	file := filepath.Join(dir, "kustomization.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		c.t.Fatal(err)
	}
	name, tag, _ := strings.Cut(r.image, ":")
	crawltest.Write(c.t, file, string(text)+fmt.Sprintf(`images: [{name: crawlbatch, newName: %s, newTag: %s}]
generatorOptions: {disableNameSuffixHash: true}
configMapGenerator:
  - {name: crawlbatch-env, behavior: merge, literals: ["STORE=%s", AWS_REGION=us-east-1, "AWS_ENDPOINT_URL_S3=%s", "KUBERNETES_SERVICE_HOST=%s", KUBERNETES_SERVICE_PORT=6443]}
  - {name: crawlbatch-config, behavior: merge, files: [crawlbatch.yaml]}
`, name, tag, c.store, c.server.Endpoint, r.listen))
	kubectl(c.t, "-n", c.namespace, "delete", "cronjob", "crawlbatch") // its image without a tag is always pulled
	kubectl(c.t, "apply", "-k", dir)
}

// month holds what a month fetched, and counts of its rows.
type month struct {
	fetched []string       // planned URLs that were fetched or not modified, sorted
	counts  map[string]int // numbers of fetches by outcome and kind of revisit, of pages by the value of changed, of URLs by the month that first saw them, of skips by reason
}

// monthOf reads the tables of a month.
func (c *clusterCrawl) monthOf(crawl string) month {
	c.t.Helper()
	b := c.bucket()
	sealed, err := crawltest.SealedFiles(c.t.Context(), b, crawl)
	if err != nil {
		c.t.Fatal(err)
	}
	m := month{counts: map[string]int{}}
	for _, f := range crawltest.RowsOf[schema.Fetch](c.t, b, sealed, stages.FileFetches) {
		m.counts[strings.TrimSpace(fmt.Sprintf("%s %s", f.Outcome, f.Revisit))]++
		if f.Outcome == schema.OK || f.Outcome == schema.NotModified {
			m.fetched = append(m.fetched, f.URL)
		}
	}
	slices.Sort(m.fetched)
	for _, p := range crawltest.RowsOf[schema.Page](c.t, b, sealed, stages.FilePages) {
		changed := "unknown"
		if p.Changed != nil {
			changed = fmt.Sprint(*p.Changed)
		}
		m.counts["changed "+changed]++
	}
	for _, s := range crawltest.RowsOf[schema.Skip](c.t, b, sealed, stages.FileSkips) {
		m.counts["skipped "+string(s.Reason)]++
	}
	newest := map[string]schema.URLRecord{}
	for _, u := range crawltest.RowsOf[schema.URLRecord](c.t, b, sealed, stages.FileURLs) {
		newest[u.URL] = u
	}
	for _, u := range newest {
		if u.Fetches > 0 {
			crawl, _, _ := strings.Cut(u.FirstSeen, ".")
			m.counts["first seen in "+crawl]++
		}
	}
	return m
}
