//go:build lab

package lab

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
)

// damageTable is the file with the expected results of all cells.
const damageTable = "testdata/damage.md"

// damageOnly is an environment variable with a pattern of the cells to judge, which is matched with
// state/kind/damage.
const damageOnly = "CRAWLBATCH_DAMAGE_ONLY"

var damageStates = []string{"sealed", "reducing", "fetching", "killed"}

// damageCell is a cell of the table.
type damageCell struct {
	state     *damageState
	kind, how string
	target    *target
	judged    *judgement
	none      bool // true: this damage is impossible for the object
	err       error
}

func (c *damageCell) name() string { return c.state.name + "/" + c.kind + "/" + c.how }

// short reports whether the suite judges the cell even with -short.
func (c *damageCell) short() bool {
	return shortCells.MatchString(c.name())
}

var shortCells = regexp.MustCompile(`^fetching/(fetch: checkpoint/(emptied|another crawl's)|folder: the newest round's plan/deleted)$|^sealed/(table: fetches/one byte changed|WARC file/deleted|sealed.json/emptied)$`)

// lesser matches kinds of objects that need fewer tests, because the commands treat each of them like some
// kind that it does not match. The suite damages objects of these kinds in only two ways (lesserDamages).
var lesser = regexp.MustCompile(`^(reparse, )?(fetch: segment of (captures.*|links|pages|requests|text)|table: (captures|duplicates|hosts|links|pages|requests|runs|skips|stages|text)|(dedup|rank|frontier|publish): (inputs.json|result|attempt|begun attempt)|(merge|dedup|rank): work/.*|merge: (begun )?attempt|fetch: begun attempt|web graph)$|^reparse, `)

// hasTwin reports whether another column of the table has an equal cell. Finished crawls and rounds are the
// same in all stores. So are the results of fetch tasks in the store of the killed crawl, because these tasks
// had ended before the kill.
func (c *damageCell) hasTwin() bool {
	key := c.target.keys[0]
	finished := c.target.crawl == harmedAgain || strings.Contains(key, "/round=0/") && len(c.target.keys) == 1 && c.kind != "sealed.json" && c.kind != "manifest"
	return finished && c.state.name != "sealed" || c.state.name == "killed" && c.kind == "fetch: result"
}

var lesserDamages = []string{isDeleted, isChanged}

func (l *damageLab) cells(fits func(*damageCell) bool) (cells []*damageCell) {
	l.t.Helper()
	for _, s := range l.states {
		all, err := targets(storedKeys(s.dir))
		if err != nil {
			l.t.Fatal(err)
		}
		for kind, t := range all {
			for _, how := range damageKinds {
				c := &damageCell{state: s, kind: kind, how: how, target: t}
				if fits(c) && !c.hasTwin() && !(lesser.MatchString(kind) && !slices.Contains(lesserDamages, how)) {
					cells = append(cells, c)
				}
			}
		}
	}
	slices.SortFunc(cells, func(a, b *damageCell) int { return strings.Compare(a.name(), b.name()) })
	return cells
}

// judgeAll judges cells, several at the same time.
func (l *damageLab) judgeAll(ctx context.Context, cells []*damageCell) {
	for _, c := range cells {
		l.finish(c.state)
	}
	var wg sync.WaitGroup
	todo := make(chan *damageCell)
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for c := range todo {
				c.judged, c.err = l.judgeDamage(ctx, c.state, c.target, c.how)
				if errors.Is(c.err, errNoSuchDamage) {
					c.none, c.err = true, nil
				}
				if os.Getenv(damageOnly) != "" && c.judged != nil {
					fmt.Printf("%s | %s silent=%t named=%t loss=%q says %s\n", c.name(), c.judged, c.judged.silent, c.judged.named, c.judged.loss, c.judged.says)
				}
			}
		})
	}
	for _, c := range cells {
		todo <- c
	}
	close(todo)
	wg.Wait()
}

// damageReason excuses cells of the damage table: their damage may stay unreported or, if the reason is a
// known failure, cause a loss.
type damageReason struct {
	why   string
	cells *regexp.Regexp // matches the excused cells, as state/kind/damage
	used  bool
}

// reasonOf returns the number of the reason that excuses a cell, counted from 1. It returns 0 for a
// cell without a reason.
func reasonOf(c *damageCell) int {
	for i := range damageReasons {
		r := &damageReasons[i]
		if r.cells.MatchString(c.name()) && (c.judged.loss == "" || strings.HasPrefix(r.why, "open")) {
			r.used = true
			return i + 1
		}
	}
	return 0
}

// text returns the text of the cell in the table. wrong says why the suite must fail with such a cell, or is
// "".
func (c *damageCell) text() (text, wrong string) {
	j := c.judged
	text = j.String()
	if !j.silent && j.loss == "" {
		if j.says != "" && !j.named {
			text += " (unnamed)"
		}
		return text, ""
	}
	n := reasonOf(c)
	if n == 0 {
		if j.loss != "" {
			return text, j.loss
		}
		return text, "no command says anything before it is too late"
	}
	return fmt.Sprintf("%s (%c)", text, 'a'+n-1), ""
}

// compareDamage reports the faults of judged cells, and the cells that differ from the golden table.
// If record is true, it writes a new golden table instead of reporting differences.
func compareDamage(t *testing.T, cells []*damageCell, golden map[string]damageEntry, record bool) {
	t.Helper()
	for _, c := range cells {
		if c.err != nil {
			t.Errorf("%s: %v", c.name(), c.err)
			continue
		}
		now, wrong := c.entry()
		if wrong != "" {
			t.Errorf("%s: %s: %s", c.name(), now.text, wrong)
		}
		if was := golden[c.name()]; record {
			golden[c.name()] = now
		} else if now.differsFrom(was) {
			t.Errorf("%s: %q, the table has %q; %s", c.name(), now.text, was.text, now.says)
		}
	}
}

// TestDamage harms stores in every way and compares the reactions of the commands with the golden
// table. With -short, TestDamage judges only a selection of the cells.
func TestDamage(t *testing.T) {
	all := !testing.Short()
	only := regexp.MustCompile(os.Getenv(damageOnly))
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // the test makes much garbage and keeps little
	l := newDamageLab(t)
	cells := l.cells(func(c *damageCell) bool {
		return only.MatchString(c.name()) && (all || c.short())
	})
	l.judgeAll(t.Context(), cells)
	golden := readDamage(t)
	compareDamage(t, cells, golden, *update)
	if *update {
		if err := os.WriteFile(damageTable, []byte(damageDocument(golden)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if !all || os.Getenv(damageOnly) != "" {
		return
	}
	for _, r := range damageReasons {
		if !r.used {
			t.Errorf("the reason %q for %s excuses no cell", r.why, r.cells)
		}
	}
	open := 0
	for _, c := range cells {
		if c.none || c.err != nil {
			continue
		}
		if n := reasonOf(c); n > 0 && strings.HasPrefix(damageReasons[n-1].why, "open") {
			open++
		}
	}
	t.Logf("%d cells, %d open", len(cells), open)
	for name := range golden {
		if !slices.ContainsFunc(cells, func(c *damageCell) bool { return c.name() == name }) {
			t.Errorf("the table has the cell %s, which is not judged any more", name)
		}
	}
}

// damageEntry is a cell of the golden table.
type damageEntry struct{ text, says string }

// differsFrom reports whether a cell's new entry e differs from its entry in the golden table, which is given
// as was. A missing entry and an entry "–", for an impossible damage, do not differ: the table has no row for
// a damage that is impossible in every state.
func (e damageEntry) differsFrom(was damageEntry) bool {
	return e.text != was.text && (e.text != "–" || was.text != "")
}

// entry returns the entry of the cell in the table. wrong says why the suite must fail with such a cell, or
// is "".
func (c *damageCell) entry() (e damageEntry, wrong string) {
	if c.none {
		return damageEntry{text: "–"}, ""
	}
	e.says = c.judged.says
	e.text, wrong = c.text()
	return e, wrong
}

var saysNumber = regexp.MustCompile(` \[(\d+)\]$`)

// readDamage reads the table.
func readDamage(t *testing.T) map[string]damageEntry {
	t.Helper()
	body, err := os.ReadFile(damageTable)
	if err != nil && !*update {
		t.Fatal(err)
	}
	cells, texts := map[string]damageEntry{}, map[string]string{}
	for line := range strings.Lines(string(body)) {
		line = strings.TrimSuffix(line, "\n")
		if number, text, ok := strings.Cut(line, ". "); ok && !strings.HasPrefix(line, "|") {
			texts[number] = strings.ReplaceAll(text, "\\|", "|")
		}
		columns := strings.Split(strings.TrimSuffix(line, " |"), " | ")
		if len(columns) != len(damageStates)+2 || strings.HasPrefix(line, "| object") {
			continue
		}
		kind, how := strings.TrimPrefix(columns[0], "| "), columns[1]
		for i, state := range damageStates {
			e := damageEntry{text: strings.TrimSpace(columns[i+2])}
			if m := saysNumber.FindStringSubmatch(e.text); m != nil {
				e.text, e.says = strings.TrimSuffix(e.text, m[0]), m[1]
			}
			if e.text != "" {
				cells[state+"/"+kind+"/"+how] = e
			}
		}
	}
	for name, e := range cells {
		e.says = texts[e.says]
		cells[name] = e
	}
	return cells
}

const damageHead = `# What the commands say about damage

Generated: ` + "`make test-damage UPDATE=1`" + `. Each row damages an object of one kind in a copy of a store; each column is the state
of the store's newest round: sealed, stopped between two reduces, stopped while it is fetched, killed while it is fetched.
A cell holds the exit codes of ` + "`verify`, `status`, `views`, `run` and `retry`" + `, in this order, and the outcome:

- *restored*: a command reports the damage. After the object is restored from a copy, the crawl ends with the same rows, and
  requests no page twice.
- *mended*: ` + "`run`" + ` continues, and the crawl ends like an undamaged one. *rebuilt*: ` + "`retry --rebuild`, as advised, recreates the object" + `.
  *not rebuilt*: a message names ` + "`retry --rebuild`" + ` as well as a copy, but no task can recreate this object; *rebuild N*:
  it refuses with exit code N. In both cases, a copy restores the object.
- *restored late*: like restored, but only ` + "`verify`" + ` after ` + "`run`" + ` reports the damage. The letter names the reason.
- *moved*: ` + "`verify --quarantine --yes`" + `, as advised, moves the stray away, and nothing is lost. *quarantine N*: it refuses.
- *stays*: no command reports the damage, and it stays. The letter names the reason.
- –: this damage is impossible. A blank cell: the store has no such object in this state. *(unnamed)*: no command names the object.

The number refers to the first message, below the table. Kinds that the commands treat like another kind are harmed in only two ways.

`

// damageDocument writes the table.
func damageDocument(cells map[string]damageEntry) string {
	var b strings.Builder
	judged := 0
	for _, e := range cells {
		if e.text != "–" {
			judged++
		}
	}
	fmt.Fprintf(&b, "%sThe table has %d cells.\n\n", damageHead, judged)
	b.WriteString("| object | damage | " + strings.Join(damageStates, " | ") + " |\n|---|---|" + strings.Repeat("---|", len(damageStates)) + "\n")
	kinds := map[string]bool{}
	for name := range cells {
		kinds[kindOfCell(name)] = true
	}
	numbers, texts := map[string]int{}, []string{}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		for _, how := range damageKinds {
			row, judged := "| "+kind+" | "+how, false
			for _, state := range damageStates {
				e := cells[state+"/"+kind+"/"+how]
				row += " | " + e.text
				judged = judged || e.text != "" && e.text != "–"
				if e.says == "" {
					continue
				}
				if numbers[e.says] == 0 {
					texts = append(texts, e.says)
					numbers[e.says] = len(texts)
				}
				row += fmt.Sprintf(" [%d]", numbers[e.says])
			}
			if judged {
				b.WriteString(row + " |\n")
			}
		}
	}
	b.WriteString("\n## Reasons\n\n")
	for i, r := range damageReasons {
		fmt.Fprintf(&b, "- (%c) %s\n", 'a'+i, r.why)
	}
	b.WriteString("\n## What is said\n\n")
	for i, text := range texts {
		fmt.Fprintf(&b, "%d. %s\n", i+1, strings.ReplaceAll(text, "|", "\\|"))
	}
	return b.String()
}

// kindOfCell returns the kind in a cell's name. A name has the form state/kind/damage, and a kind
// may contain slashes.
func kindOfCell(name string) string {
	_, rest, _ := strings.Cut(name, "/")
	return rest[:strings.LastIndexByte(rest, '/')]
}
