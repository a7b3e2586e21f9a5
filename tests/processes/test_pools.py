"""A pool over two real services, one of them killed: nobody is written to twice."""

from tests.processes.service import Installation, eventually, services

COUNT = 60
ACCOUNTS = ("ann", "ben", "cleo")


def _campaign(installation: Installation) -> None:
    for account, rate in zip(ACCOUNTS, ("30/s", "20/s", "5/s"), strict=True):
        installation.run(
            "account", "add", account, "--provider", "sandbox", "--set", f"rate={rate}",
            "--set", "timeout=2s",
        )  # fmt: skip
    lines = "".join(f"pool-{number:04}\n" for number in range(COUNT))
    (installation.folder / "pool.csv").write_text(f"address\n{lines}")
    (installation.folder / "pool.toml").write_text(
        'name = "pool"\npool = ["ann", "ben", "cleo"]\naudience = "pool.csv"\n'
        '[[parts]]\ntext = "hello {{ target }}"\n[[parts]]\ntext = "and goodbye"\n'
    )
    installation.run("campaign", "create", "-f", "pool.toml", "--launch", "--key", "once")


def test_a_pool_survives_a_killed_service(
    installation: Installation,
) -> None:
    with services(installation, "first", "second") as (first, second):
        _campaign(installation)
        eventually(lambda: len(installation.accepted()) > COUNT // 4, "a quarter was sent")
        first.kill()
        eventually(lambda: installation.finished("pool"), "the campaign ended")
        assert second.terminate() == 0
    accepted = installation.accepted()
    assert (len(accepted), max(accepted.values())) == (2 * COUNT, 1)
    status = installation.ask("campaign", "status", "pool")
    assert status["counts"]["sent"] == status["total"] == COUNT
    senders: dict[str, set[str]] = {}
    for effect in installation.effects():
        if effect.kind == "send" and effect.accepted:
            senders.setdefault(effect.target, set()).add(effect.account)
    assert len(senders) == COUNT
    assert all(len(accounts) == 1 for accounts in senders.values()), (
        "both parts come from one account"
    )
    assert {account for accounts in senders.values() for account in accounts} == set(ACCOUNTS)
    assert installation.ask("verify")["violations"] == []
    installation.run("campaign", "create", "-f", "pool.toml", "--launch", "--key", "once")
    assert len(installation.accepted()) == 2 * COUNT
