package inspect

import (
	"encoding/base64"
	"encoding/json"
	"fmt"

	"crawlbatch.io/crawlbatch/formats/catalog"
	"crawlbatch.io/crawlbatch/formats/document"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/worker"
)

// PageQuestion asks for the rows of a document.
type PageQuestion struct {
	HTML        string `json:"html_base64"`
	URL         string `json:"url"`
	ContentType string `json:"content_type"`
}

// Page parses documents like a fetch task.
type Page struct {
	parser    *worker.Parser
	canonical *urlkey.Canonicalizer
}

// NewPage makes a Page with the parser's settings and plan.strip_params of cfg.
func NewPage(cfg *config.Config) (*Page, error) {
	parser, err := worker.NewParser(cfg)
	if err != nil {
		return nil, err
	}
	canonical, err := urlkey.New(cfg.Plan.StripParams) // documents are stored under URLs without rules
	return &Page{parser, canonical}, err
}

// Answer returns the rows of a document as JSON.
func (p *Page) Answer(q PageQuestion) (any, error) {
	body, err := base64.StdEncoding.DecodeString(q.HTML)
	if err != nil {
		return nil, fmt.Errorf("html_base64: %w", err)
	}
	rows, err := p.Rows(body, q.URL, q.ContentType)
	if err != nil {
		return nil, fmt.Errorf("url: %w", err)
	}
	return json.RawMessage(rows), nil
}

// Rows parses a document and renders its rows as one JSON object with the keys page, links and
// text. It returns an error if url has no canonical form.
func (p *Page) Rows(body []byte, url, contentType string) ([]byte, error) {
	key, err := p.canonical.Canonical(url, "")
	if err != nil {
		return nil, err
	}
	r, err := p.parser.Parse(&document.Document{
		URL: key.URL, ContentType: contentType, Header: func(string) []string { return nil }, Body: body,
	})
	if err != nil {
		return nil, err
	}
	return json.Marshal(struct {
		Page  catalog.Row   `json:"page"`
		Links []catalog.Row `json:"links"`
		Text  catalog.Row   `json:"text"`
	}{catalog.Row{Of: r.Page}, catalog.Rows(r.Links), catalog.Row{Of: r.Text}})
}
