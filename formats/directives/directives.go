// Package directives reads the directives for robots in a document and its response header: meta
// robots, X-Robots-Tag, Content-Signal and TDMRep (the reservation of text and data mining). It does
// not read robots.txt.
//
// The input is values of header fields and meta elements, which may be hostile. The output is the
// directives for one robot, and texts for columns. The number and the length of these texts are
// bounded. The package accepts any input without an error, and parsing takes linear time. If two
// directives conflict, the stricter one applies. The package imports only the standard library.
package directives

import (
	"slices"
	"strings"
	"time"
	"unicode"
)

// Robots holds the directives of meta robots and X-Robots-Tag for one robot, in their order. The
// zero value has no directives.
type Robots struct {
	NoIndex   bool // the document may not be shown
	NoFollow  bool // the document's links may not be followed
	NoArchive bool // no copy of the document may be kept
	// UnavailableAfter is the time after which the document may not be shown. Zero means no limit.
	UnavailableAfter time.Time

	list []string
}

// Reset removes all directives. It keeps the memory of the list for reuse.
func (d *Robots) Reset() { *d = Robots{list: d.list[:0]} }

// Indexable reports whether the document may be shown at the given time.
func (d *Robots) Indexable(at time.Time) bool {
	return !d.NoIndex && (d.UnavailableAfter.IsZero() || at.Before(d.UnavailableAfter))
}

// String lists the directives in lower case, without duplicates, separated by commas.
func (d *Robots) String() string { return strings.Join(d.list, ",") }

// NoArchive reports whether a list of directives, as String returns it, has noarchive or its synonym.
func NoArchive(list string) bool {
	return slices.ContainsFunc(strings.Split(list, ","), isNoArchive)
}

// isNoArchive reports whether a directive is noarchive or nocache, as some search engines call it.
func isNoArchive(directive string) bool { return directive == "noarchive" || directive == "nocache" }

const (
	maxOthers = 16 // largest number of unknown directives in the list
	maxItem   = 64 // length of the longest directive in the list, in bytes
)

// Meta adds the content of a meta element whose name is "robots" or the name of the robot.
func (d *Robots) Meta(content string) { d.addList(content, "", false) }

// Field adds the directives in a value of X-Robots-Tag that apply to the robot agent, a product token
// in any letter case. In such a value, a name and a colon limit the directives after them to one
// robot: `otherbot: noindex, ourbot: nofollow` asks ourbot not to follow links.
func (d *Robots) Field(value, agent string) { d.addList(value, agent, true) }

// addList adds the directives of a list. If scoped is true, the list may name robots.
func (d *Robots) addList(list, agent string, scoped bool) {
	ours := true
	for list != "" {
		var item string
		item, list = cutItem(list)
		name, value, colon := strings.Cut(item, ":")
		for colon && scoped && !hasValue(name) {
			ours = isFor(name, agent)
			item = trim(value)
			name, value, colon = strings.Cut(item, ":")
		}
		if !ours {
			continue
		}
		if colon && fold(name) == "unavailable_after" {
			// A date may contain a comma, at which cutItem has cut it.
			at, ok := parseDate(trim(value))
			if !ok && list != "" {
				next, rest := cutItem(list)
				if at, ok = parseDate(trim(value) + ", " + next); ok {
					item, list = item+", "+next, rest
				}
			}
			if ok && (d.UnavailableAfter.IsZero() || at.Before(d.UnavailableAfter)) {
				d.UnavailableAfter = at
			}
		}
		d.addItem(item)
	}
}

// cutItem returns the first item of a list and the rest of the list. Commas or semicolons separate
// the items.
func cutItem(list string) (item, rest string) {
	i := strings.IndexAny(list, ",;")
	if i < 0 {
		return trim(list), ""
	}
	return trim(list[:i]), list[i+1:]
}

// hasValue reports whether the name before a colon is that of a directive with a value. If not, it is
// the name of a robot.
func hasValue(name string) bool {
	name = fold(name)
	return name == "unavailable_after" || strings.HasPrefix(name, "max-")
}

// isFor reports whether directives that are addressed to name apply to the robot called agent.
func isFor(name, agent string) bool {
	name = fold(name)
	return name == "*" || name == "robots" || agent != "" && name == fold(agent)
}

// addItem adds an item of a list as a directive. If it consists of several words that are all known
// directives, addItem adds each of them: some pages separate directives by white space.
func (d *Robots) addItem(item string) {
	if strings.ContainsFunc(item, isSpace) && isWords(item) {
		for w := range strings.FieldsFuncSeq(item, isSpace) {
			w = fold(w)
			d.addDirective(w, isWord(w))
		}
		return
	}
	item = fold(item)
	d.addDirective(item, isWord(item))
}

// words lists the known directives without a value.
var words = [...]string{"noindex", "nofollow", "none", "noarchive", "nocache", "index", "follow", "all", "archive"}

// otherWords lists directives without a value that are addressed to search engines. They have no
// effect, but pages also write them among words.
var otherWords = [...]string{"noodp", "noydir", "noyaca", "nosnippet", "noimageindex", "notranslate", "indexifembedded", "nositelinkssearchbox", "noai", "noimageai"}

func isWord(folded string) bool { return slices.Contains(words[:], folded) }

func isWords(item string) bool {
	for w := range strings.FieldsFuncSeq(item, isSpace) {
		if w = fold(w); !isWord(w) && !slices.Contains(otherWords[:], w) {
			return false
		}
	}
	return true
}

func (d *Robots) addDirective(item string, known bool) {
	switch item {
	case "":
		return
	case "noindex":
		d.NoIndex = true
	case "nofollow":
		d.NoFollow = true
	case "none":
		d.NoIndex, d.NoFollow = true, true
	}
	d.NoArchive = d.NoArchive || isNoArchive(item)
	if !slices.Contains(d.list, item) && (known || len(d.list) < maxOthers) {
		d.list = append(d.list, item)
	}
}

// dateLayouts lists the accepted forms of dates: RFC 822, RFC 850, ISO 8601 and variants.
var dateLayouts = [...]string{
	"2 Jan 2006 15:04:05 -0700", "2 Jan 2006 15:04:05", "2 Jan 2006 15:04", "2 Jan 2006", "2-Jan-2006 15:04:05", "2-Jan-2006", "2-Jan-06 15:04:05",
	"2 Jan 06 15:04:05", "2006-01-02T15:04:05Z07:00", "2006-01-02T15:04:05.999Z07:00", "2006-01-02T15:04Z07:00", "2006-01-02T15:04:05",
	"2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05 -0700", "2006-01-02 15:04:05", "2006-01-02",
}

// zones maps the names of time zones in RFC 822 to their offsets in hours.
var zones = map[string]int{
	"GMT": 0, "UT": 0, "UTC": 0, "Z": 0, "EST": -5, "EDT": -4, "CST": -6, "CDT": -5, "MST": -7, "MDT": -6, "PST": -8, "PDT": -7,
}

// parseDate reads a date. A date without a zone is in UTC.
func parseDate(s string) (time.Time, bool) {
	if len(s) > maxItem {
		return time.Time{}, false
	}
	if day, rest, ok := strings.Cut(s, ","); ok && !strings.ContainsAny(day, "0123456789") {
		s = trim(rest)
	}
	offset := 0
	if i := strings.LastIndexByte(s, ' '); i >= 0 {
		if hours, ok := zones[strings.ToUpper(s[i+1:])]; ok {
			s, offset = trim(s[:i]), hours
		}
	}
	for _, layout := range dateLayouts {
		if t, err := time.Parse(layout, s); err == nil {
			return t.Add(-time.Duration(offset) * time.Hour).UTC(), true
		}
	}
	return time.Time{}, false
}

// isSpace reports whether r is white space or a control character.
func isSpace(r rune) bool { return r <= ' ' || r >= 0x7F && (r <= 0x9F || unicode.IsSpace(r)) }

func trim(s string) string { return strings.TrimFunc(s, isSpace) }

// fold returns s in lower case, as valid UTF-8, with single spaces, and cut to maxItem bytes before
// that.
func fold(s string) string {
	s = trim(s)
	if len(s) > maxItem {
		s = s[:maxItem]
	}
	if !slices.ContainsFunc([]byte(s), func(c byte) bool { return c < '!' || c > '~' || 'A' <= c && c <= 'Z' }) {
		return s
	}
	return oneLine(strings.ToLower(s))
}

// oneLine replaces each run of white space and control characters by one space.
func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(strings.ToValidUTF8(s, "\uFFFD"), isSpace), " ")
}
