package pagehint

import (
	"embed"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The folder phrases has one file for each list. Each line is a phrase in the normal form of
// package text. Lists *_titles hold whole titles or headlines. Lists *_prefixes hold the beginnings
// of titles or headlines. The other lists hold parts of short texts.
//
//go:embed phrases
var phrases embed.FS

var (
	notFoundTitles     = setOf("notfound_titles")
	notFoundPrefixes   = listOf("notfound_prefixes")
	notFoundSentences  = listOf("notfound_sentences")
	domainOfferTitles  = setOf("domain_titles")
	domainOffers       = listOf("domain_offers")
	defaultTitles      = setOf("default_titles")
	defaultPrefixes    = listOf("default_prefixes")
	wallTitles         = setOf("wall_titles")
	constructionTitles = setOf("construction_titles")
	// parkingServices holds registered domains that exist only for parking. Scripts and frames of
	// such domains show offers and advertisements on unused domains.
	parkingServices = setOf("parking_services")
)

func listOf(name string) []string {
	data, err := phrases.ReadFile("phrases/" + name + ".txt")
	if err != nil {
		panic(err) // a list is part of the program, so this cannot fail
	}
	return strings.Split(strings.TrimSpace(string(data)), "\n")
}

func setOf(name string) map[string]bool {
	set := map[string]bool{}
	for _, phrase := range listOf(name) {
		set[phrase] = true
	}
	return set
}

// separators are the signs in a title between the name of the page and the name of the site.
var separators = strings.NewReplacer(" - ", "\n", " – ", "\n", " — ", "\n", " | ", "\n", "|", "\n", " :: ", "\n", " · ", "\n",
	" • ", "\n", " » ", "\n", " « ", "\n", " / ", "\n", ": ", "\n", "：", "\n", "｜", "\n", " ‹ ", "\n", " › ", "\n", " ~ ", "\n", "_", "\n")

// exclamations are signs before or after the words of a title. dashes may also stand between a
// prefix and the rest of a title.
const (
	exclamations = " .!?…()[]\"'«»“”‚„。！？:,;1"
	dashes       = "-–—|"
)

// anyPart reports whether a title, or one of the title's parts, is in a set.
func anyPart(title string, set map[string]bool) bool {
	if title == "" {
		return false
	}
	if set[strings.Trim(title, exclamations)] {
		return true
	}
	for part := range strings.SplitSeq(separators.Replace(title), "\n") {
		if set[strings.Trim(part, exclamations)] {
			return true
		}
	}
	return false
}

// isNotFound reports whether a title says that the page was not found. It also recognises prefixes,
// as in "404 page not found", "error 404 (not found)", "oops! page not found".
func isNotFound(title string) bool {
	if anyPart(title, notFoundTitles) {
		return true
	}
	rest := strings.Trim(title, exclamations)
	for more := true; more; {
		more = false
		for _, p := range notFoundPrefixes {
			after, ok := strings.CutPrefix(rest, p)
			if !ok {
				continue
			}
			if r, _ := utf8.DecodeRuneInString(after); after == "" || strings.ContainsRune(exclamations+dashes, r) {
				rest, more = strings.Trim(after, exclamations+dashes), true
			}
		}
	}
	return rest != title && notFoundTitles[rest]
}

// contains reports whether a text contains one of the phrases.
func contains(text string, phrases []string) bool {
	return slices.ContainsFunc(phrases, func(p string) bool { return strings.Contains(text, p) })
}

// offersDomain reports whether a sentence of the lines offers the domain for sale. The phrases are
// the beginnings of offers. If a word directly precedes the phrase ("I was told …"), the sentence
// reports an offer and makes none.
func offersDomain(lines []string) bool {
	full := strings.Join(lines, " ") // a sentence may continue in the next line
	for _, p := range domainOffers {
		for from := 0; ; from += len(p) {
			i := strings.Index(full[from:], p)
			if i < 0 {
				break
			}
			from += i
			if !strings.HasPrefix(p, "this ") && !strings.HasPrefix(p, "the ") || beginsLine(lines, from) || mayBegin(full[:from]) {
				return true
			}
		}
	}
	return false
}

// beginsLine reports whether a line begins at offset i of the lines joined by spaces.
func beginsLine(lines []string, i int) bool {
	for at, n := 0, 0; n < len(lines) && at <= i; n++ {
		if at == i {
			return true
		}
		at += len(lines[n]) + 1
	}
	return false
}

// mayBegin reports whether a sentence may begin after a text. A sentence may begin if the text is
// empty, ends in a domain name, or does not end in a letter, number or comma.
func mayBegin(before string) bool {
	before = strings.TrimRight(before, " ")
	r, _ := utf8.DecodeLastRuneInString(before)
	if before == "" || !unicode.IsLetter(r) && !unicode.IsNumber(r) && r != ',' {
		return true
	}
	return isDomainName(before[strings.LastIndexAny(before, " \n")+1:])
}

func isDomainOffer(title string) bool {
	name, ok := strings.CutSuffix(strings.TrimRight(title, exclamations), " is for sale")
	return ok && isDomainName(name) || anyPart(title, domainOfferTitles)
}

// isDomainName reports whether s, which is in lower case, looks like a domain name. A domain name
// has labels between dots. The last label has no digits unless the label is in Punycode.
func isDomainName(s string) bool {
	i := strings.LastIndexByte(s, '.')
	if i <= 0 || utf8.RuneCountInString(s[i+1:]) < 2 {
		return false
	}
	for label := range strings.SplitSeq(s, ".") {
		if label == "" || label[0] == '-' {
			return false
		}
	}
	for j, r := range s {
		switch {
		case unicode.IsLetter(r), unicode.IsMark(r), r == '.', r == '-':
		case !unicode.IsNumber(r), j > i && !strings.HasPrefix(s[i+1:], "xn--"):
			return false
		}
	}
	return true
}

// errorReport is the end of the titles of Tomcat's error pages, which begin like the title of
// Tomcat's default page.
const errorReport = "error report"

func isDefaultPage(title string) bool {
	return defaultTitles[title] || !strings.HasSuffix(title, errorReport) &&
		slices.ContainsFunc(defaultPrefixes, func(p string) bool { return strings.HasPrefix(title, p) })
}

func isWall(title string) bool { return wallTitles[strings.TrimRight(title, " .…")] }

// isConstruction reports whether a title says that the page is under construction. A title with a
// colon does not count, because the text after the colon names the thing that is being built.
func isConstruction(title string) bool {
	return !strings.ContainsAny(title, ":：") && anyPart(title, constructionTitles)
}
