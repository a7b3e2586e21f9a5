"""Where an action goes: which kinds of address it can be sent to, and why one is not among them.

What a channel takes is known here; which channel an account is on, its provider says. A channel
that is not listed, the sandbox above all, may know addresses that nobody else does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from paceline.core.address import guess_kind, is_hidden, normalise
from paceline.core.errors import InputError
from paceline.engine.ports import Account, Providers

_BY_ACTION = {
    "email": ("email",),
    "connection_request": ("linkedin",),
    "inmail": ("linkedin",),
}
_BY_CHANNEL = {
    "email": ("email",),
    "linkedin": ("linkedin",),
    "whatsapp": ("phone", "group"),
}
_ANYWHERE = ("phone", "group", "linkedin", "other", "email")
_WORDS = {
    "email": "e-mail address",
    "phone": "phone number",
    "group": "group",
    "linkedin": "LinkedIn profile",
    "other": "other address",
}


@dataclass(frozen=True, slots=True)
class Route:
    """The kinds of address that an action can be sent to, those it prefers first."""

    kinds: tuple[str, ...]
    strict: bool = False
    """Whether only an address by the rules will do."""

    def missing(self) -> str:
        """What is wrong with somebody who has none of them."""
        return f"has no {' or '.join(_WORDS[kind] for kind in self.kinds)}"

    def pick(self, addresses: Mapping[str, str]) -> str | None:
        """The best of somebody's addresses, by their kinds."""
        return next((addresses[kind] for kind in self.kinds if kind in addresses), None)

    def problem(self, address: str) -> str:
        """Why nothing can be sent there; empty if it can."""
        kind = guess_kind(address)
        if kind == "other" and (not self.strict or self._may_be_any_word(address)):
            return ""
        if "phone" in self.kinds and is_hidden(address):
            # Whoever hides their number has written first, or nobody would know this name.
            return ""
        if kind not in self.kinds:
            wanted = " or ".join(_a(one) for one in self.kinds)
            return f"is not {wanted}" if kind == "other" else f"is {_a(kind)}, not {wanted}"
        return self._misspelled(kind, address) if self.strict else ""

    def _may_be_any_word(self, address: str) -> bool:
        """LinkedIn's own names of people and conversations look like nothing else."""
        return "linkedin" in self.kinds and not any(map(str.isspace, address))

    def _misspelled(self, kind: str, address: str) -> str:
        try:
            normalise(kind, address)
        except InputError as error:
            return str(error).removeprefix(f"'{address}' ")
        return ""


def kinds_for(action: str, channel: str) -> tuple[str, ...]:
    """The kinds of address an action can be sent to on a channel, those it prefers first."""
    return _BY_ACTION.get(action) or _BY_CHANNEL.get(channel) or _ANYWHERE


def route(action: str, channels: Iterable[str] = ()) -> Route:
    """Where an action goes that is sent on all of these channels."""
    known = list(channels) or [""]
    first, *others = (kinds_for(action, channel) for channel in known)
    kinds = tuple(kind for kind in first if all(kind in other for other in others))
    if not kinds:
        raise InputError(
            f"accounts on {' and '.join(sorted(set(known)))} have no kind of address in common",
            key="accounts",
            hint="Make it a campaign for each channel",
        )
    return Route(kinds, strict=any(channel in _BY_CHANNEL for channel in known))


def route_of(accounts: Sequence[Account], action: str, providers: Providers) -> Route:
    """The same for accounts, which are on the channels that their providers say, and some of which
    cannot write to groups."""
    able = [providers.get(one.provider).capabilities_of(one.settings) for one in accounts]
    way = route(action, (can.channel for can in able))
    if all(can.groups for can in able):
        return way
    return replace(way, kinds=tuple(kind for kind in way.kinds if kind != "group"))


def _a(kind: str) -> str:
    word = _WORDS[kind]
    return f"an {word}" if word[0] in "aeiou" else f"a {word}"
