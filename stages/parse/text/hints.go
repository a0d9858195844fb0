package text

import "golang.org/x/net/html/atom"

// Hint says how an element's name, class, id, role and style describe its content.
type Hint uint16

// The hints.
const (
	Hidden  Hint = 1 << iota // the element is not shown
	Chrome                   // the element's name or role says that it is not content: nav, footer, aside, forms
	Clutter                  // the element's class or id names something around an article: share, related, comments …
	InMain                   // the element is within <main>
	InArticle
	Control // text of a control: button, select, label
	Caption
	Imprint // the class or id names the header or footer of a page, or a cookie notice; Clutter is then set too

	inherited = Hidden | InMain | InArticle | Control | Caption
)

// OfElement returns the hint of an element's name.
func OfElement(a atom.Atom) Hint {
	switch a {
	case atom.Nav, atom.Footer, atom.Aside, atom.Menu, atom.Dialog:
		return Chrome
	case atom.Button, atom.Select, atom.Textarea, atom.Label, atom.Option, atom.Legend:
		return Control
	case atom.Main:
		return InMain
	case atom.Article:
		return InArticle
	case atom.Figcaption:
		return Caption
	}
	return 0
}

// OfRole returns the hint of a role attribute.
func OfRole(role []byte) Hint {
	switch string(role) {
	case "navigation", "contentinfo", "complementary", "banner", "search", "dialog", "alertdialog", "menu", "menubar",
		"toolbar", "tooltip":
		return Chrome
	case "main":
		return InMain
	}
	return 0
}

// OfName returns the hint of the words in a class or id attribute.
func OfName(name []byte) Hint {
	var h Hint
	var word [24]byte
	n, prev := 0, byte(0)
	bare := true // whether the word follows a separator, as "ad" does in "post-ad", but not in "zPostAd"
	for i := 0; i <= len(name); i++ {
		c := byte(' ')
		if i < len(name) {
			c = name[i]
		}
		lower := c
		if c >= 'A' && c <= 'Z' {
			lower = c + 'a' - 'A'
		}
		letter := lower >= 'a' && lower <= 'z'
		if n > 0 && (!letter || c != lower && prev >= 'a' && prev <= 'z') {
			// Generated names (bOfvAD) contain short words by chance. So a short word counts only between separators.
			if n <= len(word) && (n > 3 || bare && !letter) {
				h |= ofWord(word[:n])
			}
			n, bare = 0, !letter
		}
		if letter {
			if n < len(word) {
				word[n] = lower
			}
			n++
		}
		prev = c
	}
	if h&embedded != 0 {
		h &^= Clutter | embedded // articles contain elements with such names, for example social-embed
	}
	return h
}

// OfName uses embedded internally and never returns it.
const embedded Hint = 1 << 15

// ofWord returns the hint of one word of a class or id.
func ofWord(w []byte) Hint {
	switch string(w) {
	case "share", "sharing", "sharebar", "social", "socials", "addthis", "sharedaddy", "follow", "related", "recommended",
		"recommendations", "recommend", "outbrain", "taboola", "promo", "promoted", "promotion", "sponsor", "sponsored",
		"advert", "advertisement", "ad", "ads", "adsense", "advertising", "dfp", "banner", "newsletter", "subscribe",
		"subscription", "signup", "paywall", "comment", "comments", "commentlist", "disqus", "respond", "reply", "breadcrumb",
		"breadcrumbs", "pagination", "pager", "sidebar", "rail", "widget", "widgets", "menu", "nav", "navbar",
		"navigation", "toolbar", "popup", "modal", "overlay", "lightbox", "tooltip",
		"byline", "author", "authors", "bio", "tags", "taglist", "categories", "trending", "popular", "mostread", "teaser",
		"teasers", "more", "masthead", "skip", "print", "printfriendly", "feedback", "rating", "ratings", "jp", "toc",
		"login", "register", "search", "dateline", "timestamp", "credit", "credits", "postmeta", "meta":
		return Clutter
	case "footer", "cookie", "cookies", "consent", "gdpr", "copyright":
		return Clutter | Imprint
	case "embed", "embeds", "embedded":
		return embedded
	case "caption", "captions":
		return Caption
	}
	return 0
}
