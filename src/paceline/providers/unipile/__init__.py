"""Unipile: LinkedIn messages, connection requests, InMail and e-mail through one HTTP API.

An account is connected at Unipile; here it has an address, a key and an id (``settings.py``). What
each action looks like on the wire is in ``wire.py``, what the answers mean in ``errors.py`` and
``status.py``, both as tables; ``finding.py`` looks for what was sent without an answer, and what
Unipile reports by itself is read in ``webhooks.py``. How to connect one is told in
``docs/providers/unipile.md``.
"""

from __future__ import annotations

from paceline.providers.unipile.provider import UnipileProvider
from paceline.providers.unipile.settings import UnipileSettings, read_settings
from paceline.providers.unipile.status import Standing, standing_of

__all__ = [
    "Standing",
    "UnipileProvider",
    "UnipileSettings",
    "read_settings",
    "standing_of",
]
