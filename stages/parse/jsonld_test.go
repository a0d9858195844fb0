package parse

import (
	"fmt"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/stages/parse/parsetest"
)

// ldPage returns a page with the given JSON-LD scripts.
func ldPage(scripts ...string) string {
	var b strings.Builder
	for _, s := range scripts {
		b.WriteString("<script type='application/ld+json'>" + s + "</script>\n")
	}
	return b.String()
}

func TestJSONLD(t *testing.T) {
	const article = `{"@type":"Article","headline":"H"}`
	const kept = `[{"type":["Article"],"headline":"H"}]`
	for _, tt := range []struct{ name, script, want string }{
		{"what is kept of an article", `{"@context":"https://schema.org","@type":"NewsArticle","headline":"A \"new\" day","name":"N","datePublished":"2024-01-02T03:04:05+01:00","dateModified":"2024-01-03",
			"author":[{"@type":"Person","name":"Jane Doe","url":"https://example.com/jane"},"John Roe","Jane Doe"],"publisher":{"@type":"Organization","name":"no"},"articleBody":"{\"@type\":\"no\"}","image":["a",{"@type":"ImageObject","name":"no"}]}`,
			`[{"type":["NewsArticle"],"headline":"A \"new\" day","name":"N","datePublished":"2024-01-02T03:04:05+01:00","dateModified":"2024-01-03","author":["Jane Doe","John Roe"]}]`},
		{"a breadcrumb, by position", `{"@type":"BreadcrumbList","itemListElement":[{"@type":"ListItem","position":2,"name":"B","item":"b?utm_source=x"},{"@type":"ListItem","position":"1","item":{"@id":"/","name":"A"}},{"position":3,"name":"C"},{"position":4,"name":"D","item":"mailto:x"}]}`,
			`[{"type":["BreadcrumbList"],"breadcrumb":[{"name":"A","url":"https://example.com/"},{"name":"B","url":"https://example.com/dir/b"},{"name":"C"},{"name":"D"}]}]`},
		{"a graph, with authors named elsewhere", `{"@context":{"name":"no"},"@graph":[{"@type":"WebPage","@id":"#p","name":"P","breadcrumb":{"@id":"#b"}},{"@type":"Article","author":{"@id":"#j"},"headline":"H"},{"@type":"Person","@id":"#j","name":"Jane"}]}`,
			`[{"type":["WebPage"],"name":"P"},{"type":["Article"],"headline":"H","author":["Jane"]},{"type":["Person"],"name":"Jane"}]`},
		{"lists, and types in lists", `[{"@type":["Article","BlogPosting","Article"]},[{"type":"https://schema.org/Recipe"}],7,"x",null,{"@type":"schema:WebPage"}]`,
			`[{"type":["Article","BlogPosting"]},{"type":["Recipe"]},{"type":["WebPage"]}]`},
		{"what a page is about, and the items of other lists", `{"@type":"ItemPage","mainEntity":{"@type":"Article","headline":"H"},"mainEntityOfPage":{"@type":"WebPage","@id":"x"},"hasPart":{"@type":"Article","headline":"no"},"itemListElement":[{"name":"no"}]}`,
			`[{"type":["ItemPage"]},{"type":["Article"],"headline":"H"}]`},
		{"questions of a page that lists some", `{"@type":"FAQPage","name":"F","mainEntity":[{"@type":"Question","name":"q","acceptedAnswer":{"@type":"Answer","text":"a"}}]}`, `[{"type":["FAQPage"],"name":"F"}]`},
		{"texts in objects and lists", `{"@type":"Article","headline":{"@language":"en","@value":"V"},"name":["first","second"],"author":{"@type":"Person","givenName":"Jane","familyName":"Doe"},"datePublished":["2024-01-02"]}`,
			`[{"type":["Article"],"headline":"V","name":"first","datePublished":"2024-01-02","author":["Jane Doe"]}]`},
		{"creators stand in for authors", `[{"@type":"Article","creator":["C"]},{"@type":"Article","creator":["C"],"author":"A"}]`, `[{"type":["Article"],"author":["C"]},{"type":["Article"],"author":["A"]}]`},
		{"references and escapes in texts", `{"@type":"Article","headline":"caf\u00e9 \ud83d\ude00 \ud83d &amp; &#8217;x&#8217; a\/b\tc\u0000d \\ \q"}`, `[{"type":["Article"],"headline":"café 😀 � & ’x’ a/b c d \\ q"}]`},
		{"other values in their places", `{"@type":7,"@id":{},"headline":12,"name":null,"author":{"name":["a"]},"datePublished":true}`, `[{"author":["a"]}]`},
		{"what says nothing", `[{},[],{"@context":"https://schema.org"},{"@type":"ImageObject"},{"@id":"x"},{"url":"/"}]`, ""},
		{"dates that are none", `{"@type":"Article","datePublished":"0001-01-01T00:00:00","dateModified":"soon","headline":"H"}`, kept},
		{"equal objects once", article + article, kept},
		{"several values", article + `,{"@type":"WebPage"};` + "\n[]", `[{"type":["Article"],"headline":"H"},{"type":["WebPage"]}]`},

		{"an HTML comment around it", "<!-- " + article + " -->", kept},
		{"CDATA marks in comments", "//<![CDATA[\n" + article + "\n//]]>", kept},
		{"CDATA marks on one line", "// <![CDATA[ " + article + " //]]>", kept},
		{"CDATA marks in other comments", "/* <![CDATA[ */" + article + "/* ]]> */", kept},
		{"a statement around it", "var data = " + article + ";", kept},
		{"escaped as though it were markup", strings.ReplaceAll(article, `"`, "&quot;"), kept},
		{"a byte order mark and no-break spaces", "\ufeff\u00a0" + strings.ReplaceAll(article, ",", ",\u00a0"), kept},
		{"commas too many", `{,"@type":["Article",],,"headline":"H",}`, kept},
		{"commas too few", "{\"@type\":\"Article\"\n\"headline\":\"H\"}", kept},
		{"comments", "{ // which\n\"@type\": /* what */ \"Article\", // a, \"b\"\n \"headline\":\"H\"}", kept},
		{"comments before colons, and a quote before a key", "{\"@type\" /* what */ : \"Article\", \" /* a */ 'headline' // b\n : \"H\"}", kept},
		{"line feeds in strings", "{\"@type\":\"Article\",\"headline\":\"\n H \t\"}", kept},
		{"quotes in strings", `{"@type":"Article","description":"They said "no", and went "home"","headline":"The "H" of it","name":"it's"}`, `[{"type":["Article"],"headline":"The \"H\" of it","name":"it's"}]`},
		{"other quotes", `{'@type':'Article','headline':'H'}`, kept},
		{"keys without quotes", `{type:"Article",headline:"H"}`, kept},
		{"no end", `{"@type":"Article","headline":"H"`, kept},
		{"no end within a string", `{"@type":"Article","headline":"H","image":"http`, kept},
		{"no end within a list", `{"@type":"Article","headline":"H","image":[{"a":["b"`, kept},
		{"a list that is not ended", `{"@type":"Article","keywords":["a","b","headline":"H"}`, `[{"type":["Article"]}]`},
		{"brackets that do not match", `[{"@type":"Article","headline":"H"]}{"@type":"WebPage"}`, `[{"type":["Article"],"headline":"H"},{"type":["WebPage"]}]`},
		{"a value that is missing", `{"@type":"Article","name":,"headline":"H"}`, kept},
		{"text before a key", `{"@type":["Article"], oops "headline":"H"}`, kept},
		{"no JSON at all", "document.write('<b>' + x[1] + {});", ""},
		{"empty", " ", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := parsePage(t, ldPage(tt.script), nil).Page.JSONLD; got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestWhichScriptsAreJSONLD(t *testing.T) {
	const body = `{"@type":"Article","headline":"H"}</script>`
	for attrs, want := range map[string]bool{
		"type=application/ld+json": true, "type='Application/LD+JSON; charset=utf-8'": true, `type=" application/ld+json "`: true,
		"type=application/json": false, "": false, "type=text/javascript": false,
	} {
		if got := parsePage(t, "<script "+attrs+">"+body, nil).Page.JSONLD != ""; got != want {
			t.Errorf("<script %s>: %v", attrs, got)
		}
	}
	if parsePage(t, "<template>"+ldPage(body)+"</template>", nil).Page.JSONLD != "" {
		t.Error("that of a template counts")
	}
}

func TestTheArticlesDatesAndAuthorsAreThePages(t *testing.T) {
	for _, tt := range []struct{ name, script, published, author string }{
		{"an article before the page", `[{"@type":"WebPage","datePublished":"2024-01-01","author":"A"},{"@type":"ReportageNewsArticle","datePublished":"2024-02-02","author":"B"}]`, "2024-02-02T00:00:00Z json_ld", "B"},
		{"the page, where there is no article", `[{"@type":"Comment","datePublished":"2023-01-01","author":"no"},{"@type":"WebPage","datePublished":"2024-01-01","author":["A","By B"]}]`, "2024-01-01T00:00:00Z json_ld", "A, B"},
		{"others are about something else", `[{"@type":"Person","name":"P","datePublished":"2024-01-01"},{"@type":"ImageObject","datePublished":"2024-01-01","author":"I"},{"@type":"Product","review":{"datePublished":"2024-01-01","author":"R"}}]`, "", ""},
		{"a work that the page is about", `{"@type":"Movie","datePublished":"1994-10-14","dateCreated":"1993-01-01","author":{"name":"Stephen King"}}`, "", ""},
		{"a work, then the page", `[{"@type":"Book","datePublished":"1997-06-26","author":"B"},{"@type":"WebPage","datePublished":"2024-01-01","author":"P"}]`, "2024-01-01T00:00:00Z json_ld", "P"},
		{"the page, then a work", `[{"@type":"WebPage","datePublished":"2024-01-01","author":"P"},{"@type":"Book","datePublished":"1997-06-26","author":"B"}]`, "2024-01-01T00:00:00Z json_ld", "P"},
		{"a work within the page", `{"@type":"ItemPage","mainEntity":{"@type":["Product","Book"],"datePublished":"1997-06-26","author":"B"}}`, "", ""},
		{"no type, then the page", `[{"datePublished":"2023-01-01","author":"U"},{"@type":"CollectionPage","datePublished":"2024-01-01"}]`, "2024-01-01T00:00:00Z json_ld", "U"},
		{"a recipe is written where it is published", `{"@type":["Recipe","Product"],"datePublished":"2024-01-01","author":"R"}`, "2024-01-01T00:00:00Z json_ld", "R"},
		{"a post that is a work too", `{"@type":["Book","SocialMediaPosting"],"datePublished":"2024-01-01","author":"S"}`, "2024-01-01T00:00:00Z json_ld", "S"},
		{"a vacancy", `{"@type":"JobPosting","datePublished":"2024-01-01","author":"J"}`, "", ""},
		{"created, where nothing says published", `[{"@type":"Article","dateCreated":"2024-01-01"}]`, "2024-01-01T00:00:00Z json_ld", ""},
		{"an author that is an address", `[{"@type":"Article","author":"https://example.com/jane"},{"@type":"WebPage","author":{"name":"Jane"}}]`, "", "Jane"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := parsePage(t, ldPage(tt.script), nil).Page
			if got := dateText(p.PublishedAt, p.PublishedSource); got != tt.published || p.Author != tt.author {
				t.Errorf("%q by %q, want %q by %q", got, p.Author, tt.published, tt.author)
			}
		})
	}
}

func TestHostileJSONLDStaysWithinBounds(t *testing.T) {
	many := strings.Repeat
	for _, tt := range []struct {
		name, script string
		objects      int
	}{
		{"nesting", many(`{"@graph":[`, 100_000), 0},
		{"nesting of what is passed over", `{"x":` + many("[{", 400_000), 0},
		{"nesting that is ended", many("[", 200_000) + many("]", 200_000) + `{"@type":"Article"}`, 1},
		{"objects without number", many(`{"@type":"Article","headline":"`+many("x", 100)+`"},`, 9000) + many(`{"@type":"A"}`, 10), 1},
		{"authors without number", `{"@type":"Article","author":[` + many(`{"name":"`+many("y", 1000)+`"},`, 900), 1},
		{"types without number", `{"@type":[` + many(`"Article","Recipe",`, 50_000), 1},
		{"a breadcrumb without end", `{"@type":"BreadcrumbList","itemListElement":[` + many(`{"name":"n","item":"/`+many("z", 900)+`"},`, 1000), 1},
		{"one key again and again", "{" + many(`"headline":"H",`, 60_000), 1},
		{"quotes", many(`"`, 900_000), 0},
		{"quotes in an object", `{"a":` + many(`"`, 900_000), 0},
		{"quotes and spaces", `{"a":"` + many(`"  `, 300_000), 0},
		{"quotes that end nothing", `{"a":"` + many(`" x`, 300_000), 0},
		{"quotes and commas", `{"a":"` + many(`" , x`, 200_000), 0},
		{"keys that have no value", "{" + many(`"a" `, 200_000), 0},
		{"backslashes", `{"headline":"` + many(`\`, 900_000), 1},
		{"escaped quotes", `{"@type":"Article","headline":"` + many(`\"`, 400_000), 1},
		{"colons", "{" + many(":", 900_000), 0},
		{"comments that are not ended", many("/*", 400_000), 0},
		{"comment marks", many("<!--", 200_000), 0},
		{"slashes", many("/", 900_000), 0},
		{"a number without end", `{"position":` + many("9", 900_000), 0},
		{"NULs", many("\x00", 400_000) + "{" + many("\x00", 400_000), 0},
		{"names of nobody", `{"@type":"Article","author":[` + many(`{"@id":"#x"},`, 50_000) + `]}`, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := parsePage(t, ldPage(tt.script), nil)
			n := 0
			if r.Page.JSONLD != "" {
				n = len(parsetest.JSONLD(t, r.Page.JSONLD))
			}
			if n != tt.objects {
				t.Errorf("%d objects, want %d: %.200s", n, tt.objects, r.Page.JSONLD)
			}
		})
	}
	t.Run("more than the column holds", func(t *testing.T) {
		var b strings.Builder
		for i := range 40 {
			fmt.Fprintf(&b, `{"@type":"Article","headline":"%d %s","name":%q}`, i, many("h", 490), many("n", 500))
		}
		r := parsePage(t, ldPage(b.String()), nil)
		if n := len(parsetest.JSONLD(t, r.Page.JSONLD)); n != 15 {
			t.Errorf("%d objects in %d bytes", n, len(r.Page.JSONLD))
		}
	})
}
