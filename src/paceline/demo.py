"""``paceline demo``: the real engine, three imaginary accounts, a thousand messages, one minute.

The clock jumps from event to event, everything else is what production runs: the journal, the
lanes, the pacer, a fresh SQLite file. Along the way some sends fail, one is throttled, and one
lane is killed between intent and outcome; the report says what became of all of them.
"""

from __future__ import annotations

import asyncio
import json
import random
import struct
import sys
import tempfile
import zlib
from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn
from rich.table import Table

from paceline.core.errors import InputError
from paceline.core.instants import Instant, iso, local_text, parse_instant
from paceline.core.model import Content, Part, Target
from paceline.core.outcome import Outcome, OutcomeKind
from paceline.core.policy import Policy
from paceline.core.states import CampaignState, DeliveryState
from paceline.engine.campaign_spec import CampaignSpec
from paceline.engine.catalogue import Catalogue
from paceline.engine.clock import LoopClock
from paceline.engine.commands import accounts as account_commands
from paceline.engine.commands import campaigns as campaign_commands
from paceline.engine.commands.accounts import House, NewAccount
from paceline.engine.journal import GroupJournal, InlineRunner
from paceline.engine.observe import Unobserved
from paceline.engine.ports import Store
from paceline.engine.supervisor import Supervisor, SupervisorOptions
from paceline.engine.verify import attempts_of, verify
from paceline.providers.registry import Registry
from paceline.providers.sandbox import MemoryEffects, SandboxProvider
from paceline.sim.loop import run_virtual
from paceline.sim.pace import Pace, pace_of
from paceline.store.database import open_store

START_AT: Instant = parse_instant("2026-03-02T09:00:00Z")
CAMPAIGN = "spring opening"
KILLED = "newcomer"
OUTCOMES = ("sent", "failed", "skipped", "bounced", "unknown", "cancelled")

ACCOUNTS = (
    NewAccount(
        "established",
        "sandbox",
        "+15550100",
        {"transient_rate": "2%"},
        "whatsapp-established",
    ),
    NewAccount(KILLED, "sandbox", "+15550101", {"transient_rate": "1%"}, "whatsapp-new"),
    NewAccount(
        "careful",
        "sandbox",
        "+15550102",
        {"throttle_at": [40], "retry_after": "1m"},
        "campaign-whatsapp",
    ),
)


@dataclass(frozen=True, slots=True)
class AccountReport:
    name: str
    policy: str
    sent: int
    pace: Pace


@dataclass(frozen=True, slots=True)
class Report:
    """What the demo found, judged from the database and from the sandbox's own log."""

    counts: dict[str, int]
    uploads: int
    accounts: list[AccountReport]
    violations: list[str]
    finished_at: Instant
    retried: int
    throttled: int
    kills: int
    resolved: int

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    def to_mapping(self) -> dict[str, Any]:
        return {
            "total": self.total,
            **{name: self.counts[name] for name in OUTCOMES},
            "uploads": self.uploads,
            "accounts": [
                {
                    "name": entry.name,
                    "sent": entry.sent,
                    "achieved_per_min": round(entry.pace.achieved_per_min, 3),
                    "allowed_per_min": round(entry.pace.allowed_per_min, 3),
                }
                for entry in self.accounts
            ],
            "violations": self.violations,
        }


class Watcher(Unobserved):
    """Moves the progress bars, and kills one lane at the worst moment."""

    def __init__(self, progress: Progress | None, bars: dict[str, TaskID], kill_at: int) -> None:
        self._progress = progress
        self._bars = bars
        self._kill_at = kill_at
        self._intents = 0
        self.supervisor: Supervisor | None = None
        self.kills = self.retried = self.throttled = 0

    def intended(self, account: str, delivery_id: int, at: Instant) -> None:
        if self._progress is not None:
            self._progress.update(self._bars[account], clock=local_text(at, "UTC")[:16])
        if account == KILLED:
            self._intents += 1
            if self._intents == self._kill_at:
                # The intent is committed and the provider is about to be called: from here on
                # nobody will ever write down what came of it.
                asyncio.get_running_loop().call_later(0.01, self._kill)

    def _kill(self) -> None:
        if self.supervisor is not None and self.supervisor.kill(KILLED):
            self.kills += 1

    def settled(
        self, account: str, outcome: Outcome, state: DeliveryState, latency_us: int | None
    ) -> None:
        self.throttled += outcome.kind is OutcomeKind.THROTTLED
        self.retried += state is DeliveryState.READY
        if self._progress is not None and state is not DeliveryState.READY:
            self._progress.advance(self._bars[account])


def main(
    targets: int = 1000,
    as_json: bool = False,
    seed: int = 1,
    keep: Path | None = None,
    console: Console | None = None,
) -> int:
    """Run the demo and report; the exit code says whether every promise was kept."""
    if targets < len(ACCOUNTS):
        raise InputError(f"the demo needs at least {len(ACCOUNTS)} targets", key="--targets")
    console = console or Console(file=sys.stderr if as_json else sys.stdout, highlight=False)
    with tempfile.TemporaryDirectory(prefix="paceline-demo-") as scratch:
        folder = keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "demo.db"
        if path.exists():
            raise InputError(f"{path} exists already", key="--keep", hint="Name a fresh folder")
        bars = Progress(
            TextColumn("{task.description:<12}"),
            BarColumn(bar_width=32),
            MofNCompleteColumn(),
            TextColumn("{task.fields[clock]}", style="dim"),
            console=console,
        )
        with nullcontext() if as_json else bars:
            shown = None if as_json else bars
            report = run_virtual(_play(path, targets, seed, shown), start_at=START_AT)
    if as_json:
        sys.stdout.write(json.dumps(report.to_mapping()) + "\n")
    else:
        _print(console, report, path if keep else None)
    return 1 if report.violations else 0


async def _play(path: Path, targets: int, seed: int, progress: Progress | None) -> Report:
    clock = LoopClock(START_AT)
    effects = MemoryEffects()
    providers = Registry([SandboxProvider(clock, effects)])
    store = open_store(f"sqlite:///{path}", clock=clock.now)
    try:
        _prepare(store, providers, targets, seed)
        share = [len(range(index, targets, len(ACCOUNTS))) for index in range(len(ACCOUNTS))]
        bars = {}
        if progress is not None:
            for account, count in zip(ACCOUNTS, share, strict=True):
                bars[account.name] = progress.add_task(account.name, total=count, clock="")
        watcher = Watcher(progress, bars, kill_at=max(1, share[1] // 3))
        journal = GroupJournal(store, clock, writer=InlineRunner(), reader=InlineRunner())
        supervisor = Supervisor(
            journal,
            clock,
            providers,
            observer=watcher,
            rng=random.Random(seed),
            options=SupervisorOptions(name="demo"),
        )
        watcher.supervisor = supervisor
        running = asyncio.ensure_future(supervisor.run())
        finished_at = await _until_finished(store, clock)
        supervisor.stop()
        await running
        return _report(store, effects, watcher, finished_at)
    finally:
        store.close()


def _prepare(store: Store, providers: Registry, targets: int, seed: int) -> None:
    house = House(providers, Catalogue())
    with store.write() as tx:
        tx.settings.put("instance", f"demo{seed}")
        for account in ACCOUNTS:
            seeded = NewAccount(
                account.name,
                account.provider,
                account.address,
                {**account.settings, "seed": seed},
                account.policy,
            )
            account_commands.add(tx, seeded, house, START_AT)
        media = tx.media.put("poster.png", "image/png", picture(), START_AT)
        caption = "Hello {{ name }}, we open on Saturday at ten."
        spec = CampaignSpec(
            name=CAMPAIGN,
            accounts=tuple(account.name for account in ACCOUNTS),
            content=Content((Part("media", text=caption, media=media.id),)),
        )
        audience = [
            Target(f"group-{number:04}@sandbox", {"name": f"Group {number}"})
            for number in range(1, targets + 1)
        ]
        campaign_commands.create(tx, spec, audience, providers, START_AT)
        campaign_commands.launch(tx, CAMPAIGN, START_AT)
    store.analyse()


async def _until_finished(store: Store, clock: LoopClock) -> Instant:
    """Look once a virtual minute whether the campaign has ended by itself."""
    while True:
        await clock.sleep_until(clock.now() + 60_000_000)
        with store.read() as tx:
            campaign = tx.campaigns.find(CAMPAIGN)
            assert campaign is not None
            if campaign.state is CampaignState.FINISHED:
                return campaign.finished_at or clock.now()


def _report(store: Store, effects: MemoryEffects, watcher: Watcher, finished_at: Instant) -> Report:
    log = effects.all()
    with store.read() as tx:
        campaign = tx.campaigns.find(CAMPAIGN)
        assert campaign is not None
        (run,) = tx.runs.of_campaign(campaign.id)
        counts = tx.runs.counts(run.id)
        by_account = tx.runs.accounts(run.id)
        accounts = []
        resolved = 0
        for account in tx.accounts.list():
            attempts = list(attempts_of(tx.ledger.walk(account.id)))
            resolved += sum(attempt.resolution is not None for attempt in attempts)
            policy = Policy.from_mapping(account.policy)
            sent = by_account.get(account.id, {}).get(DeliveryState.SENT, 0)
            accounts.append(
                AccountReport(
                    account.name, account.policy_name or "", sent, pace_of(attempts, policy)
                )
            )
        violations = [f"{v.invariant}: {v.detail}" for v in verify(tx, finished_at)]
    violations += _received_twice([e.key for e in log if e.kind == "send" and e.accepted])
    return Report(
        counts={str(state): count for state, count in counts.items()},
        uploads=sum(effect.kind == "upload" and effect.accepted for effect in log),
        accounts=accounts,
        violations=violations,
        finished_at=finished_at,
        retried=watcher.retried,
        throttled=watcher.throttled,
        kills=watcher.kills,
        resolved=resolved,
    )


def _received_twice(keys: Sequence[str]) -> list[str]:
    """The other side's word: no message was accepted twice."""
    twice = [key for key, times in Counter(keys).items() if times > 1]
    return [f"never twice: the provider accepted {key} more than once" for key in twice]


def picture(size: int = 64) -> bytes:
    """A small PNG, made here: a real file to upload, with nothing shipped for it."""
    rows = b"".join(
        b"\0" + bytes(v for x in range(size) for v in (x * 4 % 256, y * 4 % 256, 160))
        for y in range(size)
    )

    def chunk(kind: bytes, body: bytes) -> bytes:
        checksum = zlib.crc32(kind + body)
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", checksum)

    header = struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)
    body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


def _print(console: Console, report: Report, kept: Path | None) -> None:
    minutes = (report.finished_at - START_AT) / 60_000_000
    console.print()
    console.print(
        f"[bold]{report.total} messages[/bold] in {minutes:.0f} virtual minutes "
        f"({iso(START_AT)[:16].replace('T', ' ')} to {iso(report.finished_at)[11:16]} UTC)"
    )
    console.print("  " + "  ".join(f"{name} {report.counts[name]}" for name in OUTCOMES))
    console.print(f"  uploads {report.uploads}: one per account, not one per message")
    console.print(
        f"  {report.retried} retried, {report.throttled} throttled; {report.kills} lane killed "
        f"between intent and outcome,\n  {report.resolved} doubt cleared by asking the provider"
    )
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 3, 0, 0))
    table.add_column("account")
    table.add_column("policy")
    for name in ("sent", "pace/min", "allowed/min", "share"):
        table.add_column(name, justify="right")
    for entry in report.accounts:
        pace = entry.pace
        table.add_row(
            entry.name,
            entry.policy,
            str(entry.sent),
            f"{pace.achieved_per_min:.2f}",
            f"{pace.allowed_per_min:.2f}",
            f"{pace.share:.1%}",
        )
    console.print()
    console.print(table)
    console.print()
    if report.violations:
        console.print(f"[red]verify found {len(report.violations)} violations[/red]")
        for violation in report.violations[:20]:
            console.print(f"  {violation}")
    else:
        console.print("[green]verify: every promise kept[/green]")
    if kept is not None:
        console.print(f"The database is in {kept}", style="dim")
