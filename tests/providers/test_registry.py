"""Providers are found by name, and a mistyped name is answered with those that come close."""

import pytest

from paceline.core.errors import ConflictError, InputError
from paceline.engine.clock import LoopClock
from paceline.engine.ports import Provider, Providers
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
