package text

// tellWords are words that nearly every sentence of a language has one of, by the
// ISO-639-3 code of the language. The shorter and the commoner, the better; what two
// near languages write differently is there of each (Danish "ikke af hvad", Norwegian
// "ikke av hva"). A word of several languages counts for each of them, the less the
// more they are.
var tellWords = map[string]string{
	// Latin script
	"eng": "the of and to in is that for it with as was on are be this by not you or from at have an which can if will your all but",
	"deu": "der die und in den von zu das mit sich des auf für ist im dem nicht ein eine als auch es an werden aus er hat dass sie nach wird bei einer um am sind noch wie einem über einen so zum oder kann wenn sie durch",
	"fra": "de la le et les des en un du une que est pour qui dans par plus pas au sur ne se ce il sont avec ou son aux cette être à vous ces mais comme nous sa été si peut tout",
	"spa": "de la que el en y los se del las un por con no una su para es al lo como más o pero sus le ha este si ya esta son cuando muy sin sobre ser también hay puede todos así",
	"por": "de a o que e do da em um para é com não uma os no se na por mais as dos como mas ao ele das à seu sua ou ser quando muito nos já também só pelo pela até isso são você está pode",
	"glg": "de a o que e do da en un para é con non unha os no se na por máis as dos como mais ao el das á seu súa ou ser cando moi nos xa tamén só polo pola ata iso son ten está pode unhas dun dunha lle esta este nun nunha estes hai cada",
	"cat": "de la el i que en a els per les un del una és amb no es al dels més com si o però aquest aquesta són ha va seu ser pot també fins quan on molt hi li aquests això sense cada entre tot d'un l'ha",
	"oci": "de la lo e que los en per un las dels una es amb pas al se son aquesta aqueste del dins mas coma sus mai tanben aver èsser an podètz vòstre aquò",
	"ita": "di e il la che in a per un è del non una i le con si da della sono al come nel più dei anche lo alla delle gli ha ma o se su essere questo nella può dal stato cui molto ci quando questa",
	"ron": "de și a în la cu pe este nu din care un o că pentru se mai sau fi sunt al ale prin ca unui unei fost lui dar acest această după poate aceste sa ei să cele",
	"nld": "de van het een en in is dat op te zijn met voor niet aan er om ook als dan maar bij nog uit of naar wordt door over ze worden deze die was heeft geen u kan je hij meer wat moet",
	"afr": "die van en in is het dat 'n te nie met wat op vir hy sy aan word was as om of deur kan sal hierdie ook uit ek u kon moet maar daar by wees hulle",
	"swe": "och i att det som en på är av för med till den har de inte om ett han men var jag sig från vi så kan man när år under också efter eller nu sin där vid ska finns kommer denna du detta vara mot inte något nu upp gör mellan både utan flera dessa egen medan om skulle använda används eftersom själv sig mot sedan första två ut in över varje heller",
	"dan": "og i at det er en til af på for med den de som der ikke et har om var sig jeg han men kan fra vi så eller når blev ved efter også hvis skal være denne dette hvor du mod hvad kun meget nogle bliver af nogen noget nu op gør mellem både uden flere disse egen mens skulle bruge bruges fordi selv sig mod siden første to ud ind over køre hver heller såfremt blive kunne skulle ville hos vælg også nedenfor afsnit",
	"nor": "og i det er en til av på for med den de som at ikke et har om var seg jeg han men kan fra vi så eller når ble ved etter også hvis skal være denne dette hvor du mot hva kun mye noen blir vil å ei ikkje eg eit frå ein noe nå opp gjør mellom både uten flere disse egen mens hvis skulle bruke brukes fordi selv seg mot siden første to ut inn over kjøre hver heller dersom",
	"isl": "og að í á er sem til það við um en með af var ekki fyrir hann eru þar því þetta frá hefur eða vera þess sé ég upp þú henni hún voru ef",
	"fin": "ja on ei että se en hän mutta ovat oli kun mitä niin kuin joka tai ole voi myös jos sen mukaan vain nyt jotka sitä tämä olla sekä ollut ne tämän hänen siitä kanssa kaikki jo voidaan näin",
	"est": "ja on ei et see ka oma kui aga mis oli ta ning või siis mida ma nii selle veel kes välja üks nagu saab ole sest olid üle tema pole kõik seda mitte on saa võib",
	"hun": "a az és hogy nem is egy ez meg de csak van mint vagy már el volt ha még azt ki be kell amely lehet ezt minden fel az után ezek lesz olyan mert több ami majd pedig",
	"pol": "w i na z się nie do jest to że o za jak od po przez co dla ale są oraz ma lub tym jego tylko być może czy który które ze już był tego która przy pod jeśli można także ich",
	"ces": "a v se na je že s z o do to i pro za jako by jsou ale od po který nebo jeho které k tak už ve si jen podle být může byl také než při kde pokud která před však není jsem této až prosím tento tato toto kterých všechny nebyl nebylo pouze také její jejich vám váš jsme jste nebo ještě když může chyba některé lze",
	"slk": "a v sa na je že s z o do to i pre za ako by sú ale od po ktorý alebo jeho ktoré k tak už vo si len podľa byť môže bol tiež než pri kde ak ktorá pred však nie je som tejto až ktorú ich čo bola prosím tento táto toto ktorých všetky nebol nebolo iba aj jeho ich vám váš sme ste alebo ešte keď kedy môže chyba niektoré",
	"slv": "in je v na se za da so z pa ki bi ne pri s od kot po ali tudi že iz do lahko ni ter o med bo sem če še k tem zaradi pred vse ima bil bila tega samo kako vam vaš med",
	"hrv": "i je u se na da za su od s koji a ne to koja o kao iz ili što će bi samo biti sa nije te može prema ako također koje nakon zbog dok tijekom gdje tko uvjet sustav vrijeme svijet lijepo mjesto dio ukoliko molimo vas dopušten podataka mogu treba nisu neke ovaj ova ovo uspjelo",
	"srp": "i je u se na da za su od s koji a ne to koja o kao iz ili što će bi samo biti sa nije može prema ako takođe koje posle zbog dok nakon gde ko uslov sistem vreme svet lepo mesto deo ukoliko ovog vašeg greška molimo vas dozvoljen podataka mogu treba nisu neke ovaj ova ovo uspelo ovu",
	"sqi": "të e në dhe i për me një që nga është së si u do nuk ka më se ishte por kjo kanë ky mund janë pas edhe këtë prej ai tij duke kur",
	"lit": "ir yra į kad iš su ne tai kaip o buvo bet už ar jis nuo savo taip dėl apie tik po jo ji jau dar jei arba būti prie gali kurie šis kuris kurių jūsų per šio",
	"lav": "un ir ka uz no ar tas kas par vai nav to pēc arī ko bet kā ja lai tikai viņš bija šo kad var tiek jau jūs tiks nevar līdz būt šī šis pie ir kuras jums",
	"tur": "ve bir bu için ile de da olarak en daha çok gibi kadar olan sonra ne ya her o ama veya ise değil olduğu şey tarafından içinde ancak var yok ki sadece bunu üzerinde",
	"aze": "və üçün ilə kimi qədər nə hər isə deyil tərəfindən yox ki edir olur ən də bir bu daha çox olan sonra olaraq ancaq",
	"uzb": "va bir bu uchun bilan ham esa edi deb emas kerak lekin yoki bo'lgan qilish o'z uning keyin har kabi barcha",
	"ind": "yang dan di ini itu dengan untuk dari dalam tidak akan pada juga ke karena bisa ada mereka oleh adalah sebagai saya atau lebih dapat sudah telah anda kita berkas seperti jika bahwa hanya saat kami namun tersebut perangkat",
	"msa": "yang dan di ini itu dengan untuk dari dalam tidak akan pada juga ke kerana boleh ada mereka oleh adalah sebagai saya atau lebih dapat sudah telah anda kita fail seperti jika bahawa hanya semasa kami ialah tersebut kepada iaitu daripada ralat sila",
	"vie": "và của là có được cho các trong không với một người khi này để những đã từ về ra như cũng vào đến sẽ nếu hay bạn tại phải theo trên thì mà năm nhiều hoặc bởi tập tin",
	"tgl": "ang ng sa na mga at ay ito para hindi kung siya may isang nang ni pa niya mula bilang mo lang o kanyang ko dahil rin",
	"swa": "ya na wa kwa katika ni la za kuwa cha hii kama au hiyo yake lakini huu sana watu hiyo baada pia ambao bila wakati",
	"eus": "eta da bat ez du ere dira dute edo izan hau egin zuen den zen dago baina hori duen ditu bere behar beste baten batean honek daiteke nahi ditzake erabili",
	"cym": "y yn a i o ar ei mae oedd ac yr am wedi gan bod hyn fel ond fod yw cael hefyd nid un at sydd eu",
	"gle": "an na a i ar agus is le tá go de do bhí sé ag sin faoi ná atá chun nó mar ó leis nach níl",
	"epo": "la de kaj en estas al ne ke por li mi ĝi kiu kun sed pri aŭ el ili tiu ankaŭ pli oni povas estis tio sur ĉi",
	"mlt": "il li ta u ma fil għal hu minn dan biex fuq dawn hija kien jew ġie jekk din",
	// Cyrillic script
	"rus": "и в не на я с что он по это как а к но его из у за от же все так для о или при мы если чтобы был она бы также может их то быть этого только когда вы есть уже был который этот после",
	"ukr": "і в не на я з що він по це як а до але його із у за від же всі так для о або при ми якщо щоб був вона би також може їх то бути цього тільки коли ви є вже та який й цей після ця які",
	"bel": "і ў не на я з што ён па гэта як а да але яго у за ад жа ўсе так для або пры мы калі каб быў яна бы таксама можа іх то быць гэтага толькі вы ёсць ужо які гэты пасля дзе",
	"bul": "и в не на аз с че той по това как а към но го от у за се са така за или при ние ако да беше тя би също може ги то бъде този само когато вие е вече който тази след от са като до със ви във",
	"mkd": "и во не на јас со дека тој по тоа како а кон но го од у за се така или при ние ако да беше таа би исто може ги биде овој само кога вие е веќе кој оваа по се до сте што ќе",
	// Serbian in Cyrillic is srp as well; see tellCyrillicSerbian.
	"kaz": "және мен бұл үшін деп бір да де сол осы туралы болып оның ол бар жоқ егер емес керек көп",
	"mon": "байна нь ба энэ юм бол гэж бөгөөд тэр хүн болон байсан хэрэв дээр уу бас",
	// Arabic script
	"ara": "في من على أن إلى هذا التي عن مع هذه كان الذي ما لا ذلك أو بين كما لم بعد قد هو هي عند كل حيث إذا ثم و تم يمكن غير ليس",
	"fas": "در به از که این است را با آن برای یک می بر تا خود شده هم کرد یا اما شد ما نیست دارد باشد هر شود آنها دیگر کرده بود های را اگر می\u200cشود",
	"urd": "کے کی ہے میں کا اور سے کو نے یہ پر اس ہیں کہ ایک نہیں بھی تھا ان جو کر وہ تو لیے اپنے ہو",
	"pus": "د په او کې چې دا له سره هم ته یو نه دې شي دي ده کړي څخه",
	"ckb": "لە بە و کە ئەم بۆ ئەو لەگەڵ یان هەر بوو ێک دەکات نییە هەموو کرد",
	// Devanagari
	"hin": "के है में की का को और से पर कि यह हैं एक नहीं इस लिए भी कर तो ही या वह हो जो अपने था रहा किया अगर",
	"mar": "आहे आणि या च्या ते हे नाही मध्ये होते एक तो व आहेत पण तर हा करून साठी झाले केली",
	"nep": "छ र को मा लाई का यो पनि हो गर्न भएको छन् एक गरेको थियो ले तथा हुन्छ गर्नुहोस् भने",
}

// tellCyrillicSerbian are words of Serbian in Cyrillic script.
const tellCyrillicSerbian = "и је у се на да за су од с који а не то која о као из или што ће би само бити са није може према ако такође које после због док где ово овај ова"

// tellLetters are letters that few languages of their script have.
var tellLetters = map[string]string{
	"deu": "ßäöü", "fra": "çœêèàù", "spa": "ñ¿¡", "glg": "ñ", "por": "ãõç", "cat": "çŀ·àò", "ron": "ășțşţâî", "swe": "åäö", "dan": "åæø", "nor": "åæø",
	"isl": "ðþæýö", "fin": "äö", "est": "õäöü", "hun": "őűöü", "pol": "łąężźćńś", "ces": "řěůťčšž", "slk": "ľĺŕäôťčšž", "slv": "čšž",
	"hrv": "đćčšž", "srp": "đćčšžђјљњћџ", "sqi": "ëç", "lit": "ėųįūąęčšž", "lav": "ģķļņāēīūčšž", "tur": "ğışçöü", "aze": "ə",
	"vie": "đơưăạảấầẩậắằặẹẻẽếềểễệỉịọỏốồổỗộớờởỡợụủứừửữựỳỵỷỹ", "eus": "ñ", "epo": "ĉĝĥĵŝŭ", "mlt": "ħġżċ", "cym": "ŵŷ",
	"rus": "ыэё", "ukr": "їєґі", "bel": "ўіыэё", "bul": "ъщ", "mkd": "ѓќѕјљњџ", "kaz": "әғқңөұүһі", "mon": "өү",
	"fas": "پچژگکی", "urd": "ٹڈڑںےھہپچگکی", "pus": "ټډړښځڅېۍ", "ckb": "ڕڵۆێە",
}
