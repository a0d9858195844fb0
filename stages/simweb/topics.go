package simweb

// Topic returns the topic of a page, 0 ≤ topic < Config.Topics. Seven in ten pages have the topic of their
// parent in the tree of their host. Without Config.Topics, the topic of all pages is 0.
func (w *Web) Topic(host, page int) int {
	if w.cfg.Topics == 0 {
		return 0
	}
	k := w.pageKey(host, page).named("topic")
	if page > 0 && k.at(0).below(10) < 7 {
		return w.Topic(host, (page-1)/fanout)
	}
	return k.at(1).below(w.cfg.Topics)
}

// TopicWord returns the word that begins the title of each page of a topic, and half of the texts of links to
// it. The word may have accents.
func (w *Web) TopicWord(topic int) string {
	return string(appendWord(nil, w.root.named("topics").at(topic), true))
}

// withTopic puts the word of a page's topic before the text of a link to the page, or before its title.
func (w *Web) withTopic(host, page int, text string, isTitle bool) string {
	if w.cfg.Topics == 0 || !isTitle && w.pageKey(host, page).named("shown").below(2) == 0 {
		return text
	}
	return w.TopicWord(w.Topic(host, page)) + " " + text
}

// related returns a page of a host for a link from the document. If the web has topics, it prefers a page of
// the document's topic.
func (a *author) related(k key, host int) int {
	page := k.below(a.w.Pages(host))
	for try := 0; try < 8 && a.w.Topic(host, page) != a.w.Topic(a.host, a.page); try++ {
		page = k.at(try).below(a.w.Pages(host))
	}
	return page
}

// TopicAt returns the topic of the page at a path of a host. ok is false if no page of the graph is there.
func (w *Web) TopicAt(host int, path string) (topic int, ok bool) {
	page, ok := w.pageOf(host, path)
	if !ok {
		return 0, false
	}
	return w.Topic(host, page), true
}
