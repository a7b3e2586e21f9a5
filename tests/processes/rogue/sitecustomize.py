"""Makes a service's sandbox do to its process what defects do, and its clocks run shorter.

Every Python process loads this whose ``PYTHONPATH`` leads here, so workers do as well. Which
account does what is said in ``PACELINE_TEST_ROGUES``: a table of misdeeds by account.
"""

import asyncio
import importlib.abc
import importlib.machinery
import json
import os
import re
import resource
import sys
import threading
from collections.abc import Callable, Sequence
from functools import partial
from types import ModuleType
from typing import Any

SECOND = 1_000_000
ROGUES: dict[str, str] = json.loads(os.environ.get("PACELINE_TEST_ROGUES", "{}"))
LEAK = 60 * 1024 * 1024
kept: list[bytes] = []


async def misbehave(deed: str, send: Callable[[], Any]) -> Any:
    match deed:
        case "abort":
            os.abort()
        case "nonsense":
            return "no outcome at all"
        case "hang":
            await asyncio.get_running_loop().create_future()
        case "block":
            threading.Event().wait()
        case "hog":
            # Would take longer than anybody lives, and lets no other thread run.
            re.match("(a+)+$", "a" * 64 + "b")
        case "leak":
            # Written to, or the system would only promise it.
            kept.append(b"x" * LEAK)
    return await send()


def patch_sandbox(module: Any) -> None:
    real = module.SandboxDriver.send

    async def send(self: Any, message: Any) -> Any:
        deed = ROGUES.get(self._name)
        if deed is None:
            return await real(self, message)
        return await misbehave(deed, partial(real, self, message))

    module.SandboxDriver.send = send


def patch_leases(module: Any) -> None:
    module.LEASE_US, module.RENEW_EVERY_US, module.UNSAFE_TAIL_US = 4 * SECOND, SECOND, SECOND


def patch_drivers(module: Any) -> None:
    module.CLEAN_UP_US = SECOND // 2


def patch_crashes(module: Any) -> None:
    module.CRASH_PAUSE_US, module.CRASHES_ALLOWED = SECOND // 10, 2


def patch_worker(module: Any) -> None:
    module.BEAT_US, module.LOOK_US, module.STANDSTILL_US = SECOND // 5, SECOND // 10, SECOND // 2


def patch_orchestrator(module: Any) -> None:
    options = module.OrchestratorOptions
    short = {"silent_us": 3 * SECOND, "listen_every_us": SECOND // 5}
    module.OrchestratorOptions = partial(options, **short)


def patch_guard(module: Any) -> None:
    after = {"hold_after_us": SECOND // 2, "tell_after_us": SECOND, "end_after_us": 2 * SECOND}
    module.GuardOptions = partial(module.GuardOptions, **after, look_us=SECOND // 10)


def patch_smtp(module: Any) -> None:
    module.ANSWERED_WITHIN_US = SECOND


PATCHES: dict[str, Callable[[Any], None]] = {
    "paceline.engine.leases": patch_leases,
    "paceline.engine.crashes": patch_crashes,
    "paceline.engine.drivers": patch_drivers,
    "paceline.engine.orchestrator": patch_orchestrator,
    "paceline.guard": patch_guard,
    "paceline.providers.sandbox.provider": patch_sandbox,
    "paceline.providers.smtp.driver": patch_smtp,
    "paceline.worker": patch_worker,
}


class Patching(importlib.abc.MetaPathFinder):
    """Finds what is patched as everybody else does, and patches it as soon as it is loaded."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name not in PATCHES:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        assert spec is not None and spec.loader is not None
        load = spec.loader.exec_module

        def load_and_patch(module: ModuleType) -> None:
            load(module)
            PATCHES[name](module)

        spec.loader.exec_module = load_and_patch  # type: ignore[method-assign]
        return spec


resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
sys.meta_path.insert(0, Patching())
