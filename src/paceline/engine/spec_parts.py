"""What a campaign file says: its parts, and the steps that follow the first."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, get_args

from paceline.core.durations import parse_duration, print_duration
from paceline.core.errors import InputError
from paceline.core.instants import DAY
from paceline.core.model import Content, FollowUp, Part, Step, Trigger
from paceline.core.template import variables
from paceline.engine.spec_values import (
    action_of,
    choice_of,
    duration_of,
    refuse_unknown,
    retries_of,
)

TEXT_KEYS = ("text", "subject", "html", "media", "caption")
ATTACHMENTS = "attachments"
TEMPLATE_KEYS = ("template", "language", "values")
PART_KEYS = (*TEXT_KEYS, ATTACHMENTS, *TEMPLATE_KEYS)
STEP_KEYS = ("after", "parts", "on", "within", "action")
BIDDEN_KEYS = ("within", "action")
"""What only a step has that somebody bids."""

WITHIN_US: Mapping[Trigger, int] = {"reply": DAY, "accepted": 30 * DAY}
"""For how long after a message what somebody does bids the follow-up, where nobody says."""


class Steps(NamedTuple):
    """What a campaign says, step by step."""

    first: list[Part]
    later: tuple[Step, ...]
    follow_up: FollowUp | None


def steps_of(raw: Mapping[str, Any]) -> Steps:
    """The parts of the first step, the steps that follow it, and the one that is bidden."""
    if "parts" in raw:
        raise InputError(
            "a campaign with steps has its parts in them", key="parts", hint="Write [[steps.parts]]"
        )
    entries = raw["steps"]
    if not isinstance(entries, list) or not entries:
        raise InputError("a campaign needs at least one [[steps]]", key="steps")
    contents: list[list[Part]] = []
    waits: list[int | None] = []
    follow_up: FollowUp | None = None
    retries = retries_of(raw)
    for number, entry in enumerate(entries, start=1):
        where = f"steps[{number}]"
        if not isinstance(entry, Mapping):
            raise InputError("must be a table", key=where)
        refuse_unknown(entry, STEP_KEYS, f"{where}.")
        parts = list(parts_of(entry, f"{where}.parts"))
        try:
            if "on" in entry:
                said = Content(tuple(parts), retries)
                follow_up = _follow_up(entry, number, len(entries), said)
                break
            _refuse_bidden(entry)
            contents.append(parts)
            waits.append(duration_of(entry, "after"))
        except InputError as error:
            raise error.within(where) from None
    if waits[0] is not None:
        raise InputError("nothing comes before the first step", key="steps[1].after")
    return Steps(contents[0], tuple(_following(waits, contents, retries)), follow_up)


def _follow_up(entry: Mapping[str, Any], number: int, count: int, said: Content) -> FollowUp:
    if number == 1:
        raise InputError("nobody can answer before the first step", key="on")
    if number < count:
        raise InputError(
            "a step that is sent on a reply is the last one",
            key="on",
            hint="Write what comes after it as a campaign of its own",
        )
    if "after" in entry:
        raise InputError(
            "a step waits so long, or for what they do, not for both",
            key="after",
            hint="Leave it out: what is bidden is sent at once",
        )
    on = choice_of(entry, "on", "reply", get_args(Trigger))
    within_us = duration_of(entry, "within")
    if within_us == 0:
        raise InputError("nobody answers in no time", key="within", hint='"24h"')
    action = action_of(entry) if "action" in entry else None
    within_us = WITHIN_US[on] if within_us is None else within_us
    return FollowUp(said, on, within_us, action)


def _refuse_bidden(entry: Mapping[str, Any]) -> None:
    for key in BIDDEN_KEYS:
        if key in entry:
            raise InputError(
                "only a step that is sent on what they do has this",
                key=key,
                hint='Add on = "reply"',
            )


def follow_up_stored(settings: Mapping[str, Any], content: list[dict[str, Any]]) -> FollowUp | None:
    """As it is kept with a campaign (``follow_up_settings``)."""
    kept = settings.get("follow_up")
    if kept is None:
        return None
    said = Content.from_list(content, bidden_step(settings))
    return FollowUp(said, kept["on"], parse_duration(kept["within"]), kept["action"])


def follow_up_settings(follow_up: FollowUp | None) -> dict[str, Any]:
    """What is kept of it with a campaign, besides what it says."""
    if follow_up is None:
        return {}
    within = print_duration(follow_up.within_us)
    return {"follow_up": {"on": follow_up.on, "within": within, "action": follow_up.action}}


def bidden_step(settings: Mapping[str, Any]) -> int:
    """The number of the step that is bidden: the last one."""
    return 2 + len(settings.get("steps", ()))


def _following(
    waits: list[int | None], contents: list[list[Part]], retries: int | None
) -> Iterable[Step]:
    for number, (after_us, parts) in enumerate(zip(waits, contents, strict=True), start=1):
        if number == 1:
            continue
        if after_us is None:
            raise InputError(
                "says how long after the step before", key=f"steps[{number}].after", hint='"3d"'
            )
        yield Step(after_us, Content(tuple(parts), retries))


def parts_of(raw: Mapping[str, Any], key: str) -> Iterable[Part]:
    """The parts under a key of a table; ``key`` is what they are called in complaints."""
    entries = raw.get("parts")
    if not isinstance(entries, list) or not entries:
        raise InputError(f"at least one [[{_bare(key)}]] is needed", key=key)
    for number, entry in enumerate(entries, start=1):
        where = f"{key}[{number}]"
        if not isinstance(entry, Mapping):
            raise InputError("must be a table", key=where)
        refuse_unknown(entry, PART_KEYS, f"{where}.")
        try:
            yield _part(entry)
        except InputError as error:
            raise error.within(where) from None


def _part(entry: Mapping[str, Any]) -> Part:
    if "template" in entry:
        return _template(entry)
    for key in ("language", "values"):
        if key in entry:
            raise InputError("only a template has this", key=key, hint='Add template = "…"')
    texts = {key: entry.get(key, "") for key in TEXT_KEYS}
    for key, value in texts.items():
        if not isinstance(value, str):
            raise InputError("must be a text", key=key)
        if key != "media":
            variables(value)
    attachments = tuple(_file_names(entry.get(ATTACHMENTS, [])))
    if texts["media"]:
        if texts["text"] and texts["caption"]:
            raise InputError("a media part has a caption or a text, not both", key="caption")
        return Part(
            "media",
            text=texts["caption"] or texts["text"],
            subject=texts["subject"],
            html=texts["html"],
            media=texts["media"],
            attachments=attachments,
        )
    if texts["caption"]:
        raise InputError("only a media part has a caption", key="caption")
    if not texts["text"] and not texts["html"]:
        raise InputError("needs a text or a media file", key="text")
    return Part(
        "text",
        text=texts["text"],
        subject=texts["subject"],
        html=texts["html"],
        attachments=attachments,
    )


def _file_names(raw: object) -> Iterable[str]:
    if not isinstance(raw, list):
        raise InputError("must be a list of files", key=ATTACHMENTS, hint='As in ["offer.pdf"]')
    for number, name in enumerate(raw, start=1):
        if not isinstance(name, str) or not name:
            raise InputError("must be a file", key=f"{ATTACHMENTS}[{number}]")
        yield name


def _template(entry: Mapping[str, Any]) -> Part:
    """A text that the provider has; a file beside it is what it shows above the text."""
    for key in (*TEXT_KEYS, ATTACHMENTS):
        if key in entry and key != "media":
            raise InputError("a template has its own text", key=key, hint="Fill its blanks: values")
    for key in ("template", "language"):
        name = entry.get(key)
        if not isinstance(name, str) or not re.fullmatch(r"\w{1,512}", name):
            example = "order_ready" if key == "template" else "en_US"
            raise InputError("must be a name", key=key, hint=f'As in {key} = "{example}"')
    media = entry.get("media")
    if media is not None and not (isinstance(media, str) and media):
        raise InputError("must be a text", key="media")
    return Part(
        "template",
        media=media,
        template=entry["template"],
        language=entry["language"],
        values=tuple(_values(entry.get("values", []))),
    )


def _values(raw: object) -> Iterable[tuple[str, str]]:
    """What goes into the blanks: a list where they are numbered, a table where they have names."""
    named = isinstance(raw, Mapping)
    if isinstance(raw, Mapping):
        pairs = [(str(name), text) for name, text in raw.items()]
    elif isinstance(raw, list):
        pairs = [("", text) for text in raw]
    else:
        raise InputError("must be a list of texts, or a table of them", key="values")
    for number, (name, text) in enumerate(pairs, start=1):
        key = f"values.{name}" if named else f"values[{number}]"
        if not isinstance(text, str) or not text.strip():
            raise InputError("must be a text, and not empty", key=key)
        try:
            variables(text)
        except InputError as error:
            raise InputError(error.reason, key=key) from None
        yield name, text


def _bare(key: str) -> str:
    """A key without its numbers: what is written in the file."""
    return re.sub(r"\[\d+\]", "", key)
