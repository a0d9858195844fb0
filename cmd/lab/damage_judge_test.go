//go:build lab

package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/jobs/verify"
)

// judgement describes how the commands react to the damage of one cell of the damage table.
type judgement struct {
	verify, status, views, run, retry int

	outcome string // the result in a few words
	loss    string // the loss, such as lost rows or repeated requests; "" for no loss
	silent  bool   // true: no command reported the damage, and the damage stayed
	says    string // the first finding of the audit, or the first error of a command
	named   bool   // true: some command names the damaged object
}

// String returns the text of the cell: the exit codes and the outcome. It omits the finding (j.says).
func (j *judgement) String() string {
	return fmt.Sprintf("%d·%d·%d·%d·%d %s", j.verify, j.status, j.views, j.run, j.retry, j.outcome)
}

// harmedStore describes a copy of a state's store after the suite has damaged the copy.
type harmedStore struct {
	l       *damageLab
	s       *damageState
	t       *target
	touched string // key of the object that was damaged or added

	address string
	b       store.Bucket
}

// judgeDamage damages copies of a store and returns how the commands deal with the damage.
func (l *damageLab) judgeDamage(ctx context.Context, s *damageState, t *target, how string) (*judgement, error) {
	dir, err := os.MkdirTemp(l.t.TempDir(), "cell")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // the test's folder is removed anyway
	one, two, three := filepath.Join(dir, "one"), filepath.Join(dir, "two"), filepath.Join(dir, "three")
	if err := linkStore(s.dir, one); err != nil {
		return nil, err
	}
	touched, err := s.damage(one, t, how)
	if err == nil {
		err = errors.Join(linkStore(one, two), linkStore(one, three))
	}
	if err != nil {
		return nil, err
	}
	j := &judgement{}
	place := l.place
	if place == nil {
		place = placeInDirectory
	}
	first := &harmedStore{l: l, s: s, t: t, touched: touched}
	if first.address, first.b, err = place(ctx, one); err != nil {
		return nil, err
	}
	told, err := first.carryOn(ctx, j)
	if err != nil || j.loss != "" {
		return j, err
	}
	second := &harmedStore{l: l, s: s, t: t, touched: touched}
	if second.address, second.b, err = place(ctx, two); err != nil {
		return nil, err
	}
	if err := second.runRetry(ctx, j, told); err != nil || j.loss != "" || !strings.Contains(told, "--quarantine") {
		return j, err
	}
	third := &harmedStore{l: l, s: s, t: t, touched: touched}
	if third.address, third.b, err = place(ctx, three); err == nil {
		third.quarantine(ctx, j)
	}
	return j, err
}

func placeInDirectory(_ context.Context, dir string) (string, store.Bucket, error) {
	b, err := openDirectory(dir)
	return dir, b, err
}

func (h *harmedStore) say(ctx context.Context, command string, args ...string) spoken {
	return commanded(ctx, append([]string{command, "--month", h.t.crawl, "--store", h.address}, args...)...)
}

func (h *harmedStore) audit(ctx context.Context, args ...string) (spoken, *verify.Report) {
	// If one object of a round is harmed, it is enough to audit this round, which takes half the time.
	if round := placeOf(h.touched).round; len(h.t.keys) == 1 && strings.Contains(h.touched, "/round=") {
		args = append(args, "--round", strconv.Itoa(round))
	}
	a := h.say(ctx, "verify", append(args, "-o", "json")...)
	var r verify.Report
	if err := json.NewDecoder(strings.NewReader(a.text)).Decode(&r); err != nil {
		return a, nil
	}
	return a, &r
}

// carryOn runs the commands that only read, and then continues the crawl. If `crawlbatch run` fails or
// the audit still finds a fault, carryOn restores the object, as the messages advise, and continues the
// crawl again. carryOn returns the output of the commands.
func (h *harmedStore) carryOn(ctx context.Context, j *judgement) (told string, err error) {
	audit, report := h.audit(ctx)
	status, views := h.say(ctx, "status"), h.say(ctx, "views")
	was := h.content(ctx, h.touched)
	before, err := h.objects(ctx)
	if err != nil {
		return "", err
	}
	web := serveLogged(h.l.t, h.l.web)
	run := commanded(ctx, runArgs(h.address, h.t.crawl, web.addr)...)
	j.verify, j.status, j.views, j.run = audit.code, status.code, views.code, run.code
	h.hear(j, report, audit, run, status, views)
	told = audit.text + run.text + status.text + views.text

	if again := h.s.repeatedPages(web); again > 0 {
		j.outcome, j.loss = "asks again", fmt.Sprintf("run asks for %d pages again: %s", again, unfolded(run.text))
		return told, nil
	}
	after, err := h.objects(ctx)
	if err != nil {
		return "", err
	}
	moved := !slices.Equal(before, after)
	if run.code == exitDone && moved {
		again, report := h.audit(ctx)
		if again.code != exitDone && audit.code == exitDone {
			h.hear(j, report, again)
		}
		audit = again
	}
	if run.code != exitDone || audit.code != exitDone {
		j.outcome, j.loss = "restored", h.restored(ctx, web)
		switch {
		case j.loss != "":
			j.outcome = "not restored"
		case j.verify == exitDone && j.status == exitDone && run.code == exitDone:
			j.outcome, j.silent = "restored late", true
		}
		return told, nil
	}
	if j.loss = h.rowDifference(ctx); j.loss != "" {
		j.outcome = "loses rows"
		return told, nil
	}
	now := h.content(ctx, h.touched)
	switch {
	case bytes.Equal(now, was) && !bytes.Equal(fileContent(h.s.reached, h.touched), was):
		j.outcome, j.silent = "stays", j.verify == exitDone && j.status == exitDone
	default:
		j.outcome = "mended"
	}
	return told, nil
}

// runRetry runs `crawlbatch retry`. If the earlier messages advise a rebuild, it then runs
// `crawlbatch retry --rebuild`.
func (h *harmedStore) runRetry(ctx context.Context, j *judgement, told string) error {
	web := serveLogged(h.l.t, h.l.web)
	retry := h.say(ctx, "retry", "--connect-to", "::"+web.addr)
	j.retry = retry.code
	if again := h.s.repeatedPages(web); again > 0 {
		j.outcome, j.loss = "asks again", fmt.Sprintf("retry asks for %d pages again: %s", again, unfolded(retry.text))
		return nil
	}
	told = unfolded(told)
	if !strings.Contains(told, "--rebuild") {
		return nil
	}
	note := func(outcome string) {
		if strings.Contains(ifReduced.ReplaceAllString(told, ""), "--rebuild") {
			j.outcome += outcome
		}
	}
	if made := h.say(ctx, "retry", "--rebuild"); made.code != exitDone {
		note(fmt.Sprintf(", rebuild %d", made.code))
		return nil
	}
	if h.runToEnd(ctx, web) == "" {
		note(", rebuilt")
		return nil
	}
	// No task can recreate the object, so the suite follows the advice to restore it from a copy.
	note(", not rebuilt")
	if j.loss = h.restored(ctx, web); j.loss != "" {
		j.outcome = "not restored"
	}
	return nil
}

// ifReduced matches the advice of a reader that does not know which task made an object. It depends on the
// changed byte whether this reader or a comparison of digests finds the damage. The suite follows the
// advice, but the table omits its result, which would otherwise depend on the changed byte.
var ifReduced = regexp.MustCompile("if a reduce task made it, run `[^`]*--rebuild`")

// restored puts the objects back from the kept copy and continues the crawl. It returns how the
// result differs from that of the unharmed crawl.
func (h *harmedStore) restored(ctx context.Context, web *loggedWeb) (loss string) {
	if err := h.putBack(ctx); err != nil {
		return err.Error()
	}
	return h.runToEnd(ctx, web)
}

func (h *harmedStore) putBack(ctx context.Context) error {
	keys := h.t.keys
	if !slices.Contains(keys, h.touched) {
		return h.b.Delete(ctx, h.touched)
	}
	for _, key := range keys {
		body, err := os.ReadFile(filepath.Join(h.s.dir, filepath.FromSlash(key)))
		if err != nil {
			return err
		}
		now, _, err := h.b.Get(ctx, key, math.MaxInt64)
		if err == nil && bytes.Equal(now, body) {
			continue
		}
		if err == nil {
			err = h.b.Delete(ctx, key)
		}
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		if _, err := h.b.Create(ctx, key, bytes.NewReader(body), int64(len(body))); err != nil {
			return err
		}
	}
	return nil
}

// runToEnd runs the crawl to its end and returns how its result differs from the result of the unharmed
// crawl. If the store has the same objects as before the damage, runToEnd skips the run, because its result
// is known.
func (h *harmedStore) runToEnd(ctx context.Context, web *loggedWeb) (loss string) {
	if now, err := h.objects(ctx); err == nil && slices.Equal(now, h.s.objects) {
		return ""
	}
	run := commanded(ctx, runArgs(h.address, h.t.crawl, web.addr)...)
	if run.code != exitDone {
		return fmt.Sprintf("run: exit %d %s", run.code, unfolded(run.text))
	}
	if again := h.s.repeatedPages(web); again > 0 {
		return fmt.Sprintf("run asks for %d pages again: %s", again, unfolded(run.text))
	}
	audit, report := h.audit(ctx)
	if audit.code != exitDone && strings.Contains(audit.text, "--rebuild") {
		h.say(ctx, "retry", "--rebuild")
		audit, report = h.audit(ctx)
	}
	if audit.code != exitDone {
		return fmt.Sprintf("verify: exit %d %s", audit.code, firstFinding(audit, report))
	}
	return h.rowDifference(ctx)
}

// quarantine follows the advice to move strays away. After the move, quarantine puts lost objects
// back and checks the result.
func (h *harmedStore) quarantine(ctx context.Context, j *judgement) {
	if moved := h.say(ctx, "verify", "--quarantine", "--yes"); moved.code != exitDone {
		j.outcome += fmt.Sprintf(", quarantine %d", moved.code)
		return
	}
	if slices.Contains(h.t.keys, h.touched) {
		if err := h.putBack(ctx); err != nil {
			j.loss = err.Error()
			return
		}
	}
	if j.loss = h.runToEnd(ctx, serveLogged(h.l.t, h.l.web)); j.loss != "" {
		j.outcome = "harmed by quarantine"
		return
	}
	j.outcome += ", moved"
}

// rowDifference returns how the published rows differ from the rows of the unharmed crawl.
func (h *harmedStore) rowDifference(ctx context.Context) string {
	rows, err := storedRows(ctx, h.b, h.t.crawl)
	if err != nil {
		return err.Error()
	}
	for dataset, want := range h.s.rows[h.t.crawl] {
		if !slices.Equal(want, rows[dataset]) {
			return fmt.Sprintf("%s: %d rows of %d, or others", dataset, len(rows[dataset]), len(want))
		}
	}
	return ""
}

// objects lists the objects of the store, except records of attempts, which do not influence a crawl.
func (h *harmedStore) objects(ctx context.Context) (all []string, err error) {
	return listed(ctx, h.b)
}

func listed(ctx context.Context, b store.Bucket) (all []string, err error) {
	for o, err := range b.List(ctx, "") {
		if err != nil {
			return nil, err
		}
		if strings.Contains(o.Key, "/attempts/") {
			continue
		}
		_, version, err := b.Get(ctx, o.Key, math.MaxInt64)
		if err != nil {
			return nil, err
		}
		all = append(all, o.Key+" "+string(version))
	}
	return all, nil
}

func (h *harmedStore) content(ctx context.Context, key string) []byte {
	body, _, err := h.b.Get(ctx, key, math.MaxInt64)
	if err != nil {
		return nil
	}
	return append([]byte("there: "), body...)
}

func fileContent(dir, key string) []byte {
	body, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(key)))
	if err != nil {
		return nil
	}
	return append([]byte("there: "), body...)
}

// repeatedPages returns the number of pages that the harmed crawl requested more often than the
// unharmed crawl.
func (s *damageState) repeatedPages(web *loggedWeb) (n int) {
	for page, times := range web.asked() {
		if excused := s.again[page]; s.asked[page] > 0 && times > excused || times > max(1, excused) {
			n++
		}
	}
	return n
}

// hear records in a judgement the first finding or error of the commands, and whether a command names the
// damaged object.
func (h *harmedStore) hear(j *judgement, report *verify.Report, answers ...spoken) {
	for _, a := range answers {
		if a.code == exitDone {
			continue
		}
		if j.says == "" {
			j.says = h.normalText(firstFinding(a, report))
		}
		text := unfolded(a.text)
		for _, k := range slices.Concat([]string{h.touched}, h.t.keys, h.t.gone) {
			j.named = j.named || strings.Contains(text, k) || len(h.t.keys) > 1 && strings.Contains(text, filepath.Dir(k)+"/")
		}
	}
}

func unfolded(text string) string { return strings.Join(strings.Fields(text), " ") }

// firstFinding returns the first finding of an audit. Without a finding, firstFinding returns the
// error in the command's last line.
func firstFinding(a spoken, report *verify.Report) string {
	if report != nil && len(report.Violations) > 0 && a.code == exitViolation {
		v := report.Violations[0]
		return fmt.Sprintf("%s: %s: %s", v.Check, v.Object, v.Problem)
	}
	_, last, found := strings.Cut(a.text, "crawlbatch: ")
	if !found {
		last = a.text
	}
	return unfolded(last)
}

var normalForms = []struct {
	of *regexp.Regexp
	by string
}{
	{regexp.MustCompile(`"?(?:crawl|tables|warc)[=/][^\s":]+"?`), "KEY"},
	{regexp.MustCompile(`\b[0-9a-f]{8,}\b`), "DIGEST"},
	{regexp.MustCompile(`\b2026-1[0-2](r1)?(\.\d)?\b`), "CRAWL"},
	{regexp.MustCompile(`\b\d+\b`), "N"},
	{regexp.MustCompile(`\be\d+\b`), "eN"},
	{regexp.MustCompile(`^"N"$`), "N"},
}

// normalText replaces the parts of a text that differ from run to run.
func (h *harmedStore) normalText(text string) string {
	text = strings.ReplaceAll(text, h.address, "STORE")
	for _, f := range normalForms {
		text = f.of.ReplaceAllString(text, f.by)
	}
	if r := []rune(text); len(r) > 220 {
		text = string(r[:220]) + "…"
	}
	return text
}
