// Package planfile names, stores and copies the files of a plan.
//
// Copy stores the same plan for a round of another crawl. A reparse copies the plan of the crawl
// whose responses it reads.
//
// The input is plan.json without an ID, and the output is the ID and the keys of the plan's files.
// Plan.json is stored last: a plan exists as soon as its plan.json does. Package planfile imports formats
// packages only.
package planfile

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
)

// The names of the kinds of files in plan.json.
const (
	URLs    = "plan"
	Refused = "refused"
	OptOut  = "opt_out"
)

// Of lists the files that a plan names: the URLs of each partition, then the refused entries and the opt-out list.
func Of(m *manifest.Plan) []*manifest.File {
	var files []*manifest.File
	for i := range m.Partitions {
		files = append(files, &m.Partitions[i].File)
	}
	for _, f := range []*manifest.File{m.RefusedFile, m.OptOutFile} {
		if f != nil {
			files = append(files, f)
		}
	}
	return files
}

// Identify sets the plan's ID and the keys of its files. The ID is the digest of the plan's whole
// content.
func Identify(m *manifest.Plan, version string) error {
	body, err := manifest.Encode(m)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(body)
	m.ID = hex.EncodeToString(sum[:8])
	for i := range m.Partitions {
		m.Partitions[i].File.Key = layout.PlanPart(m.Crawl, m.Round, m.ID, i)
	}
	if m.RefusedFile != nil {
		m.RefusedFile.Key = layout.PlanRefused(m.Crawl, m.Round, m.ID)
	}
	if m.OptOutFile != nil {
		m.OptOutFile.Key = layout.PlanOptOut(m.Crawl, m.Round, m.ID)
	}
	m.Version = version
	return nil
}

// Create stores plan.json and returns the stored plan. An existing plan.json describes the same
// plan, because the ID is a digest. Another version of crawlbatch may have written that plan.json.
func Create(ctx context.Context, b store.Bucket, m *manifest.Plan) (*manifest.Plan, error) {
	key := layout.PlanManifest(m.Crawl, m.Round, m.ID)
	body, err := manifest.Encode(m)
	if err == nil {
		_, err = store.CreateBytes(ctx, b, key, body)
	}
	if errors.Is(err, store.ErrExists) {
		var same manifest.Plan
		if _, _, lerr := manifest.Load(ctx, b, key, &same); lerr == nil {
			return &same, nil
		}
	}
	return m, err
}
