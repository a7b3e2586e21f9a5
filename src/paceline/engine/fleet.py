"""Who runs the lanes, as far as the database can tell: which processes live, and who has died.

A process that was killed cannot say so. What it held is held until its lease ends, and meanwhile
all that is known of it is when it was last heard of.
"""

from __future__ import annotations

from paceline.core.instants import SECOND, Instant
from paceline.core.zones import wall_at
from paceline.engine.leases import (
    IDLE_LEASE_US,
    IDLE_RENEW_EVERY_US,
    LEASE_US,
    LINGER_US,
    RENEW_EVERY_US,
)
from paceline.engine.ports import LaneRow, ProcessRow, Tx

START_ONE = "start one with 'paceline up'"
NOBODY_RUNS = f"no Paceline process is running: {START_ONE}"

LATE_US = 3 * SECOND
"""A renewal may come so late without anything being wrong."""
IN_LINE_US = 10 * SECOND
"""A lane that is due for longer, and that nobody takes though somebody is there, is in line."""


def is_running(tx: Tx) -> bool:
    """Whether some process holds a lease, and so may send."""
    return any(process.lease_until_at > tx.now for process in tx.processes.list())


def heard_at(process: ProcessRow, now: Instant) -> Instant:
    """When a process last renewed its lease: one that owns no lane has a longer one."""
    idle = process.lease_until_at - now > LEASE_US
    return process.lease_until_at - (IDLE_LEASE_US if idle else LEASE_US)


def is_silent(process: ProcessRow, now: Instant, *, owns: bool) -> bool:
    """Whether it should have renewed its lease by now, and has not. Whoever may own no lane any
    more leaves a short lease alone for a while."""
    idle = process.lease_until_at - now > LEASE_US
    every_us = IDLE_RENEW_EVERY_US if idle else RENEW_EVERY_US if owns else LINGER_US
    return now - heard_at(process, now) > every_us + LATE_US


def is_served(tx: Tx, lane: LaneRow) -> bool:
    """Whether a process owns it that may send."""
    return any(one.id == lane.owner and one.lease_until_at > tx.now for one in tx.processes.list())


def held_up(tx: Tx, lane: LaneRow, zone: str) -> str:
    """Why nobody serves a lane although it may be due; empty if somebody does, or soon will."""
    now = tx.now
    processes = {process.id: process for process in tx.processes.list()}
    leased = [process for process in processes.values() if process.lease_until_at > now]
    heard = [process for process in leased if not is_silent(process, now, owns=False)]
    holder = processes.get(lane.owner) if lane.owner is not None else None
    if holder is None or holder.lease_until_at <= now:
        if heard:
            return _in_line(lane, now, zone)
        if not leased:
            return NOBODY_RUNS
        last = max(leased, key=lambda process: heard_at(process, now))
        return f"{_named(last)} {_unheard(last, now, zone)}: if it has died, {START_ONE}"
    if not is_silent(holder, now, owns=True):
        return ""
    over = f"at {clock_text(holder.lease_until_at, zone)}"
    others = [process for process in heard if process.id != holder.id]
    then = f"another takes over {over}" if others else f"another can take over {over}: {START_ONE}"
    return f"its lane is held by {_named(holder)}, which {_unheard(holder, now, zone)}; {then}"


def _in_line(lane: LaneRow, now: Instant, zone: str) -> str:
    """Who runs lanes takes them at once. Who has them run by workers may have too few of these."""
    if lane.owner is not None or lane.wake_at is None or lane.wake_at > now - IN_LINE_US:
        return ""
    return (
        f"its lane has waited since {clock_text(lane.wake_at, zone)} for a process to take it: "
        "there are as many workers as there may be (max_workers), or they cannot be started "
        "(paceline alerts)"
    )


def _named(process: ProcessRow) -> str:
    return f"process {process.id} ({process.name})"


def _unheard(process: ProcessRow, now: Instant, zone: str) -> str:
    return f"has not been heard of since {clock_text(heard_at(process, now), zone)}"


def clock_text(at: Instant, zone: str) -> str:
    """To the second: leases are short."""
    return f"{wall_at(at, zone):%H:%M:%S} {zone}"
