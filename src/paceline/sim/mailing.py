"""A simulated campaign: what is sent to whom, and from which accounts."""

from __future__ import annotations

from dataclasses import dataclass

from paceline.core.hours import Hours
from paceline.core.model import AtClose, FollowUp, Part, Step
from paceline.engine.campaign_spec import Assignment, BeforeOpen

ZONES = ("UTC", "Europe/Paris", "America/New_York", "Asia/Kolkata", "Pacific/Auckland")


@dataclass(frozen=True, slots=True)
class Mailing:
    """A campaign and its audience."""

    name: str
    senders: tuple[str, ...]
    targets: int
    parts: tuple[Part, ...] = (Part("text", "hello {{ target }}"),)
    action: str = "message"
    window: Hours | None = None
    at_close: AtClose = "resume"
    priority: int = 0
    launched_after_us: int = 0
    audience: str = ""
    """Whose addresses: mailings that name the same one write to the same people."""
    recipient_hours: str | None = None
    expire_after_us: int | None = None
    assignment: Assignment = "round_robin"
    steps: tuple[Step, ...] = ()
    follow_up: FollowUp | None = None
    planned: bool = False
    """Whether it is laid out over its accounts beforehand."""
    before_open: BeforeOpen = "hold"
    spread_days: int = 1
    zone: str = "UTC"
    zones: tuple[str, ...] = ()
    """Where its people live, one after the other and over again; all over the world if not told."""
    domains: tuple[str, ...] = ()
    """Where they have their mailboxes, likewise; without any, addresses are plain names."""

    @property
    def deliveries(self) -> int:
        """How many it comes to, later steps included; what people bid comes on top."""
        return self.targets * (1 + len(self.steps))

    def address(self, number: int) -> str:
        name = f"{self.audience or self.name}-{number:05}"
        return f"{name}@{self.domains[number % len(self.domains)]}" if self.domains else name

    def zone_of(self, number: int) -> str:
        zones = self.zones or ZONES
        return zones[number % len(zones)]
