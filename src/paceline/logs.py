"""How the log is written: one line per event, to stderr, for people or for programs.

Structured events of our own and the lines of libraries that use the standard logging go the same
way. What is logged is decided where it happens.
"""

from __future__ import annotations

import logging
import os
import re
import sys

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from paceline.core.instants import iso

# What these say on "info" is about themselves; their warnings are about us.
# What urllib3 says on "debug" has the tokens of webhooks in it.
_TALKATIVE = ("alembic", "asyncio", "httpx", "urllib3", "uvicorn")
_OURS = "paceline"
_HOOK = re.compile(r"(/hooks/[^/\s]+/)[^/\s?\"']+")
_FIRST = ("timestamp", "level", "logger", "event")


class _ToStderr(logging.Handler):
    """Writes to whatever standard error is at the time, not to what it was at the start."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            sys.stderr.write(f"{self.format(record)}\n")
            sys.stderr.flush()
        except Exception:
            self.handleError(record)


def configure(level: str = "info", style: str = "console") -> None:
    """Set up logging for the whole process; a later call replaces an earlier one."""
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _readable_instants,
        _without_hooks,
    ]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        # Modules hold their loggers from import on, so what they hold must stay changeable.
        cache_logger_on_first_use=False,
    )
    handler = _ToStderr()
    handler.set_name(_OURS)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, structlog.stdlib.PositionalArgumentsFormatter()],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                *_rendering(style),
            ],
        )
    )
    root = logging.getLogger()
    for earlier in [known for known in root.handlers if known.name == _OURS]:
        root.removeHandler(earlier)
    root.addHandler(handler)
    root.setLevel(level.upper())
    for name in _TALKATIVE:
        logging.getLogger(name).setLevel(max(root.level, logging.WARNING))


def _rendering(style: str) -> list[Processor]:
    if style == "json":
        return [
            structlog.processors.format_exc_info,
            _without_hooks,
            _in_order,
            structlog.processors.JSONRenderer(ensure_ascii=False),
        ]
    colours = sys.stderr.isatty() and "NO_COLOR" not in os.environ
    return [
        structlog.dev.ConsoleRenderer(
            colors=colours,
            pad_event_to=0,
            exception_formatter=structlog.dev.plain_traceback,
        )
    ]


def _in_order(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """The same keys first in every line, whatever was bound before."""
    return {**{key: event[key] for key in _FIRST if key in event}, **event}


def _readable_instants(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Instants are numbers to the program and dates to whoever reads about them."""
    for key, value in event.items():
        if key.endswith("_at") and type(value) is int:
            event[key] = iso(value)
    return event


def _without_hooks(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """The addresses that providers report to end in a secret, and anybody may log an address."""
    for key, value in event.items():
        if isinstance(value, str) and "/hooks/" in value:
            event[key] = _HOOK.sub(r"\1(secret)", value)
    return event
