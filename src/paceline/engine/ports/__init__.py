"""What the engine asks of the outside: a store, drivers, a clock, and the values they exchange.

Protocols and plain records only; no behaviour. The store is synchronous, so that a simulator can
run it inline; the journal decides on which thread it runs. Every method of a ``Tx`` belongs to one
transaction: the caller opens it, the store never commits by itself.

Times are instants in µs. ``Tx.now`` is the database's own clock, which alone decides about leases.
"""

from __future__ import annotations

from paceline.engine.ports.alerts import Alert, Alerts, NewAlert, Notifier, Told
from paceline.engine.ports.audit import Audit
from paceline.engine.ports.history import History, PastMessage
from paceline.engine.ports.path import (
    Intent,
    LaneResult,
    LaneUnit,
    Path,
    Restored,
    Settlement,
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
    Message,
    Provider,
    Providers,
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
from paceline.engine.ports.store import (
    Journal,
    Store,
    Tx,
    Work,
)
from paceline.engine.ports.subjects import (
    Accounts,
    Campaigns,
    Deliveries,
    Events,
    Lanes,
    Ledger,
    MediaShelf,
    Policies,
    Processes,
    Runs,
    Settings,
)
from paceline.engine.ports.waiting import Waiting, WaitingRow

__all__ = [
    "Account",
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
    "Finding",
    "Found",
    "History",
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
    "Notifier",
    "PastMessage",
    "Path",
    "Policies",
    "ProcessRow",
    "Processes",
    "Provider",
    "Providers",
    "Restored",
    "Run",
    "RunKind",
    "Runs",
    "Settings",
    "Settlement",
    "Store",
    "Suppression",
    "Suppressions",
    "Told",
    "Tx",
    "Upload",
    "Uploaded",
    "Waiting",
    "WaitingRow",
    "Work",
]
