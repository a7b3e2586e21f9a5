"""Whether somebody asks not to be written to any more, or to be again: a word that says so.

Only where it is all that somebody wrote: whoever writes "stop by on Monday" means something else.
Capitals, accents and what stands around it do not count. Pure.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal

from paceline.core.folding import folded
from paceline.core.quoting import own_words

STOP = (
    *("stop", "stop all", "stopall", "unsubscribe", "opt out", "opt-out", "optout"),
    *("baja", "darme de baja", "alto", "no más mensajes", "parar", "pare", "sair", "descadastrar"),
    *("arrêt", "arrêter", "arrêtez", "désabonner", "stopp", "abmelden", "abbestellen"),
    *("afmelden", "disiscrivimi", "basta", "avsluta", "avmeld", "afmeld", "wypisz", "odhlásit"),
    *("стоп", "отписаться", "отпишите", "відписатися", "durdur", "iptal", "berhenti", "henti"),
    *("停止", "退订", "退訂", "取消订阅", "配信停止", "수신거부"),
    *("إيقاف", "توقف", "रोकें", "ยกเลิก", "dừng"),
)
START = (
    *("start", "unstop", "subscribe", "opt in", "opt-in", "optin", "alta", "iniciar", "volver"),
    *("commencer", "abonner", "anmelden", "aanmelden", "iscrivimi", "zapisz", "начать", "старт"),
    *("başlat", "mulai", "mula", "开始", "訂閱", "订阅", "配信再開", "수신동의"),
    *("ابدأ", "शुरू", "เริ่ม"),
)

LONGEST = 80
"""Characters of such a message; whatever is longer says something else."""

Wish = Literal["stop", "start"]


@dataclass(frozen=True)
class OptOut:
    """The words, as an installation has them."""

    stop: Sequence[str] = STOP
    start: Sequence[str] = START

    @cached_property
    def _wishes(self) -> dict[str, Wish]:
        wishes: dict[str, Wish] = {bare(word): "start" for word in self.start}
        # Whoever writes both lists so that a word is in either is taken to mean the careful one.
        wishes.update({bare(word): "stop" for word in self.stop})
        return wishes

    def wish_in(self, text: str) -> Wish | None:
        """What somebody asks for who wrote just this."""
        return self._wishes.get(bare(text)) if len(text) <= LONGEST else None

    def wish_in_letter(self, text: str, subject: str = "") -> Wish | None:
        """The same of somebody who wrote just this above what they answer, and above their name;
        where they wrote nothing themselves, of what stands where others write what it is about."""
        own = own_words(text)
        return self.wish_in(own) if own else self.wish_in(subject)


@lru_cache(maxsize=256)
def bare(text: str) -> str:
    """Without what stands around it: quotes, full stops, a smile."""
    plain = " ".join(folded(text).split())
    first, last = 0, len(plain)
    while first < last and not _counts(plain[first]):
        first += 1
    while last > first and not _counts(plain[last - 1]):
        last -= 1
    return plain[first:last]


def _counts(letter: str) -> bool:
    return unicodedata.category(letter)[0] in "LNM"


DEFAULT = OptOut()
