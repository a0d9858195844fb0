package text

// The lists of this file and of its neighbours were written for this project: function
// words in lower case as the normal form has them, with the inflections that running
// text has most. Words of one and two letters are listed for StopRatio; they are no terms
// in any case.

// stopListsWest are those of the west and south of Europe, by ISO-639-3 code.
var stopListsWest = map[string]*stopList{
	// Germanic.
	"eng": {words: `a an the and or but nor yet so if then than as of at by for from in into on onto off out over to up with within
		without about above across after again against all almost along also although among any are around be because been
		before being below between both can can't cannot could couldn't did didn't do does doesn't doing don't done down
		during each either else even ever every few further get got had hadn't has hasn't have haven't having he he's her here
		hers herself him himself his how however i i'd i'll i'm i've is isn't it it's its itself just let let's like made make
		many may me might mine more most much must my myself neither never no not now often once one one's only other others
		our ours ourselves own per perhaps quite rather said same say says see shall she she's should shouldn't since some
		such still that that's their theirs them themselves there there's these they they're they've this those though
		through thus till too toward towards two under until unless upon us use used very via was wasn't we we'll we're we've
		well were weren't what what's when where whether which while who who's whom whose why will won't would wouldn't you
		you'd you'll you're you've your yours yourself another been time want know come take where's`},
	"deu": {words: `der die das den dem des ein eine einer eines einem einen und oder aber nicht ist sind war waren wird werden wurde
		wurden worden hat haben hatte hatten habe mit von vom zum zur zu für auf aus bei beim nach über unter vor durch gegen
		ohne bis seit auch noch nur schon sehr mehr als wie wenn dass daß weil dann denn doch ich du er sie es wir ihr ihn ihm
		ihnen uns euch mich mir dich dir sich mein dein sein seine seiner seinen seinem ihre ihrer ihren ihrem unser unsere dieser
		diese dieses diesem diesen jeder jede jedes alle alles allem allen aller kann können konnte könnte muss müssen soll sollen
		sollte will wollen man was wer wo wann warum welche welcher hier dort zwischen immer wieder sowie etwa ganz damit dazu
		dabei daran darauf daraus davon da so am im in an ins ans um ob ja nein kein keine keinen keiner wäre würde würden
		gibt einige viele vielen andere anderen anderer selbst jetzt nun also zwar jedoch während wegen je`},
	"nld": {words: `de het een en of van voor met zijn was waren is wordt worden werd werden heeft hebben had hadden niet ook maar nog
		wel naar door over bij uit aan als dan dat die dit deze wat wie waar hoe hier daar er meer veel geen kan kunnen kon zal
		zullen zou zouden moet moeten hun haar hem hij zij ze wij we ik je jij jullie u uw ons onze mijn jouw tot tegen tussen
		onder zonder omdat toen want alle alles al op in om te na zich zo dus om sinds tijdens binnen buiten andere heel zeer
		welke mag mogen gaat gaan`},
	"afr": {words: `die n en of van vir met is was word het nie ook maar nog wel na deur oor by uit aan as dan dat dit hierdie daardie wat
		wie waar hoe hier daar meer baie geen kan sal sou moet hulle haar hom hy sy ons jy jou julle u my sonder omdat toen want
		alle alles op in om te tot teen tussen onder so dus sy se wees gaan`},
	"swe": {words: `och att det som för med den de har inte var är kan till från men ett en han hon dem sin sina sitt vid efter över under
		mellan när där här hur vad vem också bara mycket mer mest alla allt denna detta dessa blev bli blir varit vara ska
		skulle eller om på av i så jag du vi ni oss er mig dig sig hans hennes deras vår vårt våra din ditt dina min mitt
		mina än nu då även utan mot genom in ut upp ner hade få får fick man några någon något andra samt kunde måste vill`},
	"dan": {words: `og at det den der de som for med har ikke var er kan til fra men et en han hun dem sin sine sit ved efter over under
		mellem når hvor her hvad hvem også kun meget mere mest alle alt denne dette disse blev blive bliver været være skal
		skulle eller om på af i så jeg du vi os jer mig dig sig hans hendes deres vores din dit dine min mit mine end nu da
		uden mod gennem ind ud op ned havde få får fik man nogle nogen noget andre samt kunne måtte vil ville`},
	"nor": {words: `og at det den der de som for med har ikke var er kan til fra men et en ei han hun dem sin sine sitt ved etter over under
		mellom når hvor her hva hvem også bare mye mer mest alle alt denne dette disse ble bli blir vært være skal skulle eller
		om på av i så jeg du vi dere oss meg deg seg hans hennes deres vår vårt våre din ditt dine min mitt mine enn nå da uten
		mot gjennom inn ut opp ned hadde få får fikk man noen noe andre samt kunne måtte vil ville ikkje eg og ein eit`},
	"isl": {words: `og að það sem er var fyrir með af í á um til frá en ekki við hann hún þeir þær þau þess þeirra sér sig sinn sína
		sínum eru voru vera hefur hafa hafði hafi verið verður eftir yfir undir þegar hvar hér þar hvað hver einnig líka
		bara mjög meira allt allir þessi þetta þessa þessum eða ef svo ég þú við þið mig þig okkur minn þinn upp út inn úr
		hjá án milli geta getur skal mun munu nú þá þó`},

	// Romance.
	"fra": {elided: `l d j m t s n c qu jusqu lorsqu puisqu quoiqu`,
		words: `le la les l de du des d un une et ou mais où donc or ni car est sont était étaient été être a ont avait avaient avoir
		ai as au aux à en y ne n pas plus par pour que qui quoi dont qu avec sans sur sous dans entre vers chez ces cet cette ce
		c son sa ses leur leurs notre nos votre vos mon ma mes ton ta tes je tu il elle on nous vous ils elles me te se lui eux
		moi toi soi fait faire font tout tous toute toutes très aussi bien comme même mêmes encore alors ainsi peut peuvent peu
		après avant depuis pendant lors lorsque selon quand comment pourquoi cela ceci ça celui celle ceux celles n'est c'est
		qu'il d'une d'un s'est j'ai si non sera seront serait soit sont afin puis trop chaque autre autres quelques quel quelle
		quels quelles déjà ici là fut deux`},
	"ita": {elided: `l un d c s dell nell all dall sull quell quest dov com`,
		words: `il lo la i gli le un uno una e ed o ma se di a da in con su per tra fra del dello della dei degli delle nel nello nella
		nei negli nelle dal dallo dalla dai dagli dalle sul sullo sulla sui sugli sulle al allo alla ai agli alle che chi cui non
		più come anche è sono era erano essere stato stata stati state ha hanno ho aveva avevano avere questo questa questi queste
		quello quella quelli quelle suo sua suoi sue loro mio mia tuo tua nostro nostra vostro io tu lui lei noi voi essi mi ti ci
		vi si ne li ogni tutto tutti tutta tutte dopo prima quando dove perché così molto poi già ancora solo sempre senza dalla
		fa fare può possono deve sia però quindi mentre ci gli stesso altri altre altro due poco c'è dell'`},
	"spa": {words: `el la los las lo un una unos unas y e o u de del a al en con por para que qué como cómo más pero sus su este esta
		estos estas ese esa esos eso esto aquel aquella es está están estaba fue fueron ser son era eran sido siendo ha han había
		habían hay he sin sobre entre hasta desde cuando donde quien quienes muy también ya no ni si sí se le les me te nos os lo
		yo tú él ella ellos ellas usted ustedes nosotros mi mis tu tus todo todos toda todas otro otra otros otras porque según
		durante tras ante bajo contra tiene tienen tenía puede pueden hacer hace cada mismo misma solo sólo así aunque mientras
		entonces después antes donde cual cuales algo nada mucho muchos poco tan tanto dos además`},
	"por": {words: `o a os as um uma uns umas e ou de do da dos das em no na nos nas por pelo pela pelos pelas com para ao à aos às que não
		mais como mas se foi foram ser são é era eram está estão estava tem têm tinha ter há seu sua seus suas meu minha teu tua
		nosso nossa ele ela eles elas eu tu nós vós você vocês me te lhe lhes este esta estes estas esse essa esses essas isso
		isto aquele aquela muito também já entre sobre até desde quando onde quem qual quais todo todos toda todas outro outra
		outros outras porque sem depois antes ainda mesmo mesma cada pode podem só apenas assim então durante contra sob após
		num numa dele dela fazer faz bem dois duas vai`},
	"cat": {elided: `l d m t s n`,
		words: `el la els les lo un una uns unes i o de del dels d a al als en amb per que què com més però si no és són era eren ser
		estat ha han havia haver hi es seu seva seus seves aquest aquesta aquests aquestes aquell aquella això allò qui quan on
		també ja entre sobre fins des sense molt tot tots tota totes altre altra altres perquè segons durant després abans pot
		poden fer ell ella ells elles jo tu nosaltres vosaltres em et ens us li cada mateix només així sota va van pel pels`},
	"glg": {words: `o a os as un unha uns unhas e ou de do da dos das en no na nos nas por polo pola polos polas con para ao á aos ás que non
		máis como pero se foi foron ser son é era eran está están estaba ten teñen tiña ter hai seu súa seus súas el ela eles elas
		eu ti nós vós este esta estes estas ese esa iso isto aquel moi tamén xa entre sobre ata desde cando onde quen todo todos
		toda todas outro outra outros outras porque sen despois antes aínda mesmo cada pode poden só así lle lles`},
	"ron": {words: `și si sau dar iar de la în in pe cu din prin pentru ca că să nu mai un o unei unui unor este sunt era erau fi fost a au
		ai am are avea aveau al ale cel cea cei cele care ce cine cum când unde lui lor lei sa său sau săi sale ei el ea ele eu tu
		noi voi se îi îl îmi își acest această aceste acești acestui acel acea acei acela după înainte între fără despre până
		decât doar foarte mult multe mulți tot toate toți fiecare alt alte alți poate pot face dacă deși astfel atunci aici
		acolo sub spre însă nici prea două doi`},
	"lat": {words: `et in est non ad ut cum ab ex de per pro sed si quod qui quae quem quo qua quid hic haec hoc ille illa illud ipse is ea id
		eius eum eam eo sunt esse fuit erat erant ac atque aut vel enim autem nam tamen iam nec neque sine sub inter ante post
		apud ob nunc tum ubi quia dum etiam quoque se sibi suum suam nos vos ego tu me te`},

	// Celtic, Basque, Albanian, Greek, Maltese, Esperanto.
	"gle": {words: `an na agus nó ach ar ag le do de i in sa san as ó go chun faoi gan idir trí roimh mar is ní nach bhí tá atá raibh
		beidh bheith sé sí siad mé tú muid sinn sibh a an seo sin siúd gach eile é í iad cad cé conas nuair má dá ina leis léi leo
		aige aici acu ann air orthu`},
	"cym": {words: `y yr a ac neu ond o i yn ar gan gyda am at dan dros drwy er heb mewn wrth hyd mae yw oedd bydd fod wedi nid ni na nad
		fe mi ei eu ein eich fy dy hi ef hwn hon hyn honno hynny sydd sy pan lle beth pwy sut pob rhai arall hefyd iawn fel os`},
	"eus": {words: `eta edo baina ez da dira zen ziren izan du dute zuen zuten dago daude bat batzuk hau hori hura hauek horiek haiek bere
		beren nire zure gure zuen ere oso bezala baino guztiak dena nola non noiz zer nor zein eta gero arte gabe aurka buruz
		artean egin egiten dela den dituen diren baita beste bai hala`},
	"sqi": {words: `dhe ose por në me nga për mbi nën pa ndër te tek i e të së një ky kjo këta këto ai ajo ata ato është janë ishte ishin ka
		kanë kishte do të që si kur ku kush çfarë pse nuk mos edhe më shumë vetëm gjithë tyre tij saj unë ti ne ju u se sa pas para
		deri ndaj duke qenë mund duhet`},
	"ell": {words: `και ή ο η το οι τα του της των τον την τη στο στη στην στον στα στους στις από για με σε προς χωρίς κατά μετά πριν είναι
		ήταν έχει έχουν είχε να θα δεν μην ένα μια ένας μία αυτό αυτή αυτός αυτά αυτές αυτοί που πως πώς ότι τι ποιος ποια αλλά
		όμως όπως όταν αν πολύ πιο μόνο επίσης εδώ εκεί εγώ εσύ εμείς εσείς μου σου μας σας τους τις κάθε όλα όλοι όλες άλλο
		άλλα άλλη γιατί ώστε μέσα έξω πάνω κάτω δύο ως ενώ`},
	"mlt": {words: `u jew imma li il l ta tal tas tat biex minn mill ma mal fi fil għal għall dwar bejn qabel wara kif meta fejn min x'hux mhux
		hu hi huma aħna intom jien int dan din dawn dak dik dawk kien kienet kienu hija huwa se ser kollha kull ukoll aktar iktar
		ħafna biss`},
	"epo": {words: `la kaj aŭ sed de da en el al por per kun sen sur sub super inter antaŭ post ĝis ĉe pri estas estis estos esti ne ke kiu kiuj
		kio kie kiam kiel kial ĉu ĉi tiu tiuj tio tie tiam mi vi li ŝi ĝi ni ili oni sia mia via lia ilia pli plej tre ankaŭ nur
		jam nun ĉiuj ĉiu`},
}
