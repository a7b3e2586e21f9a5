"""A scripted WhatsApp per test, with one account that is paired; and the real library, alone."""

import importlib
import io
import logging
import os
import platform
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.providers.whatsapp.real import Account, jid
from tests.providers.whatsapp.stage import Stage


@pytest.fixture
def scene(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


@pytest.fixture(scope="session")
def library() -> ModuleType:
    with pytest.MonkeyPatch.context() as patch:
        # It asks another program what system this is, and leaves the pipe to it open.
        patch.setattr(os, "popen", lambda command: io.StringIO(platform.platform()))
        return importlib.import_module("paceline.providers.whatsapp.library")


@pytest.fixture(scope="session")
def proto(library: ModuleType) -> Any:
    return importlib.import_module("neonize.proto.Neonize_pb2")


@pytest.fixture(scope="session")
def content(library: ModuleType) -> Any:
    return importlib.import_module("neonize.proto.waE2E.WAWebProtobufsE2E_pb2")


@pytest.fixture
def phone(library: ModuleType, proto: Any) -> Iterator[Account]:
    """Somebody's, who was logged in before."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    made = Account(library)
    made.client.me = proto.Device(JID=jid(proto, "4915112345678"), LID=jid(proto, "77", "lid"))
    yield made
    root.handlers[:] = handlers
    root.setLevel(level)
