"""One transaction over everything that is stored: each subject, made when first asked for."""

from __future__ import annotations

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
from paceline.store.held_ways import HeldWays
from paceline.store.history import History
from paceline.store.hooks import Hooks
from paceline.store.inbox import Inbox, Watches
from paceline.store.keys import Keys
from paceline.store.lanes import Lanes, Processes
from paceline.store.lazily import Lazily
from paceline.store.ledger import Ledger
from paceline.store.listening import Listening
from paceline.store.media import MediaShelf
from paceline.store.muting import Muting
from paceline.store.path import BasePath
from paceline.store.path_postgresql import PostgresqlPath
from paceline.store.path_sqlite import SqlitePath
from paceline.store.pools import Pools
from paceline.store.questions import Questions
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

    @Lazily
    def path(self) -> BasePath:
        return (PostgresqlPath if self._context.postgresql else SqlitePath)(self._context)

    @Lazily
    def accounts(self) -> Accounts:
        return Accounts(self._context)

    @Lazily
    def policies(self) -> Policies:
        return Policies(self._context)

    @Lazily
    def campaigns(self) -> Campaigns:
        return Campaigns(self._context)

    @Lazily
    def runs(self) -> Runs:
        return Runs(self._context)

    @Lazily
    def pools(self) -> Pools:
        return Pools(self._context)

    @Lazily
    def timetable(self) -> Timetable:
        return Timetable(self._context)

    @Lazily
    def steps(self) -> Steps:
        return Steps(self._context)

    @Lazily
    def bids(self) -> Bids:
        return Bids(self._context)

    @Lazily
    def reminders(self) -> Reminders:
        return Reminders(self._context)

    @Lazily
    def groups(self) -> Groups:
        return Groups(self._context)

    @Lazily
    def keys(self) -> Keys:
        return Keys(self._context)

    @Lazily
    def deliveries(self) -> Deliveries:
        return Deliveries(self._context)

    @Lazily
    def receipts(self) -> Receipts:
        return Receipts(self._context)

    @Lazily
    def lanes(self) -> Lanes:
        return Lanes(self._context)

    @Lazily
    def processes(self) -> Processes:
        return Processes(self._context)

    @Lazily
    def ledger(self) -> Ledger:
        return Ledger(self._context)

    @Lazily
    def media(self) -> MediaShelf:
        return MediaShelf(self._context)

    @Lazily
    def contacts(self) -> Contacts:
        return Contacts(self._context)

    @Lazily
    def audiences(self) -> Audiences:
        return Audiences(self._context)

    @Lazily
    def history(self) -> History:
        return History(self._context)

    @Lazily
    def suppressions(self) -> Suppressions:
        return Suppressions(self._context)

    @Lazily
    def waiting(self) -> Waiting:
        return Waiting(self._context)

    @Lazily
    def settings(self) -> Settings:
        return Settings(self._context)

    @Lazily
    def conversations(self) -> Conversations:
        return Conversations(self._context)

    @Lazily
    def turns(self) -> Turns:
        return Turns(self._context)

    @Lazily
    def muting(self) -> Muting:
        return Muting(self._context)

    @Lazily
    def held_ways(self) -> HeldWays:
        return HeldWays(self._context)

    @Lazily
    def questions(self) -> Questions:
        return Questions(self._context)

    @Lazily
    def listening(self) -> Listening:
        return Listening(self._context)

    @Lazily
    def inbox(self) -> Inbox:
        return Inbox(self._context)

    @Lazily
    def watches(self) -> Watches:
        return Watches(self._context)

    @Lazily
    def events(self) -> Events:
        return Events(self._context)

    @Lazily
    def hooks(self) -> Hooks:
        return Hooks(self._context)

    @Lazily
    def alerts(self) -> Alerts:
        return Alerts(self._context)

    @Lazily
    def audit(self) -> Audit:
        return Audit(self._context)
