"""What somebody wrote themselves, above whatever mail programs put below it."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.core.opting_out import DEFAULT
from paceline.core.quoting import own_words

OFFER = "Our offer\nA check-up is 49 euros.\nWrite STOP to get no more letters."
MARKED = "\n".join(f"> {line}" for line in OFFER.splitlines())

ATTRIBUTIONS = [
    "On Mon, 2 Mar 2026 at 09:00, Ann <ann@example.com> wrote:",
    "On Mon, 2 Mar 2026 at 09:00, Ann of the Long Street\n<ann@example.com>\nwrote:",
    "Ann <ann@example.com> wrote on 2 Mar 2026:",
    "Am Mo., 2. März 2026 um 09:00 Uhr schrieb Ann <ann@example.com>:",
    "Am 02.03.2026 um 09:00 schrieb Ann:",
    "Le lun. 2 mars 2026 à 09:00, Ann <ann@example.com> a écrit :",
    "El lun, 2 mar 2026 a las 9:00, Ann (<ann@example.com>) escribió:",
    "Il giorno lun 2 mar 2026 alle ore 09:00 Ann <ann@example.com> ha scritto:",
    "Em seg., 2 de mar. de 2026 às 09:00, Ann <ann@example.com> escreveu:",
    "Op ma 2 mrt 2026 om 09:00 schreef Ann <ann@example.com>:",
    "Den mån 2 mars 2026 kl 09:00 skrev Ann <ann@example.com>:",
    "pon., 2 mar 2026 o 09:00 Ann <ann@example.com> napisał(a):",
    "po 2. 3. 2026 v 9:00 odesílatel Ann <ann@example.com> napsal:",
    "пн, 2 мар. 2026 г. в 09:00, Ann <ann@example.com> написал(а):",
    "Ann <ann@example.com>, 2 Mar 2026 Pzt, 09:00 tarihinde şunu yazdı:",
    "Ann <ann@example.com> 于2026年3月2日周一 09:00写道：",
    "2026年3月2日(月) 9:00 Ann <ann@example.com>のメール:",
    # Gmail, in more languages.
    "man. 2. mar. 2026 kl. 09:00 skrev Ann <ann@example.com>:",
    "ma 2. maalisk. 2026 klo 9.00 Ann (ann@example.com) kirjoitti:",
    "Ann <ann@example.com> ezt írta (időpont: 2026. márc. 2., H, 9:00):",
    "În lun., 2 mar. 2026 la 09:00, Ann <ann@example.com> a scris:",
    "Στις Δευ 2 Μαρ 2026 στις 9:00 π.μ., ο χρήστης Ann <ann@example.com> έγραψε:",
    "\u202bבתאריך יום ב׳, 2 במרץ 2026 ב-9:00 מאת \u202aAnn\u202c\u200f <ann@example.com>:\u202c",
    "في الاثنين، 2 مارس 2026 في 9:00 ص تمت كتابة ما يلي بواسطة Ann <ann@example.com>:",
    "2026년 3월 2일 (월) 오전 9:00, Ann <ann@example.com>님이 작성:",
    "Vào Th 2, 2 thg 3, 2026 vào lúc 09:00 Ann <ann@example.com> đã viết:",
    "Pada Sen, 2 Mar 2026 pukul 09.00 Ann <ann@example.com> menulis:",
    "ในวันที่ จ. 2 มี.ค. 2026 เวลา 09:00 Ann <ann@example.com> เขียนว่า:",
    "пн, 2 бер. 2026 р. о 09:00 Ann <ann@example.com> пише:",
    "На пн, 2.03.2026 г. в 9:00 Ann <ann@example.com> написа:",
    "Missatge de Ann <ann@example.com> del dia dl., 2 de març 2026 a les 9:00:",
    "po 2. 3. 2026 o 9:00 Ann <ann@example.com> napísal(a):",
    "pon, 2. ožu 2026. u 09:00 Ann <ann@example.com> napisao je:",
    "V V pon., 2. mar. 2026 ob 09:00 je oseba Ann <ann@example.com> napisala:",
    "2026-03-02, pr, 09:00 Ann <ann@example.com> rašė:",
    "pirmd., 2026. g. 2. marts, plkst. 09:00 — lietotājs Ann (<ann@example.com>) rakstīja:",
    "Kuupäev E, 2. märts 2026 kell 09:00 kirjutas Ann <ann@example.com>:",
    "सोम, 2 मार्च 2026 को 9:00 am बजे को Ann <ann@example.com> ने लिखा:",
    "در تاریخ دوشنبه ۲ مارس ۲۰۲۶،\u200f ۹:۰۰ Ann <ann@example.com> نوشت:",
    "Ann <ann@example.com> 於 2026年3月2日 週一 上午9:00寫道：",
    "2026年3月2日(月) 9:00 Ann <ann@example.com>:",
    "Noong Lun, Mar 2, 2026 nang 9:00 AM, sinulat ni Ann <ann@example.com>:",
    # Apple Mail, which leaves the address out where it knows a name.
    "On 2 Mar 2026, at 09:00, Ann wrote:",
    "Op 2 mrt. 2026 om 09:00 heeft Ann het volgende geschreven:",
    "Wiadomość napisana przez Ann w dniu 2 mar 2026, o godz. 09:00:",
    "Ann şunları yazdı (2 Mar 2026 09:00):",
    "No dia 2 de mar. de 2026, às 09:00, Ann escreveu:",
    "Ann kirjoitti 2.3.2026 kello 9.00:",
    "2 марта 2026 г., в 9:00, Ann написал(а):",
    "2026/03/02 9:00、Annのメール：",
    "2026. 3. 2. 오전 9:00, Ann 작성:",
    "2026年3月2日 09:00，Ann 写道：",
    "Στις 2 Μαρ 2026, στις 9:00, ο χρήστης Ann έγραψε:",
    "Dne 2. 3. 2026 v 9:00, Ann napsala:",
    "2026. márc. 2. dátummal, 9:00 időpontban Ann írta:",
    "Pe 2 mar. 2026, la 09:00, Ann a scris:",
    # Yahoo and others.
    "Am Montag, 2. März 2026 um 09:00:00 MEZ hat Ann Folgendes geschrieben:",
    "El lunes, 2 de marzo de 2026, 09:00:00 CET, Ann <ann@example.com>\nescribió:",
    "Le lundi 2 mars 2026 à 09:00:00 UTC+1, Ann <ann@example.com>\na écrit :",
]
BLOCKS = [
    "-----Original Message-----\nFrom: Ann\nSent: Monday\n\n" + OFFER,
    "-----Ursprüngliche Nachricht-----\nVon: Ann\n\n" + OFFER,
    "-------- Message d'origine --------\nDe : Ann\n\n" + OFFER,
    "---------- Forwarded message ---------\n" + OFFER,
    "________________________________\nFrom: Ann <ann@example.com>\nSent: Monday\n\n" + OFFER,
    "From: Ann <ann@example.com>\nSent: Monday 9:00 AM\nTo: Eva\nSubject: Our offer\n\n" + OFFER,
    "*From:* Ann <ann@example.com>\n*Sent:* Monday\n*To:* Eva\n\n" + OFFER,
    "Von: Ann <ann@example.com>\nGesendet: Montag, 2. März 2026 09:00\nAn: Eva\n\n" + OFFER,
    "De : Ann <ann@example.com>\nEnvoyé : lundi 2 mars 2026 09:00\nÀ : Eva\n\n" + OFFER,
    "De: Ann <ann@example.com>\nEnviado el: lunes, 2 de marzo de 2026\nPara: Eva\n\n" + OFFER,
    "Da: Ann <ann@example.com>\nInviato: lunedì 2 marzo 2026\nA: Eva\n\n" + OFFER,
    "Van: Ann <ann@example.com>\nVerzonden: maandag 2 maart 2026\nAan: Eva\n\n" + OFFER,
    "От: Ann <ann@example.com>\nОтправлено: 2 марта 2026 г.\nКому: Eva\n\n" + OFFER,
    "发件人: Ann\n发送时间: 2026年3月2日\n收件人: Eva\n\n" + OFFER,
    "Fra: Ann\nSendt: 2. marts 2026 09:00\nTil: Eva\nEmne: Our offer\n\n" + OFFER,
    "Från: Ann\nSkickat: den 2 mars 2026 09:00\nTill: Eva\nÄmne: Our offer\n\n" + OFFER,
    "Lähettäjä: Ann\nLähetetty: 2. maaliskuuta\nVastaanottaja: Eva\nAihe: Our offer\n\n" + OFFER,
    "Od: Ann\nWysłano: poniedziałek, 2 marca 2026\nDo: Eva\nTemat: Our offer\n\n" + OFFER,
    "Od: Ann\nOdesláno: pondělí 2. března 2026\nKomu: Eva\nPředmět: Our offer\n\n" + OFFER,
    "Od: Ann\nOdoslané: pondelok 2. marca 2026\nKomu: Eva\nPredmet: Our offer\n\n" + OFFER,
    "Feladó: Ann\nKüldve: 2026. március 2.\nCímzett: Eva\nTárgy: Our offer\n\n" + OFFER,
    "De la: Ann\nTrimis: luni, 2 martie 2026\nCătre: Eva\nSubiect: Our offer\n\n" + OFFER,
    "Kimden: Ann\nGönderildi: 2 Mart 2026\nKime: Eva\nKonu: Our offer\n\n" + OFFER,
    "Από: Ann\nΣτάλθηκε: Δευτέρα, 2 Μαρτίου\nΠρος: Eva\nΘέμα: Our offer\n\n" + OFFER,
    "Від: Ann\nНадіслано: 2 березня 2026 р.\nКому: Eva\nТема: Our offer\n\n" + OFFER,
    "От: Ann\nИзпратено: 2 март 2026 г.\nДо: Eva\nОтносно: Our offer\n\n" + OFFER,
    "Šalje: Ann\nPoslano: 2. ožujka 2026.\nPrima: Eva\nPredmet: Our offer\n\n" + OFFER,
    "מאת: Ann\nנשלח: יום שני 02 מרץ 2026\nאל: Eva\nנושא: Our offer\n\n" + OFFER,
    "من: Ann\nتم الإرسال: الاثنين، 2 مارس\nإلى: Eva\nالموضوع: Our offer\n\n" + OFFER,
    "差出人: Ann\n送信日時: 2026年3月2日 9:00\n宛先: Eva\n件名: Our offer\n\n" + OFFER,
    "보낸 사람: Ann\n보낸 날짜: 2026년 3월 2일\n받는 사람: Eva\n제목: Our offer\n\n" + OFFER,
    "寄件者: Ann\n寄件日期: 2026年3月2日\n收件者: Eva\n主旨: Our offer\n\n" + OFFER,
    "Từ: Ann\nĐã gửi: Thứ Hai, 2 Tháng Ba 2026\nTới: Eva\nChủ đề: Our offer\n\n" + OFFER,
    "จาก: Ann\nส่ง: วันจันทร์ที่ 2 มีนาคม\nถึง: Eva\nเรื่อง: Our offer\n\n" + OFFER,
    "Dari: Ann\nDikirim: Senin, 02 Maret 2026\nKepada: Eva\nSubjek: Our offer\n\n" + OFFER,
    "Nuo: Ann <ann@example.com>\nIšsiųsta: 2026 m. kovo 2 d.\nKam: Eva\nTema: x\n\n" + OFFER,
    "No: Ann <ann@example.com>\nNosūtīts: 2026. gada 2. marts\nKam: Eva\nTēma: x\n\n" + OFFER,
    "Saatja: Ann <ann@example.com>\nSaadetud: 2. märts\nAdressaat: Eva\nTeema: x\n\n" + OFFER,
    "De: Ann <ann@example.com>\nEnviat el: dilluns, 2 de març\nPer a: Eva\nTema: x\n\n" + OFFER,
    "Pošiljatelj: Ann <ann@example.com>\nDatum: 2. 3. 2026\nPrejemnik: Eva\n\n" + OFFER,
    MARKED,
]
SIGNATURES = [
    "-- \nEva\n+34 600 111 222",
    "--\nEva",
    "Sent from my iPhone",
    "Get Outlook for Android",
    "Sent from Yahoo Mail on Android",
    "Von meinem iPhone gesendet",
    "Gesendet mit der GMX Mail App",
    "Envoyé de mon iPhone",
    "Enviado desde mi iPhone",
    "Enviado do meu iPhone",
    "Inviato da iPhone",
    "Verzonden vanaf mijn iPhone",
    "Skickat från min iPhone",
    "Sendt fra min iPhone",
    "Wysłane z iPhone'a",
    "Отправлено с iPhone",
    "发自我的iPhone",
    "iPhoneから送信",
    "Lähetetty iPhonesta",
    "iPhone-ról küldve",
    "Trimis de pe iPhone-ul meu",
    "Στάλθηκε από το iPhone μου",
    "Odoslané z iPhonu",
    "Odesláno z iPhonu",
    "Poslano s mog iPhonea",
    "Enviat des del meu iPhone",
    "Надіслано з iPhone",
    "iPhone'umdan gönderildi",
    "נשלח מה-iPhone שלי",
    "تم الإرسال من الـ iPhone",
    "나의 iPhone에서 보냄",
    "從我的 iPhone 傳送",
    "Đã gửi từ iPhone của tôi",
    "ส่งจาก iPhone ของฉัน",
    "Dikirim dari iPhone saya",
    "Holen Sie sich Outlook für iOS",
    "Outlook für Android herunterladen",
    "Télécharger Outlook pour iOS",
    "Obtener Outlook para Android",
    "Obter o Outlook para iOS",
    "Scarica Outlook per iOS",
    "Outlook voor Android downloaden",
    "Skaffa Outlook för iOS",
    "Hent Outlook til Android",
    "Pobierz aplikację Outlook dla systemu iOS",
    "Získat Outlook pro Android",
    "Hanki Outlook for iOS",
    "Скачать Outlook для iOS",
    "获取 Outlook for iOS",
    "Outlook for Android を入手",
    "Thanks,\nEva",
    "Best regards,\nEva Blume\nHead of bicycles\n+34 600 111 222",
    "Mit freundlichen Grüßen\nEva Blume",
    "Saludos,\nEva",
]


def everything_below() -> list[str]:
    quoted = [f"{one}\n\n{MARKED}" for one in ATTRIBUTIONS]
    unmarked = [f"{one}\n\n{OFFER}" for one in ATTRIBUTIONS]
    both = [f"{sign}\n\n{ATTRIBUTIONS[0]}\n{MARKED}" for sign in SIGNATURES]
    return [*quoted, *unmarked, *BLOCKS, *SIGNATURES, *both]


@pytest.mark.parametrize("below", everything_below())
def test_only_what_stands_above_is_theirs(below: str) -> None:
    for word, gap in product(("STOP", "Unsubscribe.", "darme de baja"), ("\n", "\n\n\n")):
        letter = f"{word}{gap}{below}"
        assert own_words(letter) == word
        assert own_words(letter.replace("\n", "\r\n")) == word
        assert DEFAULT.wish_in_letter(letter, "Re: Our offer") == "stop"


@pytest.mark.parametrize(
    "words",
    [
        "Please don't stop",
        "please don't stop sending these",
        "I did not say stop",
        "Stop by on Monday",
        "Should I stop the heating?",
        "Can we start on Monday? Do not stop before.",
        "Thanks for stopping by",
        "The machine says\nstop\nand I do not know why",
        "Non-stop?",
    ],
)
def test_whoever_says_more_means_something_else(words: str) -> None:
    for below in everything_below():
        for gap in ("\n", "\n\n"):
            assert DEFAULT.wish_in_letter(f"{words}{gap}{below}") is None


def test_what_is_written_below_a_quote_or_between_is_theirs_as_well() -> None:
    below = f"{ATTRIBUTIONS[0]}\n{MARKED}\n\nstop\n"
    assert DEFAULT.wish_in_letter(below) == "stop"
    between = f"{ATTRIBUTIONS[0]}\n> Our offer\nHow much?\n> Write STOP\nI will not\n"
    assert own_words(between) == "How much?\nI will not"


def test_where_they_wrote_nothing_the_subject_may_say_it() -> None:
    assert DEFAULT.wish_in_letter("", "unsubscribe") == "stop"
    assert DEFAULT.wish_in_letter("\n\nSent from my iPhone\n", "STOP") == "stop"
    assert DEFAULT.wish_in_letter("How much?", "Stop") is None
    assert DEFAULT.wish_in_letter(f"{ATTRIBUTIONS[0]}\n{MARKED}", "Re: Stop") is None


@pytest.mark.parametrize(
    "text",
    [
        "Yesterday she wrote:\nI come at ten.",
        "From: the heart\nof all of us",
        "Thanks for the offer.\nHow much is it with a new chain?",
        "Best\nwishes for the new year, and when do you open?" + " Tell me." * 10,
        "I would like\n- a chain\n- a bell",
        "One\n\nTwo\n\nThree",
        "Name: Eva Blume\nPhone: 600 111 222\nDate: 2 March 2026",
        "Write to eva@example.com in 2026, or call:\n600 111 222",
        "My phone is an iPhone from 2020\nand it works",
        "Is there an Outlook for my old telephone, or only what everybody has on Android?\nTell me",
    ],
)
def test_a_letter_of_their_own_is_left_alone(text: str) -> None:
    assert own_words(text).split() == text.split()


def test_a_name_below_too_much_is_no_signature() -> None:
    lines = "\n".join(f"line {number}" for number in range(20))
    assert own_words(f"Stop\nThanks\n{lines}").endswith("line 19")


@given(st.text(alphabet=st.sampled_from("a>|-_: \n@9\r*=stopwrote"), max_size=300))
def test_whatever_is_written_has_words_of_its_own_or_none(text: str) -> None:
    words = own_words(text)
    assert words.split("\n") == [line for line in words.split("\n") if line] or words == ""
    assert all(line in text for line in words.split("\n"))


def test_it_takes_no_longer_than_it_is_long() -> None:
    many = "Thanks\n" * 20_000
    assert own_words(f"stop\n{many}").startswith("stop")
    assert own_words("wrote " * 50_000 + "\n" + "> x\n" * 50_000)
