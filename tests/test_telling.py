"""From a refused credential to somebody's phone: the whole service, on a real clock and network."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace

from paceline.app import App, open_app
from paceline.config import Settings
from paceline.engine.commands import accounts
from paceline.engine.commands.accounts import NewAccount
from tests import test_app
from tests.providers import test_notices
from tests.providers.test_notices import Inbox
from tests.test_app import send, served, until

database = test_app.database
settings = test_app.settings
inbox: Callable[..., Iterator[Inbox]] = test_notices.inbox


def test_a_suspended_account_reaches_a_person_while_others_send(
    settings: Settings, inbox: Inbox
) -> None:
    """One address does not answer at all; nobody's message waits for it."""

    async def live(app: App) -> None:
        now = app.clock.now()
        with app.store.write() as tx:
            bad = NewAccount("team", "sandbox", settings={"unauthorised_after": 1})
            accounts.add(tx, bad, app.house, now)
        first, second = send(app, "ann"), send(app, "bob")
        async with served(app):
            await until(app, lambda: test_app.is_sent(app, first))
            await until(app, lambda: bool(inbox.taken))
            with app.store.read() as tx:
                assert tx.deliveries.get(second).state == "ready"
            await until(app, lambda: told(app))

    def told(app: App) -> bool:
        with app.store.read() as tx:
            return all(alert.told_at is not None for alert in tx.alerts.list())

    dead = "json://127.0.0.1:1/"
    with open_app(replace(settings, alerts_urls=(dead, inbox.url)), sends=True) as app:
        asyncio.run(live(app))
        with app.store.read() as tx:
            (alert,) = tx.alerts.list()
        assert alert.kind == "account.suspended"
    (notice,) = inbox.taken
    assert notice["title"] == "Paceline: account suspended"
    assert notice["message"].startswith("account team is suspended: ")
