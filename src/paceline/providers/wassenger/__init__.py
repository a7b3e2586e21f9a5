"""Wassenger: WhatsApp, people and groups, through the HTTP API of a gateway that holds the session.

A phone is paired at Wassenger; here it has a device id and a key (``settings.py``). What a message
looks like on the wire is in ``wire.py``, what the answers mean in ``errors.py`` and ``status.py``,
both as tables; what Wassenger reports by itself is read in ``webhooks.py``. The gateway's own queue
and retries are switched off for every message: when something is sent, and again, is decided here.
How to connect one is told in ``docs/providers/wassenger.md``.
"""

from __future__ import annotations

from paceline.providers.wassenger.provider import WassengerProvider
from paceline.providers.wassenger.settings import WassengerSettings, read_settings

__all__ = ["WassengerProvider", "WassengerSettings", "read_settings"]
