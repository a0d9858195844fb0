package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"

	"crawlbatch.io/crawlbatch/formats/document"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/worker"
	"github.com/spf13/cobra"
)

func newInspectPage(c *common) *cobra.Command {
	var url, contentType string
	var lines bool
	cmd := &cobra.Command{
		Use:   "page FILE --url U",
		Short: "The rows that parse gives for a document",
		Long: `Page parses a document (- for stdin) as if URL had answered it and prints the rows as
JSON. With --jsonl: {"html_base64","url","content_type"} gives
{"page":{…},"links":[…],"text":{"main","full"}}, keys named as columns.`,
		Example: "  crawlbatch inspect page saved.html --url https://example.org/a",
		RunE: func(_ *cobra.Command, args []string) error {
			cfg, err := c.loadConfig()
			if err != nil {
				return err
			}
			i, err := newPageInspector(cfg)
			if err != nil {
				return err
			}
			if lines {
				return jsonl(c.in, c.out, i.answer)
			}
			if len(args) != 1 || url == "" {
				return usagef("give one FILE and its --url: see `crawlbatch inspect page --help`")
			}
			body, err := c.readFile(args[0])
			if err != nil {
				return err
			}
			rows, err := i.rows(body, url, contentType)
			if err != nil {
				return usagef("--url %q: %v", url, err)
			}
			return indent(c.out, rows)
		},
	}
	cmd.Flags().StringVar(&url, "url", "", "URL that answered")
	cmd.Flags().StringVar(&contentType, "content-type", "text/html", "Content-Type field of the answer")
	cmd.Flags().BoolVar(&lines, "jsonl", false, "one JSON object a line in, one a line out")
	return cmd
}

type pageQuestion struct {
	HTML        string `json:"html_base64"`
	URL         string `json:"url"`
	ContentType string `json:"content_type"`
}

type pageInspector struct {
	parser    *worker.Parser
	canonical *urlkey.Canonicalizer
}

func newPageInspector(cfg *config.Config) (*pageInspector, error) {
	parser, err := worker.NewParser(cfg)
	if err != nil {
		return nil, err
	}
	canonical, err := urlkey.New(cfg.Plan.StripParams)
	return &pageInspector{parser, canonical}, err
}

func (i *pageInspector) answer(q pageQuestion) (any, error) {
	body, err := base64.StdEncoding.DecodeString(q.HTML)
	if err != nil {
		return nil, fmt.Errorf("html_base64: %w", err)
	}
	rows, err := i.rows(body, q.URL, q.ContentType)
	if err != nil {
		return nil, fmt.Errorf("url: %w", err)
	}
	return json.RawMessage(rows), nil
}

// rows parses a document and renders its rows as one JSON object.
func (i *pageInspector) rows(body []byte, url, contentType string) ([]byte, error) {
	key, err := i.canonical.Canonical(url, "")
	if err != nil {
		return nil, err
	}
	r, err := i.parser.Parse(&document.Document{
		URL: key.URL, ContentType: contentType, Header: func(string) []string { return nil }, Body: body,
	})
	if err != nil {
		return nil, err
	}
	w := rowWriter{}
	w.object("page", r.Page)
	w.list("links", len(r.Links), func(n int) any { return r.Links[n] })
	w.object("text", r.Text)
	return w.done()
}
