package pagehint

var notFound = setOf(`
	404 not found
	404 error
	error 404
	http 404
	404 page
	404 page not found
	not found
	page not found
	page cannot be found
	page could not be found
	this page could not be found
	the page cannot be found
	the page could not be found
	page doesn't exist
	page doesn’t exist
	page does not exist
	this page doesn't exist
	this page doesn’t exist
	this page does not exist
	that page can't be found
	that page can’t be found
	oops! that page can’t be found
	oops! that page can't be found
	this page isn't available
	this page isn’t available
	page no longer exists
	file not found
	file or directory not found
	resource not found
	document not found
	object not found
	nothing found
	we can't find that page
	we couldn't find that page
	we can't find the page you're looking for
	seite nicht gefunden
	die seite wurde nicht gefunden
	seite wurde nicht gefunden
	nicht gefunden
	seite existiert nicht
	diese seite existiert nicht
	page non trouvée
	page introuvable
	page inexistante
	cette page n'existe pas
	cette page n’existe pas
	la page demandée n'existe pas
	página no encontrada
	pagina no encontrada
	no encontrado
	la página no existe
	página não encontrada
	pagina nao encontrada
	não encontrado
	pagina non trovata
	non trovato
	la pagina non esiste
	pagina niet gevonden
	niet gevonden
	deze pagina bestaat niet
	страница не найдена
	страница не существует
	сторінку не знайдено
	сторінка не знайдена
	старонка не знойдзена
	страницата не е намерена
	страницата не е открита
	страница није пронађена
	страницата не е пронајдена
	nie znaleziono
	nie znaleziono strony
	strona nie została znaleziona
	strona nie istnieje
	stránka nenalezena
	stránka nebyla nalezena
	stránka neexistuje
	stránka nebola nájdená
	stránka sa nenašla
	stránka nenájdená
	stranica nije pronađena
	stranica ne postoji
	strani ni mogoče najti
	stran ne obstaja
	sidan hittades inte
	sidan kunde inte hittas
	sidan finns inte
	siden blev ikke fundet
	siden findes ikke
	siden kunne ikke findes
	siden ble ikke funnet
	siden finnes ikke
	fant ikke siden
	síða fannst ekki
	sivua ei löytynyt
	sivua ei löydy
	lehte ei leitud
	lehekülge ei leitud
	puslapis nerastas
	lapa nav atrasta
	az oldal nem található
	a keresett oldal nem található
	oldal nem található
	pagina nu a fost găsită
	pagina nu există
	η σελίδα δεν βρέθηκε
	σελίδα δεν βρέθηκε
	sayfa bulunamadı
	aradığınız sayfa bulunamadı
	səhifə tapılmadı
	бет табылмады
	sahifa topilmadi
	faqja nuk u gjet
	pàgina no trobada
	no s'ha trobat la pàgina
	páxina non atopada
	orria ez da aurkitu
	الصفحة غير موجودة
	لم يتم العثور على الصفحة
	الصفحة المطلوبة غير موجودة
	הדף לא נמצא
	העמוד לא נמצא
	صفحه یافت نشد
	صفحه پیدا نشد
	صفحه مورد نظر یافت نشد
	صفحہ نہیں ملا
	पृष्ठ नहीं मिला
	पेज नहीं मिला
	পৃষ্ঠা পাওয়া যায়নি
	பக்கம் காணப்படவில்லை
	ไม่พบหน้า
	ไม่พบหน้านี้
	ไม่พบหน้าที่คุณต้องการ
	ไม่พบหน้าเว็บ
	không tìm thấy trang
	trang không tồn tại
	halaman tidak ditemukan
	halaman tidak dijumpai
	hindi nahanap ang pahina
	ukurasa haupatikani
	页面不存在
	页面未找到
	未找到页面
	找不到页面
	您访问的页面不存在
	网页不存在
	頁面不存在
	找不到頁面
	找不到網頁
	ページが見つかりません
	ページが見つかりませんでした
	お探しのページは見つかりません
	お探しのページは見つかりませんでした
	페이지를 찾을 수 없습니다
	요청하신 페이지를 찾을 수 없습니다
	존재하지 않는 페이지입니다
`)

var notFoundSentences = []string{
	"the requested url was not found on this server", "the page you are looking for does not exist", "the page you requested could not be found",
	"the page you are looking for could not be found", "the page you are looking for can't be found", "the page you requested was not found",
	"the page you were looking for doesn't exist", "the page you are looking for might have been removed", "the requested page could not be found",
	"the page you are trying to reach does not exist", "it looks like nothing was found at this location",
	"die angeforderte seite konnte nicht gefunden werden", "die gewünschte seite wurde nicht gefunden", "die von ihnen gesuchte seite existiert nicht",
	"la page que vous recherchez n'existe pas", "la page que vous cherchez n'existe pas", "la page demandée est introuvable",
	"la página que buscas no existe", "la página que busca no existe", "la página solicitada no existe",
	"a página que você procura não existe", "a página que você está procurando não existe", "la pagina che stai cercando non esiste",
	"la pagina richiesta non esiste", "de pagina die u zoekt bestaat niet", "de opgevraagde pagina is niet gevonden",
	"запрашиваемая страница не найдена", "запрашиваемая вами страница не найдена", "запрошенная страница не найдена",
	"strona, której szukasz, nie istnieje", "požadovaná stránka nebyla nalezena", "sidan du söker finns inte", "siden du leter etter finnes ikke",
	"siden du leder efter findes ikke", "etsimääsi sivua ei löytynyt", "a keresett oldal nem található", "pagina căutată nu există",
	"η σελίδα που ψάχνετε δεν υπάρχει", "aradığınız sayfa bulunamadı", "trang bạn tìm kiếm không tồn tại",
	"halaman yang anda cari tidak ditemukan", "抱歉，您访问的页面不存在", "您要访问的页面不存在", "您要查看的页面不存在", "お探しのページは見つかりませんでした",
	"요청하신 페이지를 찾을 수 없습니다", "الصفحة التي تبحث عنها غير موجودة", "הדף שחיפשת לא נמצא",
}
