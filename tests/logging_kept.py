"""Commands set up logging for the whole process, which in the suite other tests share with them."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import structlog


@contextmanager
def logging_as_before() -> Iterator[None]:
    root, configured = logging.getLogger(), structlog.is_configured()
    handlers, level, before = list(root.handlers), root.level, structlog.get_config()
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
        structlog.reset_defaults()
        if configured:
            structlog.configure(**before)
