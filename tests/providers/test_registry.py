"""Providers are found by name, and a mistyped name is answered with those that come close."""

from pathlib import Path

import pytest

from paceline.core.errors import ConflictError, InputError
from paceline.engine.clock import LoopClock
from paceline.engine.ports import Provider, Providers
from paceline.providers.drivers import every_driver
from paceline.providers.registry import Registry
from paceline.providers.sandbox import MemoryEffects, SandboxProvider


def sandbox() -> SandboxProvider:
    return SandboxProvider(LoopClock(0), MemoryEffects())


def test_a_provider_is_found_by_its_name() -> None:
    provider: Provider = sandbox()
    registry: Providers = Registry([provider])
    assert registry.get("sandbox") is provider
    assert registry.names() == ["sandbox"]


def test_a_mistyped_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(InputError) as caught:
        Registry([sandbox()]).get("sandbx")
    assert str(caught.value) == "provider: there is no provider 'sandbx', did you mean 'sandbox'?"


def test_a_name_like_no_other_is_answered_with_all() -> None:
    with pytest.raises(InputError, match="Known providers: sandbox"):
        Registry([sandbox()]).get("pigeon")
    with pytest.raises(InputError, match="Known providers: none"):
        Registry([]).get("pigeon")


def test_a_name_is_taken_once() -> None:
    with pytest.raises(ConflictError, match="two providers named 'sandbox'"):
        Registry([sandbox(), sandbox()])


def test_a_late_provider_is_made_once_and_when_it_is_asked_for() -> None:
    made: list[SandboxProvider] = []

    def make() -> Provider:
        made.append(sandbox())
        return made[-1]

    registry = Registry(late={"sandbox": make})
    assert registry.names() == ["sandbox"]
    with pytest.raises(InputError, match="did you mean 'sandbox'"):
        registry.get("sandbx")
    assert made == []
    assert registry.get("sandbox") is registry.get("sandbox") is made[0]
    assert len(made) == 1


def test_every_driver_has_the_name_it_is_found_by(tmp_path: Path) -> None:
    registry = every_driver(LoopClock(0), None, tmp_path)
    assert len(registry.names()) > 5
    for name in registry.names():
        assert registry.get(name).name == name
