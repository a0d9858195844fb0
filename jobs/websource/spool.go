package websource

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"crawlbatch.io/crawlbatch/formats/document"
	"crawlbatch.io/crawlbatch/formats/mediatype"
)

// spool is a document.Parser that stores a document in a scratch file. The fetcher reuses the memory of
// the document after Parse, but the entries are read later.
type spool struct {
	dir         string
	url         string // URL of the document, after redirects
	contentType string
	length      int64 // in bytes
	failed      error // why the document could not be stored
}

func (s *spool) path() string { return filepath.Join(s.dir, "document") }

// Sniff implements document.Parser. It need not detect the type, because package sitemap detects the
// format of a file itself.
func (s *spool) Sniff(contentType string, _ []byte) string {
	return cmp.Or(mediatype.Essence(contentType), "application/octet-stream")
}

// Wants implements document.Parser. Servers send sitemaps with any media type.
func (s *spool) Wants(string, []byte) bool { return true }

// Refuses implements document.Parser.
func (s *spool) Refuses(string) bool { return false }

// IsSitemap implements document.Parser. It returns true so that the size limit of sitemaps applies.
func (s *spool) IsSitemap(string, []byte) bool { return true }

// Parse implements document.Parser.
func (s *spool) Parse(d *document.Document) (*document.Parsed, error) {
	s.url, s.contentType, s.length = strings.Clone(d.URL), strings.Clone(d.ContentType), int64(len(d.Body))
	if err := os.WriteFile(s.path(), d.Body, 0o600); err != nil {
		s.failed = fmt.Errorf("store a sitemap in scratch: %w", err)
	}
	return &document.Parsed{}, s.failed
}
