package frontier

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/inlinks"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
)

const formURL = "http://a.example/q?a=1"

// sentAs returns a form of formURL: "" for the canonical one, else with this text at its end.
func sentAs(text string) string {
	if text == "" {
		return ""
	}
	return formURL + "&" + text
}

// formOf reads a form from a text such as "x domain" or "- answered". "" is the canonical form, from nobody.
func formOf(text string) schema.Form {
	sent, from, _ := strings.Cut(text, " ")
	return schema.Form{Sent: sentAs(strings.TrimPrefix(sent, "-")), SentFrom: schema.SentFrom(from)}
}

// formText is the inverse of formOf.
func formText(f schema.Form) string {
	sent := "-"
	if f.Sent != "" {
		sent = strings.TrimPrefix(f.Sent, formURL+"&")
	}
	return strings.TrimSpace(sent + " " + string(f.SentFrom))
}

func linkedIn(t *testing.T, forms string) world {
	return world{inlinks: []schema.Inlink{link(t, formURL, func(l *schema.Inlink) { l.Form = formOf(forms) })}}
}

// and joins two worlds of a round.
func (w world) and(other world) world {
	w.fetches, w.pages, w.captures = append(w.fetches, other.fetches...), append(w.pages, other.pages...), append(w.captures, other.captures...)
	w.inlinks, w.refused = append(w.inlinks, other.inlinks...), append(w.refused, other.refused...)
	return w
}

// ends is an outcome with its status.
func ends(t *testing.T, form string, o schema.Outcome, status int16, change func(*schema.Fetch)) world {
	return world{fetches: []schema.Fetch{fetch(t, formURL, o, func(f *schema.Fetch) {
		f.HTTPStatus, f.Form = status, formOf(form)
		if change != nil {
			change(f)
		}
	})}}
}

func gaveUp(t *testing.T, form string) world   { return ends(t, form, schema.HTTP4xx, 404, nil) }
func timedOut(t *testing.T, form string) world { return ends(t, form, schema.Timeout, 0, nil) }

// pageAs is a page that was sent for in a form.
func pageAs(t *testing.T, form string, digest string) world {
	k := key(t, formURL)
	var p schema.WorkingPage
	p.SURT, p.URL, p.Sent, p.ContentDigest = k.SURT, k.URL, formOf(form).Sent, digest
	w := ends(t, form, schema.OK, 200, func(f *schema.Fetch) { f.ContentDigest = digest })
	w.pages = []schema.WorkingPage{p}
	return w
}

// listedAs is an entry of a source that the plan refuses.
func listedAs(t *testing.T, form string, reason schema.SkipReason) world {
	k := key(t, formURL)
	return world{refused: []schema.Refused{{URL: k.URL, SURT: k.SURT, Domain: k.Domain, Reason: reason, Form: formOf(form)}}}
}

// The form after a round follows from the one before, what the round asked for, and the links.
func TestTheFormAfterEachOutcome(t *testing.T) {
	denied := func(form string) world { return ends(t, form, schema.RobotsDenied, 0, nil) }
	within := func(form string) world {
		return ends(t, form, schema.OK, 200, func(f *schema.Fetch) { f.FinalURL, f.Redirects = "http://a.example/other", 1 })
	}
	k := key(t, formURL)
	led := func(form string, o schema.Outcome, status int16) world { // another URL redirects to it
		w := world{fetches: []schema.Fetch{fetch(t, "http://a.example/first", o, func(f *schema.Fetch) { f.FinalURL, f.HTTPStatus = formURL, status })}}
		if status != 200 {
			w.captures = []schema.Capture{{URLColumns: schema.URLColumns{SURT: k.SURT, URL: k.URL},
				CaptureColumns: schema.CaptureColumns{FetchStatus: status, FetchTime: at, Sent: formOf(form).Sent}}}
		} else {
			w.pages = pageAs(t, form, "D").pages
		}
		return w
	}
	hop := func(form string) world { // a redirect led to it, and it redirects
		return world{captures: []schema.Capture{{URLColumns: schema.URLColumns{SURT: k.SURT, URL: k.URL},
			CaptureColumns: schema.CaptureColumns{FetchStatus: 301, FetchRedirect: "http://a.example/other", FetchTime: at, Sent: formOf(form).Sent}}}}
	}
	for _, tc := range []struct {
		name  string
		prior string // "new" for an unknown URL
		round world
		want  string // "" if the round writes no row
	}{
		{"new, by a link of its domain", "new", linkedIn(t, "x domain"), "x domain"},
		{"new, by a link of another domain", "new", linkedIn(t, "x stranger"), "x stranger"},
		{"new, over the budget", "new", listedAs(t, "x source", schema.SkipBudget), "x domain"},
		{"new, over the budget and linked", "new", listedAs(t, "x source", schema.SkipBudget).and(linkedIn(t, "- domain")), "x domain"},
		{"new, in a redirect chain", "new", hop("x"), "x domain"},
		{"new, at the end of a redirect chain", "new", led("x", schema.OK, 200), "x answered"},
		{"new, gone at the end of a redirect chain", "new", led("x", schema.HTTP4xx, 404), "x"},

		{"a source's answers", "- domain", pageAs(t, "x source", "D"), "x answered"},
		{"a source's times out", "- domain", timedOut(t, "x source"), "x domain"},
		{"a source's times out, of what has answered in another form", "- answered", timedOut(t, "x source"), "- answered"},
		{"a source's times out, of what has answered in it", "x answered", timedOut(t, "x source"), "x answered"},
		{"a source's is gone", "- domain", gaveUp(t, "x source"), "- domain"},

		{"what answered answers", "x answered", pageAs(t, "x answered", "D").and(linkedIn(t, "- domain")), "x answered"},
		{"what answered has not changed", "x answered", ends(t, "x answered", schema.NotModified, 304, nil).and(linkedIn(t, "- domain")), "x answered"},
		{"what answered is of another type", "x answered", ends(t, "x answered", schema.MIMEFiltered, 200, nil).and(linkedIn(t, "- domain")), "x answered"},
		{"what answered times out", "x answered", timedOut(t, "x answered").and(linkedIn(t, "- domain")), "x answered"},
		{"what answered fails with 500", "x answered", ends(t, "x answered", schema.HTTP5xx, 500, nil).and(linkedIn(t, "- domain")), "x answered"},
		{"what answered fails with 403", "x answered", ends(t, "x answered", schema.HTTP4xx, 403, nil).and(linkedIn(t, "- domain")), "x answered"},
		{"what answered is deferred", "x answered", ends(t, "x answered", schema.Deferred, 0, nil).and(linkedIn(t, "- domain")), "x answered"},
		{"what answered redirects", "x answered", within("x answered").and(linkedIn(t, "- domain")), "x answered"},
		{"what answered is gone", "x answered", gaveUp(t, "x answered"), "x"},
		{"what answered is denied", "x answered", denied("x answered"), "x"},
		{"what answered is gone, and linked", "x answered", gaveUp(t, "x answered").and(linkedIn(t, "- domain")), "- domain"},
		{"what answered is gone, and linked by a stranger", "x answered", gaveUp(t, "x answered").and(linkedIn(t, "y stranger")), "x"},
		{"what answered is gone, and linked in that form", "x answered", gaveUp(t, "x answered").and(linkedIn(t, "x domain")), "x"},
		{"what answered, of which a redirect leads to another form that is gone", "- answered", led("x", schema.HTTP4xx, 404), ""},
		{"what answered is gone, as the target of a redirect", "x answered", led("x", schema.HTTP4xx, 410), "x"},
		{"what answered is linked", "x answered", linkedIn(t, "- domain"), ""},
		{"what answered is in a redirect chain", "x answered", hop("-"), "x answered"},

		{"a link's answers", "x domain", pageAs(t, "x domain", "D"), "x answered"},
		{"a link's answers, but after a redirect to another form", "x domain", pageAs(t, "x domain", "D").and(world{}).sentInstead(t, "yy"), "yy answered"},
		{"a link's times out, and there is a shorter one", "xx domain", timedOut(t, "xx domain").and(linkedIn(t, "x domain")), "x domain"},
		{"a link's times out, and there is a longer one", "x domain", timedOut(t, "x domain").and(linkedIn(t, "xx domain")), "x domain"},
		{"a link's redirects away", "x domain", within("x domain"), "x domain"},
		{"a stranger's, and its domain links it", "- stranger", linkedIn(t, "xx domain"), "xx domain"},
		{"its domain's, and a stranger links it", "xx domain", linkedIn(t, "- stranger"), ""},
		{"an earlier source's, and its domain links it", "xx source", linkedIn(t, "- domain"), ""},
		{"nobody's, and a stranger links it", "x", linkedIn(t, "yy stranger"), "yy stranger"},

		{"a source's over the budget", "- answered", listedAs(t, "x source", schema.SkipBudget), ""},
		{"a source's that was fetched lately", "- answered", listedAs(t, "x source", schema.SkipRecent), ""},
		{"a source's that the scope refuses", "- answered", listedAs(t, "x source", schema.SkipOutOfScope), ""},
		{"a source's that a filter refuses", "- answered", listedAs(t, "x source", schema.SkipFiltered), ""},
		{"a source's on the opt-out list", "- answered", listedAs(t, "x source", schema.SkipOptOut), ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := bucket(t)
			var known []schema.URLRecord
			if tc.prior != "new" {
				known = append(known, state(t, formURL, schema.StateFetched, func(r *schema.URLRecord) {
					r.Form, r.LastFetched, r.Fetches, r.ContentDigest, r.ETag, r.LastModified = formOf(tc.prior), 1, 1, "O", "old", "old"
					r.ContentAt, r.WARCFilename, r.WARCRecordOff, r.WARCRecordLen, r.NextDue = 1, "w", 2, 3, at+day
				}))
			}
			urls, _, _ := run(t, b, Default().following(FollowAny), tc.round, seal(t, b, "2026-10", 0, 1, known...))
			got := ""
			for _, u := range urls {
				if u.URL != formURL {
					continue
				}
				got = formText(u.Form)
				if tc.prior == "new" || u.Outcome == schema.OK && u.State == schema.StateFetched {
					continue
				}
				same := u.Sent == formOf(tc.prior).Sent
				if (u.ETag == "old" && u.LastModified == "old" && u.WARCFilename == "w" && u.ContentAt == 1 && u.WARCRecordLen == 3) != same ||
					(u.ETag == "" && u.LastModified == "" && u.WARCFilename == "" && u.ContentAt == 0 && u.WARCRecordLen == 0) == same || u.ContentDigest != "O" {
					t.Errorf("the form was %s: %+v", tc.prior, u)
				}
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// sentInstead changes the form in which the pages of a round were asked for.
func (w world) sentInstead(t *testing.T, text string) world {
	t.Helper()
	w.pages[0].Sent = sentAs(text)
	return w
}

func (c Config) following(f Follow) Config {
	c.Follow = f
	return c
}

// formRounds takes a URL through rounds, each with the states of the ones before. It returns "state form due" for each, or
// "" for a round without a row.
func formRounds(t *testing.T, cfg Config, rounds ...world) (got []string) {
	t.Helper()
	var known []schema.URLRecord
	b := bucket(t)
	for n, w := range rounds {
		earlier := seal(t, b, "2026-10", n, 1, known...)
		own := bucket(t)
		for _, f := range earlier.Files {
			copyTo(t, b, own, f.Key)
		}
		urls, _, _ := run(t, own, cfg, w, earlier)
		row := ""
		for _, u := range urls {
			if u.URL != formURL {
				continue
			}
			due := "later"
			switch {
			case u.State == schema.StateFound || u.State == schema.StateDeferred || u.NextDue != 0 && u.NextDue <= at:
				due = "now"
			case u.NextDue == 0:
				due = "never"
			}
			row = fmt.Sprintf("%s %s %s", u.State, formText(u.Form), due)
			known = []schema.URLRecord{u}
		}
		got = append(got, row)
	}
	return got
}

// A URL that failed for good is found again if its own domain then links it in another form. Nothing else makes it due, and
// a round in which nothing changes writes no row.
func TestWhatIsGoneIsFoundAgainInAnotherFormOfItsDomain(t *testing.T) {
	nofollow := func(w world) world { w.inlinks[0].Followed = false; return w }
	for _, tc := range []struct {
		name   string
		rounds []world
		want   []string
	}{
		{"in the form that answered, after that of a list", []world{pageAs(t, "x source", "D"), gaveUp(t, "- source"), pageAs(t, "x answered", "D")},
			[]string{"fetched x answered later", "gone x answered now", "fetched x answered later"}},
		{"in ever other forms", []world{gaveUp(t, "- domain"), linkedIn(t, "x domain"), gaveUp(t, "x domain"), linkedIn(t, "y domain"), gaveUp(t, "y domain"),
			linkedIn(t, "z domain"), gaveUp(t, "z domain"), linkedIn(t, "xx domain"), gaveUp(t, "xx domain"), linkedIn(t, "yy domain")},
			[]string{"gone - never", "found x domain now", "gone x never", "found y domain now", "gone y never", "found z domain now", "gone z never", "found xx domain now", "gone xx never", ""}},
		{"in another form", []world{pageAs(t, "x source", "D"), gaveUp(t, "x answered"), linkedIn(t, "- domain"), linkedIn(t, "- domain"), {}},
			[]string{"fetched x answered later", "gone x never", "found - domain now", "", ""}},
		{"in a longer form", []world{gaveUp(t, "- stranger"), linkedIn(t, "xyz domain"), pageAs(t, "xyz domain", "D"), linkedIn(t, "- domain")},
			[]string{"gone - never", "found xyz domain now", "fetched xyz answered later", ""}},
		{"in the same form", []world{gaveUp(t, "x answered"), linkedIn(t, "x domain"), linkedIn(t, "x domain")}, []string{"gone x never", "", ""}},
		{"by a stranger", []world{gaveUp(t, "x answered"), linkedIn(t, "- stranger"), linkedIn(t, "- stranger")},
			[]string{"gone x never", "", ""}},
		{"by a link that is not followed", []world{gaveUp(t, "x answered"), nofollow(linkedIn(t, "- domain"))}, []string{"gone x never", ""}},
		{"in the round that finds it gone", []world{gaveUp(t, "x answered").and(linkedIn(t, "- domain")), {}, gaveUp(t, "- domain").and(linkedIn(t, "- domain")), linkedIn(t, "- domain"), {}},
			[]string{"gone - domain now", "", "gone - never", "", ""}},
		{"by a stranger, in the round that finds it gone", []world{gaveUp(t, "x answered").and(linkedIn(t, "- stranger")), linkedIn(t, "- stranger")},
			[]string{"gone x never", ""}},
		{"denied, in another form", []world{ends(t, "x domain", schema.RobotsDenied, 0, nil), linkedIn(t, "- domain"), ends(t, "- domain", schema.RobotsDenied, 0, nil), {}},
			[]string{"denied x never", "found - domain now", "denied - never", ""}},
		{"failed for now", []world{timedOut(t, "x domain"), linkedIn(t, "xx domain"), linkedIn(t, "- domain"), linkedIn(t, "- domain")},
			[]string{"failed x domain later", "", "failed - domain later", ""}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if d := gocmp.Diff(tc.want, formRounds(t, Default().following(FollowAny), tc.rounds...)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
	excluding := Default().following(FollowAny)
	excluding.MaxDepth = 2
	if d := gocmp.Diff([]string{"gone x never", ""}, formRounds(t, excluding, gaveUp(t, "x answered"), linkedIn(t, "- domain"))); d != "" {
		t.Errorf("what may not be planned (-want +got):\n%s", d)
	}
}

// Whatever the order of links and of partitions, a URL gets the same row.
func TestTheFormDependsOnNoOrder(t *testing.T) {
	forms := []schema.Form{formOf("xx domain"), formOf("x domain"), formOf("- stranger"), formOf("y domain"), formOf("zz stranger")}
	k := key(t, formURL)
	redirect := func(n int, sent string) schema.Fetch { // a page of another domain redirects to the URL
		return fetch(t, fmt.Sprintf("http://b%d.example/", n), schema.Redirected, func(f *schema.Fetch) {
			f.RedirectTarget, f.RedirectSent, f.HTTPStatus = formURL, sentAs(sent), 301
		})
	}
	for _, prior := range []string{"new", "yyy domain", "yyy answered", "yyy stranger"} {
		var want *schema.URLRecord
		for seed := range uint64(12) {
			random := rand.New(rand.NewPCG(seed, 1))
			target := schema.TargetLinks{Inlink: schema.Inlink{SURT: k.SURT, URL: k.URL}}
			for _, n := range random.Perm(len(forms)) {
				inlinks.Add(&target, &schema.TargetLinks{Inlink: link(t, formURL, func(l *schema.Inlink) { l.Form = forms[n] })})
			}
			w := world{partitions: 1 + random.IntN(4), inlinks: []schema.Inlink{target.Inlink}, refused: listedAs(t, "q source", schema.SkipFiltered).refused}
			for _, n := range random.Perm(3) {
				w.fetches = append(w.fetches, redirect(n, []string{"a", "b", "longest"}[n]))
			}
			b := bucket(t)
			var known []schema.URLRecord
			if prior != "new" {
				known = append(known, state(t, formURL, schema.StateFound, func(r *schema.URLRecord) { r.Form = formOf(prior) }))
			}
			urls, _, _ := run(t, b, Default().following(FollowAny), w, seal(t, b, "2026-10", 0, 1, known...))
			for _, u := range urls {
				if u.URL != formURL {
					continue
				}
				if want == nil {
					want = &u
				}
				if d := gocmp.Diff(*want, u); d != "" {
					t.Errorf("%s, seed %d: %s", prior, seed, d)
				}
			}
		}
		if form := map[string]string{"yyy answered": "yyy answered"}[prior]; want == nil || formText(want.Form) != max(form, "x domain") {
			t.Errorf("%s: %+v", prior, want)
		}
	}
}

// Contents of two forms may differ though the page has not changed. Only equal contents are a sample for the recrawl rule.
func TestContentsOfTwoFormsAreNoSample(t *testing.T) {
	for _, tc := range []struct {
		name, prior, asked, digest string
		changes                    int32
		sample                     bool
	}{
		{"same form, changed", "x answered", "x answered", "new", 3, true},
		{"same form, equal", "x answered", "x answered", "old", 2, true},
		{"same form after it was gone, changed", "x", "x", "new", 3, true},
		{"another form, changed", "x answered", "- source", "new", 2, false},
		{"another form, equal", "x answered", "- source", "old", 2, true},
		{"replaced by its domain's, changed", "x domain", "x domain", "new", 2, false},
		{"replaced by its domain's, equal", "x domain", "x domain", "old", 2, true},
		{"replaced by a stranger's, changed", "x stranger", "x stranger", "new", 2, false},
		{"replaced by a source's, changed", "x source", "x domain", "new", 2, false},
		{"replaced by a source's, equal", "x source", "x domain", "old", 2, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := bucket(t)
			prior := state(t, formURL, schema.StateFetched, func(r *schema.URLRecord) {
				r.Form, r.LastFetched, r.RevisitMS, r.NextDue, r.Fetches, r.Changes, r.ContentDigest = formOf(tc.prior), at-10*day, 10*dayMS, at, 5, 2, "old"
				r.ChangeHistory = schema.ChangeHistory{ChangeWeight: 2000, ChangedMS: 20 * dayMS, UnchangedMS: 20 * dayMS}
			})
			urls, _, _ := run(t, b, Default(), pageAs(t, tc.asked, tc.digest), seal(t, b, "2026-10", 0, 1, prior))
			u := urls[0]
			if u.Changes != tc.changes || (u.ChangeHistory != prior.ChangeHistory) != tc.sample || u.ContentDigest != tc.digest || u.Fetches != 6 ||
				u.Form != (schema.Form{Sent: formOf(tc.asked).Sent, SentFrom: schema.SentAnswered}) {
				t.Errorf("%+v", u)
			}
		})
	}
}

// A scope refuses a found URL because of its form too.
func TestAScopeJudgesTheFormOfANewURL(t *testing.T) {
	for form, want := range map[string]string{"x domain": "found", "print=1 domain": "filtered", "- domain": "found"} {
		cfg := Default().following(FollowAny)
		cfg.Scope = refusing("print=1")
		urls, skips, _ := run(t, bucket(t), cfg, linkedIn(t, form))
		got := ""
		for _, u := range urls {
			got += string(u.State)
		}
		for _, s := range skips {
			got += string(s.Reason)
		}
		if got != want {
			t.Errorf("%s: %s, want %s", form, got, want)
		}
	}
}

// refusing is a scope that refuses URLs which are sent with a text.
type refusing string

func (r refusing) Refusal(_, sent string) (schema.SkipReason, string) {
	if strings.Contains(sent, string(r)) {
		return schema.SkipFiltered, string(r)
	}
	return "", ""
}

func copyTo(t *testing.T, from, to store.Bucket, key string) {
	t.Helper()
	o, err := from.Open(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	if _, err := to.Create(t.Context(), key, o, o.Size()); err != nil {
		t.Fatal(err)
	}
}
