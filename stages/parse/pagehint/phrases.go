package pagehint

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// The phrases below are matched in the normal form of package text. Those that a title
// or headline must equal are sets; those that a short text must hold are lists.

// separators part a title into its page's and its site's name.
var separators = strings.NewReplacer(" - ", "\n", " – ", "\n", " — ", "\n", " | ", "\n", "|", "\n", " :: ", "\n", " · ", "\n",
	" • ", "\n", " » ", "\n", " « ", "\n", " / ", "\n", ": ", "\n", "：", "\n", "｜", "\n", " ‹ ", "\n", " › ", "\n", " ~ ", "\n", "_", "\n")

// exclamations stand before or after what a title says.
const exclamations = " .!?…()[]\"'«»“”‚„。！？:,;1"

// anyPart reports whether what a title says, or the first or last of its parts, is in a set.
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

func setOf(list string) map[string]bool {
	set := map[string]bool{}
	for line := range strings.Lines(list) {
		if line = strings.TrimSpace(line); line != "" {
			set[line] = true
		}
	}
	return set
}

func isNotFound(title string) bool {
	if anyPart(title, notFound) {
		return true
	}
	// 404 page not found, error 404 (not found), oops! page not found
	rest := strings.Trim(title, exclamations)
	for again := true; again; {
		again = false
		for _, p := range notFoundPrefixes {
			if after, ok := strings.CutPrefix(rest, p); ok && (after == "" || strings.ContainsRune(exclamations+"-–—|", firstRune(after))) {
				rest, again = strings.Trim(after, exclamations+"-–—|"), true
			}
		}
	}
	return rest != title && notFound[rest]
}

func firstRune(s string) rune {
	for _, r := range s {
		return r
	}
	return 0
}

var notFoundPrefixes = []string{"404", "error", "http", "oops", "whoops", "sorry", "ошибка", "помилка", "fehler", "erreur", "errore",
	"erro", "fout", "błąd", "chyba", "fel", "hata", "hiba", "eroare", "σφάλμα", "lỗi"}

// saysNotFound is asked of texts of very few words.
func saysNotFound(full string) bool { return holdsAny(full, notFoundSentences) }

func holdsAny(s string, phrases []string) bool {
	for _, p := range phrases {
		if strings.Contains(s, p) {
			return true
		}
	}
	return false
}

// offersDomain reports whether a sentence of lines in the normal form offers the domain. Where a word goes
// before what is for sale ("I was told …"), something is told of an offer; words that
// lead up to it are phrases of their own.
func offersDomain(lines []string) bool {
	full := strings.Join(lines, " ") // sentences may be broken
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

// beginsLine reports whether one of the lines, joined by spaces, begins at i.
func beginsLine(lines []string, i int) bool {
	for at, n := 0, 0; n < len(lines) && at <= i; n++ {
		if at == i {
			return true
		}
		at += len(lines[n]) + 1
	}
	return false
}

// mayBegin reports whether a sentence may begin after before: at the text's beginning,
// after what is no letter, number or comma, or after the name of a domain.
func mayBegin(before string) bool {
	before = strings.TrimRight(before, " ")
	r, _ := utf8.DecodeLastRuneInString(before)
	if before == "" || !unicode.IsLetter(r) && !unicode.IsNumber(r) && r != ',' {
		return true
	}
	return isDomainName(before[strings.LastIndexAny(before, " \n")+1:])
}

var domainOffers = []string{
	"this domain is for sale", "this domain name is for sale", "this domain may be for sale", "this domain name may be for sale",
	"the domain is for sale", "the domain name is for sale", "domain name for sale by owner", "buy this domain", "this premium domain is for sale",
	"this domain is available for purchase", "inquire about this domain", "make an offer on this domain", "interested in this domain?",
	"this domain is parked", "this domain name is parked", "this domain has been parked", "parked free, courtesy of", "this web page is parked",
	"this domain has expired", "this domain name has expired", "this domain name expired on", "domain has been registered and parked",
	"the owner of this domain has parked it", "the domain owner maintain no relationship with third party advertisers",
	"diese domain steht zum verkauf", "diese domain kaufen", "diese domain könnte zum verkauf stehen", "domain steht zum verkauf",
	"ce domaine est à vendre", "ce nom de domaine est à vendre", "este dominio está en venta", "este dominio está a la venta",
	"este domínio está à venda", "questo dominio è in vendita", "dit domein is te koop", "deze domeinnaam is te koop", "deze domeinnaam staat te koop",
	"этот домен продается", "этот домен продаётся", "домен продается", "домен продаётся", "домен припаркован", "цей домен продається",
	"ta domena jest na sprzedaż", "domena jest na sprzedaż", "tato doména je na prodej", "táto doména je na predaj", "a domain eladó",
	"ez a domain eladó", "acest domeniu este de vânzare", "denna domän är till salu", "domänen är till salu", "dette domæne er til salg",
	"dette domenet er til salgs", "tämä verkkotunnus on myynnissä", "το domain πωλείται", "bu alan adı satılıktır", "bu domain satılıktır",
	"tên miền này đang được bán", "domain ini dijual", "此域名出售", "本域名出售", "该域名正在出售", "此域名可出售", "域名正在出售", "您正在访问的域名可以转让",
	"このドメインは売りに出ています", "このドメインは販売中です", "이 도메인은 판매 중입니다", "هذا النطاق للبيع", "الدومين للبيع", "הדומיין למכירה",
	"این دامنه به فروش می\u200cرسد",
}

func isDomainOffer(title string) bool {
	name, ok := strings.CutSuffix(strings.TrimRight(title, exclamations), " is for sale")
	return ok && isDomainName(name) || anyPart(title, domainOfferTitles)
}

// isDomainName reports whether s, in lower case, looks like a domain name: labels that
// dots part, the last one without digits unless it is in Punycode.
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

var domainOfferTitles = setOf(`
	domain for sale
	domain name for sale
	premium domain for sale
	this domain is for sale
	parked domain
	parked domain name
	domain parked
	domain parking
	domain zu verkaufen
	domain steht zum verkauf
	domaine à vendre
	dominio en venta
	domínio à venda
	dominio in vendita
	domein te koop
	домен продается
	домен продаётся
	domena na sprzedaż
	doména na prodej
	domän till salu
	域名出售
`)

// parkingServices are registered domains whose scripts and frames show offers and
// advertisements on domains that are not in use, and do nothing else.
var parkingServices = setOf(`
	sedoparking.com
	parkingcrew.net
	parklogic.com
	bodis.com
	bodiscdn.com
	cashparking.com
	skenzo.com
	domainparking.ru
	parking-lander.com
	hugedomains.com
`)

func isDefaultPage(title string) bool {
	if defaultPages[title] {
		return true
	}
	if strings.HasSuffix(title, errorReport) {
		return false
	}
	for _, p := range defaultPrefixes {
		if strings.HasPrefix(title, p) {
			return true
		}
	}
	return false
}

var defaultPages = setOf(`
	welcome to nginx!
	welcome to nginx on debian!
	welcome to nginx on fedora!
	welcome to nginx on red hat enterprise linux!
	welcome to openresty!
	welcome to tengine!
	welcome to caddy
	caddy works!
	it works!
	apache is functioning normally
	apache default page
	iis windows
	iis windows server
	iis7
	iis8
	iis 8.5
	iis 10.0
	microsoft internet information services 8
	internet information services
	default web site page
	domain default page
	default page
	default plesk page
	web server's default page
	welcome to centos
	welcome to your new website!
	congratulations! your website is up and running
	lighttpd default page
	hello world! this is a freshly installed web server
	synology web station
	welcome to xampp
	wampserver homepage
	laragon
	success! your new web server is ready to use
`)

// errorReport ends the titles of Tomcat's pages of errors, which begin as its first page does.
const errorReport = "error report"

var defaultPrefixes = []string{"apache2 debian default page", "apache2 ubuntu default page", "apache2 default page", "test page for the apache",
	"test page for the nginx", "test page for the http server", "http server test page", "apache http server test page", "apache tomcat/",
	"web server's default page", "placeholder page", "default parallels plesk", "index of /icons"}

func isWall(title string) bool { return walls[strings.TrimRight(title, " .…")] }

var walls = setOf(`
	just a moment
	attention required! | cloudflare
	please wait... | cloudflare
	access denied
	access denied | cloudflare
	access to this page has been denied
	access to this site has been denied
	you have been blocked
	sorry, you have been blocked
	are you a robot?
	are you a human?
	are you human?
	robot check
	captcha
	recaptcha
	human verification
	verify you are human
	verifying you are human
	security check
	security checkpoint
	vercel security checkpoint
	bot verification
	ddos-guard
	ddos protection by cloudflare
	checking your browser
	checking your browser before accessing
	pardon our interruption
	request rejected
	one moment, please
	403 forbidden
	forbidden
	zugriff verweigert
	accès refusé
	acceso denegado
	acesso negado
	accesso negato
	доступ запрещен
	доступ запрещён
	доступ ограничен
	访问被拒绝
	安全验证
`)

// isConstruction takes no colon for an end: what follows one is what is being built.
func isConstruction(title string) bool {
	return !strings.ContainsAny(title, ":：") && anyPart(title, constructions)
}

var constructions = setOf(`
	under construction
	site under construction
	website under construction
	page under construction
	this site is under construction
	this website is under construction
	our website is under construction
	website coming soon
	site coming soon
	our website is coming soon
	our new website is coming soon
	new website coming soon
	a new website is coming soon
	under maintenance
	site under maintenance
	website under maintenance
	down for maintenance
	site maintenance
	maintenance mode
	we'll be back soon
	we’ll be back soon
	im aufbau
	seite im aufbau
	website im aufbau
	diese seite befindet sich im aufbau
	wartungsarbeiten
	en construction
	site en construction
	site en maintenance
	en construcción
	sitio en construcción
	página en construcción
	em construção
	site em construção
	in costruzione
	sito in costruzione
	in aanbouw
	website in aanbouw
	в разработке
	сайт в разработке
	сайт на реконструкции
	сайт на стадии разработки
	w budowie
	strona w budowie
	ve výstavbě
	stránky ve výstavbě
	under uppbyggnad
	under opbygning
	yapım aşamasında
	υπό κατασκευή
	în construcție
	網站建置中
	网站建设中
	工事中
	準備中
	공사중
`)
