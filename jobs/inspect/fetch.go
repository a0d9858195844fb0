package inspect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"crawlbatch.io/crawlbatch/formats/catalog"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/takedown"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/worker"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch/segments"
)

// CheckTakedown returns the guard of what was taken down in a store, as worker.TakenDown does. If that includes a URL, the
// error wraps stages.ErrPermanent.
func CheckTakedown(ctx context.Context, b store.Bucket, cfg *config.Config, url string) (*takedown.Guard, error) {
	gone, err := worker.TakenDown(ctx, b, cfg, nil)
	if gone.URL(url) {
		err = fmt.Errorf("%q was taken down from %s, so it is never fetched: %w", url, b, stages.ErrPermanent)
	}
	return gone, err
}

// FetchRows renders the rows of one fetched URL as a JSON object, by dataset and column.
func FetchRows(rows *segments.Record) ([]byte, error) {
	found := struct {
		Fetch    catalog.Row   `json:"fetch"`
		Requests []catalog.Row `json:"requests"`
		Captures []catalog.Row `json:"captures"`
		Page     catalog.Row   `json:"page"`
		Text     catalog.Row   `json:"text"`
		Links    []catalog.Row `json:"links"`
	}{Fetch: catalog.Row{Of: *rows.Fetch}, Requests: catalog.Rows(rows.Requests), Captures: []catalog.Row{}, Links: catalog.Rows(rows.Links)}
	for _, c := range rows.Captures {
		found.Captures = append(found.Captures, catalog.Row{Of: c.Capture})
	}
	if rows.Page != nil {
		found.Page.Of = rows.Page
	}
	if rows.Text != nil {
		found.Text.Of = rows.Text
	}
	return json.Marshal(found)
}

// ErrLater means that the URL could not be fetched now, but a later try may succeed.
var ErrLater = errors.New("another try later may succeed")

// Answered returns nil if the host answered for the URL, otherwise an error that names the outcome.
// The error wraps ErrLater if another try may succeed, otherwise stages.ErrPermanent.
func Answered(f schema.Fetch) error {
	kind := ErrLater
	switch f.Outcome {
	case schema.OK, schema.NotModified, schema.Redirected, schema.MIMEFiltered, schema.HTTP4xx, schema.Blocked, schema.PaymentRequired:
		return nil
	case schema.RobotsDenied, schema.AddressBlocked, schema.Stopped, schema.RedirectLimit:
		kind = stages.ErrPermanent
	}
	what := string(f.Outcome)
	switch {
	case f.Error != "":
		what += ": " + f.Error
	case f.Outcome == schema.RobotsDenied:
		what += ": " + f.RobotsRule
	case f.HTTPStatus != 0:
		what += fmt.Sprintf(": HTTP status %d", f.HTTPStatus)
	}
	return fmt.Errorf("%s: %s: %w", f.URL, what, kind)
}
