package scope

import (
	"crawlbatch.io/crawlbatch/formats/takedown"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/planner/source"
)

// TakenDown reports whether an entry of a source was taken down: its URL, by the rules of the
// Canonicalizer or without them, or a URL in a text that is none. url and err are the Canonicalizer's
// answer to the entry.
func TakenDown(gone *takedown.Guard, c *urlkey.Canonicalizer, e *source.Entry, url string, err error) bool {
	if gone == nil {
		return false
	}
	if err != nil || e.Broken != "" {
		return gone.Mentions(e.URL) || gone.Mentions(e.Broken)
	}
	if gone.URL(url) || c == c.Plain() {
		return gone.URL(url)
	}
	plain, err := c.Plain().URL(e.URL, "")
	return err == nil && gone.URL(plain)
}

// Or returns a function like o.Refuses for which what was taken down is on the list too. The entry says why.
func (o *OptOut) Or(gone *takedown.Guard) func(url, sent string) (entry string, ok bool) {
	return func(url, sent string) (string, bool) {
		if gone.URL(url) {
			return "a takedown", true
		}
		return o.Refuses(url, sent)
	}
}
