"""What a provider reports over HTTP: believed, written down at once, and known the second time."""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from paceline.core.errors import InputError
from paceline.engine import reporting as reporting_module
from paceline.engine.commands import hooking, sealing
from paceline.engine.commands.accounts import House
from paceline.engine.ports import Account, AccountNews, Inbound, News, Receipt, Returned
from paceline.engine.reporting import Admitted, Answered, ReportDesk
from paceline.providers.registry import Registry
from paceline.providers.sandbox import SandboxProvider
from paceline.vault import KeyVault, new_key
from tests.engine.scenes import until
from tests.engine.world import Process, World

PROOF = {"x-proof": "right"}
KINDS: dict[type, str] = {Inbound: "in", Receipt: "receipt", Returned: "back", AccountNews: "news"}


class ReportingProvider(SandboxProvider):
    """The sandbox, which says what it is told to say."""

    proved = True

    def proves(self, settings: Mapping[str, Any]) -> bool:
        return self.proved

    def verify(
        self,
        settings: Mapping[str, Any],
        headers: Mapping[str, str],
        body: bytes,
        query: Mapping[str, str],
    ) -> bool:
        if headers.get("x-proof") == "broken":
            raise InputError("the settings are wrong", key="webhook_secret")
        return headers.get("x-proof") == "right"

    def parse(self, settings: Mapping[str, Any], body: bytes) -> list[News]:
        if body == b"nonsense":
            raise InputError("the report is not JSON")
        kinds = {name: kind for kind, name in KINDS.items()}
        return [kinds[kind](*fields) for kind, fields in json.loads(body)]

    def challenge(self, settings: Mapping[str, Any], query: Mapping[str, str]) -> str | None:
        return query.get("challenge")


def reporting(world: World, vault: KeyVault | None = None) -> ReportingProvider:
    provider = ReportingProvider(world.clock, world.effects)
    world.providers = Registry([provider], vault=vault)
    world.house = House(world.providers, world.house.catalogue)
    return provider


def said(*news: News) -> bytes:
    return json.dumps([[KINDS[type(one)], list(one)] for one in news]).encode()


def secret(world: World, name: str = "ann", **more: bool) -> str:
    def work(tx: Any) -> str:
        return hooking.ensure_secret(tx, world.providers, tx.accounts.find(name), **more)

    return world.write(work)


def desk_of(world: World, process: Process) -> ReportDesk:
    return ReportDesk(process.journal, world.clock, world.providers)


async def admitted(world: World, desk: ReportDesk) -> Admitted:
    found = await desk.admit("ann", secret(world))
    assert found is not None and not found.letters
    return found


async def take(desk: ReportDesk, who: Admitted, *news: News, proof: str = "right") -> Answered:
    return await desk.take(who, {"x-proof": proof}, said(*news), {})


HELLO = Inbound("m1", "+4915112345678", "+4915112345678", "Hello", 5)


def test_a_message_is_in_the_inbox_before_it_is_answered_and_once(world: World) -> None:
    reporting(world)

    async def script(world: World) -> None:
        world.account()
        process = world.process()
        desk = desk_of(world, process)
        who = await admitted(world, desk)
        for _ in range(2):
            assert await take(desk, who, HELLO) == "taken"
            (kept,) = world.read(lambda tx: tx.inbox.latest())
            assert (kept.text, kept.sender, kept.at) == ("Hello", HELLO.sender, 5)
        assert await take(desk, who, AccountNews("offline", "the phone is off", 0)) == "taken"
        assert await take(desk, who) == "taken", "nothing of interest is no mistake"
        await process.stop()

    world.play(script)


def test_only_a_proof_is_believed_where_one_was_agreed_upon(world: World) -> None:
    provider = reporting(world)

    async def script(world: World) -> None:
        world.account()
        process = world.process()
        desk = desk_of(world, process)
        who = await admitted(world, desk)
        for proof in ("wrong", "", "broken"):
            assert await take(desk, who, HELLO, proof=proof) == "not believed"
        with pytest.raises(InputError, match="not JSON"):
            await desk.take(who, PROOF, b"nonsense", {})
        assert await desk.take(who, {}, b"nonsense", {}) == "not believed", "proof comes first"
        assert not world.read(lambda tx: tx.inbox.latest())
        provider.proved = False
        assert await take(desk, who, HELLO, proof="wrong") == "taken"
        assert desk.challenge(who, {"challenge": "42"}) == "42"
        await process.stop()

    world.play(script)


def test_a_secret_is_compared_in_constant_time(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    reporting(world)

    async def script(world: World) -> None:
        world.account()
        process = world.process()
        desk, known = desk_of(world, process), secret(world)
        with monkeypatch.context() as patch:
            patch.setattr(hmac, "compare_digest", lambda *_: False)
            assert await desk.admit("ann", known) is None
        assert await desk.admit("ann", known) is not None
        await process.stop()

    world.play(script)


def test_who_does_not_know_the_secret_is_nobody(world: World) -> None:
    reporting(world)

    async def script(world: World) -> None:
        world.account()
        world.account("ben")
        process = world.process()
        desk = desk_of(world, process)
        first = secret(world)
        for name, shown in (
            ("ann", ""), ("ann", first[:-1]), ("ann", f"{first}x"), ("ann", first.swapcase()),
            ("ann", "ß" * 32), ("ann", "-" * 32), ("nobody", first), ("nobody", "-" * 32),
            ("ben", first), ("", first),
        ):  # fmt: skip
            assert await desk.admit(name, shown) is None, (name, shown)
        second = secret(world, new=True)
        assert await desk.admit("ann", first) is None and await desk.admit("ann", second)
        world.write(lambda tx: tx.accounts.update(1, removed_at=world.clock.now()))
        assert await desk.admit("ann", second) is None, "a removed account has no address"
        await process.stop()

    world.play(script)


def test_a_receipt_ends_a_doubt_and_one_that_comes_too_early_is_to_come_again(
    world: World,
) -> None:
    reporting(world)

    async def script(world: World) -> None:
        world.account(latency="30s", lost_at=[1], finds=False, policy={"timeout": "1m"})
        world.campaign(1)
        process = world.process()
        desk = desk_of(world, process)
        who = await admitted(world, desk)
        await until(world, lambda: world.counts() == {"sending": 1})
        key = f"{world.read(lambda tx: tx.settings.get('instance'))}-1-0"
        receipt = Receipt("wamid.1", "delivered", 0, key=key)
        assert await take(desk, who, HELLO, receipt) == "again", "its call is under way"
        assert len(world.read(lambda tx: tx.inbox.latest())) == 1, "the rest is taken in"
        await until(world, lambda: world.counts() == {"unknown": 1})
        assert await take(desk, who, receipt) == "taken"
        assert world.counts() == {"sent": 1}
        failed = Receipt("wamid.1", "failed", 0, key=key)
        assert await take(desk, who, failed) == "taken"
        assert world.counts() == {"sent": 1}, "what is known to be sent stays so"
        await process.stop()

    world.play(script)


def test_a_bounce_that_comes_too_early_is_to_come_again(world: World) -> None:
    reporting(world)

    async def script(world: World) -> None:
        world.account(latency="30s", policy={"timeout": "1m"})
        world.campaign(1)
        process = world.process()
        desk = desk_of(world, process)
        who = await admitted(world, desk)
        await until(world, lambda: world.counts() == {"sending": 1})
        key = f"{world.read(lambda tx: tx.settings.get('instance'))}-1-0"
        back = Returned("failed", "", "552 5.2.2 mailbox full", 0, "5.2.2", key)
        assert await take(desk, who, back) == "again"
        await until(world, lambda: world.counts() == {"sent": 1})
        for _ in range(2):
            assert await take(desk, who, back) == "taken"
            assert world.counts() == {"bounced": 1}
        await process.stop()

    world.play(script)


# ---------------------------------------------------------------------- the secret


def test_the_secret_is_the_same_until_another_is_wanted(
    either: Callable[[Callable[[World], None]], None],
) -> None:
    def script(world: World) -> None:
        reporting(world)
        world.account()
        first = secret(world)
        assert len(first) == 32 and secret(world) == first
        assert secret(world, new=True) != first

    either(script)


def test_it_is_sealed_and_sealed_anew_with_another_key(world: World) -> None:
    old, fresh = new_key(), new_key()
    keys = {"PACELINE_KEY": old}
    reporting(world, KeyVault(None, keys))

    def stored(tx: Any) -> Any:
        return tx.settings.get("hook.1")

    async def script(world: World) -> None:
        account: Account = world.account()
        shown = secret(world)
        sealed = world.read(stored)
        assert sealed.startswith("sealed:") and shown not in sealed
        reporting(world, KeyVault(None, {"PACELINE_KEY": f"{fresh},{old}"}))
        waiting = world.read(lambda tx: sealing.unsealed_accounts(tx, world.providers))
        assert [one.name for one in waiting] == [account.name]
        assert world.write(lambda tx: sealing.seal_all(tx, world.providers)) == 1
        reporting(world, KeyVault(None, {"PACELINE_KEY": fresh}))
        assert secret(world) == shown and world.read(stored) != sealed

    world.play(script)


def test_what_reports_nothing_has_no_address(world: World) -> None:
    async def script(world: World) -> None:
        world.account()
        with pytest.raises(InputError, match="sandbox reports nothing over HTTP"):
            secret(world)

    world.play(script)


def test_the_address() -> None:
    account = type("A", (), {"name": "anna+sales@example.com"})()
    url = hooking.url_of("https://mail.example.com", account, "s3cret")
    assert url == "https://mail.example.com/hooks/anna+sales@example.com/s3cret"


def test_who_was_let_in_is_remembered_but_believed_only_as_long_as_it_is_so(world: World) -> None:
    reporting(world)

    async def script(world: World) -> None:
        world.account()
        process = world.process()
        desk = desk_of(world, process)
        first = secret(world)
        assert desk.known("ann", first) is None, "nobody has come yet"
        await admitted(world, desk)
        for shown in ("", "-" * 32, first.swapcase(), "ß" * 32, "\ud800"):
            assert desk.known("ann", shown) is None
        changes: list[Callable[[Any], object]] = [
            lambda tx: hooking.ensure_secret(tx, world.providers, tx.accounts.get(1), new=True),
            lambda tx: tx.accounts.update(1, settings={"proof": "another one"}),
            lambda tx: tx.accounts.update(1, removed_at=world.clock.now()),
        ]
        for change in changes:
            who = await admitted(world, desk)
            assert desk.known("ann", secret(world)) is who
            world.write(change)
            for news in ([HELLO], [], [Receipt("p1", "read", 0)], [HELLO._replace(text="STOP")]):
                assert await take(desk, who, *news) == "changed"
            assert desk.known("ann", secret_now(world)) is None, "it is forgotten"
        assert world.read(lambda tx: (tx.inbox.latest(), tx.suppressions.find(HELLO.chat))) == (
            [],
            None,
        )
        await process.stop()

    world.play(script)


def secret_now(world: World) -> str:
    return world.read(lambda tx: hooking.secret_of(tx, world.providers, tx.accounts.get(1)) or "")


def test_only_so_many_are_remembered(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    reporting(world)
    monkeypatch.setattr(reporting_module, "MOST_KNOWN", 2)

    async def script(world: World) -> None:
        process = world.process()
        desk = desk_of(world, process)
        secrets = {}
        for name in ("ann", "ben", "cem"):
            world.account(name)
            secrets[name] = secret(world, name)
            assert await desk.admit(name, secrets[name])
        known = [name for name in secrets if desk.known(name, secrets[name])]
        assert known == ["ben", "cem"]
        await process.stop()

    world.play(script)
