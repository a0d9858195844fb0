package parsetest

import (
	"bytes"
	"fmt"
	"strings"
)

// dress surrounds an article with the typical parts of a real news page. On average a news page has
// 186 kB, of which 38 scripts take 72 kB and text takes 15 kB. An average news page also has 1,370
// tags of 44 bytes, 150 links and 23 images.
func dress(page []byte, seed int) []byte {
	var head, menu, foot strings.Builder
	for i := range 34 {
		fmt.Fprintf(&head, "<script id=\"s%d-%d\" data-module=\"widget/%d\" async>\n", seed, i, i)
		for j := range 16 {
			fmt.Fprintf(&head, "  !function(e,t){var n=e[\"w%d\"]||{};if(n.q<%d&&t.length>0){n.push({\"id\":\"%x\",\"path\":\"/api/v2/%d\",\"on\":true})}}(window,document);\n", j, i+j, (seed+7)*(i+3)*(j+11)*2654435761, i*j)
		}
		head.WriteString("</script>\n")
	}
	for i := range 60 {
		fmt.Fprintf(&menu, "      <li class=\"menu__item menu__item--level-%d js-track\" data-pos=\"%d\">\n        <a class=\"menu__link\" href=\"/section/%d/topic-%d?from=menu\"><span class=\"menu__label menu__label--nowrap\" role=\"text\">Topic %d</span></a>\n      </li>\n", i%3, i, i%7, i, i)
	}
	for i := range 75 {
		fmt.Fprintf(&foot, "    <div class=\"card card--teaser js-lazy\" data-id=\"%d\" data-slot=\"river\">\n      <div class=\"card__inner card__inner--padded\" role=\"presentation\">\n        <a class=\"card__link card__link--block\" data-track=\"river:click\" href=\"/2026/%d/teaser-%d.html\">", i, i%12+1, i)
		if i%4 == 0 {
			fmt.Fprintf(&foot, "<img class=\"card__image\" loading=\"lazy\" src=\"/img/%d-320.jpg\" srcset=\"/img/%d-640.jpg 640w, /img/%d-960.jpg 960w\" alt=\"\" width=\"320\" height=\"180\">", i, i, i)
		}
		fmt.Fprintf(&foot, "<span class=\"card__title card__title--small\" data-testid=\"teaser-title\">What else was said on day %d</span></a>\n        <p class=\"card__text card__text--clamp js-clamp\" data-lines=\"3\">The council met behind closed doors for the fourth time this month, and nobody who came out would say what it was about.</p>\n        <!-- slot %d: filled by the ad server -->\n        <div class=\"card__meta card__meta--muted\" aria-label=\"reading time\"><svg class=\"icon icon--clock\" viewBox=\"0 0 24 24\"><path d=\"M12 2a10 10 0 1 0 0 20 10 10 0 0 0 0-20zm1 11h-2V6h2z\"/></svg><time class=\"card__time card__time--relative\" itemprop=\"timeRequired\" datetime=\"2026-10-%02d\">%d min</time></div>\n      </div>\n    </div>\n", i, i, i%28+1, i)
	}
	page = bytes.Replace(page, []byte("</head>"), []byte(head.String()+"</head>"), 1)
	at := bytes.Index(page, []byte("<body"))
	at += bytes.IndexByte(page[at:], '>') + 1
	end := bytes.LastIndex(page, []byte("</body>"))
	return bytes.Join([][]byte{page[:at], []byte("\n<nav class=\"menu\"><ul class=\"menu__list\">\n" + menu.String() + "</ul></nav>\n"), page[at:end],
		[]byte("<aside class=\"river\">\n" + foot.String() + "</aside>\n"), page[end:]}, nil)
}
