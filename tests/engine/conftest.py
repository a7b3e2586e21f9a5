"""A fresh world per test."""

from pathlib import Path

import pytest

from tests.engine.world import World


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(f"sqlite:///{tmp_path / 'world.db'}")
