"""Commands refuse what is wrong, name it, and leave every table as it was."""

from collections.abc import Callable
from typing import Any

import pytest

from paceline.core.errors import ConflictError, InputError, NotFoundError
from paceline.core.model import Content, Part, Target
from paceline.core.states import AccountState, DeliveryState
from paceline.engine.campaign_spec import CampaignSpec
from paceline.engine.commands import accounts, campaigns, control
from paceline.engine.commands.accounts import AccountChange, NewAccount
from paceline.engine.ports import Tx
from tests.engine.scenes import change, delivery, events, in_state, send_direct, the_run, until
from tests.engine.world import World

HELLO = Content((Part("text", "hello"),))


def everything(world: World) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every table."""

    def read(tx: Any) -> dict[str, list[tuple[Any, ...]]]:
        cursor = tx._context.cursor()
        cursor.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        tables = sorted(name for (name,) in cursor.fetchall())
        return {name: cursor.execute(f"SELECT * FROM {name}").fetchall() for name in tables}

    return world.read(read)


def refused(world: World, work: Callable[[Tx], object], kind: type[InputError], text: str) -> None:
    before = everything(world)
    with pytest.raises(kind) as caught:
        world.write(work)
    assert text in str(caught.value), str(caught.value)
    assert "\n" not in str(caught.value)
    assert everything(world) == before


# ---------------------------------------------------------------------- accounts

BAD_ACCOUNTS: dict[str, tuple[NewAccount, type[InputError], str]] = {
    "no name": (NewAccount("", "sandbox"), InputError, "name: '' cannot be"),
    "a name with a space": (NewAccount("a b", "sandbox"), InputError, "name: 'a b' cannot be"),
    "a name with a sign": (NewAccount("-a", "sandbox"), InputError, "name: '-a' cannot be"),
    "a name of two lines": (NewAccount("a\n", "sandbox"), InputError, "name: "),
    "a name too long": (NewAccount("a" * 65, "sandbox"), InputError, "64 at most"),
    "a name in use": (NewAccount("ann", "sandbox"), ConflictError, "name: an account named 'ann'"),
    "no such provider": (NewAccount("bob", "sandbx"), InputError, "did you mean 'sandbox'"),
    "no such setting": (
        NewAccount("bob", "sandbox", settings={"latncy": "1s"}),
        InputError,
        "did you mean 'latency'",
    ),
    "a bad setting": (
        NewAccount("bob", "sandbox", settings={"latency": "soon"}),
        InputError,
        "latency: ",
    ),
    "no such policy": (
        NewAccount("bob", "sandbox", policy="gmial"),
        InputError,
        "unknown policy 'gmial', did you mean 'gmail'",
    ),
    "no such limit": (
        NewAccount("bob", "sandbox", overrides={"rte": "1/s"}),
        InputError,
        "bob: unknown key 'rte', did you mean 'rate'",
    ),
    "a rate of zero": (
        NewAccount("bob", "sandbox", overrides={"rate": "0/min"}),
        InputError,
        "bob: rate: a rate must be above zero",
    ),
    "a negative rate": (
        NewAccount("bob", "sandbox", overrides={"rate": "-1/min"}),
        InputError,
        "bob: rate: ",
    ),
    "impossible hours": (
        NewAccount("bob", "sandbox", overrides={"hours": "Mon-Fri 18:00-09:00 UTC"}),
        InputError,
        "bob: hours: ",
    ),
    "an unknown zone": (
        NewAccount("bob", "sandbox", overrides={"zone": "Mars/Olympus"}),
        InputError,
        "bob: zone: ",
    ),
    "a spacing outside its bounds": (
        NewAccount("bob", "sandbox", policy="campaign-whatsapp", overrides={"spacing": "20s"}),
        InputError,
        "bob: spacing: spacing 20s is outside adaptive bounds 2s..10s",
    ),
    "a negative cap": (
        NewAccount("bob", "sandbox", overrides={"daily": {"email": -1}}),
        InputError,
        "bob: daily.email: ",
    ),
}


@pytest.mark.parametrize(("new", "kind", "text"), BAD_ACCOUNTS.values(), ids=BAD_ACCOUNTS.keys())
def test_a_bad_account_is_refused_and_nothing_is_written(
    world: World, new: NewAccount, kind: type[InputError], text: str
) -> None:
    async def script(world: World) -> None:
        world.account()
        refused(world, lambda tx: accounts.add(tx, new, world.house, 1), kind, text)

    world.play(script)


BAD_CHANGES: dict[str, tuple[AccountChange, str]] = {
    "no such policy": (AccountChange(policy="gmial"), "unknown policy 'gmial'"),
    "a bad limit": (AccountChange(overrides={"rate": "fast"}), "ann: rate: "),
    "no such limit": (AccountChange(overrides={"rte": "1/s"}), "did you mean 'rate'"),
    "nothing to unset": (AccountChange(unset=("spacing",)), "spacing"),
    "a bad setting": (AccountChange(settings={"latency": 5}), "latency: "),
    "no such setting": (AccountChange(settings={"latncy": "1s"}), "did you mean 'latency'"),
    "good and bad together": (
        AccountChange(address="new", overrides={"rate": "1/s"}, settings={"seed": "x"}),
        "seed: ",
    ),
}


@pytest.mark.parametrize(("wish", "text"), BAD_CHANGES.values(), ids=BAD_CHANGES.keys())
def test_a_bad_change_is_refused_and_nothing_is_written(
    world: World, wish: AccountChange, text: str
) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"})
        refused(
            world, lambda tx: accounts.change(tx, "ann", wish, world.house, 1), InputError, text
        )

    world.play(script)


def test_a_change_keeps_what_it_does_not_mention(world: World) -> None:
    async def script(world: World) -> None:
        world.account(
            preset="gmail", policy={"daily": {"email": 5, "message": 7}, "concurrency": 2}
        )
        change(world, overrides={"daily": {"email": 9}}, address="new@example.com")
        found = world.account_now()
        assert found.overrides == {"daily": {"email": 9, "message": 7}, "concurrency": 2}
        assert (found.address, found.policy_name) == ("new@example.com", "gmail")
        assert found.policy["rate"] == "60/min"
        change(world, unset=("daily",))
        assert world.account_now().policy["daily"] == {"email": 2000}
        change(world, policy="smtp")
        assert world.account_now().policy == {
            "rate": "5/s",
            "zone": "UTC",
            "timeout": "5m",
            "concurrency": 2,
        }

    world.play(script)


def test_a_new_version_of_a_policy_is_stored_and_the_old_one_stays(world: World) -> None:
    async def script(world: World) -> None:
        first = world.account(policy={"rate": "60/min"})
        change(world, overrides={"rate": "30/min"})
        second = world.account_now()
        change(world, overrides={"rate": "60/min"})
        assert world.account_now().policy_id == first.policy_id != second.policy_id
        old = world.read(lambda tx: tx.policies.body(second.policy_id))
        assert old == {"rate": "30/min"}

    world.play(script)


# ---------------------------------------------------------------------- campaigns


def campaign(**changes: Any) -> CampaignSpec:
    return CampaignSpec(**{"name": "new", "accounts": ("ann",), "content": HELLO, **changes})


def text(source: str, **more: str) -> Content:
    return Content((Part("text", source, **more),))


EVE = [Target("eve", {"name": "Eve"})]
BAD_CAMPAIGNS: dict[str, tuple[CampaignSpec, list[Target], type[InputError], str]] = {
    "a name in use": (campaign(name="spring"), EVE, ConflictError, "name: a campaign named"),
    "nobody to write to": (campaign(), [], InputError, "audience: the audience is empty"),
    "no such account": (
        campaign(accounts=("ann", "anm")),
        EVE,
        NotFoundError,
        "accounts: no account named 'anm', did you mean 'ann'",
    ),
    "an action it cannot do": (
        campaign(action="fax"),
        EVE,
        InputError,
        "action: sandbox cannot send action 'fax'",
    ),
    "a missing variable": (
        campaign(content=text("Dear {{ nmae }}")),
        EVE,
        InputError,
        "audience: target eve has no value for nmae",
    ),
    "a variable missing for the last one": (
        campaign(content=text("Dear {{ name }}")),
        [*EVE, Target("adam")],
        InputError,
        "audience: target adam has no value for name",
    ),
    "a variable missing in the subject": (
        campaign(content=text("x", subject="{{ nobody }}")),
        EVE,
        InputError,
        "nobody",
    ),
    "a template that fails for one": (
        campaign(content=text("{{ 1 // (name|length - 3) }}")),
        [Target("adam", {"name": "Adam"}), *EVE],
        InputError,
        "parts[1]: for target eve",
    ),
    "recipients without a zone": (
        campaign(recipient_hours="09:00-17:00"),
        EVE,
        InputError,
        "audience: target eve has no zone",
    ),
    "a file nobody stored": (
        campaign(content=Content((Part("media", media="f00d"),))),
        EVE,
        InputError,
        "parts[1].media: ",
    ),
}


@pytest.mark.parametrize(
    ("spec", "targets", "kind", "reason"), BAD_CAMPAIGNS.values(), ids=BAD_CAMPAIGNS.keys()
)
def test_a_bad_campaign_is_refused_and_nothing_is_written(
    world: World, spec: CampaignSpec, targets: list[Target], kind: type[InputError], reason: str
) -> None:
    async def script(world: World) -> None:
        world.account()
        world.campaign(1)
        refused(
            world,
            lambda tx: campaigns.create(tx, spec, targets, world.providers, 1),
            kind,
            reason,
        )

    world.play(script)


def test_round_robin_shares_the_targets_out_evenly(world: World) -> None:
    async def script(world: World) -> None:
        ids = [world.account(name).id for name in ("ann", "bob", "cid")]
        world.campaign(8, on=("ann", "bob", "cid"))
        shares = world.read(lambda tx: tx.runs.accounts(the_run(world).id))
        assert [sum(shares[i].values()) for i in ids] == [3, 3, 2]

    world.play(script)


def test_a_draft_sends_nothing(world: World) -> None:
    async def script(world: World) -> None:
        world.account()
        world.campaign(2, launch=False)
        process = world.process()
        await world.wait(5_000_000)
        assert (world.calls(), world.counts()) == ([], {"planned": 2})
        await process.stop()

    world.play(script)


# ---------------------------------------------------------------------- single messages

BAD_MESSAGES: dict[str, tuple[tuple[str, str, Content, str], type[InputError], str]] = {
    "no such account": (("anm", "eve", HELLO, "message"), NotFoundError, "did you mean 'ann'"),
    "nobody": (("ann", " ", HELLO, "message"), InputError, "target: "),
    "an action it cannot do": (("ann", "eve", HELLO, "fax"), InputError, "action: "),
    "a variable": (("ann", "eve", text("{{ name }}"), "message"), InputError, "name"),
    "a bad template": (("ann", "eve", text("{{"), "message"), InputError, "template"),
}


@pytest.mark.parametrize(
    ("message", "kind", "reason"), BAD_MESSAGES.values(), ids=BAD_MESSAGES.keys()
)
def test_a_bad_message_is_refused_and_nothing_is_written(
    world: World, message: tuple[str, str, Content, str], kind: type[InputError], reason: str
) -> None:
    async def script(world: World) -> None:
        world.account()
        work = lambda tx: campaigns.send_direct(  # noqa: E731
            tx, *message, 1, providers=world.providers
        )
        refused(world, work, kind, reason)

    world.play(script)


def test_messages_of_the_same_kind_share_one_standing_run(world: World) -> None:
    async def script(world: World) -> None:
        world.account()
        first, second = send_direct(world, "eve"), send_direct(world, "adam")
        runs = {world.read(lambda tx, i=i: tx.deliveries.get(i).run_id) for i in (first, second)}
        assert len(runs) == 1
        process = world.process()
        await until(world, lambda: len(world.sends()) == 2)
        await process.stop()
        # It never ends, so that the next message needs no new one.
        (run,) = (world.read(lambda tx, i=i: tx.runs.get(i)) for i in runs)
        assert (run.state, run.total) == ("running", 2)

    world.play(script)


# ---------------------------------------------------------------------- doubts


def test_only_a_doubt_can_be_resolved_and_only_in_words_that_mean_something(world: World) -> None:
    async def script(world: World) -> None:
        world.account(timeout_latency="1s", finds=False)
        world.campaign(targets=[Target("lost"), Target("a")])
        process = world.process()
        await until(world, lambda: world.state() == "finished")
        await process.stop()
        (lost,) = in_state(world, DeliveryState.UNKNOWN)
        resolve = control.resolve_unknown
        bad: Any = "maybe"
        refused(world, lambda tx: resolve(tx, lost.id, bad, 1), InputError, "'maybe'")
        sent = delivery(world, "a").id
        refused(world, lambda tx: resolve(tx, sent, "sent", 1), ConflictError, "is sent")
        refused(world, lambda tx: resolve(tx, 999, "sent", 1), NotFoundError, "999")
        now = world.clock.now()
        world.write(lambda tx: resolve(tx, lost.id, "failed", now))
        assert delivery(world, "lost").reason == "given up by an operator"
        (told,) = events(world, "unknown.resolved")
        assert told.text == f"delivery {lost.id} resolved by hand: failed"

    world.play(script)


def test_what_a_person_resolves_counts_in_the_caps(world: World) -> None:
    async def script(world: World) -> None:
        world.account(
            policy={"daily": {"message": 2}}, lost_at=[1, 2], timeout_latency="1s", finds=False
        )
        world.campaign(3)
        process = world.process()
        await until(world, lambda: world.account_now().state is AccountState.LIMIT_REACHED)
        first, _ = in_state(world, DeliveryState.UNKNOWN)
        now = world.clock.now()
        world.write(lambda tx: control.resolve_unknown(tx, first.id, "resend", now))
        # Its slot came back, so one message may go, and then the cap is reached again.
        await until(world, lambda: len(world.sends()) == 1)
        await world.wait(3_000_000)
        assert world.counts() == {"sent": 1, "unknown": 1, "ready": 1}
        await process.stop()

    world.play(script)
