"""What the engine asks of the outside: a store, drivers, a clock, and the values they exchange.

Protocols and plain records only; no behaviour. The store is synchronous, so that a simulator can
run it inline; the journal decides on which thread it runs. Every method of a ``Tx`` belongs to one
transaction: the caller opens it, the store never commits by itself.

Times are instants in µs. ``Tx.now`` is the database's own clock, which alone decides about leases.
"""

from __future__ import annotations

from paceline.engine.ports.alerts import Alert, Alerts, NewAlert, Notifier, OpenKind, Told
from paceline.engine.ports.audit import Audit
from paceline.engine.ports.campaigns import Campaigns, Runs
from paceline.engine.ports.events import Events, Hook, Hooks, Posted, Postman, Progress
from paceline.engine.ports.history import History, PastMessage
from paceline.engine.ports.path import (
    Intent,
    LaneResult,
    LaneUnit,
    Path,
    Restored,
    Seen,
    Settlement,
    Spot,
)
from paceline.engine.ports.people import (
    Address,
    Audience,
    Audiences,
    Contact,
    Contacts,
    Member,
    Suppression,
    Suppressions,
)
from paceline.engine.ports.providers import (
    Alarm,
    Capabilities,
    Clock,
    Driver,
    Finding,
    Found,
    Group,
    Grouped,
    Message,
    Provider,
    Providers,
    Resolver,
    Uploaded,
)
from paceline.engine.ports.records import (
    Account,
    CallFacts,
    Campaign,
    Delivery,
    Event,
    LaneRow,
    Lease,
    LedgerRow,
    Media,
    NewDelivery,
    ProcessRow,
    Run,
    RunKind,
    Upload,
)
from paceline.engine.ports.reminders import Groups, Reminder, Reminders, Undelivered
from paceline.engine.ports.store import (
    Journal,
    Store,
    Tx,
    Work,
)
from paceline.engine.ports.subjects import (
    Accounts,
    Deliveries,
    Lanes,
    Ledger,
    MediaShelf,
    Policies,
    Processes,
    Settings,
)
from paceline.engine.ports.waiting import Far, Waiting, WaitingRow
from paceline.engine.ports.webhooks import AccountNews, Inbound, News, Receipt, Webhooks

__all__ = [
    "Account",
    "AccountNews",
    "Accounts",
    "Address",
    "Alarm",
    "Alert",
    "Alerts",
    "Audience",
    "Audiences",
    "Audit",
    "CallFacts",
    "Campaign",
    "Campaigns",
    "Capabilities",
    "Clock",
    "Contact",
    "Contacts",
    "Deliveries",
    "Delivery",
    "Driver",
    "Event",
    "Events",
    "Far",
    "Finding",
    "Found",
    "Group",
    "Grouped",
    "Groups",
    "History",
    "Hook",
    "Hooks",
    "Inbound",
    "Intent",
    "Journal",
    "LaneResult",
    "LaneRow",
    "LaneUnit",
    "Lanes",
    "Lease",
    "Ledger",
    "LedgerRow",
    "Media",
    "MediaShelf",
    "Member",
    "Message",
    "NewAlert",
    "NewDelivery",
    "News",
    "Notifier",
    "OpenKind",
    "PastMessage",
    "Path",
    "Policies",
    "Posted",
    "Postman",
    "ProcessRow",
    "Processes",
    "Progress",
    "Provider",
    "Providers",
    "Receipt",
    "Reminder",
    "Reminders",
    "Resolver",
    "Restored",
    "Run",
    "RunKind",
    "Runs",
    "Seen",
    "Settings",
    "Settlement",
    "Spot",
    "Store",
    "Suppression",
    "Suppressions",
    "Told",
    "Tx",
    "Undelivered",
    "Upload",
    "Uploaded",
    "Waiting",
    "WaitingRow",
    "Webhooks",
    "Work",
]
