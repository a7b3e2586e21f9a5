"""What somebody wrote themselves: without what they answer, and without their signature.

Mail programs put the letter that is answered below the answer, each in its own way and language,
and telephones say who made them. Pure, and about texts only; nothing here understands a sentence.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from paceline.core.folding import folded

MOST_LINES = 400
"""Whatever comes after is not looked at: nobody hides a word of their own below it."""
WRAPPED = 3
"""Lines over which a mail program may break who wrote when."""
LONGEST_LINE = 400
MOST_BELOW = 6
"""Lines of a name, a title and a telephone number below a closing."""

_WROTE = re.compile(
    r"\b(?:wrote|writes|schrieb|geschrieben|escribio|ecrit|ha scritto|scritto|escreveu|schreef"
    r"|geschreven|skrev|napisa[lł](?:\(a\)|a)?|napisana przez|napisao|pisze|napsal(?:\(a\)|a)?"
    r"|пише(?:т)?|написал(?:\(а\)|а)?|написав|написа|yazd[iı]|kirjoitti|kirjutas|menulis|a scris"
    r"|irta|escrigue|εγραψε|rase|rakstija|sinulat ni|đa viet)\b"
    r"|写道|寫道|書きました|のメール|작성|เขียนว่า|लिखा|نوشت|كتابة|כתב"
)
"""Who wrote it, in the past or the present of many languages; folded."""
_NAMED_AND_DATED = re.compile(r"[<(\[]\S+@\S+[>)\]].*\d{4}|\d{4}.*[<(\[]\S+@\S+[>)\]]")
"""Whose letter it was and in which year, in whatever language: nobody writes that to anybody."""
_BEGINS = re.compile(
    r"\b\d{4}\b|\d{4}(?=[年년])|@|^(?:on|am|le|el|il|em|op|den|w dniu|dne|no dia|pe)\s.*\d"
)
"""What is broken over several lines begins with a date, or with who it was."""
_TITLED = re.compile(r"[-_=*]{2,}\s*[^-_=*\s][^-_=*]{2,60}?\s*[-_=*]{2,}|_{8,}|-{8,}|={8,}")
"""``-----Original Message-----`` in whichever language, or the line that some draw instead."""
_FROM = re.compile(
    r"[*_]*(?:from|von|de|da|van|fran|fra|od|salje|от|від|kimden|lahettaja|felado|de la|απο|tu|dari"
    r"|מאת|من|จาก|发件人|寄件者|差出人|보낸 사람)[*_]*\s*[:：]"
)
_LABELLED = re.compile(r"[*_]*[^\W\d_][^:：@]{0,24}[:：][*_]*\s*\S")
_FROM_ADDRESS = re.compile(r"[*_]*[^\W\d_][^:：@]{0,24}[:：][*_]*\s.*[<(\[]\S+@\S+[>)\]]$")
"""The same in whatever language, where an address stands in it, and more such lines below it."""
_SENT = re.compile(
    r"[*_]*(?:sent|date|to|subject|gesendet|datum|an|betreff|envoye|a|objet|enviado(?: el| em)?"
    r"|enviada em|fecha|para|asunto|assunto|inviato|data|oggetto|verzonden|aan|onderwerp|skickat"
    r"|till|amne|sendt|til|emne|wys[lł]ano|do|temat|odeslano|komu|predmet|отправлено|дата|кому|тема"
    r"|надіслано|изпратено|до|относно|gonderildi|gonderilme|kime|konu|lahetetty|odoslane|poslano"
    r"|kuldve|cimzett|trimis|σταλθηκε|προς|đa gui|toi|dikirim|kepada|נשלח|אל|تم الإرسال|إلى|ส่ง|ถึง"
    r"|发送时间|收件人|主题|寄件日期|收件者|送信日時|宛先|件名|보낸 날짜|받는 사람)[*_]*\s*[:：]"
)
_FROM_A_DEVICE = re.compile(
    r"(?:sent|get|mailed) (?:from|via|with|outlook)\b|sent using\b|yahoo mail"
    r"|(?:von meine[mr]|gesendet (?:von|mit|aus))\b|diese nachricht wurde von meinem"
    r"|envoye (?:de|depuis|a partir)\b|telecharge[rz]? outlook"
    r"|enviado (?:desde|do|a partir|de)\b|enviada do\b|inviato da\b|scarica outlook"
    r"|verzonden (?:vanaf|vanuit|met|via)\b|skickat fran\b|sendt fra\b|lahetetty\b"
    r"|wys[lł]an[eo] z\b|odeslano z\b|отправлено (?:с|из)\b|надіслано з\b|.{0,20}gonderildi$"
    r"|trimis de pe\b|σταλθηκε απο\b|odoslane z\b|poslano (?:s|iz)\b|enviat des\b|.{0,20} kuldve$"
    r"|đa gui tu\b|dikirim dari\b|נשלח מ|تم الإرسال من|ส่งจาก"
    r"|发自我的|從我的.{0,20}傳送|.{0,20}から送信|나의 .{0,20}에서 보냄|내 .{0,20}에서 보냄"
    r"|(?=.{12,60}$)(?:\S+ ){0,4}outlook (?:\S+ ){1,3}(?:ios|android)(?: \S+)?$"
)
"""What telephones and mail programs say of themselves; folded."""
_DASHES = frozenset({"--", "---", "\N{EM DASH}", "\N{EN DASH}", "\N{EM DASH}\N{EM DASH}"})
_CLOSINGS = frozenset(
    folded(word)
    for word in (
        *("thanks", "thank you", "many thanks", "thx", "regards", "best", "best regards"),
        *("kind regards", "warm regards", "sincerely", "yours", "cheers", "best wishes"),
        *("gracias", "muchas gracias", "saludos", "un saludo", "atentamente", "saludos cordiales"),
        *("merci", "cordialement", "bien cordialement", "salutations", "bonne journée"),
        *("danke", "vielen dank", "grüße", "gruß", "viele grüße", "liebe grüße", "mfg", "lg", "vg"),
        *("mit freundlichen grüßen", "freundliche grüße", "beste grüße"),
        *("obrigado", "obrigada", "atenciosamente", "abraços", "cumprimentos"),
        *("grazie", "saluti", "cordiali saluti", "distinti saluti"),
        *("bedankt", "dank", "groeten", "met vriendelijke groet", "groet", "mvg"),
        *("tack", "hälsningar", "vänliga hälsningar", "tak", "hilsen", "mvh", "takk"),
        *("dziękuję", "pozdrawiam", "děkuji", "s pozdravem"),
        *("спасибо", "с уважением", "дякую", "teşekkürler", "saygılarımla", "terima kasih"),
        *("谢谢", "謝謝", "ありがとうございます", "감사합니다"),
    )
)


def own_words(text: str) -> str:
    """What of a letter its writer wrote, as far as anybody can tell."""
    if "\n" not in text:
        return text.strip()
    lines = [line.strip() for line in text.splitlines()[:MOST_LINES]]
    plain = [folded(line[:LONGEST_LINE]) for line in lines]
    own: list[str] = []
    place = 0
    while place < len(lines):
        if wrapped := _attribution(plain, place):
            place += wrapped
            rest = [line for line in lines[place:] if line]
            if not rest or not rest[0].startswith((">", "|")):
                # It is quoted without a mark: all the rest may be.
                break
            continue
        if _ends_here(lines, plain, place, begun=bool(own)):
            break
        if lines[place] and not lines[place].startswith((">", "|")):
            own.append(lines[place])
        place += 1
    return "\n".join(own)


def _ends_here(lines: Sequence[str], plain: Sequence[str], place: int, *, begun: bool) -> bool:
    """Whether what follows is a signature, or the letter that is answered."""
    line = lines[place]
    if not line:
        return False
    if line in _DASHES or _TITLED.fullmatch(line) or _FROM_A_DEVICE.match(plain[place]):
        return True
    if _FROM.match(plain[place]):
        below = [one for one in plain[place + 1 : place + 6] if one]
        if any(_SENT.match(one) for one in below):
            return True
    if _FROM_ADDRESS.match(plain[place]):
        below = [one for one in plain[place + 1 : place + 6] if one]
        return sum(bool(_LABELLED.match(one)) for one in below[:3]) >= 2
    return begun and _closes(lines, plain, place)


def _closes(lines: Sequence[str], plain: Sequence[str], place: int) -> bool:
    """A word with which letters end, on a line of its own, and nothing but a name below it."""
    if plain[place].strip(" ,.!;-") not in _CLOSINGS:
        return False
    below = 0
    for further in range(place + 1, len(lines)):
        if _attribution(plain, further) or _ends_here(lines, plain, further, begun=False):
            break
        below += bool(lines[further]) and not lines[further].startswith(">")
        if below > MOST_BELOW or len(lines[further]) > 80:
            return False
    return True


def _attribution(plain: Sequence[str], place: int) -> int:
    """How many lines say who wrote what follows, and when; 0 where none does."""
    if not plain[place] or plain[place].startswith(">"):
        return 0
    for count in range(1, WRAPPED + 1):
        some = plain[place : place + count]
        if len(some) < count or not some[-1]:
            return 0
        joined = " ".join(some)
        ends = joined.endswith((":", "："))
        if count > 1 and not _BEGINS.search(some[0]):
            # What they wrote right above it is no part of it.
            return 0
        # A date or an address: people write "she wrote:" in letters of their own.
        if ends and _WROTE.search(joined) and re.search(r"\d|@", joined):
            return count
        if ends and _NAMED_AND_DATED.search(joined):
            return count
        if ends:
            return 0
    return 0
