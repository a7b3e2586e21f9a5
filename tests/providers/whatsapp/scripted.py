"""WhatsApp as a connection sees it, told what to say: groups, people, and what goes wrong.

It behaves like the real one where that matters: what is called after the end is lost before it was
handed over, what was under way is lost after, and an end nobody asked for is told.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from paceline.providers.whatsapp.wire import (
    Draft,
    FileKind,
    LibraryError,
    Listener,
    Standing,
    Uploaded,
    WireError,
    WireEvent,
    WireGroup,
    WireLost,
)

OWN = "+4915112345678"
READY = Standing("ready", own=OWN)
FAMILY = WireGroup("120363000000000001@g.us", "Family", 12)
CLASS = WireGroup("120363000000000002@g.us", "class of 2026", 30)
NEWSROOM = WireGroup("120363000000000003@g.us", "Newsroom", 800, may_send=False)


@dataclass
class ScriptedWhatsApp:
    """What all connections of a test see."""

    connects: deque[Sequence[WireEvent] | WireError] = field(default_factory=deque)
    """What each connection tells as soon as it is made; ready, unless something is said."""
    script: dict[str, deque[Any]] = field(default_factory=dict)
    """The answers to calls, by name, in order; an exception is raised. After that the usual."""
    groups: list[WireGroup] = field(default_factory=lambda: [NEWSROOM, FAMILY, CLASS])
    strangers: set[str] = field(default_factory=set)
    """Numbers that are not on WhatsApp."""
    spelled: dict[str, str] = field(default_factory=dict)
    """Numbers that WhatsApp knows under another id."""
    calls: list[tuple[str, Any]] = field(default_factory=list)
    sent: list[tuple[str, Draft]] = field(default_factory=list)
    wires: list[ScriptedWire] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    """What was uploaded, by its address."""
    hold: set[str] = field(default_factory=set)
    """Calls that are not answered until somebody lets them go on."""

    def __post_init__(self) -> None:
        self.go_on = asyncio.Event()
        self.begun = asyncio.Event()
        self.numbers = count(1)

    def make(self, session: Path, listener: Listener) -> ScriptedWire:
        wire = ScriptedWire(self, session, listener)
        self.wires.append(wire)
        return wire

    def will(self, call: str, *answers: Any) -> None:
        self.script.setdefault(call, deque()).extend(answers)

    def fails(self, call: str, text: str) -> None:
        self.will(call, LibraryError(text))

    def say(self, event: WireEvent) -> None:
        """Tell the newest connection something."""
        self.wires[-1].listener(event)

    def called(self, name: str) -> list[Any]:
        return [what for call, what in self.calls if call == name]


class ScriptedWire:
    """One connection to it."""

    def __init__(self, world: ScriptedWhatsApp, session: Path, listener: Listener) -> None:
        self.world = world
        self.session = session
        self.listener = listener
        self.connected = False
        self.closed = False
        self.over = asyncio.Event()

    async def connect(self) -> None:
        await asyncio.sleep(0)
        self.connected = True
        told = self.world.connects.popleft() if self.world.connects else [READY]
        if isinstance(told, WireError):
            raise told
        for event in told:
            self.listener(event)

    async def pair_by_phone(self, phone: str) -> str:
        return str(await self._answer("pair", phone, "ABCD-EFGH"))

    async def groups(self) -> list[WireGroup]:
        return list(await self._answer("groups", None, self.world.groups))

    async def group(self, jid: str) -> WireGroup:
        known = next((group for group in self.world.groups if group.jid == jid), None)
        usual = known or LibraryError("failed to get group info: that group does not exist")
        found: WireGroup = await self._answer("group", jid, usual)
        return found

    async def look_up(self, phone: str) -> str | None:
        usual = self.world.spelled.get(phone, f"{phone.removeprefix('+')}@s.whatsapp.net")
        found = None if phone in self.world.strangers else usual
        answer: str | None = await self._answer("look_up", phone, found)
        return answer

    async def upload(self, kind: FileKind, content: bytes) -> Uploaded:
        number = next(self.world.numbers)
        usual = Uploaded(
            f"https://mmg.whatsapp.net/{number}", f"/{number}", b"k" * 32, b"s" * 32, b"e" * 32,
            len(content), b"\xff\xd8small" if kind == "image" else b"",
        )  # fmt: skip
        answer: Uploaded = await self._answer("upload", (kind, content), usual)
        self.world.files[answer.url] = content
        return answer

    async def send(self, jid: str, draft: Draft) -> str:
        usual = f"3EB0{next(self.world.numbers):08X}"
        answer = str(await self._answer("send", (jid, draft), usual))
        self.world.sent.append((jid, draft))
        return answer

    async def confirm(self, mark: str) -> None:
        await self._answer("confirm", mark, None)

    async def be_online(self) -> None:
        await self._answer("online", None, None)

    async def _answer(self, call: str, what: Any, usual: Any) -> Any:
        if self.over.is_set() or not self.connected:
            raise WireLost("its process has ended", handed_over=False)
        world = self.world
        world.calls.append((call, what))
        scripted = world.script.get(call)
        answer = scripted.popleft() if scripted else usual
        if call in world.hold:
            world.begun.set()
            await self._held()
        if isinstance(answer, BaseException):
            raise answer
        return answer

    async def _held(self) -> None:
        waits = [asyncio.ensure_future(e.wait()) for e in (self.world.go_on, self.over)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        if self.over.is_set():
            raise WireLost("its process was ended", handed_over=True)

    async def close(self) -> None:
        self.closed = True
        self.over.set()

    def abort(self) -> None:
        if not self.over.is_set():
            self.over.set()
            self.listener(Standing("ended", "its process was ended"))

    def crash(self, reason: str = "its process crashed (panic: index out of range)") -> None:
        self.over.set()
        self.listener(Standing("ended", reason))
