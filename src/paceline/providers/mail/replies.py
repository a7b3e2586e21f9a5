"""What a mail server's answer means, as a table, and how an answer is read with it.

The first row that fits decides. Rows come in the order in which they may: what was asked for, then
the enhanced code (RFC 3463), then the code, then the words. Where a server uses one code for
several things, the words beside it tell them apart.

Two things are settled for good. Nobody is suppressed but by 5.1.x or by a 550 that says that there
is no such person. And 5.7.x is about the sender, whatever it says.

Greylisting is about one recipient: the server does not know who writes to whom, and wants to see
it a second time. Whoever else is written to need not wait for that, so it is ``transient`` and not
``throttled``, which would hold back the whole account, longer each time, although it sends no
slower than it may. It comes with a wait of its own, and is tried three times as the policy's
ladder says; a server that never relents then costs one message and not the account. The same goes
for a mailbox that is full or gets too much. What is about the rate of the sender is ``throttled``:
all wait, and go on slower.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Literal

from paceline.core.instants import HOUR, MINUTE, SECOND
from paceline.core.outcome import Outcome, OutcomeKind

Command = Literal["connect", "login", "mail", "rcpt", "data", "content"]
"""What an answer answers. ``data`` asks whether the letter may come, ``content`` is the letter."""

GREYLISTED = "greylisted"
GREYLIST_WAIT_US = 5 * MINUTE
"""What most who greylist ask for. Sooner is in vain."""

_K = OutcomeKind
_LONGEST_TEXT = 4_000
_STATUS = re.compile(r"\s*\(?#?([245]\.\d{1,3}\.\d{1,3})\b")
_MARKED_STATUS = re.compile(r"[(\[]?#([245]\.\d{1,3}\.\d{1,3})\b")
_ASKED = re.compile(
    r"(?:in|for|after|wait)\s+(\d{1,5})\s*(s|sec|seconds?|m|min|minutes?|hours?|h)\b", re.IGNORECASE
)
_UNITS = {"s": SECOND, "m": MINUTE, "h": HOUR}

GREY = r"gr[ae]y[- ]?list"
DAILY = (
    r"daily\b.{0,40}\b(?:limit|quota)|(?:limit|quota)\b.{0,40}\b(?:per|a|of the|for the) day"
    r"|sending (?:limit|quota)|submissionquotaexceeded|refusequota"
)
RATE = (
    r"rate[- ]?limit|(?:sending|message|submission|connection) rate|throttl|too (?:fast|quickly)"
    r"|too (?:many|much) (?:messages|mails?|e-?mails?|connections|concurrent|sessions|login)"
    r"|slower|slow down|unusual rate|unexpected volume|thread limit exceeded|quota exceeded"
    r"|relay limit|limit exceeded"
    r"|\bdomain \S{1,255} has exceeded the max (?:e-?mails|defers and failures) per hour"
)
UNUSUAL = r"unusual sending activity"
CREDITS = r"maximum credits exceeded"
FULL = (
    r"(?:mail ?box|inbox|user|recipient|account|maildir)\b.{0,60}"
    r"(?:\bfull\b|over ?quota|quota|out of storage|exceed\w* storage)"
    r"|over ?quota|insufficient storage for|exceeded storage allocation"
)
BUSY_MAILBOX = (
    r"receiving (?:e?mail|messages) (?:too quickly|at a rate)|recipient thread limit"
    r"|(?:mail ?box|user|account|recipient)\b.{0,60}\b(?:unavailable|busy|locked|temporar)"
)
_WHO = r"(?:user|recipient|mail ?box|account|addressee|address|person)"
GONE = (
    rf"{_WHO}(?: \S+)?(?: is| was)? (?:unknown|not found)"
    rf"|(?:unknown|no such|non-?existent|invalid) (?:{_WHO}|local|e-?mail)"
    rf"|{_WHO}\b.{{0,80}}\b(?:doesn't|does not) exist"
    rf"|doesn't have an? \S+ account|no mail ?box (?:here )?by that name"
    rf"|not (?:a valid|a known|our) {_WHO}"
)
OF_SENDER = (
    r"sender|from address|mail from|return[- ]path|\bspf\b|\bdkim\b|\bdmarc\b|hostname|\bhelo\b"
)
NOT_GONE = (
    rf"{OF_SENDER}|too many (?:invalid|unknown|bad|non-?existent|such)"
    r"|(?:e-?mail|from|reply-to) header\b"
    r"|\byour (?:e-?mail )?(?:address|domain)\b(?! ?(?:book|list))"
)
"""What is about the sender, a letter or how many it was, in words that are like those of nobody."""
OF_SIZE = r"\bsize\b|too (?:large|big)"
LOGIN = (
    r"authentication (?:failed|unsuccessful|required|credentials)|invalid credentials"
    r"|(?:username|user name|password)\b.{0,40}\b(?:not accepted|incorrect|invalid|wrong)"
    r"|not authenticated"
)
BANNED = (
    r"suspended due to abuse|outbound ?spam|bad outbound sender|blocked from sending|restricted"
)
# What some say of the account only when they know whom a letter is for, or have read it. The same
# words about a recipient are no reason to stop it, so each is as narrow as it can be.
OF_RECIPIENT = r"recipient|mail ?box|addressee|<[^<>\s]{1,300}@"
LOG_IN = r"^\W*(?:smtp )?authentication (?:is )?required\W*$|turn on smtp authentication"
STOPPED = r"\bsending paused for this account\b|\bthis account has been suspended due to abuse"
NOT_OURS = r"sender address rejected: not (?:owned by user|logged in)"
UNVERIFIED = r"address is not verified|does not match a verified sender identity"


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer as it came, and what it answers."""

    code: int
    """Three digits; 0 where there are only words."""
    text: str
    to: Command = "content"

    @property
    def status(self) -> str:
        """The enhanced code; empty where there is none. One that contradicts the code is none: a
        server that says both yes and no later must not cost anybody their address."""
        found = _STATUS.match(self.text) or _MARKED_STATUS.search(self.text)
        if found is None or (self.code and found[1][0] != str(self.code)[0]):
            return ""
        return found[1]

    @property
    def words(self) -> str:
        """In one line, without the enhanced code that many repeat on every line."""
        status = self.status
        lines = self.text[:_LONGEST_TEXT].splitlines()
        kept = lines[:1] + [line.strip().removeprefix(status) for line in lines[1:]]
        return " ".join(" ".join(kept).split())

    @property
    def told(self) -> str:
        return f"{self.code} {self.words}".strip() if self.code else self.words


@dataclass(frozen=True)
class Row:
    """What fits an answer, and what that answer means. An empty field fits everything."""

    kind: OutcomeKind
    means: str
    status: str = ""
    """The enhanced code; ``*`` and ``?`` stand for anything."""
    code: str = ""
    """The code, likewise."""
    says: str = ""
    """A pattern that its words have to have in them."""
    but_not: str = ""
    """A pattern that they must not have in them."""
    to: frozenset[str] = frozenset()
    """The commands it may be an answer to."""
    name: str = ""
    """The code it is known by, where the server's own would not tell it from others."""
    wait_us: int | None = None
    """How long to wait, where the answer itself does not say."""

    def fits(self, reply: Reply, status: str) -> bool:
        return (
            (not self.to or reply.to in self.to)
            and (not self.status or fnmatchcase(status, self.status))
            and (not self.code or fnmatchcase(f"{reply.code:03}", self.code))
            and (not self.says or self._says.search(reply.text) is not None)
            and (not self.but_not or self._but_not.search(reply.text) is None)
        )

    @cached_property
    def _says(self) -> re.Pattern[str]:
        return re.compile(self.says, re.IGNORECASE | re.DOTALL)

    @cached_property
    def _but_not(self) -> re.Pattern[str]:
        return re.compile(self.but_not, re.IGNORECASE | re.DOTALL)


_ABOUT_ONE = frozenset({"rcpt", "data", "content"})
"""What is asked when the server knows whom the letter is for."""
_ABOUT_US = frozenset({"connect", "mail"})
"""What is asked before it does: the answer would be the same for everybody."""
_LOGIN = frozenset({"login"})
_MAIL = frozenset({"mail"})


BY_COMMAND = (
    Row(_K.EXHAUSTED, "the credits are used up", code="[45]??", says=CREDITS, to=_LOGIN),
    Row(_K.THROTTLED, "logged in too often", code="4??", says=RATE, to=_LOGIN),
    Row(_K.UNAVAILABLE, "cannot be logged in to for the moment", code="4??", to=_LOGIN),
    Row(_K.BANNED, "the account is blocked", code="5??", says=BANNED, to=_LOGIN),
    Row(_K.UNAUTHORISED, "the login is refused", code="5??", to=_LOGIN),
    Row(_K.UNAVAILABLE, "speaks to nobody from here", code="5??", to=frozenset({"connect"})),
)
BY_STATUS = (
    Row(_K.TRANSIENT, "greylisted: once more, later", "4.*", says=GREY, name=GREYLISTED,
        wait_us=GREYLIST_WAIT_US),
    # The mailbox, or whoever it belongs to.
    Row(_K.TRANSIENT, "the mailbox is full", "[45].2.2"),
    Row(_K.TRANSIENT, "the mailbox gets too much", "[45].2.1", says=BUSY_MAILBOX),
    Row(_K.TRANSIENT, "the mailbox gets too much", "4.3.2", says=BUSY_MAILBOX),
    Row(_K.THROTTLED, "too fast", "4.2.1", says=RATE),
    Row(_K.REJECTED, "too large", "5.2.3"),
    Row(_K.REJECTED, "too large", "5.3.4"),
    # How much the account may send.
    Row(_K.EXHAUSTED, "the day's quota is used up", "5.1.90"),
    Row(_K.EXHAUSTED, "the day's quota is used up", "[45].4.5", says=DAILY),
    Row(_K.EXHAUSTED, "the day's quota is used up", "5.7.1", says=DAILY),
    Row(_K.EXHAUSTED, "the day's quota is used up", "[45].[2-5].*", says=DAILY),
    Row(_K.THROTTLED, "too fast", "5.7.*", says=r"rate[- ]?limit"),
    Row(_K.THROTTLED, "too much at once", "5.4.6", says=UNUSUAL),
    # Whether it may send at all. With another code, once a letter is spoken of, some of these are
    # about that letter: they fall through to the rest of 5.7.
    Row(_K.UNAUTHORISED, "the login is refused", "5.7.8", code="53?"),
    Row(_K.UNAUTHORISED, "the login is refused", "5.7.9", code="53?"),
    Row(_K.UNAUTHORISED, "the login is refused", "5.7.14", code="53?"),
    Row(_K.UNAUTHORISED, "not logged in", "5.7.57"),
    Row(_K.UNAUTHORISED, "may not send as this address", "5.7.60"),
    Row(_K.UNAUTHORISED, "the login is refused", "5.7.139", code="53?"),
    Row(_K.UNAUTHORISED, "not logged in", "5.7.*", code="53[0458]"),
    Row(_K.UNAUTHORISED, "not logged in", "5.7.*", says=LOG_IN, but_not=OF_RECIPIENT),
    Row(_K.UNAUTHORISED, "may not send as this address", "5.2.*", says="sendasdenied"),
    Row(_K.UNAUTHORISED, "may not send as this address", "5.7.1", says=NOT_OURS),
    Row(_K.BANNED, "the account is blocked", "5.2.0", says=BANNED),
    Row(_K.BANNED, "the account is blocked", "5.1.8", says=BANNED),
    Row(_K.BANNED, "the account is blocked", "5.7.0", says=BANNED),
    Row(_K.BANNED, "the provider blocks all of the sender's mail", "5.7.7??"),
    Row(_K.BANNED, "the provider blocks the sender's address on the net", "5.7.60[0-9]"),
    Row(_K.BANNED, "the provider blocks the sender's address on the net", "5.7.511"),
    Row(_K.TRANSIENT, "lost its place in the conversation", "5.5.1", code="503"),
    Row(_K.REJECTED, "not a letter this server takes", "5.[56].*", to=_MAIL),
    Row(_K.UNAUTHORISED, "takes nothing from this sender", "5.*", to=_MAIL),
    # The address.
    Row(_K.REJECTED, "does not like the sender's address", "5.1.[78]"),
    Row(_K.REJECTED, "does not like the sender", "5.1.0", says=OF_SENDER),
    Row(_K.BOUNCED, "there is no such address", "5.1.*", to=_ABOUT_ONE),
    # The sender: never a reason to give somebody up for good.
    Row(_K.REJECTED, "will not have it from this sender", "5.7.*"),
    Row(_K.THROTTLED, "too fast, or not trusted yet", "4.7.*"),
    Row(_K.BOUNCED, "there is no such person", "5.*", code="550", says=GONE, but_not=NOT_GONE,
        to=_ABOUT_ONE),
    Row(_K.THROTTLED, "too fast", "4.*", says=RATE),
    Row(_K.TRANSIENT, "the address cannot be reached for the moment", "4.[12].*"),
    Row(_K.UNAVAILABLE, "the server is not well", "4.[34].*", to=_ABOUT_US),
    Row(_K.TRANSIENT, "the server is not well", "4.[34].*"),
    Row(_K.REJECTED, "the mailbox takes nothing", "5.2.*"),
    Row(_K.REJECTED, "cannot be carried there", "5.[34].*"),
    Row(_K.REJECTED, "not a letter this server takes", "5.[56].*"),
)  # fmt: skip
BY_CODE = (
    Row(_K.TRANSIENT, "greylisted: once more, later", code="4??", says=GREY, name=GREYLISTED,
        wait_us=GREYLIST_WAIT_US),
    Row(_K.TRANSIENT, "the mailbox is full", code="4??", says=FULL),
    Row(_K.TRANSIENT, "the mailbox is full", code="55[02]", says=FULL, to=_ABOUT_ONE),
    Row(_K.EXHAUSTED, "the day's quota is used up", code="[45]??", says=DAILY),
    Row(_K.EXHAUSTED, "the credits are used up", code="[45]??", says=CREDITS),
    Row(_K.TRANSIENT, "the mailbox gets too much", code="4??", says=BUSY_MAILBOX, to=_ABOUT_ONE),
    Row(_K.THROTTLED, "too fast", code="[45]??", says=RATE, but_not=OF_SIZE),
    Row(_K.THROTTLED, "too fast, or too much in one conversation", code="421"),
    Row(_K.THROTTLED, "not now", code="45[01]"),
    Row(_K.UNAVAILABLE, "the server has no room", code="452", to=_ABOUT_US),
    Row(_K.TRANSIENT, "the server has no room", code="452"),
    Row(_K.UNAVAILABLE, "the server is not well", code="4??", to=_ABOUT_US),
    Row(_K.TRANSIENT, "not now", code="4??"),
    Row(_K.UNAUTHORISED, "not logged in", code="53[0458]"),
    Row(_K.UNAUTHORISED, "not logged in", code="550", says=LOG_IN, but_not=OF_RECIPIENT),
    Row(_K.UNAUTHORISED, "may not send as this address", code="55[034]", says=UNVERIFIED),
    Row(_K.UNAUTHORISED, "may not send as this address", code="55[034]", says=NOT_OURS),
    Row(_K.BANNED, "the account is blocked", code="55[04]", says=STOPPED, but_not=OF_RECIPIENT),
    Row(_K.TRANSIENT, "lost its place in the conversation", code="50[023]"),
    Row(_K.REJECTED, "too large", code="552", to=_MAIL),
    Row(_K.UNAUTHORISED, "takes nothing from this sender", code="55?", to=_MAIL),
    Row(_K.BOUNCED, "there is no such person", code="550", says=GONE, but_not=NOT_GONE,
        to=_ABOUT_ONE),
    Row(_K.REJECTED, "will not have it", code="5??"),
)  # fmt: skip
BY_WORDS = (
    Row(_K.UNAUTHORISED, "the login is refused", says=LOGIN),
    Row(_K.TRANSIENT, "the mailbox is full", says=FULL),
    Row(_K.EXHAUSTED, "the day's quota is used up", says=DAILY),
    Row(_K.THROTTLED, "too fast", says=RATE),
    Row(_K.BOUNCED, "there is no such person", code="000", says=GONE, but_not=NOT_GONE),
    Row(_K.TRANSIENT, "says nothing that can be understood"),
)
ROWS = (*BY_COMMAND, *BY_STATUS, *BY_CODE, *BY_WORDS)


def row_for(reply: Reply) -> Row:
    status = reply.status
    return next(row for row in ROWS if row.fits(reply, status))


def outcome_of(reply: Reply) -> Outcome:
    """What an answer that is no yes means for the letter, in the server's own words."""
    row = row_for(reply)
    code = row.name or reply.status or (f"{reply.code:03}" if reply.code else "")
    wait_us = row.wait_us
    if row.kind in (_K.THROTTLED, _K.UNAVAILABLE) or row.name == GREYLISTED:
        wait_us = _asked_us(reply.text) or wait_us
    return Outcome(row.kind, reply.told or row.means, code, None, wait_us)


def reply_in(text: str, to: Command = "content") -> Reply:
    """An answer that is quoted somewhere, as ``550 5.1.1 …`` or ``smtp; 550-5.1.1 …``."""
    found = re.match(r"\s*(?:smtp;\s*)?([2-5]\d\d)[ -]?(.*)", text, re.IGNORECASE | re.DOTALL)
    return Reply(int(found[1]), found[2], to) if found else Reply(0, text.strip(), to)


def _asked_us(text: str) -> int | None:
    """For how long an answer asks to wait, where it says so and it makes sense."""
    found = _ASKED.search(text[:_LONGEST_TEXT])
    if found is None:
        return None
    asked_us = int(found[1]) * _UNITS[found[2][0].lower()]
    return asked_us if SECOND <= asked_us <= 24 * HOUR else None
