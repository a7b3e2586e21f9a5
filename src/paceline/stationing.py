"""Who sees to the lanes of a process, made as its settings say: whoever runs them here, or whoever
has them run by workers. Loaded where it is used: commands need neither."""

from __future__ import annotations

import random
import secrets
from collections.abc import Callable
from typing import Any, Protocol

from paceline.config import Settings
from paceline.engine.confirming import words_of
from paceline.engine.observe import Observer
from paceline.engine.orchestrator import Orchestrator, OrchestratorOptions, WorkersObserver
from paceline.engine.ports import Clock, Journal, Providers
from paceline.engine.ports.workers import Workers
from paceline.engine.station import Station
from paceline.engine.supervisor import Supervisor, SupervisorOptions


class Watching(Observer, WorkersObserver, Protocol):
    """Whoever counts what lanes do, here or in workers."""


def make_station(
    settings: Settings,
    journal: Journal,
    clock: Clock,
    providers: Providers,
    observer: Watching,
    workers: Callable[[], Workers],
) -> Station:
    if settings.isolation == "process":
        return Orchestrator(
            journal,
            clock,
            providers,
            workers(),
            observer=observer,
            options=OrchestratorOptions(
                name=settings.process_name,
                poll_us=settings.poll_us,
                grace_us=settings.grace_us,
                accounts_per_worker=settings.accounts_per_process,
                max_workers=settings.max_workers,
                memory_limit=settings.memory_limit,
            ),
        )
    return Supervisor(
        journal,
        clock,
        providers,
        observer=observer,
        rng=random.Random(secrets.randbits(64)),
        options=supervisor_options(settings, providers),
    )


def supervisor_options(settings: Settings, providers: Providers, **more: Any) -> SupervisorOptions:
    """What holds for whoever runs lanes, in the service and in its workers."""
    return SupervisorOptions(
        name=settings.process_name,
        poll_us=settings.poll_us,
        grace_us=settings.grace_us,
        park_after_us=settings.park_after_us,
        fire_concurrency=settings.fire_concurrency,
        words=words_of(settings.opt_out, providers),
        **more,
    )
