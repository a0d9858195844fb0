package parse

import (
	"slices"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/formats/document"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/stages/parse/parsetest"
)

// titled makes a page with a title, a headline and paragraphs.
func titled(title, heading string, paragraphs ...string) string {
	return "<html><head><title>" + title + "</title></head><body><nav><a href=/>Home</a> <a href=/a>About us</a></nav><h1>" + heading +
		"</h1><p>" + strings.Join(paragraphs, "</p><p>") + "</p><footer>© 2026 Example</footer></body></html>"
}

func TestPageHints(t *testing.T) {
	prose := strings.Repeat("The lighthouse stands at the end of the cape, and its light can be seen far out at sea. ", 12)
	for _, tt := range []struct {
		name, page string
		want       schema.PageHint
	}{
		{"a title that says so", titled("Page not found - Example", "Oops!", "Sorry."), schema.HintSoft404},
		{"404 before it", titled("404 – Page Not Found!", ""), schema.HintSoft404},
		{"error 404 (Not Found)!!1", titled("Error 404 (Not Found)!!1", ""), schema.HintSoft404},
		{"a headline that says so", titled("Example", "Seite nicht gefunden", "Zur Startseite"), schema.HintSoft404},
		{"in Russian", titled("Страница не найдена | Пример", ""), schema.HintSoft404},
		{"in Chinese", titled("页面不存在", "抱歉"), schema.HintSoft404},
		{"in Japanese, decomposed", titled("お探しのヘ\u309Aーシ\u3099は見つかりませんでした", ""), schema.HintSoft404},
		{"in Arabic", titled("الصفحة غير موجودة", ""), schema.HintSoft404},
		{"a sentence and little else", titled("Example", "Hm", "The page you are looking for does not exist. Try the search."), schema.HintSoft404},
		{"a domain for sale", titled("example.org", "", "The domain example.org is yours? This domain is for sale! Make an offer."), schema.HintParked},
		{"a domain for sale by its title", titled("example.org is for sale", "example.org", "Price 2,000"), schema.HintParked},
		{"a domain for sale, exclaimed", titled("sub.exämple-1.xn--p1ai is for sale!", "", "Price 2,000"), schema.HintParked},
		{"a domain for sale, after its name", titled("x", "", "example.org – this domain is for sale"), schema.HintParked},
		{"a domain for sale, right after its name", titled("x", "", "example.org this domain is for sale"), schema.HintParked},
		{"a domain for sale, in two lines", "<h1>Example</h1><h2>This domain<br>is for sale</h2>", schema.HintParked},
		{"a domain for sale, German", titled("example.de", "", "Diese Domain steht zum Verkauf."), schema.HintParked},
		{"an expired domain", titled("example.org", "", "This domain has expired. Is this your domain? Renew now."), schema.HintParked},
		{"a domain that a service fills", `<html><head><title>example.org</title><script src="https://img.sedoparking.com/js/jquery.js"></script></head><body></body></html>`, schema.HintParked},
		{"a frame of a service", `<frameset><frame src="https://www.parkingcrew.net/lander?d=example.org"></frameset>`, schema.HintParked},
		{"nginx", titled("Welcome to nginx!", "Welcome to nginx!", "If you see this page, the nginx web server is successfully installed."), schema.HintDefault},
		{"Apache", titled("Apache2 Ubuntu Default Page: It works", "", "This is the default welcome page used to test the correct operation."), schema.HintDefault},
		{"Apache, short", titled("", "It works!"), schema.HintDefault},
		{"IIS", titled("IIS Windows Server", ""), schema.HintDefault},
		{"Tomcat", titled("Apache Tomcat/8.5.4", "Apache Tomcat/8.5.4", "If you're seeing this, you've installed Tomcat."), schema.HintDefault},
		{"under construction, of a site", titled("Example | Under construction", "", "Come back soon."), schema.HintConstruction},
		{"under construction", titled("Under construction", "", "Come back soon."), schema.HintConstruction},
		{"a check for robots", titled("Just a moment...", "Checking your browser", "This process is automatic."), schema.HintBlocked},
		{"access denied", titled("Access Denied", "Access Denied", "You don't have permission to access this resource."), schema.HintBlocked},

		{"an article about it", titled("Page not found: a history of the error 404", "Page not found", prose), ""},
		{"an article titled so", titled("Page not found", "Page not found", prose), ""},
		{"a car", titled("Peugeot 404 - Example encyclopedia", "Peugeot 404", "The Peugeot 404 is a large family car."), ""},
		{"found, not", titled("Lost and not found again", "Lost", "A short story."), ""},
		{"an article on parked domains", titled("What to do when this domain is for sale", "", "This domain is for sale, says the page. "+prose), ""},
		{"a house for sale", titled("House is for sale", "House", "Three rooms, a garden."), ""},
		{"a film that is coming soon", titled("Coming soon", "Coming soon", "In the cinemas from May."), ""},
		{"how to see nginx's page", titled("Welcome to nginx! How to get rid of it", "Hello", "Edit the file."), ""},
		{"just a moment of poetry", titled("Just a moment of peace", "Just a moment of peace", "A poem."), ""},
		{"a school for sale", titled("St. Mary's old school is for sale", "", "Call the parish."), ""},
		{"a car for sale", titled("My Volvo 2.0 is for sale", "", "Call me."), ""},
		{"a car of one word for sale", titled("volvo2.0 is for sale", "", "Call me."), ""},
		{"a bridge that is being built", titled("Under construction: the new Oslo bridge", "", "A report."), ""},
		{"Tomcat's errors", titled("Apache Tomcat/8.5.4 - Error report", "HTTP Status 500", "Exception"), ""},
		{"a story of a domain", titled("A story", "", "How I was told this domain is for sale, a story."), ""},
		{"another", titled("A story", "", "Yesterday, the domain is for sale no more."), ""},
		{"content", titled("Lighthouse", "Lighthouse", prose), ""},
		{"a link to a service", `<p>See <a href="https://www.sedoparking.com/">them</a></p>`, ""},
		{"nothing", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newParser(t).Parse(&document.Document{URL: "https://example.com/x", ContentType: "text/html; charset=utf-8", Body: []byte(tt.page)})
			if r.Page.PageHint != tt.want {
				t.Errorf("%q, want %q", r.Page.PageHint, tt.want)
			}
		})
	}
}

func TestPagesThatNeedScripts(t *testing.T) {
	const shell, words = "<title>Shop</title><body>%s<script src=/app.js></script></body>", "The shop sells lamps for ships and for houses, and every lamp was made by hand in a small town by the sea, where"
	in := func(body string) string { return strings.Replace(shell, "%s", body, 1) }
	for _, tt := range []struct {
		name, page string
		want       bool
	}{
		{"an empty root", in("<div id=root></div>"), true},
		{"an empty root with a script in the page", `<div id="root"> </div><script>start()</script>`, true},
		{"an empty root above a footer", in("<div class=x id='app'></div><footer>© 2026 Shop, all rights reserved</footer>"), true},
		{"an unknown root", in("<main class=skeleton></main>"), true},
		{"Angular", in("<app-root></app-root>"), true},
		{"a page that loads", in(`<div id="__nuxt"><p>Loading…</p></div>`), true},
		{"only its navigation", in(`<div id=x><nav><a href=/>Home</a> <a href=/a>About</a></nav></div><script id="__NEXT_DATA__" type="application/json">{}</script>`), true},
		{"state of Nuxt", in("<p>Please wait.</p><script>window.__NUXT__={}</script>"), true},
		{"ng-version", in("<my-shop ng-version=17.0.1></my-shop>"), true},
		{"data-reactroot", in("<div data-reactroot><span>Shop</span></div>"), true},
		{"a noscript", in("<noscript>You need to enable <b>JavaScript</b> to run this app.</noscript><nav><a href=/>Home</a></nav>"), true},
		{"a noscript in German", in("<noscript><p>Bitte aktivieren Sie JavaScript.</p></noscript><p>Laden</p>"), true},
		{"a text that asks for it", in("<p>This site requires JavaScript.</p>"), true},
		{"modules", "<body><main></main><link rel=modulepreload href=https://cdn.example/a.js></body>", true},

		{"a server-rendered page of Next.js", in("<div id=__next><main><h1>Lamps</h1><p>" + words + "</p></main></div><script id=__NEXT_DATA__ type=application/json>{}</script>"), false},
		{"a server-rendered page of Angular", in("<app-root ng-version=17><p>" + words + "</p></app-root>"), false},
		{"a page with a noscript", in("<noscript>Please enable JavaScript.</noscript><p>" + words + "</p>"), false},
		{"a short page whose root has text", in("<div id=app><h1>Sign in</h1><form action=/in><label>Name <input></label><label>Password <input></label></form><p>Ask us for a password.</p></div>"), false},
		{"a short page without marks", in("<p>Opens at nine.</p>"), false},
		{"a page about JavaScript", in("<h1>JavaScript</h1><p>Ten lessons.</p>"), false},
		{"a noscript with a pixel", in("<noscript><img src=/javascript.gif></noscript><p>Opens at nine.</p>"), false},
		{"comments that need scripts", in("<p>A picture of a lamp.</p><noscript>Please enable JavaScript to view the comments powered by Disqus.</noscript>"), false},
		{"a picture and a script", in("<img src=/lamp.jpg>"), false},
		{"a counter of another site", "<body><script src=https://counter.example.net/c.js></script></body>", false},
		{"a redirect", in("<meta http-equiv=refresh content='0; url=/shop'><div id=root></div>"), false},
		{"no script at all", "<div id=root></div>", false},
		{"JSON-LD alone", `<script type="application/ld+json">{}</script>`, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newParser(t).Parse(&document.Document{URL: "https://example.com/x", ContentType: "text/html; charset=utf-8", Body: []byte(tt.page)})
			if got := r.Page.PageHint == schema.HintScripts; got != tt.want {
				t.Errorf("%q with %d words", r.Page.PageHint, r.Page.WordCount)
			}
		})
	}
}

func TestArticlesHaveNoHints(t *testing.T) {
	parser := newParser(t)
	for _, page := range append(parsetest.Articles(t), parsetest.Real(t)...) {
		r := parser.Parse(&document.Document{URL: page.URL, ContentType: "text/html; charset=utf-8", Body: page.Body})
		if r.Page.PageHint != "" {
			t.Errorf("%s %s: %s", page.Name, page.URL, r.Page.PageHint)
		}
		if r.Page.LinkDensity == nil || r.Page.TextRatio == nil || *r.Page.LinkDensity > 0.98 || *r.Page.TextRatio <= 0 || *r.Page.TextRatio > 0.9 {
			t.Errorf("%s: link density %v, text ratio %v", page.Name, *r.Page.LinkDensity, *r.Page.TextRatio)
		}
		if r.Page.Language == "eng" && r.Page.WordCount > 400 && (r.Page.StopWordRatio == nil || *r.Page.StopWordRatio < .1 || *r.Page.StopWordRatio > .65) {
			t.Errorf("%s: stop word ratio %v of %d English words", page.Name, *r.Page.StopWordRatio, r.Page.WordCount)
		}
	}
}

func TestADeclaredLanguageThatTheTextIsNotIn(t *testing.T) {
	german := strings.Repeat("Der Leuchtturm steht am Ende des Kaps, und sein Licht ist in der Nacht weit draußen auf dem Meer zu sehen. ", 4)
	scores := strings.Repeat("Rockledge 14 11 6 Goals: Palmer 3, Bayfield 2. Assists: Miller, Carter. Saves: Hogan 5. ", 8)
	for _, tt := range []struct{ name, page, want string }{
		{"German, declared English", "<html lang=en><p>" + german, "deu"},
		{"German, declared German", "<html lang=de-AT><p>" + german, "deu"},
		{"German, declared Māori, which no list is of", "<html lang=mi><p>" + german, "mri"},
		{"English without function words", "<html lang=en><p>" + scores, "eng"},
		{"a few words", "<html lang=en><p>Der Leuchtturm steht am Ende des Kaps", "eng"},
	} {
		r := newParser(t).Parse(&document.Document{URL: "https://example.com/x", ContentType: "text/html; charset=utf-8", Body: []byte(tt.page)})
		if r.Page.Language != tt.want || r.Text.Language != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, r.Page.Language, tt.want)
		}
	}
}

func TestPagesOfTheCorpusHaveNoHints(t *testing.T) {
	parser := newParser(t)
	for _, c := range parsetest.Corpus(t) {
		c.Body = c.Text(t)
		r := parser.Parse(c.Document("text/html; charset=utf-8"))
		if r.Page.PageHint != "" {
			t.Errorf("%s: %s", r.Page.Title, r.Page.PageHint)
		}
	}
}

func TestSignalsOfQuality(t *testing.T) {
	parse := func(contentType, body string) *schema.Page {
		return &newParser(t).Parse(&document.Document{URL: "https://example.com/x", ContentType: contentType, Body: []byte(body)}).Page
	}
	html := "text/html; charset=utf-8"
	p := parse(html, `<html lang=en><p>The lamp of a lighthouse</p><p><a href=/a>linked text of 26 letters</a></p><p hidden><a href=/b>hidden</a></p>`)
	if p.LinkDensity == nil || *p.LinkDensity < .51 || *p.LinkDensity > .53 {
		t.Errorf("link density %v", p.LinkDensity)
	}
	if p.StopWordRatio == nil || *p.StopWordRatio != 0.6 {
		t.Errorf("stop word ratio %v", p.StopWordRatio)
	}
	if p.TextRatio == nil || *p.TextRatio < .3 || *p.TextRatio > .45 {
		t.Errorf("text ratio %v", *p.TextRatio)
	}
	if p := parse(html, "<html lang=mi><p>he whare nui"); p.StopWordRatio != nil || *p.LinkDensity != 0 {
		t.Errorf("no list of Māori: %v, %v", p.StopWordRatio, p.LinkDensity)
	}
	if p := parse(html, ""); p.LinkDensity != nil || p.StopWordRatio != nil || p.TextRatio != nil || p.Scripts != nil {
		t.Errorf("nothing has signals: %+v", p)
	}
	if p := parse("text/plain", "Plain text, which is text of the web as all the others are"); p.LinkDensity != nil || p.TextRatio != nil || p.StopWordRatio == nil {
		t.Errorf("plain text: %v %v %v", p.LinkDensity, p.TextRatio, p.StopWordRatio)
	}
	if p := parse(html, "<p>灯塔 and 灯台 and 1999"); strings.Join(p.Scripts, " ") != "Hani Latn Zyyy" || !slices.Equal(p.ScriptWords, []int32{4, 2, 1}) {
		t.Errorf("scripts %v %v", p.Scripts, p.ScriptWords)
	}
}

func TestCaptionsAndQuotedPostsInMainContent(t *testing.T) {
	const p1 = "The lighthouse stands at the end of the cape, and its light can be seen far out at sea, every night of the year."
	const p2 = "The keeper wrote down the weather each day for forty years, and left out no day of them."
	page := "<html><body><nav><a href=/>Home</a></nav><div><p>" + p1 + "</p><p><img src=/a.png><span class=newsCaption>The lamp, which was lit each night (Image: A. Photographer)</span></p>" +
		"<div class=social-media-embed><blockquote><p>A post that somebody wrote on the lamp of the lighthouse.</p></blockquote></div><p>" + p2 + "</p>" +
		"<ul><li><a href=/1>Links that are as long as the text behind them, and longer than a third of it all</a> - with words enough behind the link to be read as running text too.</ul>" +
		"</div><div class=footer>Example, 12 Harbour Road, Seatown. Registered in Seatown. All rights reserved, and so on, as footers say.</div></body></html>"
	got := newParser(t).Parse(&document.Document{URL: "https://example.com/x", ContentType: "text/html; charset=utf-8", Body: []byte(page)}).Text.Main
	for _, want := range []string{p1, "A post that somebody", p2, "Links that are", "behind the link"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in %q", want, got)
		}
	}
	for _, not := range []string{"Photographer", "Harbour", "Home"} {
		if strings.Contains(got, not) {
			t.Errorf("%q is in %q", not, got)
		}
	}
}
