package text

import "strings"

// stopWords are the words that say nothing of what a text is about, by ISO-639-3 code.
var stopWords = func() map[string]map[string]struct{} {
	m := make(map[string]map[string]struct{}, len(stopLists))
	for lang, list := range stopLists {
		set := make(map[string]struct{})
		for _, w := range strings.Fields(list) {
			set[w] = struct{}{}
		}
		m[lang] = set
	}
	return m
}()

// stopLists holds function words of three letters and more; shorter words are no terms.
var stopLists = map[string]string{
	"eng": `the and for are but not you all any can had her was one our out has him his how its may new now old see two who
		did get let say she too use that with have this will your from they know want been good much some time very when come
		here just like long make many more only over such take than them well were what which their there would about could
		other these those into then also after before being because between through while where during without within under
		again against further once both each few most own same should until above below down off why does doing don't it's
		i'm you're that's can't won't isn't doesn't didn't said says one's he's she's we're they're i've we've upon per via
		yet nor ever every another even still might must shall cannot among though although since`,
	"deu": `der die das den dem des ein eine einer eines einem einen und oder aber nicht ist sind war waren wird werden wurde
		wurden hat haben hatte hatten mit von vom zum zur für auf aus bei nach über unter vor durch gegen ohne bis seit auch
		noch nur schon sehr mehr als wie wenn dass daß weil dann denn doch ich wir ihr sie ihn ihm ihnen uns euch mein dein
		sein seine seiner seinen ihre ihrer ihren dieser diese dieses diesem diesen jeder jede alle alles kann können muss
		müssen soll sollen will wollen man was wer wo hier dort zwischen immer wieder sich beim sowie etwa ganz einen damit`,
	"fra": `les des une est sont était ont avait par pour pas plus que qui quoi dont avec sans sur sous dans entre vers chez
		mais donc car aux ces cet cette son ses leur leurs nos notre vos votre mes mon ton elle elles ils nous vous lui eux
		être avoir fait faire tout tous toute toutes très aussi bien comme même encore alors ainsi peut peu après avant
		depuis pendant lors selon où quand comment cela ceci celui celle ceux était été n'est c'est qu'il d'une d'un`,
	"spa": `los las una unos unas del con por para que qué como más pero sus este esta estos estas ese esa esos eso esto
		está están fue fueron ser son era eran han había hay sin sobre entre hasta desde cuando donde quien muy también ya
		nos les ella ellos ellas todo todos toda todas otro otra otros otras porque según durante tras ante bajo tiene tienen
		puede pueden hacer cada mismo misma nosotros usted`,
	"ita": `gli una uno del della dello dei degli delle nel nella nei nelle dal dalla dai dalle sul sulla sui sulle con per
		tra fra che chi cui non più come anche sono era erano essere stato stata stati state hanno aveva questo questa questi
		queste quello quella quelli quelle suo sua suoi sue loro noi voi lui lei ogni tutto tutti tutta tutte dopo prima
		quando dove perché così molto poi già ancora solo`,
	"por": `uma uns umas dos das nos nas pelo pela pelos pelas com por para que não mais como mas foi foram ser são era eram
		está estão tem têm tinha seu sua seus suas ele ela eles elas este esta estes estas esse essa isso isto aquele aquela
		muito também já entre sobre até desde quando onde quem todo todos toda todas outro outra outros outras porque sem
		depois antes ainda mesmo cada você nós`,
	"nld": `het een van voor met zijn was waren wordt worden werd werden heeft hebben had niet ook maar nog wel naar door over
		bij uit aan als dan dat die dit deze wat wie waar hoe hier daar meer veel geen kan kunnen zal zullen moet moeten hun
		haar hem zij wij jullie ons onze mijn jouw uw tot tegen tussen onder zonder omdat toen want alle alles`,
	"rus": `это как что так его она они оно был была было были быть для или если уже при еще ещё нет без под над про через
		между после перед чтобы когда где кто чем тем том того этого этой этот эта эти все всё всех всего также только более
		может могут можно нужно очень которые который которая которое которых наш ваш мой твой свой своих них ним ней нас вас
		вам нам ему есть ведь вот даже лишь`,
	"pol": `jest nie się że jak ale czy dla był była było były być oraz lub już przez przy pod nad bez między przed kiedy gdzie
		kto który która które których tego tej ten tym tych jego jej ich nas was nam może można tylko także bardzo więcej
		jeszcze tak aby żeby`,
	"swe": `och att det som för med den har inte var kan till från men ett han hon dem sin sina sitt vid efter över under mellan
		när där här hur vad vem också bara mycket mer mest alla allt denna detta dessa blev bli blir varit vara ska skulle eller`,
	"dan": `det den der som for med har ikke var kan til fra men han hun dem sin sine sit ved efter over under mellem når hvor
		her hvad hvem også kun meget mere mest alle alt denne dette disse blev blive bliver været være skal skulle eller`,
	"nor": `det den som for med har ikke var kan til fra men han hun dem sin sine sitt ved etter over under mellom når hvor her
		hva hvem også bare mye mer mest alle alt denne dette disse ble bli blir vært være skal skulle eller`,
	"tur": `bir bu ve ile için olan olarak daha çok gibi kadar ama fakat veya ancak sonra önce her hiç ben sen biz siz onlar
		onun bunun şey var yok değil ise mi ne nasıl neden nerede kim hangi tüm bütün en`,
	"ind": `yang dan dari untuk dengan pada adalah ini itu dalam tidak akan juga oleh sebagai karena atau telah dapat lebih
		sudah bisa ada saat ketika seperti mereka kami kita saya anda dia ia para bahwa namun tetapi secara antara hanya`,
	"ces": `je že se na jako ale pro byl byla bylo byli být jsou není nebo již při pod nad bez mezi před když kde kdo který která
		které kterých toho této ten tím těch jeho její jejich může lze jen také velmi více ještě tak aby`,
	"vie": `của các những và là có cho không được trong với một này khi đã cũng như người từ đến sẽ tại vào theo về trên để
		nhiều nhưng hay hoặc`,
	"ron": `este sunt era care din pentru cu la pe de un una unei unui lor lui sau dar mai mult foarte doar fost fi avea are au
		când unde cine cum acest această aceste acești acel acea prin după înainte între fără despre`,
	"ell": `και του της των τον την στο στη στην στον στα που από για είναι ήταν δεν μην ένα μια ένας αυτό αυτή αυτός αλλά όπως
		όταν πολύ πιο μόνο επίσης`,
	"ukr": `це як що так його вона вони було був була були бути для або якщо вже при ще без під над про через між після перед щоб
		коли хто цього цей ця ці все всіх також тільки більше може можна дуже який яка яке які`,
}
