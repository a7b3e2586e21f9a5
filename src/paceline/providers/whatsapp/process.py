"""A connection that lives in a process of its own: our end of the pipe.

The library inside may crash its process, hang, or print: none of it reaches us. A process that is
gone takes its calls with it, which is the one way to be sure that a call goes no further.
"""

from __future__ import annotations

import asyncio
import os
import sys
from base64 import b64decode, b64encode
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import structlog

from paceline.core.enclosures import enclosed
from paceline.core.instants import SECOND
from paceline.providers.whatsapp import frames
from paceline.providers.whatsapp.addresses import address_of
from paceline.providers.whatsapp.errors import BANS, LOGOUTS
from paceline.providers.whatsapp.wire import (
    Acknowledged,
    Came,
    Composing,
    Draft,
    Dropped,
    FileKind,
    GroupChanged,
    LibraryError,
    Listener,
    PairingOver,
    QrCode,
    Standing,
    Uploaded,
    WireEvent,
    WireGroup,
    WireLost,
    WireRefused,
)

log = structlog.get_logger("paceline.whatsapp")

HOST = (sys.executable, "-P", "-m", "paceline.providers.whatsapp.host")

START_WITHIN_S = 30
CLOSE_WITHIN_S = 4
WITHIN_S: Mapping[str, float] = {
    "connect": 10, "pair": 60, "groups": 120, "group": 60, "look_up": 60, "upload": 600,
    "send": 150, "confirm": 30, "online": 60,
}  # fmt: skip
"""Longer than policies wait, which decide, and than the library itself does (75 s for a send). It
bounds what nobody else bounds."""

PASSED_ON = ("PATH", "HOME", "LANG", "TZ", "TMPDIR", "SYSTEMROOT", "USERPROFILE")
PASSED_ON_PREFIXES = ("LC_", "LD_", "DYLD_", "PYTHON", "SSL_CERT_", "HTTP_PROXY", "HTTPS_PROXY")
"""What the process may know of our surroundings: nothing that could be anybody's secret."""

LAST_WORDS = 40
_BYTES = ("key", "sha256", "encrypted_sha256", "thumbnail")


def surroundings(own: Mapping[str, str]) -> dict[str, str]:
    """The variables an account's process gets.

    None by which the library would leave out its mark that a program has sent a message: one has.
    """
    return {
        name: value
        for name, value in own.items()
        if name.upper() in PASSED_ON or name.upper().startswith((*PASSED_ON_PREFIXES, "NO_PROXY"))
    }


class ProcessWire:
    """A ``WhatsAppWire`` whose other end is ``host.py``."""

    def __init__(self, session: Path, listener: Listener, command: Sequence[str] = HOST) -> None:
        self._session = session.absolute()
        self._listener = listener
        self._command = command
        self._process: asyncio.subprocess.Process | None = None
        self._reading: list[asyncio.Task[None]] = []
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._hello: asyncio.Future[None] | None = None
        self._last_words: deque[str] = deque(maxlen=LAST_WORDS)
        self._number = 0
        self._closing = False
        self._over = False

    # ------------------------------------------------------------------ its life

    async def connect(self) -> None:
        await self._start()
        await self._call("connect")

    async def _start(self) -> None:
        folder = self._session.parent
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._process = await asyncio.create_subprocess_exec(
                *self._command,
                str(self._session),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=surroundings(os.environ),
                # Ctrl-C is for us; what becomes of the account's process we decide.
                start_new_session=True,
            )
        except OSError as error:
            raise WireLost(f"cannot be started: {error}", handed_over=False) from None
        self._hello = asyncio.get_running_loop().create_future()
        self._reading = [
            asyncio.create_task(self._read_all(self._process)),
            asyncio.create_task(self._read_words(self._process)),
        ]
        try:
            async with asyncio.timeout(START_WITHIN_S):
                await asyncio.shield(self._hello)
        except TimeoutError:
            self.abort()
            raise WireLost("its process did not start", handed_over=False) from None

    async def close(self) -> None:
        process, self._closing = self._process, True
        if process is None:
            return
        if not self._over:
            try:
                async with asyncio.timeout(CLOSE_WITHIN_S):
                    await self._write({"id": 0, "call": "close"})
                    await process.wait()
            except (TimeoutError, ConnectionError):
                self.abort()
        await process.wait()
        await asyncio.gather(*self._reading, return_exceptions=True)

    def abort(self) -> None:
        self._kill()
        self._end("its process was ended")

    def _kill(self) -> None:
        if self._process is not None and self._process.returncode is None:
            try:
                self._process.kill()
            except ProcessLookupError:
                log.debug("the process had ended already")

    # ------------------------------------------------------------------ calls

    async def pair_by_phone(self, phone: str) -> str:
        return str(await self._call("pair", phone=phone))

    async def groups(self) -> list[WireGroup]:
        return [WireGroup(*found) for found in await self._call("groups")]

    async def group(self, jid: str) -> WireGroup:
        return WireGroup(*await self._call("group", jid=jid))

    async def look_up(self, phone: str) -> str | None:
        found = await self._call("look_up", phone=phone)
        return None if found is None else str(found)

    async def upload(self, kind: FileKind, content: bytes) -> Uploaded:
        answer = dict(await self._call("upload", content, kind=kind))
        for name in _BYTES:
            answer[name] = b64decode(answer[name])
        return Uploaded(**answer)

    async def send(self, jid: str, draft: Draft) -> str:
        return str(await self._call("send", jid=jid, draft=_written(draft)))

    async def confirm(self, mark: str) -> None:
        await self._call("confirm", mark=mark)

    async def be_online(self) -> None:
        await self._call("online")

    async def _call(self, name: str, body: bytes = b"", **words: Any) -> Any:
        if self._process is None or self._over:
            raise WireLost("its process has ended", handed_over=False)
        self._number += 1
        number = self._number
        waiting: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[number] = waiting
        try:
            async with asyncio.timeout(WITHIN_S[name]):
                await self._write({"id": number, "call": name, **words}, body)
                return await waiting
        except TimeoutError:
            # Nobody can tell what it is doing. Once its process is gone it does nothing any more.
            self.abort()
            raise WireLost("its process does not answer", handed_over=True) from None
        except ConnectionError:
            raise WireLost("its process has ended", handed_over=True) from None
        finally:
            self._waiting.pop(number, None)

    async def _write(self, header: dict[str, Any], body: bytes = b"") -> None:
        assert self._process is not None and self._process.stdin is not None
        self._process.stdin.write(frames.encode(header, body))
        await self._process.stdin.drain()

    # ------------------------------------------------------------------ what comes back

    async def _read_all(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        try:
            while (frame := await frames.receive(process.stdout)) is not None:
                self._take(frame[0])
        except frames.BadFrame as error:
            log.error("the account's process talks nonsense", error=str(error))
            self._kill()
        code = await process.wait()
        self._end(self._why(code))

    def _take(self, header: dict[str, Any]) -> None:
        if "event" not in header:
            waiting = self._waiting.get(header.get("id", 0))
            if waiting is None or waiting.done():
                return
            if "error" in header:
                waiting.set_exception(LibraryError(str(header["error"])))
            else:
                waiting.set_result(header.get("answer"))
        elif header["event"] == "hello":
            self._greet(None)
        elif header["event"] == "refused":
            self._greet(WireRefused(str(header["reason"]), str(header["code"])))
        elif header["event"] == "unkept":
            log.error("messages cannot be kept, and may be lost", reason=header["reason"])
        elif not self._closing:
            self._pass_on(header)

    def _pass_on(self, header: dict[str, Any]) -> None:
        try:
            self._listener(read_event(header))
        except Exception:
            # Whatever is wrong with one report, the answers that follow it are waited for.
            log.exception("a report could not be taken")

    def _greet(self, refused: WireRefused | None) -> None:
        if self._hello is None or self._hello.done():
            return
        if refused is None:
            self._hello.set_result(None)
        else:
            self._hello.set_exception(refused)

    async def _read_words(self, process: asyncio.subprocess.Process) -> None:
        """What the process prints, for whoever has to find out why it ended."""
        assert process.stderr is not None
        try:
            async for line in process.stderr:
                text = line.decode(errors="replace").rstrip()
                self._last_words.append(text)
                log.debug("the account's process says", text=text)
        except ValueError:
            # A line longer than anybody writes. The rest is read by nobody, but it is read.
            log.debug("the account's process says too much")
            while await process.stderr.read(65_536):
                pass

    def _why(self, code: int) -> str:
        """Why a process has ended by itself."""
        for line in self._last_words:
            if line.startswith(("panic: ", "fatal error: ")):
                return f"its process crashed ({line})"
        return f"its process has ended ({code})"

    def _end(self, reason: str) -> None:
        """Nothing more comes: whoever waits is told, once."""
        if self._over:
            return
        self._over = True
        lost = WireLost(reason, handed_over=True)
        for waiting in list(self._waiting.values()):
            if not waiting.done():
                waiting.set_exception(lost)
        if self._hello is not None and not self._hello.done():
            self._hello.set_exception(WireLost(reason, handed_over=False))
        if not self._closing:
            self._listener(Standing("ended", reason))


def _written(draft: Draft) -> dict[str, Any]:
    written: dict[str, Any] = {
        "text": draft.text,
        "kind": draft.kind,
        "mime": draft.mime,
        "name": draft.name,
        "uploaded_at": draft.uploaded_at,
        "file": None,
    }
    if draft.file is not None:
        file: dict[str, Any] = draft.file._asdict()
        for name in _BYTES:
            file[name] = b64encode(file[name]).decode()
        written["file"] = file
    return written


def read_event(told: dict[str, Any]) -> WireEvent:
    """What the other end told, as a value."""
    match told["event"]:
        case "standing":
            return _standing(told)
        case "qr":
            return QrCode(told["code"])
        case "pairing":
            return PairingOver(told["result"], told["reason"])
        case "came":
            return _came(told)
        case "receipt":
            return Acknowledged(tuple(told["ids"]), told["state"], told["at"])
        case "group":
            return GroupChanged(told["jid"])
        case "typing":
            return Composing(address_of(told["chat"]))
        case "dropped":
            return Dropped(told["count"])
        case other:
            raise ValueError(f"there is no event {other!r}")


def _standing(told: dict[str, Any]) -> Standing:
    state, number = told["state"], told.get("number", 0)
    if state == "banned":
        seconds = told.get("seconds", 0)
        return Standing(
            "banned",
            BANS.get(number, "for reasons it does not tell"),
            "temporary-ban",
            seconds * SECOND if seconds > 0 else None,
        )
    if state == "logged_out":
        return Standing("logged_out", LOGOUTS.get(number, ""), "logged-out")
    own = told.get("own", "")
    return Standing(state, told.get("reason", ""), own=address_of(own) if own else "")


def _came(told: dict[str, Any]) -> Came:
    return Came(
        told["id"],
        address_of(told["chat"]),
        address_of(told["sender"]),
        told["text"],
        told["kind"],
        told["at"],
        told["from_us"],
        told["group"],
        tuple(enclosed(**file) for file in told.get("files", ())),
        told.get("mark", ""),
        tuple(address_of(name) for name in told.get("also", ())),
    )
