package simweb

// source says where a page takes its text from.
type source struct {
	host, page int
	variant    string
	short      bool

	// steps is the number of edits that make a near copy. family is the key that chooses the random
	// words of the edits.
	steps  int
	family key
}

// isCopied reports whether the text comes from another page, edited or not.
func (s source) isCopied(host, page int) bool { return s.host != host || s.page != page }

// source returns the source of a document.
func (w *Web) source(host, page int, variant string) source {
	own := source{host: host, page: page, variant: variant}
	if variant != "" {
		return own
	}
	switch w.role(host, page) {
	case roleShort:
		own.short = true
	case roleExact:
		h, p := w.copySource(host, page)
		return source{host: h, page: p}
	case roleNear:
		h, p := w.copySource(host, page)
		return source{host: h, page: p, steps: 1, family: w.pageKey(host, page).named("near")}
	case roleChain:
		block := page / chainBlock
		first := block*chainBlock + chainAt
		return source{host: host, page: first, steps: page - first, family: w.hostKey(host).named("chain").at(block)}
	}
	return own
}

func (w *Web) languageOf(s source) language {
	return languages[w.pageKey(s.host, s.page).named("language").below(len(languages))]
}

// mainPart writes the main element: a heading, paragraphs, a list of links and a last paragraph.
// The source determines all of its text, so copies differ only in the form of their references.
func (a *author) mainPart(src source) {
	w, d := a.w, a.doc
	k := w.pageKey(src.host, src.page).named("text").named(src.variant)
	accents := d.lang.accents
	a.position = "main"
	a.absolute = src.isCopied(a.host, a.page)
	a.text("<main>\n<h1>")
	heading := title(k.named("heading"), 3)
	a.text(heading + "</h1>\n")
	d.Main = append(d.Main, heading...)
	s := stream(k.named("paragraphs"))
	if src.short {
		a.open("p")
		a.writeWords(s.next(), s.between(8, 30), accents)
		a.text(".</p>\n")
		d.Main = append(d.Main, '.')
	} else {
		for left := s.between(36, 360); left > 0; {
			n := min(left, s.between(20, 70))
			left -= n
			a.open("p")
			a.writeWords(s.next(), n, accents)
			a.text(".</p>\n")
			d.Main = append(d.Main, '.')
		}
		if s.below(6) == 0 {
			a.text("<script>var shown = \"not text\";</script>\n<!-- nor this -->\n")
		}
		a.list(src, k.named("list"))
		a.lastParagraph(src, s.next(), s.between(24, 40), accents)
	}
	a.text("</main>\n")
	a.position, a.absolute = "", false
	d.mainEnd, d.MainLinks = len(d.html), len(d.Links)
}

// open writes the start tag of a block. Each block is a line of the main text.
func (a *author) open(tag string) {
	a.text("<" + tag + ">")
	a.doc.Main = append(a.doc.Main, '\n')
}

// writeWords writes n words to the page and to the main text.
func (a *author) writeWords(k key, n int, accents bool) {
	d := a.doc
	for i := range n {
		if i > 0 {
			d.Main = append(d.Main, ' ')
			if i%12 == 0 {
				d.html = append(d.html, "\n    "...)
			} else {
				d.html = append(d.html, ' ')
			}
		}
		at := len(d.Main)
		d.Main = appendWord(d.Main, k.at(i), accents)
		if i%11 == 10 && i+1 < n {
			d.Main = append(d.Main, '.')
		}
		if word := d.Main[at:]; i%17 == 5 {
			d.html = append(append(append(d.html, "<em>"...), word...), "</em>"...)
		} else {
			d.html = append(d.html, word...)
		}
	}
}

// list writes the links of the main part: to the children in the tree and to random pages.
func (a *author) list(src source, k key) {
	w, d := a.w, a.doc
	a.text("<ul>\n")
	n := 0
	item := func(write func(k key) string) {
		a.open("li")
		d.Main = append(d.Main, write(k.at(n))...)
		a.text(" ")
		d.Main = append(d.Main, ' ')
		a.writeWords(k.at(n).named("after"), 2, false)
		a.text("</li>\n")
		n++
	}
	if src.variant == "" {
		w.children(src.host, src.page, func(c int) {
			item(func(k key) string { return a.pageAnchor(k, src.host, c) })
		})
	}
	for i, more := 0, 2+k.named("more").below(5); i < more; i++ {
		to := k.named("random").at(i)
		item(func(k key) string { return a.randomAnchor(k, to, src.host) })
	}
	a.text("</ul>\n")
}

// randomAnchor writes a random link from a page of the given host.
func (a *author) randomAnchor(k, to key, host int) string {
	w := a.w
	switch u := to.at(0).below(100); {
	case u < 60:
		return a.pageAnchor(k, host, a.related(to.at(1), host))
	case u < 75:
		h := to.at(1).below(w.cfg.Hosts)
		return a.pageAnchor(k, h, a.related(to.at(2), h))
	case u < 88:
		h := to.at(1).below(w.cfg.Hosts)
		return a.pageAnchor(k, h, 0)
	case u < 92:
		p := w.unknownHome(to.at(1))
		a.writeAnchor(k, p, "Elsewhere", "")
		return "Elsewhere"
	}
	// This is a nofollow link. Its target never has the fault Planned, because a link to that fault
	// needs a second link to the redirect's target.
	h := to.at(1).below(w.cfg.Hosts)
	p := to.at(2).below(w.Pages(h))
	if w.role(h, p) == roleFault {
		p = 0
	}
	rel := [...]string{"nofollow", "UGC", "nofollow noopener", "sponsored"}[to.at(3).below(4)]
	anchor := w.titleOf(h, p, 1)
	a.writeAnchor(k, place{h, w.path(h, p)}, anchor, rel)
	return anchor
}
