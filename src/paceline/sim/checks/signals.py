"""Never heedless: what a provider's answers ask for beyond their own message is done.

Judged from the provider's log and from the ledger as every commit left it. Every signal is judged
for itself, so none can be outdone by a weaker one.

Where nobody outside can tell what a lane knew, the checker decides for the engine: an answer that
was written down when the lane had another owner binds nobody, nor does one in the middle of which
the table was changed; and what was intended before an answer was written down may go.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from decimal import Decimal

from paceline.core.instants import SECOND, Instant
from paceline.sim.checks.evidence import Evidence, Violation, lasting_us, words
from paceline.sim.checks.signal_records import Records, Signal, attempt_of
from paceline.sim.witness import Seen

PROMISE = "never heedless"
RIGHT_US = SECOND
"""Clocks that were never further apart than this were never set."""


def heedless(evidence: Evidence) -> Iterator[Violation]:
    """Whoever a signal names waits as long as it says, and then goes as slowly."""
    if not evidence.pages:
        return
    records = Records(evidence)
    for call in evidence.calls:
        for signal in records.signals:
            if records.is_bound(call, signal) and not _is_over(evidence, records, call, signal):
                text = f"{call.key} went from {call.account} to {call.target}, but {signal.says}"
                yield Violation(PROMISE, text, call.at, words(call))
    yield from _too_fast(evidence, records)
    yield from _too_long(evidence, records)


def _waited_us(evidence: Evidence, call: Seen, signal: Signal) -> int:
    """The time since the answer, by true time or by the clocks of those who wrote it down and who
    now call, whichever is longer; but no further from the truth than two clocks ever were."""
    true_us = call.at - signal.origin.at
    return min(max(true_us, call.clock_at - signal.row.at), true_us + evidence.spread_us)


def _is_over(evidence: Evidence, records: Records, call: Seen, signal: Signal) -> bool:
    if signal.lasts_us is not None:
        return _waited_us(evidence, call, signal) >= signal.lasts_us
    settled_at = evidence.pages[signal.page].at
    let_go = (release for release in evidence.releases if settled_at <= release.at <= call.at)
    if records.stops_campaign(signal):
        campaign = evidence.runs[signal.row.run_id].campaign
        return any(release.campaign == campaign for release in let_go)
    return any(release.account == call.account for release in let_go)


def _too_fast(evidence: Evidence, records: Records) -> Iterator[Violation]:
    """After a hold the account's gaps are as long as the slowest way back makes them."""
    for calls in evidence.by_account.values():
        before: Seen | None = None
        paced: Seen | None = None
        for call in calls:
            if call.facts is None:
                continue
            token_us = _token_us(evidence, before)
            # Whoever was given a burst in between has a token more, and need not wait for this one.
            if before is not None and token_us and _token_us(evidence, call):
                yield from _compared(evidence, records, before, call, token_us)
            starts = call.part == 0 and not call.facts.reply
            if paced is not None and paced.gap_us and starts:
                yield from _compared(evidence, records, paced, call, paced.gap_us)
            before = call
            paced = paced if call.facts.reply else call


def _compared(
    evidence: Evidence, records: Records, before: Seen, call: Seen, each_us: int
) -> Iterator[Violation]:
    slow = (s for s in records.signals if s.ramp and _slows(evidence, records, before, s))
    needed_us = max((_slowed_us(evidence, before, s, each_us) for s in slow), default=0)
    policy = evidence.policy_of(call)
    if policy is not None and policy.adaptive is not None:
        needed_us = min(needed_us, policy.adaptive.between.high_us)
    if lasting_us(before, call) < needed_us:
        text = (
            f"{call.key} went {lasting_us(before, call)} us after {before.key} on {call.account}, "
            f"on the way back from a signal: not {needed_us} us"
        )
        yield Violation(PROMISE, text, call.at, words(call))


def _slows(evidence: Evidence, records: Records, before: Seen, signal: Signal) -> bool:
    """Whether the pace was known to be down when a call was counted."""
    ours = evidence.accounts[signal.row.account_id] == before.account
    return ours and records.intended.get(attempt_of(before), -1) >= signal.page


def _token_us(evidence: Evidence, call: Seen | None) -> int:
    """What a token costs at full pace, where there is one at a time."""
    policy = None if call is None else evidence.policy_of(call)
    if policy is None or policy.rate is None or policy.rate.burst > 1:
        return 0
    return policy.rate.interval_us


def _slowed_us(evidence: Evidence, before: Seen, signal: Signal, each_us: int) -> int:
    """A gap as long as this way back makes it: a straight line that begins where the hold ends."""
    ramp, lasts_us = signal.ramp, signal.lasts_us
    assert ramp is not None and lasts_us is not None, "only a way back slows anybody"
    gone_us = max(0, _waited_us(evidence, before, signal) - lasts_us)
    slowest = Decimal(each_us) * ramp.slow_by
    if ramp.to is not None:
        slowest = Decimal(max(ramp.to.interval_us, each_us))
    left = Decimal(max(0, ramp.recover_us - gone_us)) / Decimal(ramp.recover_us)
    return int(each_us + (slowest - each_us) * left)


def _too_long(evidence: Evidence, records: Records) -> Iterator[Violation]:
    """Nobody is held back for longer than some answer asked for, however often it was settled.

    Where clocks were set a hold may well be: too long is safe, too short is not.
    """
    if evidence.spread_us > RIGHT_US:
        return
    latest: dict[tuple[int, int], Instant] = defaultdict(int)
    signals = iter(records.signals)
    ahead = next(signals, None)
    for number, page in enumerate(evidence.pages):
        while ahead is not None and ahead.page <= number:
            place = (ahead.row.account_id, int(ahead.scope == "new contacts"))
            latest[place] = max(latest[place], ahead.row.at + ahead.longest_us)
            ahead = next(signals, None)
        for account_id, held in page.held.items():
            for which, until_at in enumerate(held):
                if account_id not in records.unclear and until_at > latest[account_id, which]:
                    who = ("", "whoever is new to ")[which] + evidence.accounts[account_id]
                    text = f"{who} is held back until {until_at}, which nobody asked for"
                    yield Violation(PROMISE, text, page.at, (evidence.accounts[account_id],))
                    latest[account_id, which] = until_at
