// Package jsonld reads what a page states about itself in JSON-LD scripts, even if the scripts are
// malformed.
package jsonld

import (
	"bytes"
	"slices"
	"strings"

	"crawlbatch.io/crawlbatch/formats/sitemap"
	"crawlbatch.io/crawlbatch/stages/parse/fold"
	"crawlbatch.io/crawlbatch/stages/parse/lexer"
)

// These are the bounds of a page's JSON-LD.
const (
	maxScript = 1 << 20  // largest number of bytes that the package reads of a script
	maxDepth  = 8        // largest depth of nodes within nodes
	maxNodes  = 64       // largest number of nodes that are read
	maxKept   = 64 << 10 // largest number of bytes of the texts of all nodes
	maxItems  = 16       // largest number of types of a node; also the largest number of authors, and of breadcrumb steps
	maxName   = 256      // largest number of bytes of a name or an @id
	maxURL    = 1 << 10
	maxDate   = 64
)

// Data holds the statements of the scripts about the page, in page order. It keeps the objects at
// the top level, in a list or in a @graph. It also keeps the subject of the page (mainEntity,
// mainEntityOfPage) and the place of the page (breadcrumb). Objects within kept objects
// (publishers, images, comments, items of lists) do not describe the page and are skipped.
type Data struct {
	nodes []node
	kept  int // number of bytes of the texts of nodes
}

// node holds the parts of a JSON-LD object that the package keeps.
type node struct {
	nested             bool // whether the node is inside another node; such a node states nothing if it has only a type
	id                 string
	types              []string
	headline, name     string
	published, changed string // datePublished and dateModified, unchanged
	created            string // dateCreated or, without dateCreated, uploadDate
	authors            []author
	creators           []author // names of creators, which are used if the node has no author
	crumbs             []crumb
}

// author is the name of a person, or the @id of another node with that name.
type author struct{ name, id string }

// crumb is a step of a breadcrumb.
type crumb struct {
	name, url string
	position  int
}

// Reset removes the data of all scripts.
func (l *Data) Reset() {
	clear(l.nodes)
	l.nodes, l.kept = l.nodes[:0], 0
}

// Read reads a script, whether or not it is valid JSON.
func (l *Data) Read(script []byte) {
	script = script[:min(len(script), maxScript)]
	if trimmed := bytes.TrimLeft(script, " \t\r\n"); bytes.HasPrefix(trimmed, []byte("{&quot;")) || bytes.HasPrefix(trimmed, []byte("[{&quot;")) {
		script = lexer.Unescape(make([]byte, 0, len(script)), script, false) // the script is escaped like text
	}
	z := &scanner{src: script}
	for len(l.nodes) < maxNodes {
		if z.skipGap(); z.pos >= len(z.src) {
			return
		}
		i := bytes.IndexAny(z.src[z.pos:], "{[")
		if i < 0 {
			return
		}
		z.pos += i
		l.readValue(z, 0, false)
	}
}

// readValue reads the nodes of a value.
func (l *Data) readValue(z *scanner, depth int, nested bool) {
	switch c := z.peek(); {
	case depth >= maxDepth || len(l.nodes) >= maxNodes || c != '{' && c != '[':
		z.skipValue()
	case c == '{':
		l.readNode(z, depth, nested)
	default:
		z.eachElement(func() { l.readValue(z, depth+1, nested) })
	}
}

// readNode reads the object at the scanner's position. Nested nodes are appended after the node
// that contains them.
func (l *Data) readNode(z *scanner, depth int, nested bool) {
	at := len(l.nodes)
	l.nodes = append(l.nodes, node{})
	n := node{nested: nested}
	z.eachMember(func(key []byte) {
		switch string(key) {
		case "@type", "type":
			z.eachElement(func() { l.addType(z, &n.types) })
		case "@id", "id":
			l.readFirst(&n.id, z, maxName)
		case "headline":
			l.readFirst(&n.headline, z, fold.MaxShort)
		case "name":
			l.readFirst(&n.name, z, fold.MaxShort)
		case "datePublished":
			l.readDate(&n.published, z)
		case "dateModified":
			l.readDate(&n.changed, z)
		case "dateCreated", "uploadDate":
			l.readDate(&n.created, z)
		case "author":
			z.eachElement(func() { l.addAuthor(z, &n.authors) })
		case "creator":
			z.eachElement(func() { l.addAuthor(z, &n.creators) })
		case "itemListElement":
			z.eachElement(func() { l.addCrumb(z, &n.crumbs) })
		case "@graph":
			l.readValue(z, depth+1, false)
		case "mainEntity", "mainEntityOfPage", "breadcrumb":
			l.readValue(z, depth+1, true)
		default:
			z.skipValue()
		}
	})
	if !slices.Contains(n.types, "BreadcrumbList") {
		n.crumbs = nil // the items of a list other than a breadcrumb are other pages
	}
	if n.authors == nil {
		n.authors = n.creators
	}
	n.creators = nil
	slices.SortStableFunc(n.crumbs, func(a, b crumb) int { return a.position - b.position })
	l.nodes[at] = n
}

// localName returns a term without the prefix of schema.org.
func localName(term []byte) []byte {
	for _, prefix := range [...]string{"http://schema.org/", "https://schema.org/", "schema:"} {
		if len(term) > len(prefix) && string(term[:len(prefix)]) == prefix {
			return term[len(prefix):]
		}
	}
	return term
}

// keepText adds the length of a text to the total length, and returns the text. If the total
// exceeds maxKept, keepText returns "".
func (l *Data) keepText(s string) string {
	if l.kept+len(s) > maxKept {
		return ""
	}
	l.kept += len(s)
	return s
}

// readFirst reads a text into s. If s is already set, readFirst skips the text.
func (l *Data) readFirst(s *string, z *scanner, max int) {
	if *s != "" {
		z.skipValue()
		return
	}
	*s = l.keepText(z.readText(max))
}

// readDate reads a date into s. If s is already set or the text is not a date, readDate skips
// the text.
func (l *Data) readDate(s *string, z *scanner) {
	if *s != "" {
		z.skipValue()
		return
	}
	d := z.readText(maxDate)
	if _, ok := sitemap.ParseTime(d); ok {
		*s = l.keepText(d)
	}
}

// addType reads a type.
func (l *Data) addType(z *scanner, types *[]string) {
	if !z.atString() || len(*types) >= maxItems {
		z.skipValue()
		return
	}
	t := z.str(false)
	if t := l.keepText(foldJSON(localName(bytes.TrimSpace(t)), 64)); t != "" && !slices.Contains(*types, t) {
		*types = append(*types, t)
	}
}

// addAuthor reads an author. An author is a name, an object with a name, or a reference to such an
// object.
func (l *Data) addAuthor(z *scanner, authors *[]author) {
	var p author
	switch c := z.peek(); {
	case len(*authors) >= maxItems || c != '{' && !z.atString():
		z.skipValue()
		return
	case c != '{':
		p.name = l.keepText(z.readText(maxName))
	default:
		var given, family string
		z.eachMember(func(key []byte) {
			switch string(key) {
			case "name", "@value":
				l.readFirst(&p.name, z, maxName)
			case "givenName":
				l.readFirst(&given, z, maxName)
			case "familyName":
				l.readFirst(&family, z, maxName)
			case "@id", "id":
				l.readFirst(&p.id, z, maxName)
			default:
				z.skipValue()
			}
		})
		if p.name == "" {
			p.name = strings.TrimSpace(given + " " + family)
		}
	}
	p.name = lexer.WithoutTags(p.name)
	if p != (author{}) {
		*authors = append(*authors, p)
	}
}

// addCrumb reads an item of a breadcrumb. The item is a name or a ListItem. A ListItem has a name
// and a url, or an item with a name and a url.
func (l *Data) addCrumb(z *scanner, crumbs *[]crumb) {
	var c crumb
	switch b := z.peek(); {
	case len(*crumbs) >= maxItems:
		z.skipValue()
	case b == '{':
		z.eachMember(func(key []byte) { l.crumbMember(z, &c, key, true) })
	case z.atString():
		c.name = l.keepText(z.readText(maxName))
	default:
		z.skipValue()
	}
	if c.name != "" || c.url != "" {
		*crumbs = append(*crumbs, c)
	}
}

// crumbMember reads a member of a breadcrumb step. outer is true for a member of the ListItem, and
// false for a member of the ListItem's item.
func (l *Data) crumbMember(z *scanner, c *crumb, key []byte, outer bool) {
	switch k := string(key); {
	case k == "name":
		l.readFirst(&c.name, z, maxName)
	case k == "url", !outer && (k == "@id" || k == "id"):
		l.readFirst(&c.url, z, maxURL)
	case outer && k == "position":
		c.position = readPosition(z)
	case outer && k == "item" && z.peek() == '{':
		z.eachMember(func(key []byte) { l.crumbMember(z, c, key, false) })
	case outer && k == "item":
		l.readFirst(&c.url, z, maxURL)
	default:
		z.skipValue()
	}
}

// readPosition reads a small number, quoted or not.
func readPosition(z *scanner) (n int) {
	z.peek()
	start := z.pos
	z.skipValue()
	for _, c := range bytes.Trim(z.src[start:z.pos], `"' `) {
		if c < '0' || c > '9' || n > 1000 {
			break
		}
		n = n*10 + int(c-'0')
	}
	return n
}
