"""The far side of simulated conversations: people who write, a provider that tells of it, and what
reaches them.

The provider is the sandbox with hooks: what was written is told to whichever process answers the
door, late, in any order, twice, and again until somebody says that it was taken. Everything here is
far away: it outlives every process, and knows what was really written.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any

from paceline.core.errors import InputError
from paceline.core.instants import MINUTE, SECOND, Instant
from paceline.core.opting_out import Wish
from paceline.core.outcome import Outcome
from paceline.engine.clock import LoopClock
from paceline.engine.ports import (
    Account,
    Capabilities,
    Driver,
    Found,
    Inbound,
    Media,
    Message,
    News,
    Receipt,
    Uploaded,
)
from paceline.engine.ports.answering import Burst, Said
from paceline.providers.sandbox import SandboxProvider
from paceline.providers.sandbox.effects import Effect
from paceline.sim.post_office import Letters
from paceline.sim.talk import Asked, Mind, Reached, Span, Strange, Talk, Telling, Wrote
from paceline.sim.trace import Trace

GROUP = "120363000000000001@g.us"
UNCEASING = 1 / 12
"""How often somebody hardly pauses, for so many times as many messages."""
SO_MANY = 6
AGAIN: tuple[Span, ...] = ((0, 0), (1, 2 * SECOND), (5 * SECOND, 2 * MINUTE))
"""When the same is told once more: at once, soon, late."""
STRANGE: tuple[Strange, ...] = ("group", "automatic", "from_us")
PICTURES = 0.15
"""Messages that are pictures; every other one of them without a word."""

Report = Callable[[str, bytes, tuple[int, ...]], Awaitable[bool]]

_ANSWER = re.compile(r"(turn-\d+): ([\d ]*)")


def answer_to(key: str, numbers: Sequence[int | None]) -> str:
    """What says itself which messages it answers."""
    return f"{key}: {' '.join(str(number) for number in numbers)}"


class Exchange(SandboxProvider):
    """The sandbox, with people behind it, and with hooks."""

    def __init__(self, clock: LoopClock, letters: Letters, talk: Talk, trace: Trace) -> None:
        super().__init__(clock, letters)
        self.talk = talk
        self.wrote: list[Wrote] = []
        self.tellings: list[Telling] = []
        self.asked: list[Asked] = []
        self.reached: list[Reached] = []
        self.texts: dict[str, str] = {}
        """What anybody tried to send, by its key."""
        self.telling = 0
        """How many reports nobody has taken yet."""
        self.writing = 0
        """How many people are going to write more."""
        self.report: Report
        """Gives a report to whoever is there; whether it was taken. Set by whoever has processes
        at hand."""
        self._trace = trace
        self._until_at: Instant = 0
        self._by_text: dict[str, int] = {}
        self._by_time: dict[tuple[str, str, Instant], int] = {}
        self._times_asked: Counter[str] = Counter()
        self._unwanted: set[str] = set()
        self._under_way: set[asyncio.Task[None]] = set()
        letters.taken = self._took

    async def open(self, account: Account) -> Driver:
        return _Doorstep(self, await super().open(account))

    # ------------------------------------------------------------------ as providers report

    def verify(
        self,
        settings: Mapping[str, Any],
        headers: Mapping[str, str],
        body: bytes,
        query: Mapping[str, str],
    ) -> bool:
        return True

    def proves(self, settings: Mapping[str, Any]) -> bool:
        return False

    def challenge(self, settings: Mapping[str, Any], query: Mapping[str, str]) -> str | None:
        return None

    def parse(self, settings: Mapping[str, Any], body: bytes) -> list[News]:
        said = json.loads(body)
        if not isinstance(said, dict):
            raise InputError("that is no report")
        messages = [_news(self.wrote[number]) for number in said["messages"]]
        receipts = [Receipt(name, "delivered", at) for name, at in said["receipts"]]
        return [*messages, *receipts]

    # ------------------------------------------------------------------ writing

    def begin(self, accounts: Sequence[str], until_at: Instant) -> None:
        """From here on people write, until then."""
        self._until_at = until_at
        for account in accounts:
            for chat in self.talk.people:
                self.writing += 1
                self._start(self._live(account, chat))

    async def _live(self, account: str, chat: str) -> None:
        luck = self._luck("life", account, chat)
        while True:
            await asyncio.sleep(luck.randint(*self.talk.rest_us) / SECOND)
            if self._clock.now() >= self._until_at:
                break
            await self._burst(account, chat, luck)
        self.writing -= 1

    async def _burst(
        self, account: str, chat: str, luck: random.Random, answers: str | None = None
    ) -> None:
        talk = self.talk
        together = luck.random() < talk.together
        count = luck.randint(1, talk.most)
        if luck.random() < UNCEASING:
            count *= SO_MANY
        burst: list[Wrote] = []
        for number in range(count):
            if number:
                await asyncio.sleep(luck.randint(*luck.choice(talk.gaps)) / SECOND)
            burst.append(self._write(account, chat, luck, answers=answers if not number else None))
            if not together:
                self._tell(account, burst[-1:], luck)
        if luck.random() < talk.strange:
            self._tell(account, [self._strange(account, chat, luck)], luck)
        wish = self._wish(chat, luck)
        if wish is not None:
            await asyncio.sleep(luck.randint(*luck.choice(talk.gaps)) / SECOND)
            burst.append(self._write(account, chat, luck, wish=wish))
            if not together:
                self._tell(account, burst[-1:], luck)
        if together:
            self._tell(account, luck.sample(burst, len(burst)), luck)

    def _wish(self, chat: str, luck: random.Random) -> Wish | None:
        if chat in self._unwanted:
            if luck.random() < 0.5:
                self._unwanted.discard(chat)
                return "start"
        elif luck.random() < self.talk.stops:
            self._unwanted.add(chat)
            return "stop"
        return None

    def _write(
        self,
        account: str,
        chat: str,
        luck: random.Random,
        *,
        wish: Wish | None = None,
        **more: Any,
    ) -> Wrote:
        number, now = len(self.wrote), self._clock.now()
        rough = account in self.talk.rough
        told_at = now // SECOND * SECOND if rough else now
        text, kind = f"word {number}", "text"
        if wish is not None:
            text = wished(wish, number)
        elif luck.random() < PICTURES:
            kind = "image"
            # Where two may bear the same time, nothing else would tell one from the other.
            alone = not rough and (account, chat, now) not in self._by_time
            text = "" if alone and luck.random() < 0.5 else text
        written = Wrote(number, now, account, chat, text, wish, kind, told_at, **more)
        self._by_text[text] = number
        self._by_time[account, chat, told_at] = number
        self.wrote.append(written)
        self._trace.note(chat, "writes", f"message {number} to {account}: {wish or kind}")
        return written

    def _strange(self, account: str, chat: str, luck: random.Random, *kinds: Strange) -> Wrote:
        """What no one is to be answered for, whatever it says."""
        number, now = len(self.wrote), self._clock.now()
        kind = luck.choice(kinds or STRANGE)
        text = luck.choice((f"word {number}", wished("stop", number)))
        where = GROUP if kind == "group" else chat
        written = Wrote(number, now, account, where, text, told_at=now, strange=kind)
        self._by_text[text] = number
        self.wrote.append(written)
        return written

    # ------------------------------------------------------------------ telling

    def _tell(self, account: str, messages: Sequence[Wrote], luck: random.Random) -> None:
        numbers = tuple(one.number for one in messages)
        after_us = luck.randint(*luck.choice(self.talk.hooks))
        self._start(self._see_told(account, numbers, (), after_us))
        if luck.random() < self.talk.twice:
            later_us = after_us + luck.randint(*luck.choice(AGAIN))
            self._start(self._see_told(account, numbers, (), later_us))

    async def _see_told(
        self,
        account: str,
        numbers: tuple[int, ...],
        receipts: tuple[tuple[str, Instant], ...],
        after_us: int,
    ) -> None:
        """As providers do: again and again, until somebody says that it was taken."""
        self.telling += 1
        luck = self._luck("telling", account, *numbers, *receipts, after_us)
        body = json.dumps({"messages": numbers, "receipts": receipts}).encode()
        wait_us, taken = after_us, False
        while not taken:
            await asyncio.sleep(wait_us / SECOND)
            taken = await self.report(account, body, numbers)
            wait_us = luck.randint(*self.talk.again_us)
        self.telling -= 1

    def _start(self, what: Coroutine[Any, Any, None]) -> None:
        """Whoever does it is nobody's process."""
        under_way = asyncio.get_running_loop().create_task(what)
        self._under_way.add(under_way)
        under_way.add_done_callback(self._ended)

    def _ended(self, under_way: asyncio.Task[None]) -> None:
        self._under_way.discard(under_way)
        if not under_way.cancelled():
            under_way.result()

    # ------------------------------------------------------------------ what reaches them

    def sends(self, message: Message) -> None:
        self.texts[message.key] = message.part.text

    def _took(self, effect: Effect) -> None:
        says = _ANSWER.fullmatch(self.texts[effect.key])
        key = None if says is None else says[1]
        numbers = () if says is None else tuple(int(one) for one in says[2].split())
        delivery_id = int(effect.key.rsplit("-", 2)[1])
        self.reached.append(
            Reached(effect.at, effect.account, effect.target, delivery_id, key, numbers)
        )
        self._trace.note(effect.target, "reads", f"delivery {delivery_id} from {effect.account}")
        if effect.target not in self.talk.people:
            return
        luck = self._luck("reads", effect.key, effect.attempt)
        if effect.provider_id is not None and luck.random() < self.talk.strange:
            receipt = (effect.provider_id, effect.at)
            after_us = luck.randint(*luck.choice(self.talk.hooks))
            self._start(self._see_told(effect.account, (), (receipt,), after_us))
        if self._clock.now() >= self._until_at:
            return
        if self.talk.curt and luck.random() < self.talk.curt:
            self.writing += 1
            self._start(self._brush_off(effect, luck))
        elif luck.random() < self.talk.reacts:
            self.writing += 1
            self._start(self._react(effect, luck))

    async def _react(self, effect: Effect, luck: random.Random) -> None:
        await asyncio.sleep(luck.randint(1, 8 * SECOND) / SECOND)
        await self._burst(effect.account, effect.target, luck, answers=effect.key)
        self.writing -= 1

    async def _brush_off(self, effect: Effect, luck: random.Random) -> None:
        await asyncio.sleep(luck.randint(1, 8 * SECOND) / SECOND)
        account, chat = effect.account, effect.target
        if luck.random() < 0.5:
            curt = self._strange(account, chat, luck, "automatic")
        else:
            self._unwanted.add(chat)
            curt = self._write(account, chat, luck, wish="stop")
        self._tell(account, [curt], luck)
        self.writing -= 1

    # ------------------------------------------------------------------ whoever is asked

    def ask(self, process: str, burst: Burst) -> Asked:
        """Keep what was asked, as far as anybody had written it."""
        numbers = tuple(self._meant(burst, one) for one in burst.said)
        asked = Asked(self._clock.now(), process, burst.key, burst.account, burst.chat, numbers)
        self.asked.append(asked)
        shown = " ".join(str(number) for number in numbers)
        self._trace.note(process, "asks", f"{burst.key} of {burst.chat} about {shown}")
        return asked

    def _meant(self, burst: Burst, said: Said) -> int | None:
        if said.text:
            return self._by_text.get(said.text)
        return self._by_time.get((burst.account, burst.chat, said.at))

    def mind_for(self, key: str, *, calm: bool) -> tuple[Mind, random.Random]:
        """How this question is taken this time."""
        self._times_asked[key] += 1
        luck = self._luck("mind", key, self._times_asked[key])
        left = luck.random() * sum(self.talk.minds.values())
        for mind, share in self.talk.minds.items():
            left -= share
            if left < 0:
                return (Mind.PROMPT if calm else mind), luck
        raise AssertionError("a chance is less than 1")

    def _luck(self, *about: object) -> random.Random:
        """Another one for everything it is about, so that nothing depends on who comes first."""
        return random.Random(f"{self.talk.seed}/{'/'.join(map(str, about))}")


def wished(wish: Wish, number: int) -> str:
    """A wish that nobody else has written just so: what stands around the word does not count."""
    return f"{wish.upper()} " + "".join("!" if bit == "1" else "." for bit in f"{number:b}")


def _news(one: Wrote) -> Inbound:
    return Inbound(
        one.name,
        one.chat,
        one.account if one.strange == "from_us" else one.chat,
        one.text,
        one.told_at,
        from_us=one.strange == "from_us",
        kind=one.kind,
        group=one.strange == "group",
        answers=one.answers,
        automatic=one.strange == "automatic",
    )


class _Doorstep:
    """Where what an account says is handed over: its words are kept until it is known whether they
    have arrived."""

    def __init__(self, exchange: Exchange, driver: Driver) -> None:
        self._exchange = exchange
        self._driver = driver

    @property
    def capabilities(self) -> Capabilities:
        return self._driver.capabilities

    async def send(self, message: Message) -> Outcome:
        self._exchange.sends(message)
        return await self._driver.send(message)

    async def upload(self, media: Media, content: bytes) -> Uploaded | Outcome:
        return await self._driver.upload(media, content)

    async def find(self, message: Message, since_at: Instant) -> Found:
        return await self._driver.find(message, since_at)

    async def close(self) -> None:
        await self._driver.close()


__all__ = ["Exchange", "answer_to", "wished"]
