// Package jsonld reads what a page's scripts of application/ld+json say of the page,
// whether they are JSON or what their author took for it.
package jsonld

import (
	"bytes"
	"slices"
	"strings"

	"crawlbatch.io/crawlbatch/formats/sitemap"
	"crawlbatch.io/crawlbatch/stages/parse/fold"
	"crawlbatch.io/crawlbatch/stages/parse/lexer"
)

// Bounds of what is kept of a page's JSON-LD.
const (
	maxScript = 1 << 20  // bytes of a script that are read
	maxDepth  = 8        // nodes within nodes
	maxNodes  = 64       // nodes that are looked at
	maxKept   = 64 << 10 // bytes of their texts
	maxItems  = 16       // types, authors and steps of a breadcrumb of a node
	maxName   = 256      // bytes of a name or an @id
	maxURL    = 1 << 10
	maxDate   = 64
)

// Data is what a page's scripts of application/ld+json say of the page: the objects
// that stand on their own, in a list or a @graph, or as what a page is about
// (mainEntity, mainEntityOfPage) or where it is (breadcrumb), in page order. What
// others hold (publishers, images, comments, the items of a list) is no statement
// about the page and is passed over.
type Data struct {
	nodes []node
	kept  int // bytes of their texts
}

// node is an object of JSON-LD as far as it is kept.
type node struct {
	nested             bool // within another: its type alone says nothing
	id                 string
	types              []string
	headline, name     string
	published, changed string // datePublished, dateModified, as given
	created            string // dateCreated, else uploadDate
	authors            []author
	creators           []author // who stand in where it has no author
	crumbs             []crumb
}

// author is a person's name, or where it is said.
type author struct{ name, id string }

// crumb is a step of a breadcrumb.
type crumb struct {
	name, url string
	position  int
}

// Reset forgets what was read.
func (l *Data) Reset() {
	clear(l.nodes)
	l.nodes, l.kept = l.nodes[:0], 0
}

// Read takes a script. It is JSON, or what its author took for it.
func (l *Data) Read(script []byte) {
	script = script[:min(len(script), maxScript)]
	if trimmed := bytes.TrimLeft(script, " \t\r\n"); bytes.HasPrefix(trimmed, []byte("{&quot;")) || bytes.HasPrefix(trimmed, []byte("[{&quot;")) {
		script = lexer.Unescape(make([]byte, 0, len(script)), script, false) // escaped as though it were no script
	}
	z := &scanner{src: script}
	for len(l.nodes) < maxNodes {
		if z.gap(); z.pos >= len(z.src) {
			return
		}
		i := bytes.IndexAny(z.src[z.pos:], "{[")
		if i < 0 {
			return
		}
		z.pos += i
		l.value(z, 0, false)
	}
}

// value reads the nodes of a value.
func (l *Data) value(z *scanner, depth int, nested bool) {
	switch c := z.peek(); {
	case depth >= maxDepth || len(l.nodes) >= maxNodes || c != '{' && c != '[':
		z.skip()
	case c == '{':
		l.node(z, depth, nested)
	default:
		z.pos++
		for z.element() {
			l.value(z, depth+1, nested)
		}
	}
}

// node reads the object that begins at the scanner's place. Nodes within it follow it.
func (l *Data) node(z *scanner, depth int, nested bool) {
	z.pos++
	at := len(l.nodes)
	l.nodes = append(l.nodes, node{})
	n := node{nested: nested}
	for {
		key, ok := z.member()
		if !ok {
			break
		}
		switch string(localName(key)) {
		case "@type", "type":
			n.types = l.typesOf(z, n.types)
		case "@id", "id":
			l.first(&n.id, z, maxName)
		case "headline":
			l.first(&n.headline, z, fold.MaxShort)
		case "name":
			l.first(&n.name, z, fold.MaxShort)
		case "datePublished":
			l.date(&n.published, z)
		case "dateModified":
			l.date(&n.changed, z)
		case "dateCreated", "uploadDate":
			l.date(&n.created, z)
		case "author":
			n.authors = l.names(z, n.authors)
		case "creator":
			n.creators = l.names(z, n.creators)
		case "itemListElement":
			n.crumbs = l.trail(z, n.crumbs)
		case "@graph":
			l.value(z, depth+1, false)
		case "mainEntity", "mainEntityOfPage", "breadcrumb":
			l.value(z, depth+1, true)
		default:
			z.skip()
		}
	}
	if !slices.Contains(n.types, "BreadcrumbList") {
		n.crumbs = nil // the items of another list are other pages
	}
	if n.authors == nil {
		n.authors = n.creators
	}
	n.creators = nil
	slices.SortStableFunc(n.crumbs, func(a, b crumb) int { return a.position - b.position })
	l.nodes[at] = n
}

// localName is a term without schema.org's name before it.
func localName(term []byte) []byte {
	for _, prefix := range [...]string{"http://schema.org/", "https://schema.org/", "schema:"} {
		if len(term) > len(prefix) && string(term[:len(prefix)]) == prefix {
			return term[len(prefix):]
		}
	}
	return term
}

// keep counts the bytes of a text; what would be too much is none.
func (l *Data) keep(s string) string {
	if l.kept+len(s) > maxKept {
		return ""
	}
	l.kept += len(s)
	return s
}

// first reads a text into s, unless it has one.
func (l *Data) first(s *string, z *scanner, max int) {
	if *s != "" {
		z.skip()
		return
	}
	*s = l.keep(z.text(max))
}

// date reads a date into s, unless it has one. What cannot be read as a date is none.
func (l *Data) date(s *string, z *scanner) {
	if *s != "" {
		z.skip()
		return
	}
	d := z.text(maxDate)
	if _, ok := sitemap.ParseTime(d); ok {
		*s = l.keep(d)
	}
}

// typesOf reads a type, or a list of them.
func (l *Data) typesOf(z *scanner, types []string) []string {
	add := func() {
		if c := z.peek(); c != '"' && c != '\'' || len(types) >= maxItems {
			z.skip()
			return
		}
		t := z.str(false)
		if t := l.keep(foldJSON(localName(bytes.TrimSpace(t)), 64)); t != "" && !slices.Contains(types, t) {
			types = append(types, t)
		}
	}
	if z.peek() != '[' {
		add()
		return types
	}
	z.pos++
	for z.element() {
		add()
	}
	return types
}

// names reads authors: a name, an object that has or is elsewhere given one, or a
// list of those.
func (l *Data) names(z *scanner, names []author) []author {
	if z.peek() != '[' {
		return l.person(z, names)
	}
	z.pos++
	for z.element() {
		names = l.person(z, names)
	}
	return names
}

func (l *Data) person(z *scanner, names []author) []author {
	var p author
	switch c := z.peek(); {
	case len(names) >= maxItems || c != '{' && c != '"' && c != '\'':
		z.skip()
		return names
	case c != '{':
		p.name = l.keep(z.text(maxName))
	default:
		var given, family string
		z.pos++
		for {
			key, ok := z.member()
			if !ok {
				break
			}
			switch string(localName(key)) {
			case "name", "@value":
				l.first(&p.name, z, maxName)
			case "givenName":
				l.first(&given, z, maxName)
			case "familyName":
				l.first(&family, z, maxName)
			case "@id", "id":
				l.first(&p.id, z, maxName)
			default:
				z.skip()
			}
		}
		if p.name == "" {
			p.name = strings.TrimSpace(given + " " + family)
		}
	}
	if p != (author{}) {
		names = append(names, p)
	}
	return names
}

// trail reads the items of a breadcrumb.
func (l *Data) trail(z *scanner, crumbs []crumb) []crumb {
	one := func() {
		var c crumb
		switch b := z.peek(); {
		case len(crumbs) >= maxItems:
			z.skip()
		case b == '{':
			l.crumb(z, &c)
		case b == '"', b == '\'':
			c.name = l.keep(z.text(maxName))
		default:
			z.skip()
		}
		if c.name != "" || c.url != "" {
			crumbs = append(crumbs, c)
		}
	}
	if z.peek() != '[' {
		one()
		return crumbs
	}
	z.pos++
	for z.element() {
		one()
	}
	return crumbs
}

// crumb reads a ListItem: its own name and url, or those of its item.
func (l *Data) crumb(z *scanner, c *crumb) {
	z.pos++
	for {
		key, ok := z.member()
		if !ok {
			return
		}
		switch string(localName(key)) {
		case "name":
			l.first(&c.name, z, maxName)
		case "url":
			l.first(&c.url, z, maxURL)
		case "position":
			c.position = position(z)
		case "item":
			if z.peek() != '{' {
				l.first(&c.url, z, maxURL)
				continue
			}
			z.pos++
			for {
				key, ok := z.member()
				if !ok {
					break
				}
				switch string(localName(key)) {
				case "name":
					l.first(&c.name, z, maxName)
				case "@id", "id", "url":
					l.first(&c.url, z, maxURL)
				default:
					z.skip()
				}
			}
		default:
			z.skip()
		}
	}
}

// position reads a small number, quoted or not.
func position(z *scanner) (n int) {
	z.peek()
	start := z.pos
	z.skip()
	for _, c := range bytes.Trim(z.src[start:z.pos], `"' `) {
		if c < '0' || c > '9' || n > 1000 {
			break
		}
		n = n*10 + int(c-'0')
	}
	return n
}
