package sitemap

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
)

// jsonFeedVersion is a part of the URLs by which files name their version of JSON Feed.
const jsonFeedVersion = "jsonfeed.org/version/"

// looksLikeJSON reports whether a file begins like a JSON object that names a version of JSON Feed.
func looksLikeJSON(head []byte) bool {
	head = bytes.TrimLeft(head, " \t\r\n")
	if len(head) == 0 || head[0] != '{' {
		return false
	}
	return bytes.Contains(head, []byte(jsonFeedVersion)) || bytes.Contains(head, []byte(`jsonfeed.org\/version\/`))
}

// jsonItem holds the members of an item of a JSON Feed. Values of a wrong type are ignored.
type jsonItem struct {
	ID          jsonText `json:"id"`
	URL         jsonText `json:"url"`
	External    jsonText `json:"external_url"`
	Title       jsonText `json:"title"`
	Summary     jsonText `json:"summary"`
	Text        jsonText `json:"content_text"`
	HTML        jsonText `json:"content_html"`
	Image       jsonText `json:"image"`
	Published   jsonText `json:"date_published"`
	Modified    jsonText `json:"date_modified"`
	Attachments jsonRefs `json:"attachments"`
}

type jsonFeedRef struct {
	URL   jsonText `json:"url"`
	Title jsonText `json:"title"`
	Name  jsonText `json:"name"`
}

// jsonRefs holds the objects among the first maxExtras elements of a list. Other elements are ignored.
type jsonRefs []jsonFeedRef

// UnmarshalJSON implements json.Unmarshaler. It decodes one element at a time, because a long list of
// numbers would otherwise become a much larger list of objects.
func (l *jsonRefs) UnmarshalJSON(p []byte) error {
	*l = nil
	if len(p) == 0 || p[0] != '[' {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(p))
	if _, err := d.Token(); err != nil {
		return err
	}
	for n := 0; n < maxExtras && d.More(); n++ {
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return err
		}
		if raw[0] != '{' {
			continue
		}
		var ref jsonFeedRef
		if err := json.Unmarshal(raw, &ref); err != nil {
			return err
		}
		*l = append(*l, ref)
	}
	return nil
}

// jsonText is a JSON string. A value of another type becomes "".
type jsonText string

// UnmarshalJSON implements json.Unmarshaler.
func (t *jsonText) UnmarshalJSON(p []byte) error {
	*t = ""
	if len(p) == 0 || p[0] != '"' {
		return nil
	}
	return json.Unmarshal(p, (*string)(t))
}

// readJSON reads a JSON Feed (jsonfeed.org, 1.1). After a syntax error it reads no more items. It skips
// items longer than maxValue.
func readJSON(r *bufio.Reader, max int, each func(*Entry) bool) (Summary, error) {
	j := &jsonReader{in: jsonStream{r: r}, sum: Summary{Kind: JSON}, max: max, each: each}
	err := j.run()
	if errors.Is(err, errJSON) || errors.Is(err, io.EOF) {
		j.sum.Cut, err = true, nil
	}
	return j.sum, err
}

type jsonReader struct {
	in   jsonStream
	sum  Summary
	max  int
	each func(*Entry) bool
}

func (j *jsonReader) run() error {
	if err := j.in.delim('{'); err != nil {
		return err
	}
	for {
		if more, err := j.in.hasMore('}'); err != nil || !more {
			return err
		}
		raw, err := j.in.value()
		if err != nil {
			return err
		}
		var key jsonText
		if raw != nil && json.Unmarshal(raw, &key) != nil { // a key that is too long is none of those below
			return errJSON
		}
		if err := j.in.delim(':'); err != nil {
			return err
		}
		c, err := j.in.peekByte()
		if err != nil {
			return err
		}
		if key == "items" && c == '[' {
			if more, err := j.items(); err != nil || !more {
				return err
			}
			continue
		}
		if raw, err = j.in.value(); err != nil {
			return err
		}
		if raw != nil {
			j.head(string(key), raw)
		}
	}
}

// head reads a member of the feed itself.
func (j *jsonReader) head(key string, raw []byte) {
	var v jsonText
	switch key {
	case "authors":
		var authors jsonRefs
		if json.Unmarshal(raw, &authors) == nil && len(authors) > 0 {
			j.sum.Author = plainJSON(authors[0].Name)
		}
		return
	case "author":
		var author jsonFeedRef
		if json.Unmarshal(raw, &author) == nil {
			j.sum.Author = cmp.Or(j.sum.Author, plainJSON(author.Name))
		}
		return
	}
	if json.Unmarshal(raw, &v) != nil || v == "" {
		return
	}
	switch key {
	case "home_page_url", "feed_url", "next_url":
		if href := reference([]byte(v)); href != "" && len(v) <= MaxLoc && len(j.sum.Links) < maxFeedLinks {
			rel := map[string]string{"home_page_url": "alternate", "feed_url": "self", "next_url": "next"}[key]
			j.sum.Links = append(j.sum.Links, FeedLink{Rel: rel, Href: href})
		}
	case "title":
		j.sum.Title = plainJSON(v)
	case "description":
		j.sum.Description = plainJSON(v)
	case "language":
		j.sum.Lang = cut(fold(cut(string(v), maxMarkup)), 64)
	}
}

// plainJSON folds and shortens a text without markup: < is an ordinary character.
func plainJSON(v jsonText) string {
	return cut(fold(cut(string(v), maxMarkup)), MaxSummary)
}

// items reads the list of items, and passes each to the caller of Read. It returns false if reading
// must end.
func (j *jsonReader) items() (more bool, err error) {
	if err := j.in.delim('['); err != nil {
		return false, err
	}
	for {
		if more, err := j.in.hasMore(']'); err != nil || !more {
			return err == nil, err
		}
		raw, err := j.in.value()
		if err != nil {
			return false, err
		}
		var it jsonItem
		if raw == nil || json.Unmarshal(raw, &it) != nil {
			j.sum.Skipped++ // the item is too long, or is not an object
			continue
		}
		e := it.entry()
		if e.Loc == "" || len(e.Loc) > MaxLoc {
			j.sum.Skipped++
			continue
		}
		if j.sum.Entries >= j.max {
			j.sum.Cut = true
			return false, nil
		}
		j.sum.Entries++
		if !j.each(e) {
			return false, nil
		}
	}
}

func (it *jsonItem) entry() *Entry {
	e := &Entry{Priority: -1, Title: plainJSON(it.Title), Summary: cmp.Or(plainJSON(it.Summary), plainJSON(it.Text))}
	for _, loc := range [...]string{string(it.URL), string(it.External), string(it.ID)} {
		if e.Loc == "" && (isHTTP([]byte(loc)) || loc == string(it.URL)) {
			e.Loc = reference([]byte(loc))
		}
	}
	if e.Summary == "" {
		e.Summary = plain([]byte(it.HTML), MaxSummary)
	}
	for _, date := range [...]jsonText{it.Modified, it.Published} {
		if t, ok := timeOf([]byte(date)); ok && e.LastMod.IsZero() {
			e.LastMod = t
		}
	}
	if it.Image != "" {
		e.Images = withRef(nil, []byte(it.Image))
	}
	for _, a := range it.Attachments {
		if a.URL != "" {
			if e.Enclosures = withRef(e.Enclosures, []byte(a.URL)); a.Title != "" {
				withText(e.Enclosures, []byte(a.Title))
			}
		}
	}
	return e
}
