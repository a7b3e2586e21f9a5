"""Letters that came back: what a mail system says of one of ours, read with the table of answers.

Most say it as RFC 3464 has it, in fields. The rest say it in prose, each in its own; flufl.bounce
knows whom many of them mean, and their words decide as an answer of a mail server would. What a
report is about is known by the name of the letter that it returns, or by the address it was sent
to. Anybody can write a report: one that does not know our name of a letter is about somebody
else's, and its ``key`` is None.

A person may write from ``postmaster@`` or ``bounce@`` too, and what they write must be heard: so in
prose neither the sender's name nor what a letter says that it answers makes a report by itself.
Whatever is in doubt is a message to us.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from email.message import Message
from itertools import islice

from paceline.core.instants import Instant
from paceline.core.outcome import Outcome, OutcomeKind
from paceline.engine.ports.webhooks import News, Receipt, Returned
from paceline.providers.answers import shortened
from paceline.providers.mail.automatic import is_called_an_answer, is_called_automatic
from paceline.providers.mail.incoming import (
    Incoming,
    addresses_in,
    cleaned,
    decoded,
    field,
    key_named,
    parsed,
    spelled,
    text_of,
    words_in,
)
from paceline.providers.mail.replies import Reply, outcome_of, reply_in

MOST_RETURNED = 50
"""Recipients that one report may be about. Ours have one each."""
LONGEST_LINE = 500
"""Characters of a line in prose: what looks for addresses there takes the square of it."""

Fields = Mapping[str, str]

_STATUS_TYPES = frozenset({"message/delivery-status", "message/global-delivery-status"})
_OUR_NAMES = (
    "Message-ID",
    "X-Microsoft-Original-Message-ID",
    "X-Google-Original-Message-ID",
    "X-Gmail-Original-Message-ID",
    "X-Original-Message-ID",
    "Resent-Message-ID",
    "Return-Path",
)
"""Where a returned letter has its name; some who carry it put another one in its place."""
_DELIVERY = "delivery-status"
SENT_TO = ("To", "Delivered-To", "X-Original-To", "Envelope-To", "X-Envelope-To")
_ANSWERED = ("In-Reply-To", "References")
_NAMED = re.compile(
    r"^[>| \t]{0,20}(?:X-)?(?:Original-)?Message-ID:[ \t]{0,20}(?:\r?\n[> \t]{1,20})?"
    r"(<[^<>\s]{1,500}>)",
    re.IGNORECASE | re.MULTILINE,
)
_ENHANCED = re.compile(r"\b([245]\.\d{1,3}\.\d{1,3})\b")
_QUOTED_ANSWER = re.compile(
    r"(?:^|[\s:;(\[\"'])([45]\d\d)[ -](?=#?[45]\.\d{1,3}\.\d|[A-Za-z<(\[#*])"
)
_FIELD = re.compile(r"([A-Za-z][A-Za-z0-9-]{0,60}):[ \t]*(.*)")
_DAEMON = re.compile(
    r"(?:mailer-?daemon|mail-?daemon|mdaemon|postmaster|double-bounce|mail-?delivery"
    r"|mail\.?system|bounces?)(?:[-+_.].*)?@.*",
    re.IGNORECASE,
)
NO = 550
_GOES_ON = re.compile(
    r"delayed|n[o'’]t\s+(?:yet\s+been\s+delivered|been\s+delivered\s+yet)"
    r"|(?:keep|continue)\s+(?:on\s+)?(?:trying|to\s+(?:try|be\s+(?:tried|attempted)))"
    r"|still\s+(?:being\s+)?(?:retr|tr(?:ied|ying))|will\s+(?:be\s+)?(?:retr|try again)"
    r"|attempts\s+will\s+continue|warning\s+(?:message\s+)?only|transient\s+non-fatal"
    r"|verzögert|noch\s+nicht\s+zugestellt|weiterhin\s+versuch",
    re.IGNORECASE,
)
"""What mail systems say of letters that they have not given up."""
_GIVEN_UP = re.compile(
    r"(?:have|has\s+been|was|'ve)\s+given\s+up|permanent\s+(?:fatal\s+)?error|failed\s+permanently"
    r"|not\s+(?:going\s+to\s+try|be\s+(?:retried|tried\s+again))|in\s+the\s+queue\s+too\s+long",
    re.IGNORECASE,
)
"""And of those that they have, whatever else they say."""
_COPY = re.compile(
    r"^[> \t]{0,20}(?:-{2,}[^\n]{0,80}(?:copy|below|original|returned|unsent|message follows)"
    r"|(?:Received|Return-Path|Message-ID|MIME-Version):)",
    re.IGNORECASE | re.MULTILINE,
)
"""Where the words of a mail system end, and those of the letter begin that it returns."""
_SUBJECT = re.compile(
    r"\W*(?:undeliver|failure notice|failed (?:mail|delivery)|returned mail|mail delivery"
    r"|message (?:not delivered|delivery|undeliverable|could not)|delivery (?:status|failure|failed"
    r"|notification|delayed|report|problem)|delayed mail|warning: message .{0,60}delayed|could not"
    r"|nondeliverable|non[- ]?delivery|email (?:delivery|couldn)|mail could not|unzustellbar"
    r"|nicht zugestellt|zustellung|non remis|échec de|no se puede entregar|no entregable"
    r"|devolución|non recapitabile|mancato recapito|não entregue|não foi possível|onbestelbaar"
    r"|niedostarczone|nie można dostarczyć|ej leverbart|kan inte levereras|не удалось|недоставл"
    r"|配信不能|退信|系统退信|전송 실패)",
    re.IGNORECASE,
)

logging.getLogger("flufl.bounce").setLevel(logging.CRITICAL)


def read_bounce(incoming: Incoming, at: Instant) -> list[News] | None:
    """What became of ours, recipient by recipient; None if it is no such report at all."""
    told = list(_blocks(incoming))
    about = [fields for fields in told if _recipient(fields)]
    if about:
        key = key_of(incoming, told)
        news = (_from_fields(fields, key, at) for fields in about[:MOST_RETURNED])
        reached = tuple(_recipient(each) for each in about[:MOST_RETURNED] if _has_reached(each))
        return [
            one._replace(reached=reached) if isinstance(one, Returned) else one
            for one in news
            if one is not None
        ]
    return _from_prose(incoming, at) if _looks_returned(incoming) else None


def key_of(
    incoming: Incoming, told: Iterable[Fields] = (), *, answering: bool = True
) -> str | None:
    """Our own name of the letter that a report is about: the surest place that has one decides.

    A returned letter is what it calls itself, and not what it answers: somebody may have written
    by hand to go on with one of ours. What the report itself says that it answers counts last, and
    only when ``answering``: every answer of a person says as much.
    """
    for name in SENT_TO:
        for value in incoming.headers(name):
            if (key := key_named(value)) is not None:
                return key
    if incoming.enclosed is not None:
        named = [field(incoming.enclosed, name) for name in _OUR_NAMES]
        found = [key for key in map(key_named, named) if key is not None]
        if found or named[0]:
            return found[0] if found else None
    for fields in told:
        for name in ("x-original-message-id", "original-envelope-id", "original-message-id"):
            if (key := key_named(fields.get(name, ""))) is not None:
                return key
    return _key_in_prose(incoming, answering)


def _key_in_prose(incoming: Incoming, answering: bool) -> str | None:
    texts = [text_of(part) for part in incoming.leaves if part.get_content_maintype() == "text"]
    texts.append(decoded(incoming.source.partition(b"\n\n")[2], None))
    for text in texts:
        named = _NAMED.findall(text)
        if named:
            # The first is the letter's own; others are of letters that it quotes or encloses.
            return key_named(named[0])
    if answering:
        texts = [*map(incoming.header, _ANSWERED), *texts]
    return next((key for key in map(key_named, texts) if key is not None), None)


# ---------------------------------------------------------------------- RFC 3464


def _blocks(incoming: Incoming) -> Iterator[Fields]:
    """The groups of fields of a report: one about all of it, and one for each recipient."""
    for part in incoming.leaves:
        if part.get_content_type() in _STATUS_TYPES:
            payload = part.get_payload()
            for block in payload if isinstance(payload, list) else [part]:
                if isinstance(block, Message):
                    yield {name.lower(): field(block, name) for name in block.keys()[:100]}
                    yield from _in_text(block)


def _in_text(block: Message) -> Iterator[Fields]:
    """What the library took for a text below the fields, because it knows only one of the types."""
    if block.is_multipart():
        return
    for group in text_of(block).split("\n\n")[:MOST_RETURNED]:
        unfolded = re.sub(r"\n[ \t]+", " ", group)
        found = [_FIELD.fullmatch(line.strip()) for line in unfolded.split("\n")[:100]]
        if fields := {each[1].lower(): each[2].strip() for each in found if each}:
            yield fields


def _recipient(fields: Fields) -> str:
    for name in ("original-recipient", "final-recipient"):
        value = fields.get(name, "")
        address = (value.partition(";")[2] or value).strip().strip("<>").strip()
        if "@" in address:
            found = addresses_in(f"<{address}>") or addresses_in(address)
            return found[0] if found else spelled(address)
    return ""


def _has_reached(fields: Fields) -> bool:
    action = fields.get("action", "").strip().lower()
    return action.startswith(("delivered", "relayed", "expanded"))


def _from_fields(fields: Fields, key: str | None, at: Instant) -> News | None:
    status = _ENHANCED.search(fields.get("status", ""))
    code = status[1] if status else ""
    action = fields.get("action", "").strip().lower()
    if not action:
        action = {"5": "failed", "4": "delayed"}.get(code[:1], "")
    if action.startswith("delivered"):
        return None if key is None else Receipt(key, "delivered", at, code, key=key)
    if not action.startswith(("fail", "error", "delay")):
        return None
    words = fields.get("diagnostic-code") or fields.get("x-supplementary-info", "")
    outcome = outcome_of(_reply(words, code))
    late = action.startswith("delay")
    return _returned(outcome, late, _recipient(fields), key, at)


def _reply(diagnostic: str, status: str) -> Reply:
    """The answer of a mail server as a report has it; its status where the answer has none."""
    reply = _answer_in(cleaned(re.sub(r"^\s*[A-Za-z0-9-]+\s*;\s*", "", diagnostic)))
    if reply.status or not status or (reply.code and str(reply.code)[0] != status[0]):
        return reply
    return Reply(reply.code, f"{status} {reply.text}".strip())


def _answer_in(text: str) -> Reply:
    """An answer that is quoted somewhere in a text, or the text as one that has no code."""
    found = _QUOTED_ANSWER.search(text)
    reply = reply_in(text[found.start(1) :] if found else text)
    if not reply.code:
        return reply
    # One of several lines repeats its code on each of them, and they are one line by now.
    again = rf"\s{reply.code}(?:-| (?=[45]\.\d))(?:[45]\.\d{{1,3}}\.\d{{1,3}}\b)?"
    return Reply(reply.code, re.sub(again, "", reply.text), reply.to)


def _returned(outcome: Outcome, late: bool, address: str, key: str | None, at: Instant) -> Returned:
    reason = shortened(" ".join(outcome.reason.split()))
    if late:
        return Returned("delayed", address, reason, at, outcome.code, key)
    gone = outcome.kind is OutcomeKind.BOUNCED
    return Returned("bounced" if gone else "failed", address, reason, at, outcome.code, key)


# ---------------------------------------------------------------------- prose


def _looks_returned(incoming: Incoming) -> bool:
    """Whether a mail system wrote it about a letter. A person may quote whatever such systems say,
    and may write from an address that sounds like one of theirs: only both together count, or a
    sign that mail systems alone give."""
    if _is_another_report(incoming):
        return False
    if incoming.header("X-Failed-Recipients"):
        return True
    nobody = re.fullmatch(r"<\s*>", incoming.header("Return-Path")) is not None
    titled = _SUBJECT.match(words_in(incoming.header("Subject"))) is not None
    senders = addresses_in(incoming.header("From")) + addresses_in(incoming.header("Sender"))
    if not any(_DAEMON.fullmatch(address) for address in senders):
        return nobody and titled
    if _is_report(incoming):
        return True
    if is_called_automatic(incoming):
        return False
    if nobody or titled:
        return True
    quotes = _quotes(incoming) or any(_named_by_flufl(incoming))
    return quotes and not is_called_an_answer(incoming)


def _is_report(incoming: Incoming) -> bool:
    """Whether it is of the type that reports have."""
    return incoming.message.get_content_type() == "multipart/report"


def _is_another_report(incoming: Incoming) -> bool:
    """Whether it is a report of something else than a delivery: that somebody has read a letter, or
    has deleted it without (RFC 8098)."""
    kind = str(incoming.message.get_param("report-type") or _DELIVERY).lower()
    kinds = (part.get_content_type() for part in incoming.leaves)
    return _is_report(incoming) and (
        kind != _DELIVERY or "message/disposition-notification" in kinds
    )


def _quotes(incoming: Incoming) -> bool:
    """Whether it has both a letter in it and what a mail server answered to one."""
    return incoming.enclosed is not None and _answer_in(incoming.text).status != ""


def _key_of_prose(incoming: Incoming) -> str | None:
    key = key_of(incoming, answering=False)
    if key is not None:
        return key
    reply = _answer_in(incoming.text)
    sure = reply.status or (reply.code and incoming.header("X-Failed-Recipients"))
    return key_of(incoming) if sure or incoming.enclosed is not None else None


def _from_prose(incoming: Incoming, at: Instant) -> list[News] | None:
    late, lost = _named_by_flufl(incoming)
    key = _key_of_prose(incoming)
    if key is None and any(key_named(incoming.header(name)) for name in _ANSWERED):
        # It answers one of ours, and nothing shows that one came back: somebody may have written
        # it.
        return None
    text = incoming.text
    goes_on = _goes_on(text)
    if not (late or lost):
        reply = _answer_in(text)
        if key is None:
            return None
        if not reply.code:
            # Words only, and it names our letter: what they mean is read as if a server had said no
            # to it in these words. Those that speak of another try have not given up.
            kind = outcome_of(Reply(NO, text)).kind
            return [_returned(Outcome(kind, reply.told, reply.status), goes_on, "", key, at)]
        return [_returned(outcome_of(reply), 400 <= reply.code < 500, "", key, at)]
    told = [(each, _outcome_about(text, each)) for each in (*sorted(lost), *sorted(late - lost))]
    return [
        _returned(
            said, address not in lost or (goes_on and not _is_no(said.code)), address, key, at
        )
        for address, said in told[:MOST_RETURNED]
    ]


def _goes_on(text: str) -> bool:
    """Whether a mail system says by itself that it goes on trying, and quotes nobody who has said
    no for good."""
    copy = _COPY.search(text)
    own = text[: copy.start()] if copy else text
    if _GOES_ON.search(own) is None or _GIVEN_UP.search(own) is not None:
        return False
    reply = _answer_in(own)
    return not _is_no(str(reply.code) if reply.code else reply.status)


def _is_no(code: str) -> bool:
    return code.startswith("5")


def _named_by_flufl(incoming: Incoming) -> tuple[set[str], set[str]]:
    """Whom it is about: those it is still being tried for, and those it will not reach."""
    from flufl.bounce import all_failures

    short = b"\n".join(line[:LONGEST_LINE] for line in incoming.source.split(b"\n"))
    message = parsed(short)
    if not incoming.header("X-Failed-Recipients").strip():
        # Where it is there and empty, older Pythons read an address in it that is none, and that
        # is taken for all there is to be found.
        del message["X-Failed-Recipients"]
    try:
        late, lost = all_failures(message)
    except Exception:
        # Written for what mail systems say, and not for what anybody may send: whatever it
        # stumbles over is none of the reports it knows.
        return set(), set()
    return _spelled(late), _spelled(lost)


def _spelled(addresses: Iterable[bytes]) -> set[str]:
    read = (each.decode("ascii", "replace") for each in addresses)
    found = {spelled(text.strip(" <>")) for text in read if "@" in text}
    # It takes our own name of a letter for an address where that stands alone.
    return {address for address in found if key_named(f"<{address}>") is None}


def _outcome_about(text: str, address: str) -> Outcome:
    """What is said where an address is named, from there to the end of the paragraph: by the first
    that quotes an answer, else by the first that the table understands."""
    replies = [_answer_in(words) for words in _words_about(text, address)]
    read = [(reply, outcome_of(reply)) for reply in replies]
    quoted = (outcome for reply, outcome in read if reply.code or reply.status)
    plain = (outcome for _, outcome in read if outcome.kind is not OutcomeKind.TRANSIENT)
    return next(quoted, None) or next(plain, None) or read[0][1]


def _words_about(text: str, address: str) -> list[str]:
    found = [each.end() for each in islice(re.finditer(re.escape(address), text, re.I), 20)]
    after = [text[end : end + 2_000].lstrip("> :\t\n") for end in found] or [text[:2_000]]
    paragraphs = (re.split(r"\n[ \t]*\n", each, maxsplit=1)[0] for each in after)
    return [" ".join(paragraph.split()) for paragraph in paragraphs]
