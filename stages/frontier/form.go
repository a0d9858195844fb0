package frontier

import (
	"slices"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/urlkey"
)

// mostForms is the number of failures in a row after which no other form of a URL is tried. Else a dead URL whose links
// differ in a parameter for tracking would be tried for ever.
const mostForms = 4

func failedForGood(s schema.URLState) bool { return s == schema.StateGone || s == schema.StateDenied }

// sent returns the URL as the round sent it, or "" for the canonical URL. It must have been requested.
func (g *group) sent() string {
	switch {
	case g.outcome != nil:
		return g.outcome.Sent
	case g.page != nil:
		return g.page.Sent
	case g.hop != nil:
		return g.hop.Sent
	case g.sitemap != nil:
		return g.sitemap.Sent
	}
	return ""
}

// newForm returns the form of the URL after the round (schema.Form). New links change it only as long as it has not answered,
// or after it failed for good.
func (d *decider) newForm(g *group) schema.Form {
	f, failed := g.formByAnswer()
	offer := func(o schema.Form) {
		if !slices.Contains(failed, o.Sent) && (g.prior == nil || o.Sent == "" || !d.refuses(g.url, o.Sent)) {
			f.Offer(o)
		}
	}
	if g.inlink != nil {
		offer(g.inlink.Form)
	}
	if g.redirect != nil {
		offer(g.redirect.Form)
	}
	for _, r := range g.refused {
		// The plan may have refused others because of this form. It asked for none, so what answered stays.
		if (r.Reason == schema.SkipBudget || r.Reason == schema.SkipRecent) && f.SentFrom != schema.SentAnswered {
			offer(r.Form)
		}
	}
	if f.SentFrom == schema.SentBySource { // of this plan; for later ones it is what the domain says of itself
		f.SentFrom = schema.SentByDomain
	}
	return f
}

// formByAnswer returns the form of the URL as far as its answer in the round decides, and the forms that failed for good.
// The plan chose one of the forms of its sources and of earlier rounds. If it failed for good, one that was known before
// stays, and so does one that answered before, if the failure may pass.
func (g *group) formByAnswer() (f schema.Form, failed []string) {
	if g.prior != nil {
		if f = g.prior.Form; f.SentFrom == schema.SentByNobody && failedForGood(g.prior.State) {
			failed = append(failed, f.Sent)
		}
	}
	o := g.outcome
	asked, _ := g.requested()
	switch {
	case g.page != nil && (o == nil || o.Outcome != schema.Blocked):
		return schema.Form{Sent: g.page.Sent, SentFrom: schema.SentAnswered}, failed
	case g.answeredWithoutPage():
		return schema.Form{Sent: g.sent(), SentFrom: schema.SentAnswered}, failed
	case asked != nil && failedForGood(schema.StateAfter(asked.Outcome, asked.HTTPStatus, moved(asked))):
		failed = append(append(failed, g.sent()), g.hops...) // also those of a redirect to itself that ended so
		unknown := f.SentFrom == schema.SentByNobody && (o != nil || g.prior == nil || failedForGood(g.prior.State))
		if unknown || f.Sent == g.sent() {
			f = schema.Form{Sent: g.sent()}
		}
	case o != nil && f.SentFrom != schema.SentAnswered:
		f = o.Form
	case o == nil && g.hop != nil: // a redirect within the domain led to it
		f.Offer(schema.Linked(g.hop.Sent, true))
	}
	return f, failed
}

// answeredWithoutPage reports whether the URL itself answered with 2xx or 304, but has no row of pages.
func (g *group) answeredWithoutPage() bool {
	if o := g.outcome; o != nil {
		return !moved(o) && slices.Contains([]schema.Outcome{schema.OK, schema.NotModified, schema.MIMEFiltered}, o.Outcome)
	}
	return g.sitemap != nil && g.sitemap.Outcome == schema.OK
}

// refuses reports whether the scope refuses a known URL in a form.
func (d *decider) refuses(url, sent string) bool {
	if d.cfg.Scope == nil {
		return false
	}
	reason, _ := d.cfg.Scope.Refusal(url, sent)
	return reason != ""
}

// tryForm reports whether a URL that failed for good in the form sent is to be tried in another: one that was known
// before and did not fail, or one in which its own domain links it. r is the URL's record.
func (d *decider) tryForm(g *group, k *urlkey.Key, r *schema.URLRecord, sent string) bool {
	if !failedForGood(r.State) || g.form.Sent == sent || r.Failures > mostForms {
		return false
	}
	if g.form.SentFrom != schema.SentAnswered && g.form.SentFrom != schema.SentByDomain {
		return false
	}
	depth, followed := r.Depth, true // of a form that was known before
	if was := g.prior; (was == nil || was.Sent != g.form.Sent) && (g.inlink != nil || g.redirect != nil) {
		depth, _, followed = g.nearest()
	}
	reason, _ := d.judge(g, k, depth, followed)
	return reason == ""
}
