package text

// stopListsWorld are those of Asia, Africa and the Pacific.
var stopListsWorld = map[string]*stopList{
	// Semitic.
	"ara": {words: `في من على إلى الى عن مع هذا هذه ذلك تلك التي الذي الذين اللذين ما لا لم لن أن ان إن كان كانت كانوا يكون تكون قد هو هي هم هن
		نحن أنا أنت كل بعض غير بين بعد قبل عند حتى حيث كما أو او ثم أي و ف ب ل وهو وهي ولا وقد ولم وفي ومن وكان وأن عليه عليها له لها
		لهم به بها فيه فيها منه منها إذا لكن لأن منذ خلال أيضا ليس أما كيف متى أين ماذا لماذا`},
	"heb": {words: `של את על עם אל מן הוא היא הם הן אני אתה אנחנו זה זו זאת אלה אלו כי אם לא כן גם רק עוד כל יותר מאוד היה היתה הייתה היו יהיה
		אשר ש או אבל כמו בין אחרי לפני עד תחת בלי איך מה מי איפה מתי למה יש אין לו לה להם שלו שלה שלהם שלי שלנו אותו אותה אותם
		בו בה ידי כך כאשר כדי לאחר אך אף`},
	"amh": {words: `እና ወይም ግን ነው ናቸው ነበር ነበሩ ይህ ይህን ያ እነዚህ እሱ እሷ እነሱ እኔ አንተ እኛ ላይ ውስጥ ጋር ወደ ስለ ከ በ ለ እንደ ሁሉ ብቻ በጣም ምን ማን የት መቼ እንዴት`},

	// Iranian, Indic, Dravidian.
	"fas": {words: `و در به از که این آن را با برای است بود بودند شد شده شود هم یک تا بر یا اما نیز هر اگر نه ما شما او آنها من تو
		خود باید کرد کرده کند کردن دارد دارند داشت هست نیست چه چرا کجا چگونه پس پیش بین روی زیر همه بسیار بیشتر دیگر
		ها های ای` +
		" می\u200cشود آن\u200cها می\u200cکند"},
	"kur": {words: `û an lê ji di de bi bo li ku ev ew wê wî wan em hûn ez tu ye ne bû bûn hat dike dikin jî her hemû gelek tenê ber ser piştî nav`},
	"pus": {words: `او یا خو په د له ته چې دا دغه هغه هغوی موږ تاسو زه ته دی ده دي وو وه شي کړي کوي هم هر نه سره پر لپاره`},
	"urd": {words: `اور یا مگر لیکن کے کا کی کو میں سے پر نے یہ وہ ہے ہیں تھا تھے تھی ہو ہوا ہوئے گا گی گے کہ جو جس جن اس ان ہم آپ میں تم بھی ہی
		نہیں کیا کون کہاں کب کیسے کیوں تک ساتھ لیے بعد پہلے بہت زیادہ سب ایک کر کرنے دیا کیا اپنے اپنی`},
	"hin": {words: `और या लेकिन पर के का की को में से ने यह वह ये वे है हैं था थे थी हो हुआ हुए हुई होता होती गा गी गे कि जो जिस जिन इस इन उस उन हम
		आप मैं तुम भी ही नहीं न क्या कौन कहाँ कहां कब कैसे क्यों तक साथ लिए बाद पहले बहुत अधिक सब एक कर करने करते किया गया गई
		दिया अपने अपनी तो जब तथा एवं द्वारा वाले`},
	"mar": {words: `आणि किंवा पण परंतु चा ची चे च्या ला ने मध्ये हा ही हे तो ती ते आहे आहेत होता होती होते की जो जी जे या त्या आम्ही तुम्ही मी तू
		सुद्धा नाही काय कोण कुठे केव्हा कसे का पर्यंत साठी नंतर पूर्वी खूप सर्व एक करून केले केली त्यांच्या त्याच्या`},
	"nep": {words: `र वा तर पनि को का की लाई ले मा बाट यो त्यो यी ती छ छन् थियो थिए हो हुन् भएको गरेको गर्न कि जो जुन हामी तपाईं म तिमी होइन के को
		कहाँ कहिले कसरी किन सम्म साथ लागि पछि अघि धेरै सबै एक`},
	"ben": {words: `এবং ও বা কিন্তু এর এই সেই এ সে তা তার তাদের তিনি তারা আমি আমরা তুমি আপনি আমার আমাদের ছিল ছিলেন আছে হয় হয়েছে হবে করে করা
		করেন করেছে যে যা যার না নয় কি কে কোথায় কখন কেন কিভাবে থেকে জন্য সঙ্গে সাথে পরে আগে মধ্যে উপর দিয়ে সব অনেক একটি এক তবে`},
	"guj": {words: `અને કે પણ પરંતુ ના ની નું નો ને માં થી એ આ તે છે હતા હતી હતું હતો હોય જે તેના તેની તેમના અમે તમે હું તું નથી શું કોણ ક્યાં ક્યારે
		કેમ સુધી સાથે માટે પછી પહેલા ખૂબ બધા એક કરી કરવા`},
	"pan": {words: `ਅਤੇ ਜਾਂ ਪਰ ਦਾ ਦੇ ਦੀ ਨੂੰ ਵਿੱਚ ਵਿਚ ਤੋਂ ਨੇ ਇਹ ਉਹ ਹੈ ਹਨ ਸੀ ਸਨ ਹੋ ਕਿ ਜੋ ਇਸ ਉਸ ਅਸੀਂ ਤੁਸੀਂ ਮੈਂ ਵੀ ਹੀ ਨਹੀਂ ਕੀ ਕੌਣ ਕਿੱਥੇ ਤੱਕ ਨਾਲ ਲਈ
		ਬਾਅਦ ਬਹੁਤ ਸਭ ਇੱਕ ਕਰ`},
	"tam": {words: `மற்றும் அல்லது ஆனால் ஒரு இந்த அந்த இது அது இவை அவை அவர் அவர்கள் நான் நாம் நீ நீங்கள் என் தன் என்று என்ற என உள்ள உள்ளது இருந்து
		இருந்தது இல்லை ஆகும் எனவே என்ன யார் எங்கே எப்போது எப்படி ஏன் வரை உடன் பின்னர் பின் முன் மிகவும் அனைத்து கூட மேலும் மட்டும்`},
	"tel": {words: `మరియు లేదా కానీ ఒక ఈ ఆ ఇది అది ఇవి అవి అతను ఆమె వారు నేను మేము నీవు మీరు నా మా అని ఉంది ఉన్నాయి ఉన్న కాదు లేదు ఏమి ఎవరు ఎక్కడ
		ఎప్పుడు ఎలా ఎందుకు వరకు తో నుండి తరువాత ముందు చాలా అన్ని కూడా కోసం ద్వారా`},
	"kan": {words: `ಮತ್ತು ಅಥವಾ ಆದರೆ ಒಂದು ಈ ಆ ಇದು ಅದು ಇವು ಅವು ಅವನು ಅವಳು ಅವರು ನಾನು ನಾವು ನೀನು ನೀವು ನನ್ನ ನಮ್ಮ ಎಂದು ಎಂಬ ಇದೆ ಇವೆ ಇದ್ದ ಅಲ್ಲ ಇಲ್ಲ ಏನು
		ಯಾರು ಎಲ್ಲಿ ಯಾವಾಗ ಹೇಗೆ ಏಕೆ ವರೆಗೆ ನಂತರ ಮೊದಲು ತುಂಬಾ ಎಲ್ಲಾ ಸಹ ಕೂಡ`},
	"mal": {words: `ഒരു ഈ ആ ഇത് അത് ഇവ അവ അവൻ അവൾ അവർ ഞാൻ ഞങ്ങൾ നീ നിങ്ങൾ എന്റെ എന്ന് എന്ന ഉണ്ട് ആണ് ആയിരുന്നു അല്ല ഇല്ല എന്ത് ആര് എവിടെ എപ്പോൾ എങ്ങനെ
		വരെ ശേഷം മുമ്പ് വളരെ എല്ലാ മറ്റ് കൂടി അല്ലെങ്കിൽ എന്നാൽ പക്ഷേ`},
	"sin": {words: `සහ හා හෝ නමුත් එම මේ ඒ මෙම එය ඔහු ඇය ඔවුන් මම අපි ඔබ ඇත ඇති වේ විය වූ බව ලෙස සඳහා සමග සිට දක්වා නැත කුමක් කවුද ඉතා සියලු එක් ද`},

	// Of the scripts without spaces only what is written apart can be found, as in Khmer
	// and Burmese with zero width spaces; Han and Hiragana are words by code point.
	"khm": {byRun: true, words: `បាន ដែល ក្នុង ត្រូវ មួយ ការ និង ជា នៅ ពី ទៅ មាន មិន នេះ នោះ ដើម្បី ឬ របស់ ដោយ ពេល គេ ឲ្យ ឱ្យ ហើយ ក៏ ទាំង តែ ប៉ុន្តែ នឹង
		លើ ក្រោម ដល់ សម្រាប់ ជាមួយ គឺ នៃ ផង អាច ចំពោះ តាម យើង ខ្ញុំ គាត់ អ្នក ទេ`},
	"tha": {byRun: true, words: `และ หรือ แต่ ที่ ใน ของ เป็น ได้ มี ไม่ จะ ให้ กับ จาก โดย นี้ นั้น คือ ว่า ไป มา แล้ว ก็ เพื่อ เมื่อ ถ้า อยู่ ซึ่ง กัน การ ความ`},
	"lao": {byRun: true, words: `ແລະ ຫຼື ແຕ່ ທີ່ ໃນ ຂອງ ເປັນ ໄດ້ ມີ ບໍ່ ຈະ ໃຫ້ ກັບ ຈາກ ໂດຍ ນີ້ ນັ້ນ ຄື ວ່າ ໄປ ມາ ແລ້ວ ກໍ່ ເພື່ອ ເມື່ອ ຖ້າ ຢູ່`},
	"mya": {byRun: true, words: `နှင့် သို့မဟုတ် သည် သော ကို မှာ တွင် က မှ များ ဖြင့် အတွက် ဖြစ်သည် ရှိသည် ဟု ပါသည် ဤ ထို မ လည်း သာ`},
	"zho": {words: emptyChinese},
	"jpn": {words: `の に は を が で と も て た し い る な れ ら さ か よ う こ そ ま す く り っ え け`},
	"kor": {words: `그 이 저 것 수 및 등 또 더 안 못 또는 그리고 그러나 하지만 그런 이런 저런 그는 그녀는 그의 나는 우리는 우리 저는 있는 있다 있습니다 없는
		없다 하는 한다 합니다 했다 된다 되는 대한 대해 위해 통해 따라 따르면 때문에 경우 이는 이를 같은 매우 모든 함께 가장 많은 것이 것은 것을 수가
		것으로 때 중 후 전 내 다른 여러 바로 아주 정말 지금 오늘`},

	// Austronesian, Vietnamese, African.
	"ind": {words: `yang dan di ke dari untuk dengan pada adalah ini itu dalam tidak akan juga oleh sebagai karena atau telah dapat lebih sudah
		bisa ada saat ketika seperti mereka kami kita saya anda dia ia para bahwa namun tetapi secara antara hanya tersebut agar
		jika maka bagi serta setelah sebelum hingga sampai tanpa masih sangat banyak semua setiap lain lagi belum bukan menjadi
		aku kamu nya hal apa siapa mana bagaimana mengapa kapan`},
	"msa": {words: `yang dan di ke dari daripada untuk dengan pada adalah ialah ini itu dalam tidak akan juga oleh sebagai kerana atau telah dapat
		lebih sudah boleh ada ketika apabila seperti mereka kami kita saya anda dia ia para bahawa namun tetapi secara antara hanya
		tersebut agar jika maka bagi serta selepas sebelum hingga sampai tanpa masih sangat banyak semua setiap lain lagi belum
		bukan menjadi apa siapa mana bagaimana mengapa bila`},
	"jav": {words: `lan ing saka kanggo karo iku iki kang sing ora ana uga utawa dadi wis bakal bisa luwih aku kowe dheweke kita nalika kaya marang
		amarga nanging`},
	"sun": {words: `jeung sareng di ka ti pikeun ku éta ieu nu anu henteu aya ogé atawa jadi geus bakal bisa leuwih kuring anjeun manéhna urang nalika
		lamun tapi`},
	"tgl": {words: `ang ng sa na at o ay mga si ni kay para mula upang ito iyan iyon siya sila kami tayo kayo ako ikaw ko mo niya nila namin natin
		inyo hindi wala may mayroon din rin lamang lang kung kapag dahil ngunit pero bilang isang pa nang kanyang kanilang bago pagkatapos
		habang lahat iba ano sino saan kailan paano bakit`},
	"vie": {words: `của và các những là có cho không được trong với một này khi đã cũng như người từ đến sẽ tại vào theo về trên để nhiều nhưng
		hay hoặc thì mà ở ra lại do nên đó bị bởi nếu vì rất hơn chỉ còn đang tôi bạn anh chị họ chúng ta mình nó gì ai đâu sau
		trước giữa dưới qua cùng mỗi mọi cả số việc`},
	"swa": {words: `na ya wa kwa ni za la katika cha vya pia kama au lakini hii hiyo huo hizo hao huyu yake yao yangu yako yetu wake wao si sio kuwa
		ilikuwa alikuwa walikuwa ambayo ambao ambaye baada kabla hadi kutoka sana zaidi tu kila wote yote mimi wewe yeye sisi nyinyi
		nini nani wapi lini vipi`},
	"som": {words: `iyo oo waa ah ka ku u in la aan ay uu lagu looga waxa waxaa kale badan si ama laakiin wax kuwa tan kan markii kadib inta isaga iyada
		iyaga annaga`},
	"hau": {words: `da na ta a ne ce ba ya ga don sai wannan wani wata su shi ita mu ku ni kai an za cikin daga kan amma ko haka lokacin`},
	"yor": {words: `àti ni ti sí fún láti pẹ̀lú kò ó wọ́n a mo ìwọ àwa yìí náà tí kan gbogbo sùgbọ́n tàbí`},
	"zul": {words: `futhi noma kodwa ukuthi uma nge kwi yona yena bona mina wena thina lokhu lezi le la lo kanye ngoba kakhulu konke kuphela`},
	"xho": {words: `kwaye okanye kodwa ukuba xa nge yena bona mna wena thina oku ezi le la lo kunye kuba kakhulu konke kuphela`},
	"hat": {words: `ak nan pou ki te yo li nou mwen ou se pa sa gen tout men si lè kote kijan paske yon la`},
}
