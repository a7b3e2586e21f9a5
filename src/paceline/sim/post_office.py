"""The mail houses of a simulated world: the sandbox behind servers that greylist, refuse, bounce
and have something to say afterwards.

What a server answers is read by the same table as every real answer (``providers/mail/replies``).
What comes back lies in the mailbox of the account that sent the letter, or now and then in another
one. Everything here is far away: it outlives every process.
"""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Literal

from paceline.core.instants import DAY, MINUTE, SECOND, Instant
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
    Returned,
    Uploaded,
)
from paceline.providers.mail.replies import Reply, outcome_of
from paceline.providers.sandbox import MemoryEffects, SandboxProvider
from paceline.providers.sandbox.effects import Effect, PartDigest
from paceline.sim.post import Box, Click, Mail, MailKind, Manner, Post, Reaction, Trouble, drawn
from paceline.sim.trace import Trace

TWICE = 0.3
"""Reports that come twice; so many are followed, or preceded, by one that says it is delayed."""
TOUCHY = 0.2
"""People whose mailbox, once full, stays so."""

ReturnKind = Literal["bounced", "failed", "complaint"]
REPORTED: tuple[ReturnKind, ...] = ("bounced", "failed", "complaint")

_SLOW_DOWN = Reply(421, "4.7.0 too many messages, slow down", "mail")
_UNKNOWN = Reply(550, "5.1.1 no such user here", "rcpt")
_FULL = Reply(452, "4.2.2 mailbox full", "rcpt")
_GREY = (
    Reply(451, "4.7.1 Greylisted, please try again later", "rcpt"),
    Reply(450, "4.2.0 Recipient address rejected: Greylisted", "rcpt"),
    Reply(451, "4.7.1 greylisting in action, try again in 300 seconds", "rcpt"),
)


class Letters(MemoryEffects):
    """The log, in which whoever has taken a letter sees at once that it has."""

    taken: Callable[[Effect], None] | None = None

    def record(self, effect: Effect) -> None:
        super().record(effect)
        if self.taken is not None and effect.kind == "send" and effect.accepted:
            self.taken(effect)


class PostOffice(SandboxProvider):
    """The sandbox, with people behind it, and with mailboxes."""

    capabilities = replace(SandboxProvider.capabilities, unsubscribes=True)

    def __init__(self, clock: LoopClock, letters: Letters, post: Post, trace: Trace) -> None:
        super().__init__(clock, letters)
        self.post = post
        self.boxes: dict[str, Box] = {}
        self.clicks: list[Click] = []
        self.clicked: Callable[[Click], None] = lambda click: None
        """Told of everybody who follows a link; whoever has processes at hand sees to it."""
        self._began_at = clock.now()
        self._letters = letters
        self._trace = trace
        self._links: dict[str, str] = {}
        self._tries: dict[str, int] = defaultdict(int)
        self._met: dict[tuple[str, str], Instant] = {}
        self._coming: list[Instant] = []
        self._came = asyncio.Event()
        letters.taken = self._took

    def capabilities_of(self, settings: Mapping[str, Any]) -> Capabilities:
        return replace(super().capabilities_of(settings), unsubscribes=True)

    async def open(self, account: Account) -> Driver:
        return _Counter(self, account, await super().open(account))

    def has_mailbox(self, settings: Mapping[str, Any]) -> bool:
        return True

    # ------------------------------------------------------------------ taking letters

    def refusal(self, account: str, message: Message) -> Outcome | None:
        """What a server will not have, or not yet; None where it takes the letter, as far as it is
        up to whom it is for."""
        now, target = self._clock.now(), message.target
        self._links[message.key] = message.unsubscribe
        self._tries[message.key] += 1
        luck = self._luck("call", message.key, self._tries[message.key])
        if luck.random() < self.post.throttled:
            return outcome_of(_SLOW_DOWN)
        manner = self._manner_of(target)
        if manner is Manner.GONE:
            return outcome_of(_UNKNOWN)
        who = self._luck("who", target)
        if manner is Manner.GREY:
            since_at = self._met.setdefault((account, target), now)
            # Whoever waits as long as most servers ask for gets through with the second try again.
            strange_us = who.randint(MINUTE, 9 * MINUTE)
            return outcome_of(who.choice(_GREY)) if now - since_at < strange_us else None
        if manner is Manner.FULL:
            since_at = self._met.setdefault(("", target), now)
            full_us = DAY * 99 if who.random() < TOUCHY else who.randint(SECOND, 12 * MINUTE)
            return outcome_of(_FULL) if now - since_at < full_us else None
        return None

    def note_refusal(
        self, account: Account, message: Message, outcome: Outcome, at: Instant
    ) -> None:
        effect = Effect(
            kind="send",
            called_at=at,
            at=self._clock.now(),
            account=account.name,
            address=account.address,
            key=message.key,
            target=message.target,
            action=message.action,
            part=PartDigest.of(message.part, message.handle),
            attempt=self._tries[message.key],
            answer=str(outcome.kind),
            code=outcome.code,
            accepted=False,
            retry_after_us=outcome.retry_after_us,
        )
        self._letters.record(effect)

    def latency_us(self, message: Message) -> int:
        return self._luck("latency", message.key, self._tries[message.key]).randint(1, 3 * SECOND)

    def _manner_of(self, target: str) -> Manner:
        return Manner(drawn(self._luck("manner", target).random(), self.post.manners))

    # ------------------------------------------------------------------ what comes back

    def _took(self, effect: Effect) -> None:
        luck, target = self._luck("back", effect.key, effect.attempt), effect.target
        manner = self._manner_of(target)
        if manner in (Manner.LOST, Manner.STUFFED):
            self._bounce(effect, luck, hard=manner is Manner.LOST)
            return
        reaction = Reaction(drawn(luck.random(), self.post.reactions))
        after_us = self._delay_us(luck)
        if reaction in (Reaction.ANSWER, Reaction.NOTE):
            automatic = reaction is Reaction.NOTE
            news = Inbound(
                f"{reaction} to {effect.key}",
                target,
                target,
                "not here" if automatic else "tell me more",
                effect.at + after_us,
                answers=effect.key,
                automatic=automatic,
            )
            kind: MailKind = "note" if automatic else "answer"
            self._send_back(effect.account, after_us, kind, effect, news)
            if luck.random() < TWICE:
                self._send_back(effect.account, self._delay_us(luck), kind, effect, news)
        elif reaction is Reaction.COMPLAINT:
            # Mail houses report complaints to whoever has signed up for it, and that is anybody.
            account = luck.choice([effect.account, *sorted(self.boxes)])
            report = Returned("complaint", target, "abuse", 0, "", effect.key)
            self._send_back(account, after_us, "complaint", effect, report)
            if luck.random() < TWICE:
                self._send_back(account, self._delay_us(luck), "complaint", effect, report)
        elif reaction is Reaction.CLICK and self._links[effect.key]:
            self._later(after_us, self._click, target, self._links[effect.key])

    def _bounce(self, effect: Effect, luck: random.Random, *, hard: bool) -> None:
        kind: MailKind = "hard" if hard else "soft"
        said, code = ("550 no such user", "5.1.1") if hard else ("552 mailbox full", "5.2.2")
        final = Returned("bounced" if hard else "failed", effect.target, said, 0, code, effect.key)
        self._send_back(effect.account, self._delay_us(luck), kind, effect, final)
        if luck.random() < TWICE:
            self._send_back(effect.account, self._delay_us(luck), kind, effect, final)
        if luck.random() < TWICE:
            slow = final._replace(kind="delayed", reason="451 still trying", code="4.4.1")
            self._send_back(effect.account, self._delay_us(luck), "delayed", effect, slow)

    def set_up(self, names: list[str], within_us: int) -> None:
        """A mailbox for everybody, and some reports that somebody will have made up: about letters
        that are nobody's, or somebody else's."""
        for name in names:
            self.boxes[name] = Box()
        luck = self._luck("forged")
        for _ in range(self.post.forged):
            self._later(luck.randint(1, within_us), self._forged, luck, names)

    def _forged(self, luck: random.Random, names: list[str]) -> None:
        account = luck.choice(names)
        key: str | None = luck.choice((None, "sim-900001-0", "mis-1-0", "sim-1", "sim-1-0-x"))
        kind: ReturnKind = luck.choice(REPORTED)
        others = [one for one in self._letters.all() if one.accepted and one.account != account]
        if others and luck.random() < 0.5:
            # That a letter has come back is said to whoever has sent it, and to nobody else.
            key, kind = luck.choice(others).key, luck.choice(REPORTED[:2])
        news = Returned(kind, "", "550 5.1.1 made up", 0, "5.1.1", key)
        self._put(account, "forged", "", key or "", news)

    def _send_back(
        self, account: str, after_us: int, kind: MailKind, effect: Effect, news: News
    ) -> None:
        self._later(after_us, self._put, account, kind, effect.target, effect.key, news)

    def _put(self, account: str, kind: MailKind, target: str, key: str, news: News) -> None:
        box = self.boxes[account]
        box.mail.append(Mail(len(box.mail) + 1, self._clock.now(), kind, target, key, news))
        about = key.rsplit("-", 2)[1] if kind != "forged" else "nothing"
        self._trace.note("post", "brings", f"{kind} about delivery {about} to {account}")
        came, self._came = self._came, asyncio.Event()
        came.set()

    def _click(self, target: str, link: str) -> None:
        click = Click(self._clock.now(), target, link)
        self.clicks.append(click)
        self.clicked(click)

    def _later(self, after_us: int, what: Callable[..., None], *about: Any) -> None:
        at = self._clock.now() + after_us
        self._coming.append(at)

        def happen() -> None:
            self._coming.remove(at)
            what(*about)

        asyncio.get_running_loop().call_later(after_us / SECOND, happen)

    @property
    def next_at(self) -> Instant | None:
        """When something comes next that is under way; None where nothing is."""
        return min(self._coming, default=None)

    # ------------------------------------------------------------------ mailboxes

    def trouble(self, account: str) -> Trouble | None:
        """What keeps everybody from reading a mailbox just now."""
        since_us = self._clock.now() - self._began_at
        return next(
            (
                one
                for one in self.post.troubles.get(account, ())
                if one.after_us <= since_us < one.after_us + one.lasts_us
            ),
            None,
        )

    async def wait_for_mail(self, within_us: int) -> None:
        """Until something comes to whomever, or it has been long enough."""
        came = self._came
        try:
            async with asyncio.timeout(within_us / SECOND):
                await came.wait()
        except TimeoutError:
            return

    def _luck(self, *about: object) -> random.Random:
        """Another one for everything it is about, so that nothing depends on who comes first."""
        return random.Random(f"{self.post.seed}/{'/'.join(map(str, about))}")

    def _delay_us(self, luck: random.Random) -> int:
        return luck.randint(*luck.choice(self.post.returns))


class _Counter:
    """Where the letters of one account are taken, or not."""

    def __init__(self, office: PostOffice, account: Account, driver: Driver) -> None:
        self._office = office
        self._account = account
        self._driver = driver

    @property
    def capabilities(self) -> Capabilities:
        return replace(self._driver.capabilities, unsubscribes=True)

    async def send(self, message: Message) -> Outcome:
        called_at = self._office._clock.now()
        outcome = self._office.refusal(self._account.name, message)
        if outcome is None:
            return await self._driver.send(message)
        await asyncio.sleep(self._office.latency_us(message) / SECOND)
        self._office.note_refusal(self._account, message, outcome, called_at)
        return outcome

    async def upload(self, media: Media, content: bytes) -> Uploaded | Outcome:
        return await self._driver.upload(media, content)

    async def find(self, message: Message, since_at: Instant) -> Found:
        return await self._driver.find(message, since_at)

    async def close(self) -> None:
        await self._driver.close()


__all__ = ["Letters", "PostOffice"]
