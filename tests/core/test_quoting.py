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
