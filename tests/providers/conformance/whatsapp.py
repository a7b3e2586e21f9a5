"""WhatsApp's cases: a paired number that looks people up before it writes to them, and one that
does not. How the real library behaves is tested with the driver itself."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from paceline.core.instants import DAY, Instant
from paceline.core.model import Part
from paceline.core.outcome import OutcomeKind
from paceline.engine.clock import LoopClock
from paceline.engine.ports import Driver, Message
from paceline.providers.whatsapp.addresses import address_of, is_group
from paceline.providers.whatsapp.errors import AFTER, BY_NUMBER, EVER, STANDINGS
from paceline.providers.whatsapp.provider import WhatsAppProvider
from paceline.providers.whatsapp.wire import Draft, Standing, WireLost
from paceline.sim.loop import run_virtual
from tests.providers import stage as stages
from tests.providers.conformance.case import Case, Loss, Seen
from tests.providers.whatsapp.scripted import FAMILY, ScriptedWhatsApp
from tests.providers.whatsapp.stage import ANNA

T = TypeVar("T")

FINAL = {state: row.kind for state, row in STANDINGS.items() if state != "ended"}
ROWS: dict[str, OutcomeKind] = {
    **{row.says: row.kind for row in (*EVER, *AFTER)},
    **{str(number): kind for number, (kind, _) in BY_NUMBER.items()},
    **FINAL,
}


class WhatsAppStage:
    """A scripted WhatsApp, in virtual time."""

    def __init__(self, folder: Path, settings: Mapping[str, Any]) -> None:
        self.settings = settings
        self._folder = folder
        self._now = stages.START
        self._whatsapp = ScriptedWhatsApp()
        (folder / "sales.session").touch()
        self.restart()

    def restart(self) -> None:
        self.provider = WhatsAppProvider(LoopClock(self._now), self._folder, self._whatsapp.make)

    def now(self) -> Instant:
        return self._now

    def play(self, scene: Callable[[Driver], Awaitable[T]], *, hasty: bool = False) -> T:
        async def whole() -> T:
            driver = await self.provider.open(stages.account("sales", **self.settings))
            try:
                return await scene(driver)
            finally:
                await driver.close()

        return run_virtual(whole(), start_at=self._now)

    def message(
        self, key: str = "home-7-0", text: str = "Hello", *, handle: str | None = None
    ) -> Message:
        media = None if handle is None else "a" * 64
        part = Part("text" if handle is None else "media", text, media=media)
        return Message(key, ANNA, "message", part, handle)

    def answer(self, row: str) -> None:
        if row in FINAL:
            self._whatsapp.say(Standing(row))  # type: ignore[arg-type]
        elif row.isdecimal():
            self._whatsapp.fails("send", f"server returned error {row}")
        else:
            self._whatsapp.fails("send", row)

    def lose(self, loss: Loss) -> None:
        if loss.takes:
            self._whatsapp.sent.append((self._jid(), Draft("Hello")))
        self._whatsapp.will("send", WireLost(loss.name, handed_over=True))

    def _jid(self) -> str:
        return f"{ANNA.removeprefix('+')}@s.whatsapp.net"

    def mute(self) -> None:
        """Nobody can be asked anyway."""

    def sent(self) -> list[Seen]:
        files = self._whatsapp.files
        return [
            Seen(
                jid if is_group(jid) else address_of(jid),
                draft.text,
                None if draft.file is None else files[draft.file.url],
            )
            for jid, draft in self._whatsapp.sent
        ]

    def uploads(self) -> int:
        return len(self._whatsapp.files)

    def forget_uploads(self) -> None:
        """Time passes until no file is used any more."""
        self._now += 8 * DAY
        self.restart()


def _stage(**settings: Any) -> Callable[[], AbstractContextManager[WhatsAppStage]]:
    @contextmanager
    def staged() -> Iterator[WhatsAppStage]:
        with TemporaryDirectory() as folder:
            yield WhatsAppStage(Path(folder), settings)

    return staged


LOSSES = frozenset({"hung up, taken", "hung up, not taken", "silent, taken", "silent, not taken"})

CASES = [
    Case("whatsapp", _stage(), ROWS, LOSSES, group=FAMILY.jid),
    Case("whatsapp-known", _stage(look_up=False), ROWS, LOSSES, group=FAMILY.jid),
]
