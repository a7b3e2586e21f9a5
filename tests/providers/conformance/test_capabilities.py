"""Capabilities are honest: what a driver cannot do is refused before anything starts, and what it
says it can do it does."""

from __future__ import annotations

import inspect
from dataclasses import replace

import pytest

from paceline.core.errors import InputError
from paceline.core.model import Content, Part, Target
from paceline.core.outcome import OutcomeKind
from paceline.engine.campaign_checks import check_addresses, check_capabilities
from paceline.engine.ports import Account, Capabilities, Driver, Group, Provider
from paceline.providers.registry import Registry
from tests.providers import stage as stages
from tests.providers.conformance.case import Case, Stage

TEXT = Content((Part("text", "Hello"),))
FILE = Content((Part("media", "", media="a" * 64),))
TEMPLATE = Content((Part("template", template="order_ready", language="en_US"),))
GROUP = "120363041234567890@g.us"


def account_of(stage: Stage) -> Account:
    return replace(stages.account("sales", **stage.settings), provider=stage.provider.name)


def able(stage: Stage) -> Capabilities:
    return stage.provider.capabilities_of(stage.settings)


def test_it_is_a_provider(stage: Stage) -> None:
    provider: Provider = stage.provider
    assert Registry([provider]).get(provider.name) is provider
    complete = provider.check(stage.settings)
    assert provider.check(complete) == complete, "what is stored can be read again"
    assert provider.secrets <= set(complete)


def test_an_open_account_can_do_what_was_known_before(stage: Stage) -> None:
    async def scene(driver: Driver) -> Capabilities:
        return driver.capabilities

    assert stage.play(scene) == able(stage)


def test_an_account_can_do_no_more_than_its_provider(stage: Stage) -> None:
    most, here = stage.provider.capabilities, able(stage)
    assert here.actions <= most.actions
    for name in ("media", "groups", "receipts", "templates", "finds", "proves_absence"):
        assert getattr(here, name) <= getattr(most, name), name


def test_files_are_refused_before_a_run_where_there_are_none(case: Case, stage: Stage) -> None:
    registry, account = Registry([stage.provider]), account_of(stage)
    action = sorted(case.actions)[0]
    check_capabilities(account, action, TEXT, registry, answering=True)
    if able(stage).media:
        check_capabilities(account, action, FILE, registry, answering=True)
        return
    with pytest.raises(InputError, match="cannot send media"):
        check_capabilities(account, action, FILE, registry, answering=True)


def test_templates_are_refused_before_a_run_where_there_are_none(stage: Stage) -> None:
    registry, account = Registry([stage.provider]), account_of(stage)
    action = stage.message().action
    for answering in (True, False):
        if able(stage).templates:
            check_capabilities(account, action, TEMPLATE, registry, answering=answering)
            continue
        with pytest.raises(InputError, match=r"^parts\[1\].template: .* has no templates"):
            check_capabilities(account, action, TEMPLATE, registry, answering=answering)


def test_where_strangers_need_a_template_anything_else_is_refused_before_a_run(
    stage: Stage,
) -> None:
    registry, account = Registry([stage.provider]), account_of(stage)
    action, here = stage.message().action, able(stage)
    assert here.templates or not here.needs_templates
    check_capabilities(account, action, TEXT, registry, answering=True)
    mixed = Content((*TEMPLATE.parts, *TEXT.parts))
    if not here.needs_templates:
        check_capabilities(account, action, TEXT, registry)
        return
    for content, number in ((TEXT, 1), (FILE, 1), (mixed, 2)):
        with pytest.raises(InputError, match=rf"^parts\[{number}\]: .* only with a template"):
            check_capabilities(account, action, content, registry)


def test_actions_are_refused_before_a_run(stage: Stage) -> None:
    with pytest.raises(InputError, match="cannot send action 'fax'"):
        check_capabilities(account_of(stage), "fax", TEXT, Registry([stage.provider]))


def test_groups_are_refused_before_a_run_where_there_are_none(case: Case, stage: Stage) -> None:
    registry, account = Registry([stage.provider]), account_of(stage)
    action = stage.message().action
    assert able(stage).groups == (case.group is not None)
    targets = [Target(case.group or GROUP)]
    if case.group is None:
        with pytest.raises(InputError, match="is a group, not "):
            check_addresses([account], action, targets, registry)
    else:
        check_addresses([account], action, targets, registry)


def test_groups_are_written_to_and_listed_where_there_are_some(case: Case, stage: Stage) -> None:
    async def scene(driver: Driver) -> tuple[OutcomeKind, list[Group] | None]:
        outcome = await driver.send(stage.message()._replace(target=case.group or GROUP))
        listed = getattr(driver, "groups", None)
        groups = await listed() if case.group is not None and listed is not None else None
        return outcome.kind, groups

    kind, groups = stage.play(scene)
    if case.group is None:
        assert kind is OutcomeKind.REJECTED
        assert not stage.sent()
        return
    assert kind is OutcomeKind.ACCEPTED
    assert [seen.target for seen in stage.sent()] == [case.group]
    assert groups is not None, "a driver that can write to groups says which there are"
    assert all(isinstance(group, Group) for group in groups)
    assert len({group.id for group in groups}) == len(groups)


def test_what_it_says_of_receipts_is_so(stage: Stage) -> None:
    """Receipts come by webhooks, or by a driver that listens."""

    async def listens(driver: Driver) -> bool:
        return hasattr(driver, "listen")

    if able(stage).receipts:
        assert hasattr(stage.provider, "parse") or stage.play(listens)
    if hasattr(stage.provider, "parse"):
        assert inspect.signature(stage.provider.parse).return_annotation
