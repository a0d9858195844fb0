package pagehint

import (
	"bytes"
	"strings"

	"crawlbatch.io/crawlbatch/formats/document"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/stages/parse/lexer"
)

// A page has little text if its main text has at most thinWords words and its visible text at most
// thinBytes bytes. A visible text of at most emptyBytes says only that the page is loading.
const (
	thinWords  = 20
	thinBytes  = 400
	emptyBytes = 32
)

// needsScripts reports whether a page has little text and shows that scripts make its content: it has
// nothing to show but a script of its own domain, marks of a framework, an empty element that scripts
// usually fill, or a text that asks readers to switch on JavaScript. doc is searched only if the page has
// little text.
func needsScripts(r *document.Parsed, doc []byte) bool {
	full := r.Text.Full
	if r.Page.WordCount > thinWords || len(full) > thinBytes || r.Page.RefreshURL != "" {
		return false
	}
	preloads := bytes.Contains(doc, []byte("modulepreload"))
	if !preloads && !bytes.Contains(doc, []byte("<script")) {
		return false
	}
	return full == "" && isShell(r) || preloads && len(full) <= emptyBytes || hasMark(doc) || hasRoot(doc, len(full) <= emptyBytes) || asksForScripts(full, doc)
}

// isShell reports whether a page has nothing to show but loads a script of its own domain.
func isShell(r *document.Parsed) bool {
	own := false
	for i := range r.Links {
		switch l := &r.Links[i]; l.Kind {
		case schema.KindScript:
			p, err := urlkey.Split(l.Target)
			own = own || err == nil && (p.HostName == r.Page.HostName || p.RegisteredDomain != "" && p.RegisteredDomain == r.Page.HostRegisteredDomain)
		case schema.KindA, schema.KindArea, schema.KindForm, schema.KindFrame, schema.KindIframe, schema.KindImg, schema.KindMedia:
			return false
		}
	}
	return own
}

// marks lists what frameworks write into documents: the state from which scripts continue, their
// attributes and elements, and the names of their scripts.
var marks = [...]string{
	"__NEXT_DATA__", "self.__next_f", "__NUXT__", "__NUXT_DATA__", "__INITIAL_STATE__", "__PRELOADED_STATE__", "__APOLLO_STATE__",
	"__remixContext", "__reactRouterContext", "__sveltekit_", "data-sveltekit", "data-reactroot", "data-server-rendered", "ng-version=",
	"<app-root", "<flutter-view", "flutter_bootstrap.js", "main.dart.js", "blazor.webassembly.js",
}

func hasMark(doc []byte) bool {
	for _, mark := range marks {
		if bytes.Contains(doc, []byte(mark)) {
			return true
		}
	}
	return false
}

// roots lists the ids of elements that scripts usually fill.
var roots = [...]string{"root", "app", "__next", "__nuxt", "___gatsby", "q-app", "react-root", "app-root", "svelte", "ember-app", "main-app"}

// mostTag is the number of bytes after an id in which its tag must end: a hostile document may have many that do not.
const mostTag = 1 << 10

// hasRoot reports whether the document has an element with such an id. The element must be empty, unless
// filled is true.
func hasRoot(doc []byte, filled bool) bool {
	for _, id := range roots {
		for rest := doc; ; {
			i := bytes.Index(rest, []byte(id))
			if i < 0 {
				break
			}
			before := bytes.TrimRight(rest[:i], `"'`)
			rest = rest[i+len(id):]
			if !bytes.HasSuffix(before, []byte(" id=")) || len(rest) == 0 || bytes.IndexByte([]byte(`"' >`), rest[0]) < 0 {
				continue
			}
			_, content, closed := bytes.Cut(rest[:min(len(rest), mostTag)], []byte(">"))
			if closed && (filled || bytes.HasPrefix(bytes.TrimSpace(content[:min(len(content), 256)]), []byte("</"))) {
				return true
			}
		}
	}
	return false
}

// asksForScripts reports whether a noscript element speaks of JavaScript, or the visible text asks for it.
// JavaScript has the same name in most languages. Comments of Disqus are not the content of a page.
func asksForScripts(full string, doc []byte) bool {
	full = strings.ToLower(full)
	if strings.Contains(full, "javascript") {
		for _, verb := range [...]string{"enable", "disabled", "requir", "turn on", "activ", "aktiv", "habilit", "attiva", "включ", "schakel"} {
			if strings.Contains(full, verb) {
				return true
			}
		}
	}
	for {
		_, rest, ok := bytes.Cut(doc, []byte("<noscript"))
		if !ok {
			return false
		}
		var content []byte
		content, doc, _ = bytes.Cut(rest, []byte("</noscript"))
		said := strings.ToLower(lexer.WithoutTags("<p" + string(content)))
		if strings.Contains(said, "javascript") && !strings.Contains(said, "disqus") {
			return true
		}
	}
}
