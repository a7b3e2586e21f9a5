"""One transaction over everything that is stored: each subject, made when first asked for."""

from __future__ import annotations

from functools import cached_property

from paceline.core.instants import Instant
from paceline.store.accounts import Accounts, Policies
from paceline.store.alerts import Alerts
from paceline.store.audiences import Audiences
from paceline.store.audit import Audit
from paceline.store.base import Context
from paceline.store.bids import Bids
from paceline.store.campaigns import Campaigns, Runs
from paceline.store.contacts import Contacts
from paceline.store.deliveries import Deliveries
from paceline.store.events import Events
from paceline.store.history import History
from paceline.store.hooks import Hooks
from paceline.store.inbox import Inbox, Watches
from paceline.store.keys import Keys
from paceline.store.lanes import Lanes, Processes
from paceline.store.ledger import Ledger
from paceline.store.listening import Listening
from paceline.store.media import MediaShelf
from paceline.store.path import BasePath
from paceline.store.path_postgresql import PostgresqlPath
from paceline.store.path_sqlite import SqlitePath
from paceline.store.pools import Pools
from paceline.store.receipts import Receipts
from paceline.store.reminders import Groups, Reminders
from paceline.store.settings import Settings
from paceline.store.steps import Steps
from paceline.store.suppressions import Suppressions
from paceline.store.talking import Conversations, Turns
from paceline.store.timetable import Timetable
from paceline.store.waiting import Waiting


class Transaction:
    """What ``Store.write`` and ``Store.read`` hand out."""

    def __init__(self, context: Context) -> None:
        self._context = context

    @property
    def now(self) -> Instant:
        return self._context.now

    def hurry(self) -> None:
        self._context.hurry()

    @cached_property
    def path(self) -> BasePath:
        return (PostgresqlPath if self._context.postgresql else SqlitePath)(self._context)

    @cached_property
    def accounts(self) -> Accounts:
        return Accounts(self._context)

    @cached_property
    def policies(self) -> Policies:
        return Policies(self._context)

    @cached_property
    def campaigns(self) -> Campaigns:
        return Campaigns(self._context)

    @cached_property
    def runs(self) -> Runs:
        return Runs(self._context)

    @cached_property
    def pools(self) -> Pools:
        return Pools(self._context)

    @cached_property
    def timetable(self) -> Timetable:
        return Timetable(self._context)

    @cached_property
    def steps(self) -> Steps:
        return Steps(self._context)

    @cached_property
    def bids(self) -> Bids:
        return Bids(self._context)

    @cached_property
    def reminders(self) -> Reminders:
        return Reminders(self._context)

    @cached_property
    def groups(self) -> Groups:
        return Groups(self._context)

    @cached_property
    def keys(self) -> Keys:
        return Keys(self._context)

    @cached_property
    def deliveries(self) -> Deliveries:
        return Deliveries(self._context)

    @cached_property
    def receipts(self) -> Receipts:
        return Receipts(self._context)

    @cached_property
    def lanes(self) -> Lanes:
        return Lanes(self._context)

    @cached_property
    def processes(self) -> Processes:
        return Processes(self._context)

    @cached_property
    def ledger(self) -> Ledger:
        return Ledger(self._context)

    @cached_property
    def media(self) -> MediaShelf:
        return MediaShelf(self._context)

    @cached_property
    def contacts(self) -> Contacts:
        return Contacts(self._context)

    @cached_property
    def audiences(self) -> Audiences:
        return Audiences(self._context)

    @cached_property
    def history(self) -> History:
        return History(self._context)

    @cached_property
    def suppressions(self) -> Suppressions:
        return Suppressions(self._context)

    @cached_property
    def waiting(self) -> Waiting:
        return Waiting(self._context)

    @cached_property
    def settings(self) -> Settings:
        return Settings(self._context)

    @cached_property
    def conversations(self) -> Conversations:
        return Conversations(self._context)

    @cached_property
    def turns(self) -> Turns:
        return Turns(self._context)

    @cached_property
    def listening(self) -> Listening:
        return Listening(self._context)

    @cached_property
    def inbox(self) -> Inbox:
        return Inbox(self._context)

    @cached_property
    def watches(self) -> Watches:
        return Watches(self._context)

    @cached_property
    def events(self) -> Events:
        return Events(self._context)

    @cached_property
    def hooks(self) -> Hooks:
        return Hooks(self._context)

    @cached_property
    def alerts(self) -> Alerts:
        return Alerts(self._context)

    @cached_property
    def audit(self) -> Audit:
        return Audit(self._context)
