//go:build lab

package lab

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"crawlbatch.io/crawlbatch/formats/catalog"
	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/stages"
)

// keyParts holds what an object's key says about the object.
type keyParts struct {
	crawl, plan, dataset, digest string
	revision                     string // of a compacted copy
	round, part, epoch, number   int
}

var placePatterns = []struct {
	pattern *regexp.Regexp
	set     func(*keyParts, string)
}{
	{regexp.MustCompile(`crawl=([^/]+)/`), func(p *keyParts, s string) { p.crawl = s }},
	{regexp.MustCompile(`/round=(\d+)/`), func(p *keyParts, s string) { p.round, _ = strconv.Atoi(s) }},
	{regexp.MustCompile(`plan-([^/]+)/`), func(p *keyParts, s string) { p.plan = s }},
	{regexp.MustCompile(`/segments/([^/]+?)-e\d+-`), func(p *keyParts, s string) { p.plan = s }},
	{regexp.MustCompile(`/[^/]+-r\d+-([^/]+?)-part-`), func(p *keyParts, s string) { p.plan = s }},
	{regexp.MustCompile(`part-(\d+)`), func(p *keyParts, s string) { p.part, _ = strconv.Atoi(s) }},
	{regexp.MustCompile(`-e(\d+)[-.]`), func(p *keyParts, s string) { p.epoch, _ = strconv.Atoi(s) }},
	{regexp.MustCompile(`-e\d+-(\d+)`), func(p *keyParts, s string) { p.number, _ = strconv.Atoi(s) }},
	{regexp.MustCompile(`/attempts/part-\d+-b(\d+)\.json$`), func(p *keyParts, s string) { p.number, _ = strconv.Atoi(s) }},
	{regexp.MustCompile(`/segments/.*-e\d+-\d+-([a-z-]+)\.parquet$`), func(p *keyParts, s string) { p.dataset = s }},
	{regexp.MustCompile(`/([a-z]+)/part-\d+\.(?:parquet|run|bloom)$`), func(p *keyParts, s string) { p.dataset = s }},
	{regexp.MustCompile(`^compacted/crawl=[^/]+/([^/]+)/`), func(p *keyParts, s string) { p.revision = s }},
	{regexp.MustCompile(`^compacted/crawl=[^/]+/[^/]+/([a-z]+)/`), func(p *keyParts, s string) { p.dataset = s }},
	{regexp.MustCompile(`(?:settings|tasks|compaction)-([0-9a-f]+)\.json$`), func(p *keyParts, s string) { p.digest = s }},
	{regexp.MustCompile(`/manifests/(\d+)-`), func(p *keyParts, s string) { p.number, _ = strconv.Atoi(s) }},
	{regexp.MustCompile(`/manifests/\d+-([0-9a-f]+)\.parquet$`), func(p *keyParts, s string) { p.digest = s }},
}

func placeOf(key string) (p keyParts) {
	for _, one := range placePatterns {
		if m := one.pattern.FindStringSubmatch(key); m != nil {
			one.set(&p, m[1])
		}
	}
	return p
}

// kindOf returns the kind of the object with a key, or "" if the damage table has no row for this kind. It
// lets package formats/layout build the key that each kind would have with the same parts, and compares.
func kindOf(key string) string {
	p := placeOf(key)
	is := func(k string) bool { return k == key }
	for name, k := range map[string]string{
		"active.json": layout.Active(), "crawls.json": layout.Crawls(), "ledger.json": layout.Ledger(p.crawl), "crawl.json": layout.CrawlManifest(p.crawl), "politeness.json": layout.Politeness(p.crawl),
		"settings": layout.Settings(p.crawl, p.digest), "sealed.json": layout.Sealed(p.crawl, p.round),
		"compaction": layout.Compaction(p.crawl, p.digest), "compacted part": layout.Compacted(p.crawl, p.revision, p.dataset, p.part),
		"manifest":        layout.FileList(p.crawl, p.round, p.number, p.digest),
		"plan: plan.json": layout.PlanManifest(p.crawl, p.round, p.plan), "plan: URLs": layout.PlanPart(p.crawl, p.round, p.plan, p.part),
		"plan: refused":     layout.PlanRefused(p.crawl, p.round, p.plan),
		"fetch: checkpoint": layout.Checkpoint(p.crawl, p.round, p.part), "fetch: taken": layout.Taken(p.crawl, p.round, p.part), "WARC file": layout.WARC(p.crawl, p.round, p.plan, p.part, p.epoch, p.number),
		"CDXJ index": layout.CDXJ(layout.WARC(p.crawl, p.round, p.plan, p.part, p.epoch, p.number)), "frontier: work/known": layout.URLFilter(p.crawl, p.round, p.part),
		"fetch: segment of " + p.dataset: layout.Segment(p.crawl, p.round, p.plan, p.part, p.epoch, p.number, p.dataset),
	} {
		if is(k) {
			return name
		}
	}
	for _, stage := range stages.Order {
		s := string(stage)
		for name, k := range map[string]string{
			"inputs.json": layout.Inputs(p.crawl, p.round, s), "task list": layout.TaskList(p.crawl, p.round, s, p.digest),
			"result": layout.Result(p.crawl, p.round, s, p.part), "attempt": layout.Attempt(p.crawl, p.round, s, p.part, p.epoch),
			"begun attempt":     layout.Begun(p.crawl, p.round, s, p.part, p.number),
			"work/" + p.dataset: layout.Working(p.crawl, p.round, s, p.dataset, p.part),
		} {
			if is(k) || name == "work/"+p.dataset && is(layout.Run(p.crawl, p.round, s, p.dataset, p.part)) {
				return s + ": " + name
			}
		}
	}
	for _, d := range catalog.Datasets() {
		if is(layout.Table(d.Name, p.crawl, p.round, p.part)) {
			return "table: " + d.Name
		}
	}
	if strings.HasPrefix(key, layout.WebGraphDir(p.crawl, p.round)) {
		return "web graph"
	}
	for _, subset := range schema.Subsets {
		if is(layout.Captures(p.crawl, string(subset), p.round, p.part)) {
			return "table: captures"
		}
	}
	return ""
}

// target holds those objects of a store that a row of the damage table harms.
type target struct {
	crawl  string
	keys   []string // key of one object, or the keys of a folder
	gone   []string // for a folder: the folders that become empty when the keys are deleted
	others map[string]string
}

// The damages are in the order of the table's rows.
const (
	isDeleted   = "deleted"
	isEmptied   = "emptied"
	isTruncated = "truncated"
	isChanged   = "one byte changed"
	isOlder     = "older version"
	isBehind    = "one round behind"
	isUnbegun   = "before its first round"
	isOtherPart = "another partition's"
	isOtherOne  = "another crawl's"
	isCopied    = "stray copy"
)

var damageKinds = []string{isDeleted, isEmptied, isTruncated, isChanged, isOlder, isBehind, isUnbegun, isOtherPart, isOtherOne, isCopied}

// folders describes the table's rows that harm many objects at once. A row's function reports whether the
// row harms the object with a key. The only damage to a folder is its deletion.
var folders = map[string]func(p keyParts, key string) bool{
	"folder: every round of the month":                    func(p keyParts, key string) bool { return inHarmed(key, p.crawl, "round=") },
	"folder: the newest round":                            func(p keyParts, key string) bool { return inHarmed(key, p.crawl, "round=1/") },
	"folder: the newest round, its tables and WARC files": func(p keyParts, key string) bool { return p.crawl == harmedMonth && strings.Contains(key, "round=1/") },
	"folder: the first round":                             func(p keyParts, key string) bool { return inHarmed(key, p.crawl, "round=0/") },
	"folder: the month (crawl=…)":                         func(p keyParts, key string) bool { return inHarmed(key, p.crawl, "") },
	"folder: the newest round's fetch":                    func(p keyParts, key string) bool { return inHarmed(key, p.crawl, "round=1/fetch/") },
	"folder: the newest round's fetch, and its WARC files": func(p keyParts, key string) bool {
		return inHarmed(key, p.crawl, "round=1/fetch/") || strings.HasPrefix(key, "warc/crawl="+harmedMonth+"/round=1/")
	},
	"folder: one partition's fetch": func(p keyParts, key string) bool { return inHarmed(key, p.crawl, "round=1/fetch/part-00000/") },
	"folder: one partition's fetch, and its WARC files": func(p keyParts, key string) bool {
		return inHarmed(key, p.crawl, "round=1/fetch/part-00000/") || p.part == 0 && strings.HasPrefix(key, "warc/crawl="+harmedMonth+"/round=1/")
	},
	"folder: the newest round's plan": func(p keyParts, key string) bool { return inHarmed(key, p.crawl, "round=1/plan-") },
	"folder: the newest round's WARC files": func(p keyParts, key string) bool {
		return strings.HasPrefix(key, "warc/crawl="+harmedMonth+"/round=1/")
	},
	"folder: the newest round's tables": func(p keyParts, key string) bool {
		return p.crawl == harmedMonth && p.round == 1 && strings.HasPrefix(key, "tables/")
	},
	"folder: the newest seal and all results of the reduces": func(p keyParts, key string) bool {
		return inHarmed(key, p.crawl, "round=1/") && !inHarmed(key, p.crawl, "round=1/fetch/") && !inHarmed(key, p.crawl, "round=1/plan-") && !inHarmed(key, p.crawl, "round=1/start.json")
	},
}

func inHarmed(key, crawl, rest string) bool {
	return crawl == harmedMonth && strings.HasPrefix(key, layout.CrawlDir(harmedMonth)+rest)
}

// targets lists the objects that each row of the table damages. For each kind of object, targets
// chooses the object of the newest round and the lowest partition.
func targets(keys []string) (map[string]*target, error) {
	found, of := map[string]*target{}, map[string]map[string][]string{}
	for _, key := range keys {
		p := placeOf(key)
		kind := kindOf(key)
		if kind == "" {
			return nil, fmt.Errorf("%s: no row of the table is about such an object", key)
		}
		if of[kind] == nil {
			of[kind] = map[string][]string{}
		}
		of[kind][p.crawl] = append(of[kind][p.crawl], key)
		for name, fits := range folders {
			if fits(p, key) {
				if found[name] == nil {
					found[name] = &target{crawl: harmedMonth}
				}
				found[name].keys = append(found[name].keys, key)
			}
		}
	}
	for _, t := range found {
		t.gone = emptiedFolders(keys, t.keys)
	}
	for kind, crawls := range of {
		for crawl, prefix := range map[string]string{harmedMonth: "", harmedAgain: "reparse, "} {
			if t := choose(crawls[crawl], crawls[earlierMonth]); t != nil {
				t.crawl = crawl
				found[prefix+kind] = t
			}
		}
		if all := crawls[""]; len(all) > 0 {
			found[kind] = &target{crawl: harmedMonth, keys: all[:1]}
		}
	}
	return found, nil
}

// emptiedFolders returns the folders that become empty when the objects with the keys gone are deleted from
// a store with the keys all.
func emptiedFolders(all, gone []string) (folders []string) {
	left := map[string]int{}
	count := func(keys []string, by int) {
		for _, key := range keys {
			for dir := path.Dir(key); dir != "."; dir = path.Dir(dir) {
				left[dir+"/"] += by
			}
		}
	}
	count(all, 1)
	count(gone, -1)
	for dir, n := range left {
		if n == 0 {
			folders = append(folders, dir)
		}
	}
	return folders
}

func choose(keys, elsewhere []string) *target {
	if len(keys) == 0 {
		return nil
	}
	newest := slices.MaxFunc(keys, func(a, b string) int { return placeOf(a).round - placeOf(b).round })
	round := placeOf(newest).round
	keys = slices.DeleteFunc(slices.Clone(keys), func(k string) bool { return placeOf(k).round != round })
	slices.Sort(keys)
	t := &target{keys: keys[:1], others: map[string]string{}}
	for _, k := range keys {
		if placeOf(k).part != placeOf(keys[0]).part && t.others[isOtherPart] == "" {
			t.others[isOtherPart] = k
		}
	}
	if len(elsewhere) > 0 {
		t.others[isOtherOne] = slices.Min(elsewhere)
	}
	return t
}

// errNoSuchDamage means that a damage is impossible for an object. Its own text is empty; an error that wraps
// it adds the reason.
var errNoSuchDamage = errors.New("")

func noDamage(why string) error { return fmt.Errorf("%s%w", why, errNoSuchDamage) }

// damage harms the target in dir, which is a copy of the state's store, in the way how. It returns the key of
// the harmed object.
func (s *damageState) damage(dir string, t *target, how string) (string, error) {
	key := t.keys[0]
	file := filepath.Join(dir, filepath.FromSlash(key))
	if len(t.keys) > 1 && how != isDeleted {
		return "", noDamage("a folder")
	}
	body, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	var now []byte
	switch how {
	case isDeleted:
		for _, k := range t.keys {
			if err := os.Remove(filepath.Join(dir, filepath.FromSlash(k))); err != nil {
				return "", err
			}
		}
		return key, removeEmpty(dir)
	case isEmptied:
	case isTruncated:
		now = body[:len(body)/2]
	case isChanged:
		now = changeByte(key, body)
	case isOlder:
		for _, older := range s.older {
			was, err := os.ReadFile(filepath.Join(older, filepath.FromSlash(key)))
			if err == nil && !bytes.Equal(was, body) {
				now = was
				break
			}
		}
		if now == nil {
			return "", noDamage("it never had another version")
		}
	case isBehind, isUnbegun:
		if now, err = shorterLedger(body, map[string]int{isBehind: 1, isUnbegun: 0}[how]); err != nil {
			return "", err
		}
	case isOtherPart, isOtherOne:
		other := t.others[how]
		if other == "" {
			return "", noDamage("there is no other")
		}
		if now, err = os.ReadFile(filepath.Join(dir, filepath.FromSlash(other))); err != nil {
			return "", err
		}
	case isCopied:
		key = strayName(key)
		return key, put(dir, key, body)
	}
	if bytes.Equal(now, body) {
		return "", noDamage("the same bytes")
	}
	if err := os.Remove(file); err != nil {
		return "", err
	}
	return key, put(dir, key, now)
}

// shorterLedger returns a ledger without its entries from the first one about a round on.
func shorterLedger(body []byte, round int) ([]byte, error) {
	var l manifest.Ledger
	if err := json.Unmarshal(body, &l); err != nil || l.Check() != nil {
		return nil, noDamage("no ledger")
	}
	n := slices.IndexFunc(l.Entries, func(e manifest.Entry) bool { return e.InRound(round) })
	if n < 1 {
		return nil, noDamage("it has no such round")
	}
	l.Entries = l.Entries[:n]
	return manifest.Encode(&l)
}

func put(dir, key string, body []byte) error {
	file := filepath.Join(dir, filepath.FromSlash(key))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.WriteFile(file, body, 0o644)
}

// changeByte replaces one byte in the middle of an object, or in the first column of a table. In a text, it
// replaces the last digit before the middle by another digit, so that a program can still parse the text.
func changeByte(key string, body []byte) []byte {
	now := slices.Clone(body)
	if strings.HasSuffix(key, ".json") || strings.HasSuffix(key, ".cdxj") {
		if i := bytes.LastIndexAny(now[:len(now)/2], "0123456789"); i >= 0 {
			now[i] = '0' + (now[i]-'0'+1)%10
			return now
		}
	}
	i := len(now) / 2
	if strings.HasSuffix(key, ".parquet") { // the first column, because not every run reads the middle of the file
		i = min(i, 64)
	}
	if len(now) > 0 {
		now[i] ^= 0x10
	}
	return now
}

var (
	epochName = regexp.MustCompile(`-e\d+([-.])`)
	partName  = regexp.MustCompile(`part-\d+`)
)

// strayName returns a key for a stray copy of an object. Readers that list the object's folder find the copy.
func strayName(key string) string {
	name := filepath.Base(key)
	for _, n := range []string{epochName.ReplaceAllString(name, "-e99$1"), partName.ReplaceAllString(name, "part-00099"), strings.Replace(name, ".", "-copy.", 1)} {
		if n != name {
			return strings.TrimSuffix(key, name) + n
		}
	}
	return key + "-copy"
}

func removeEmpty(dir string) error {
	var dirs []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && path != dir {
			dirs = append(dirs, path)
		}
		return err
	})
	for _, d := range slices.Backward(dirs) {
		_ = os.Remove(d) // does nothing if the folder is not empty
	}
	return err
}
