package text

// stopListsEast are those of Slavic, Baltic, Uralic and Turkic languages and of the Caucasus.
var stopListsEast = map[string]*stopList{
	"rus": {words: `и а но или да в во на с со к ко о об от до из за по у при для без под над про через между после перед это как что так
		его её ее она он они оно был была было были быть есть будет будут если уже еще ещё нет не ни чтобы когда где кто чем тем
		том того этого этой этот эта эти этом этих все всё всех всего всем также тоже только более может могут можно нужно очень
		которые который которая которое которых которой котором наш ваш мой твой свой свою своих своей них ним ней нас вас вам
		нам ему ей им их мы вы я ты бы же ли вот ведь даже лишь то там тут здесь сейчас потом поэтому однако чего себя
		себе сам сама сами самый куда`},
	"ukr": {words: `і й та а але або чи в у на з із зі до від о об по за при для без під над про через між після перед це як що так його
		її вони він вона воно було був була були бути є буде будуть якщо вже ще не ні щоб коли де хто цього цей ця ці цьому все
		всіх всього також теж тільки більше може можуть можна дуже який яка яке які яких якого якій них ним ній нас вас вам нам
		йому їй їм їх ми ви я ти б би же ось навіть лише то там тут тепер потім тому однак чого себе собі свій свою своїх`},
	"bel": {words: `і й а але ці або ў у на з са да ад аб па за пры для без пад над пра праз між пасля перад гэта як што так яго яе яны ён
		яна яно было быў была былі быць ёсць будзе калі ужо яшчэ не ні каб дзе хто чым тым таго гэтага гэты гэтая гэтыя усё усіх
		таксама толькі больш можа вельмі які якая якое якія якіх нас вас вам нам яму іх мы вы я ты бы ж вось нават свой сваю
		сваіх`},
	"bul": {words: `и а но или да в във на с със към за от до по при без под над през между след пред това как какво така той тя то те беше
		бяха бил била било били бъде съм е са си сме сте ще ако вече още не ни кога къде кой коя кое които която което който чий
		тези този тази онзи всички всичко всеки също само повече може могат трябва много му му ѝ й им го я ги нас вас вам ние вие
		аз ти се че ли би че тук там сега тогава обаче дори един една едно`},
	"mkd": {words: `и а но или да во на со кон за од до по при без под над преку меѓу после пред ова како што така тој таа тоа тие беше беа
		бил била било биле биде сум е се сме сте ќе ако веќе уште не ни кога каде кој која кое кои овие овој оваа оној сите сè секој
		исто само повеќе може треба многу му ѝ им го ја ги нас вас ние вие јас ти дека ли би тука таму сега еден една едно`},
	"srp": {words: `и а али или да у на са с к ка за од до по при без под над кроз између после пре ово како што шта тако он она оно они је су
		био била било били бити сам смо сте ће ако већ још не ни када где ко који која које којих овај ова ове онај тај та то те
		све сви свих такође само више може треба врло му јој им га је их нас вас ми ви ја ти се би овде тамо сада један једна једно
		i a ali ili da u na sa s k ka za od do po pri bez pod nad kroz između posle pre ovo kako što šta tako on ona ono oni je su
		bio bila bilo bili biti sam smo ste će ako već još ne ni kada gde ko koji koja koje kojih ovaj ova ove onaj taj ta to te sve
		svi svih takođe samo više može treba vrlo mu joj im ga ih nas vas mi vi ja ti se bi ovde tamo sada jedan jedna jedno`},
	"hrv": {words: `i a ali ili da u na sa s k ka za od do po pri bez pod nad kroz između nakon poslije prije ovo kako što tko tako on ona ono
		oni je su bio bila bilo bili biti sam smo ste će ako već još ne ni kada kad gdje koji koja koje kojih kojem kojoj ovaj ova
		ove onaj taj ta to te sve svi svih također samo više može mogu treba vrlo mu joj im ga ih nas vas mi vi ja ti se bi ovdje
		tamo sada jedan jedna jedno nije nisu svoj svoje ali zbog dok oko`},
	"slv": {words: `in a ali pa da v na s z k h za od do po pri brez pod nad skozi med pred to kako kaj tako on ona ono oni je so bil bila bilo
		bili biti sem smo ste bo bodo bi če že še ne ni niso kdaj kje kdo ki kateri katera katere ta te ti tega vse vsi vseh tudi samo
		več lahko zelo mu jim ga jih nas vas mi vi jaz se si tukaj tam zdaj en ena eno ker ko kot iz o ob saj`},
	"ces": {words: `a i aby aj ale ani asi až být bez bude budou by byl byla byli bylo byly co což či další do ho i já jak jako je jeho jej její
		jejich jen ještě ji jiné již jsem jsme jsou jste k kam kde kdo když ke která které kteří kterou který kterých kterým ku má
		mají mé mezi mi mít můj může mů my na nad nám náš ne nebo nej než nic není o od on ona oni ono pak po pod podle pokud pouze
		pro proč proto protože před přes při s se si sice svá své svůj ta tak také tato te tedy ten tento těch tím to toho tohoto
		tomto tuto ty tyto u už v váš ve vám více však všechny z za zda zde ze že lze velmi`},
	"slk": {words: `a aj ak ako ale alebo ani áno asi až bez bol bola boli bolo bude budú by byť cez čo či ďalšie do ho i iba ich im ja je jeho
		jej ju k kam kde kedy keď kto ktorá ktoré ktorí ktorý ktorých ktorou ku lebo len má majú medzi mi môj môže mu my na nad
		nám náš ne nie nič než o od on ona oni ono po pod podľa pre prečo preto pretože pred pri s sa si so som sme ste sú svoj svoje
		ta tak takže táto tento tej ten ten to toho tom tú ty tým u už v váš vám vo viac však všetko všetky z za zo že veľmi tiež
		ešte`},
	"pol": {words: `a aby ale albo ani bardzo bez bo by był była było były być będzie będą chce ci co czy dla do dlaczego gdy gdzie go i ich ile
		im inne iż ja jak jako jakie je jednak jednym jego jej jemu jest jestem jeszcze jeśli już kiedy kto która które którego
		której którzy który których którym lub ma mają mi między mnie może można mu my na nad nam nas nasz nie nich nim nią niż no o
		od on ona one oni oraz po pod podczas ponieważ przed przez przy są się sobie swoje swojej ta tak także tam te tego tej ten to
		tu ty tych tylko tym u w we więc więcej wszystko wszystkie wy z za zawsze ze że żeby został została zostały`},
	"lit": {words: `ir ar bet o kad kaip kai jei jeigu į iš su be prie po per už nuo iki apie dėl tarp ant pagal yra buvo būti bus nėra ne jis ji
		jie jos jo jų aš tu mes jūs mano tavo mūsų jūsų savo tai tas ta tie tos šis ši šie šios kas kur kada kuris kuri kurie kurios
		kurį taip pat tik dar jau labai daugiau visi viskas visų kiti kitų gali todėl nes`},
	"lav": {words: `un vai bet ka kā kad ja no ar bez pie pēc par uz līdz starp zem virs caur ir bija būt būs nav ne viņš viņa viņi viņas es tu
		mēs jūs mans tavs mūsu jūsu savu tas tā tie tās šis šī šie šīs kas kur kurš kura kuri kuras arī tikai vēl jau ļoti vairāk
		visi visu viss citi citu var jo lai tad tātad pat gan`},
	"est": {words: `ja või aga kui et ei on oli olid olla oleks ole pole see need selle nende seda ta tema nad nende ma mina sa sina me meie te
		teie oma mis kes kus millal kuidas miks mida kelle ka veel juba väga rohkem kõik kõiki muu teised võib saab pärast enne
		vahel ilma kuni alates üle alla järgi kohta nii siis ning sest nagu ühe üks kaks`},
	"fin": {words: `ja tai mutta sekä että kun jos niin kuin on oli olivat olla ovat ole ollut olisi ei eivät en et emme se ne sen niiden sitä niitä
		hän he hänen heidän minä sinä me te minun sinun meidän teidän tämä nämä tämän näiden tätä tuo nuo joka jotka jonka joiden
		jota joita mikä mitä kuka missä mistä milloin miten miksi myös vielä jo hyvin enemmän kaikki kaikkien muut muita voi voivat
		jälkeen ennen välillä ilman asti alle yli mukaan kanssa vain siis koska eli yksi kaksi oma`},
	"hun": {words: `a az és vagy de hogy ha is nem egy ez ezt ezek azt azok van volt voltak lesz lenne lehet kell meg el be ki le fel át össze mint
		mert csak már még nagyon több minden mindent ő ők én te mi ti nekem neki nekik aki akik ami amely amelyek amit akit ahol amikor
		hol mikor hogyan miért ki mit után előtt között nélkül alatt felett szerint által során pedig így úgy itt ott most majd
		azonban valamint illetve saját ezért`},
	"tur": {words: `bir bu ve ile için olan olarak daha çok gibi kadar ama fakat veya ancak sonra önce her hiç ben sen o biz siz onlar onun bunun
		şey var yok değil ise mi mı mu mü ne nasıl neden nerede kim hangi tüm bütün en da de ki ya diye göre karşı dolayı oldu olduğu
		olduğunu olur eden edilen ederek tarafından bunu onu şu böyle şöyle iki bazı birçok`},
	"aze": {words: `bir bu və ilə üçün olan olaraq daha çox kimi qədər amma lakin və ya yaxud ancaq sonra əvvəl hər heç mən sən o biz siz onlar onun
		bunun var yox deyil isə nə necə harada kim hansı bütün ən da də ki görə olub olduğu edən edir bəzi`},
	"kaz": {words: `бір бұл және мен пен бен үшін болып болған болады деп осы сол ол олар біз сіз мен сен оның бар жоқ емес не қалай қайда кім қандай
		барлық өте көп де да та те туралы бойынша кейін дейін бірақ немесе ғана`},
	"uzb": {words: `va bir bu uchun bilan ham edi ekan bo'lgan bo'lib esa yoki lekin ammo har shu u ular biz siz men sen uning ularning bor yo'q emas
		nima qanday qayerda kim qaysi barcha eng juda ko'p deb haqida keyin`},
	"hye": {words: `և ու կամ բայց որ է են էր էին եմ ես ենք եք չի չէ այս այդ այն նա նրա նրանք մենք դուք իմ քո մեր ձեր իր իրենց ինչ ով որտեղ երբ
		ինչպես ինչու նաև միայն ավելի շատ բոլոր հետ համար մասին մեջ վրա առանց մինչև հետո պետք կարող`},
	"kat": {words: `და ან მაგრამ რომ არის არიან იყო იყვნენ იქნება არ არა ეს ის ისინი მე შენ ჩვენ თქვენ მისი მათი ჩემი ჩვენი რა ვინ სად როდის როგორ
		რატომ რომელიც რომლის ასევე მხოლოდ უფრო ძალიან ყველა შესახებ შემდეგ მიერ თუ კი უნდა შეიძლება ერთი`},
}
