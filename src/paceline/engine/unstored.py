"""The deliveries of a campaign that is not stored yet, as its creation would make them.

Only as far as a plan cares: what each asks for, in which order, on which account. Who is suppressed
or was written to lately is asked in bulk.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from paceline.core.instants import Instant
from paceline.core.model import Ask, Target
from paceline.core.plan import Queue, Want
from paceline.engine.campaign_spec import CampaignSpec, Timing
from paceline.engine.ground import Ground
from paceline.engine.ports import Tx
from paceline.engine.recipients import People, Recipients
from paceline.engine.turns import FAR, parsed_hours

OURS = 0
"""The run of a campaign that is not stored."""


def queues_of(
    tx: Tx,
    ground: Ground,
    spec: CampaignSpec,
    targets: Sequence[Target],
    ids: Sequence[int],
    people: People | None = None,
) -> list[Queue]:
    """The campaign's deliveries as its creation would assign them; ``people`` says whose each
    address is, if any of them have more than the one that is written to."""
    timing = Timing.stored(spec.settings())
    opens_at, closes_at = timing.window_on(ground.now)
    plain = Ask(
        action=spec.action,
        run_id=OURS,
        # Before it opens, only its end counts where the campaign says so.
        window=timing.window if timing.before_open == "hold" else None,
        opens_at=opens_at,
        closes_at=closes_at,
    )
    pooled = spec.assignment == "pooled"
    shares = [tuple(ids)] if pooled else [(account_id,) for account_id in ids]
    lines: list[list[Want]] = [[] for _ in shares]
    whose = {target.address: target.contact_id for target in targets} if people is None else people
    recipients = Recipients(tx, ground.seats.values(), ground.now, whose)
    sequence = _Sequence(spec, len(targets), recipients)
    asks = _asks(tx, spec, targets, plain, recipients)
    starts = timing.starts(ground.now, len(targets))
    for number, (target, ask, start_at) in enumerate(zip(targets, asks, starts, strict=True)):
        share = number % len(shares)
        lines[share] += sequence.wants(number, target, ask, start_at, shares[share])
    rank = (True, -spec.priority, True, closes_at or FAR, FAR)
    return [Queue(OURS, rank, line, share) for line, share in zip(lines, shares, strict=True)]


def _asks(
    tx: Tx, spec: CampaignSpec, targets: Sequence[Target], plain: Ask, recipients: Recipients
) -> Iterator[Ask]:
    """What each target's messages ask for; for most of them that is one and the same value."""
    suppressed = tx.waiting.suppressed([target.address for target in targets])
    contacted = recipients.contacted
    in_zone: dict[str, Ask] = {}
    for target in targets:
        ask = plain
        if spec.recipient_hours is not None:
            zone = target.fields.get("zone", "")
            if zone not in in_zone:
                theirs = spec.recipient_hours_of(target)
                hours = parsed_hours(theirs) if theirs else None
                in_zone[zone] = plain._replace(recipient_hours=hours)
            ask = in_zone[zone]
        if target.address in suppressed:
            ask = ask._replace(suppressed=True)
        if instants := contacted.get(target.address):
            ask = ask._replace(contacted=instants)
        yield ask


class _Sequence:
    """The messages that one target gets: the first, and what follows it."""

    def __init__(self, spec: CampaignSpec, count: int, recipients: Recipients) -> None:
        self._count = count
        self._recipients = recipients
        self._expire_after_us = spec.expire_after_us
        self._parts = [len(content.parts) for content in spec.contents]
        self._waits_us = [0, *(step.after_us for step in spec.steps)]
        self._known: dict[tuple[int, Instant], tuple[Ask, list[Ask]]] = {}

    def wants(
        self, number: int, target: Target, ask: Ask, start_at: Instant, accounts: tuple[int, ...]
    ) -> Iterator[Want]:
        person, also = self._recipients.names(target.address, target.contact_id)
        new_to = self._recipients.new_to(target.address, accounts)
        follows: int | None = None
        steps = zip(self._asks(ask, start_at), self._waits_us, strict=True)
        for step, (wanted, after_us) in enumerate(steps):
            key = number + step * self._count
            yield Want(key, wanted, person, False, follows, after_us, also, new_to, step)
            follows = key

    def _asks(self, ask: Ask, start_at: Instant) -> list[Ask]:
        known = self._known.get((id(ask), start_at))
        if known is None:
            ends_at = None if self._expire_after_us is None else start_at + self._expire_after_us
            first = ask._replace(parts=self._parts[0], not_before_at=start_at, expires_at=ends_at)
            later = [ask._replace(parts=parts) for parts in self._parts[1:]]
            # With the value itself, or another one might be taken for it once it is gone.
            known = self._known[id(ask), start_at] = (ask, [first, *later])
        return known[1]
